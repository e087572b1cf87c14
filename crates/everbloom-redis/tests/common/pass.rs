//! A server whose answers are another's, but for some.

use super::proxy::Proxy;
use super::wire::read_reply;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};

/// The port of a server that passes commands on to the one at `port`, unless `answer` has an answer of its own. It lives as long as
/// the test.
pub fn pass_through(port: u16, answer: impl FnMut(&[Vec<u8>]) -> Option<String> + Send + 'static) -> u16 {
    let answer = Arc::new(Mutex::new(answer));
    let proxy = Proxy::to(port, move |near, far| {
        let answer = answer.clone();
        std::thread::spawn(move || {
            let mut answer = move |words: &[Vec<u8>]| answer.lock().unwrap_or_else(PoisonError::into_inner)(words);
            serve(&near, &far, &mut answer)
        });
    });
    std::mem::ManuallyDrop::new(proxy).port
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
                read_reply(&mut replies, &mut reply).ok()?;
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
