//! A connection between two servers that can be frozen. On loopback the kernel hands over what a killed process had
//! sent; a link that holds it back loses it, as a network does.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes on what comes to its port, until it is frozen. It ends when it is dropped.
pub struct Link {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    frozen: AtomicBool,
    ended: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Link {
    pub fn to(port: u16) -> Link {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let own = listener.local_addr().expect("an address").port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if shared.ended.load(SeqCst) {
                    break;
                }
                if let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    both_ways(&shared, &near, &far);
                }
            }
        });
        Link { port: own, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on nothing passes.
    pub fn freeze(&self) {
        self.state.frozen.store(true, SeqCst);
    }
}

fn both_ways(state: &Arc<State>, near: &TcpStream, far: &TcpStream) {
    for (from, to) in [(near, far), (far, near)] {
        let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
        let mut open = state.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.extend([&from, &to].into_iter().filter_map(|stream| stream.try_clone().ok()));
        drop(open);
        let state = state.clone();
        std::thread::spawn(move || {
            let mut room = [0; 1 << 14];
            while let Ok(count @ 1..) = from.read(&mut room) {
                // What was read is gone, as on a cut cable.
                if !state.frozen.load(SeqCst) && to.write_all(&room[..count]).is_err() {
                    break;
                }
            }
            // A frozen link says nothing of the end of the other side, either.
            if !state.frozen.load(SeqCst) {
                let _ = to.shutdown(Shutdown::Both);
            }
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.state.ended.store(true, SeqCst);
        for stream in self.state.open.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}
