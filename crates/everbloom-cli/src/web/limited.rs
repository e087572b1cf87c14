//! Connections, no more than so many at a time and none for nothing: each takes a file descriptor, and a run that is shown on a
//! page needs its own.

use axum::serve::Listener;
use std::io::{self, Result};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Connections at a time: a browser opens six. Further ones wait until one ends.
const MOST: usize = 64;

/// How long nothing may pass through one; longer than any answer takes.
const IDLE: Duration = Duration::from_secs(60);

/// Takes connections while fewer than [`MOST`] are open.
pub(super) struct Limited {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

impl Limited {
    pub(super) fn new(listener: TcpListener) -> Self {
        Limited { listener, free: Arc::new(Semaphore::new(MOST)) }
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection { stream, idle: Box::pin(sleep(IDLE)), _permit: permit }, address)
    }

    fn local_addr(&self) -> Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// One of them.
pub(super) struct Connection {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    fn is_used(&mut self) {
        self.idle.as_mut().reset(Instant::now() + IDLE);
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, into) {
            Poll::Pending => {
                ready!(self.idle.as_mut().poll(context));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            done => {
                self.is_used();
                done
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.is_used();
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
