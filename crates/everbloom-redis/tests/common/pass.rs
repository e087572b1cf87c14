//! A server whose answers are another's, but for some.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The port of a server that passes commands on to the one at `port`, unless `answer` has an answer of its own. It lives as long as
/// the test.
pub fn pass_through(port: u16, answer: impl FnMut(&[Vec<u8>]) -> Option<String> + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    let own = listener.local_addr().expect("an address").port();
    let answer = Arc::new(Mutex::new(answer));
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut answer = move |words: &[Vec<u8>]| answer.lock().unwrap_or_else(PoisonError::into_inner)(words);
                serve(&near, &far, &mut answer)
            });
        }
    });
    own
}

/// Until one side ends.
fn serve(near: &TcpStream, far: &TcpStream, answer: &mut dyn FnMut(&[Vec<u8>]) -> Option<String>) -> Option<()> {
    let (mut commands, mut replies) = (BufReader::new(near), BufReader::new(far));
    loop {
        let mut raw = Vec::new();
        let count = number(&mut commands, &mut raw)?;
        let mut words = Vec::new();
        for _ in 0..count {
            let length = number(&mut commands, &mut raw)?;
            let start = raw.len();
            raw.resize(start + length + 2, 0);
            commands.read_exact(&mut raw[start..]).ok()?;
            words.push(raw[start..start + length].to_vec());
        }
        let reply = match answer(&words) {
            Some(text) => text.into_bytes(),
            None => {
                let mut far = far;
                far.write_all(&raw).ok()?;
                let mut reply = Vec::new();
                whole(&mut replies, &mut reply)?;
                reply
            }
        };
        let mut near = near;
        near.write_all(&reply).ok()?;
    }
}

/// The number behind the first sign of a line, which is kept.
fn number(from: &mut impl BufRead, raw: &mut Vec<u8>) -> Option<usize> {
    let start = raw.len();
    from.read_until(b'\n', raw).ok().filter(|count| *count > 2)?;
    std::str::from_utf8(&raw[start + 1..]).ok()?.trim().parse().ok()
}

/// One reply of the second protocol, with all that is in it.
fn whole(from: &mut impl BufRead, raw: &mut Vec<u8>) -> Option<()> {
    let start = raw.len();
    from.read_until(b'\n', raw).ok().filter(|count| *count > 2)?;
    let count = std::str::from_utf8(&raw[start + 1..]).ok().and_then(|text| text.trim().parse::<i64>().ok());
    match (raw[start], count) {
        (b'$', Some(length @ 0..)) => {
            let start = raw.len();
            raw.resize(start + length as usize + 2, 0);
            from.read_exact(&mut raw[start..]).ok()
        }
        (b'*', Some(items @ 1..)) => (0..items).try_for_each(|_| whole(from, raw)),
        _ => Some(()),
    }
}
