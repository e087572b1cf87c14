//! A way to a server that is cut at random points.

use super::Chance;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes on what comes to its port; after some bytes, of either direction, it cuts the connection. It ends when it is
/// dropped.
pub struct Cutter {
    port: u16,
    cuts: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Cutter {
    /// Cuts each connection after up to so many bytes.
    pub fn to(port: u16, seed: u64, most_bytes: u64) -> Cutter {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let own = listener.local_addr().expect("an address").port();
        let (cuts, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, over) = (cuts.clone(), ended.clone());
        std::thread::spawn(move || {
            let mut chance = Chance(seed);
            for near in listener.incoming().map_while(Result::ok) {
                if over.load(SeqCst) {
                    break;
                }
                let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
                // Now and then right at the answer, which is short: after the batch counted, before that is known.
                let limits =
                    if chance.one_in(2) { [u64::MAX, chance.below(200)] } else { [chance.below(most_bytes), u64::MAX] };
                pass(&near, &far, limits, &counted);
            }
        });
        Cutter { port: own, cuts, ended }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections that were cut.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(SeqCst)
    }
}

fn pass(near: &TcpStream, far: &TcpStream, limits: [u64; 2], cuts: &Arc<AtomicU64>) {
    let is_cut = Arc::new(Mutex::new(false));
    for ((from, to), limit) in [(near, far), (far, near)].into_iter().zip(limits) {
        let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
        let (cuts, is_cut) = (cuts.clone(), is_cut.clone());
        std::thread::spawn(move || {
            let (mut room, mut left) = ([0; 1 << 14], limit);
            while let Ok(count @ 1..) = from.read(&mut room) {
                let passed = count.min(usize::try_from(left).unwrap_or(usize::MAX));
                left -= passed as u64;
                let is_over = to.write_all(&room[..passed]).is_err() || passed < count;
                if is_over {
                    if passed < count
                        && !std::mem::replace(&mut *is_cut.lock().unwrap_or_else(PoisonError::into_inner), true)
                    {
                        cuts.fetch_add(1, SeqCst);
                    }
                    break;
                }
            }
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.ended.store(true, SeqCst);
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}
