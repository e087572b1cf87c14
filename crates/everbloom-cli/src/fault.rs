//! Faults on purpose, for the tests: any one of the calls through which dedup's files pass can be made to go wrong.
//!
//! `EVERBLOOM_FAULT="fail 7"` lets the call numbered 7 fail, from 0; `kill 7` and `term 7` send that signal there, and
//! `full 7` leaves no space to write from there on. A write is cut in half by it. Whoever is hit says so on stderr, so
//! that a test knows when it is through. A release build has none of this.

use std::io::{self, Read, Write};

/// A file whose reads and writes may go wrong.
#[derive(Debug)]
pub(crate) struct Fallible<T>(pub(crate) T);

impl<T: Read> Read for Fallible<T> {
    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        point("read")?;
        self.0.read(bytes)
    }
}

impl<T: Write> Write for Fallible<T> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(debug_assertions)]
        if let Some(fault) = on_purpose::turn("write") {
            let half = if fault.is_first { self.0.write(&bytes[..bytes.len() / 2])? } else { 0 };
            fault.happen()?;
            return if half > 0 { Ok(half) } else { self.0.write(bytes) };
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Stands before a call to the system, and goes wrong in its place.
#[cfg(debug_assertions)]
pub(crate) fn point(call: &'static str) -> io::Result<()> {
    on_purpose::turn(call).map_or(Ok(()), on_purpose::Fault::happen)
}

/// Nothing goes wrong on purpose.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn point(_call: &'static str) -> io::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
mod on_purpose {
    use signal_hook::consts::{SIGKILL, SIGTERM};
    use std::io;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// What is to happen, and at which call.
    static PLAN: LazyLock<Option<(String, u64)>> = LazyLock::new(|| {
        let plan = std::env::var("EVERBLOOM_FAULT").ok()?;
        let (what, number) = plan.split_once(' ')?;
        Some((what.to_string(), number.parse().ok()?))
    });
    static CALLS: AtomicU64 = AtomicU64::new(0);

    pub(super) struct Fault {
        call: &'static str,
        what: &'static str,
        pub(super) is_first: bool,
    }

    /// Counts a call, and says what is to go wrong with it.
    pub(super) fn turn(call: &'static str) -> Option<Fault> {
        let (what, at) = PLAN.as_ref()?;
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        let is_hit = if what == "full" { number >= *at && matches!(call, "write" | "create") } else { number == *at };
        is_hit.then_some(Fault { call, what, is_first: number == *at })
    }

    impl Fault {
        pub(super) fn happen(self) -> io::Result<()> {
            eprintln!("fault: {} {}", self.what, self.call);
            match (self.what, self.call) {
                ("kill", _) => signal_hook::low_level::raise(SIGKILL),
                ("term", _) => signal_hook::low_level::raise(SIGTERM),
                (_, "write" | "create") => Err(rustix::io::Errno::NOSPC.into()),
                _ => Err(rustix::io::Errno::IO.into()),
            }
        }
    }
}
