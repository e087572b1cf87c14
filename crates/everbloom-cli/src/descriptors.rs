//! Which standard streams were closed when the program was started.
//!
//! Before `main`, the standard library opens `/dev/null` in place of a standard stream that is closed, and nothing tells it
//! from the `/dev/null` that somebody asked for. What was written would be lost without a word, so this looks before.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_STDIN_CLOSED: AtomicBool = AtomicBool::new(false);
static IS_STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

ctor::declarative::ctor! {
    // It runs before the standard library is ready, and uses nothing of it but two atomic stores: rustix asks the system
    // itself. Descriptors that are not open are not used, only asked for.
    #[ctor(unsafe)]
    fn look() {
        let is_closed = |descriptor| rustix::io::fcntl_getfd(descriptor) == Err(rustix::io::Errno::BADF);
        IS_STDIN_CLOSED.store(is_closed(rustix::stdio::stdin()), Ordering::Relaxed);
        IS_STDOUT_CLOSED.store(is_closed(rustix::stdio::stdout()), Ordering::Relaxed);
    }
}

/// Refuses to read where nothing can be read.
pub(crate) fn check_stdin() -> io::Result<()> {
    check(&IS_STDIN_CLOSED, "is closed; name a file, or give it something to read")
}

/// Refuses to write where everything would be lost.
pub(crate) fn check_stdout() -> io::Result<()> {
    check(&IS_STDOUT_CLOSED, "is closed; redirect it to a file, a pipe or /dev/null")
}

fn check(is_closed: &AtomicBool, problem: &'static str) -> io::Result<()> {
    if is_closed.load(Ordering::Relaxed) { Err(io::Error::other(problem)) } else { Ok(()) }
}
