//! A connection that can be frozen, between two servers or a client and one. On loopback the kernel hands over what a killed process had
//! sent; a link that holds it back loses it, as a network does.

use super::proxy::Proxy;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes on what comes to its port, until it is frozen. It ends when it is dropped.
pub struct Link {
    proxy: Proxy,
    state: Arc<State>,
}

struct State {
    frozen: AtomicBool,
    /// Bytes that still pass to the server.
    left: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
}

impl Link {
    pub fn to(port: u16) -> Link {
        let frozen = AtomicBool::new(false);
        let state = Arc::new(State { frozen, left: AtomicU64::new(u64::MAX), open: Mutex::default() });
        let shared = state.clone();
        Link { proxy: Proxy::to(port, move |near, far| both_ways(&shared, &near, &far)), state }
    }

    pub fn port(&self) -> u16 {
        self.proxy.port
    }

    /// From now on nothing passes.
    pub fn freeze(&self) {
        self.state.frozen.store(true, SeqCst);
    }

    /// So many bytes pass to the server, then no more until there is another limit; what it answers always passes. What comes in
    /// one piece is not divided.
    pub fn limit(&self, bytes: u64) {
        self.state.left.store(bytes, SeqCst);
    }
}

fn both_ways(state: &Arc<State>, near: &TcpStream, far: &TcpStream) {
    for (from, to, is_limited) in [(near, far, true), (far, near, false)] {
        let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
        let mut open = state.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.extend([&from, &to].into_iter().filter_map(|stream| stream.try_clone().ok()));
        drop(open);
        let state = state.clone();
        std::thread::spawn(move || {
            let mut room = [0; 1 << 14];
            while let Ok(count @ 1..) = from.read(&mut room) {
                // What was read is gone, as on a cut cable.
                let left = if is_limited { take(&state.left, count as u64) } else { u64::MAX };
                if left > 0 && !state.frozen.load(SeqCst) && to.write_all(&room[..count]).is_err() {
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

/// What was left before so much of it was taken.
fn take(left: &AtomicU64, count: u64) -> u64 {
    let taken = |left: u64| Some(if left == u64::MAX { left } else { left.saturating_sub(count) });
    left.fetch_update(SeqCst, SeqCst, taken).unwrap_or(0)
}

impl Drop for Link {
    fn drop(&mut self) {
        for stream in self.state.open.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
