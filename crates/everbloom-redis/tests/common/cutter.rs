//! A way to a server that is cut at random points.

use super::Chance;
use super::proxy::Proxy;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes on what comes to its port; after some bytes, of either direction, it cuts the connection. It ends when it is
/// dropped.
pub struct Cutter {
    proxy: Proxy,
    cuts: Arc<AtomicU64>,
}

impl Cutter {
    /// Cuts each connection after up to so many bytes.
    pub fn to(port: u16, seed: u64, most_bytes: u64) -> Cutter {
        let (cuts, mut chance) = (Arc::new(AtomicU64::new(0)), Chance(seed));
        let counted = cuts.clone();
        let proxy = Proxy::to(port, move |near, far| {
            // Now and then right at the answer, which is short: after the batch counted, before that is known.
            let limits =
                if chance.one_in(2) { [u64::MAX, chance.below(200)] } else { [chance.below(most_bytes), u64::MAX] };
            pass(&near, &far, limits, &counted);
        });
        Cutter { proxy, cuts }
    }

    pub fn port(&self) -> u16 {
        self.proxy.port
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
