//! A way to a server that leads through the test.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Connects whoever comes to its port with a server; what passes between them is the caller's. It ends when it is dropped.
pub struct Proxy {
    pub port: u16,
    ended: Arc<AtomicBool>,
}

impl Proxy {
    pub fn to(port: u16, mut connected: impl FnMut(TcpStream, TcpStream) + Send + 'static) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let own = listener.local_addr().expect("an address").port();
        let ended = Arc::new(AtomicBool::new(false));
        let over = ended.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if over.load(SeqCst) {
                    break;
                }
                if let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    connected(near, far);
                }
            }
        });
        Proxy { port: own, ended }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, SeqCst);
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}
