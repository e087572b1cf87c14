//! `query --mmap`: processes that ask the same file share its memory, and have none of it for themselves.
//!
//! The kernel's own count (`/proc/PID/smaps`) of processes that have asked every page of a 48 MiB filter and wait
//! for more input. Reading the file instead is the counterproof: it must show up in the same count.

#![cfg(target_os = "linux")]

mod common;

use common::Folder;
use common::live::numbered;
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

const FILTER_BYTES: u64 = 48 << 20;
/// How often every key is asked for: what was printed for the first two times shows that all were asked.
const ROUNDS: usize = 4;

/// A `query` in the middle of its input.
struct Asking {
    child: Child,
    stdout: ChildStdout,
    printed: Vec<u8>,
    close: Sender<()>,
    feeder: JoinHandle<()>,
}

impl Asking {
    /// Starts a query and waits until it has answered for all keys.
    fn start(folder: &Folder, arguments: &[&str], keys: &str) -> Self {
        let mut command = folder.command(&[&["query"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("everbloom runs");
        let (mut stdin, mut stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (input, (close, closed)) = (keys.repeat(ROUNDS), channel());
        let feeder = std::thread::spawn(move || {
            stdin.write_all(input.as_bytes()).expect("the query reads on");
            // The input stays open until nobody looks any more.
            let _ = closed.recv();
        });
        let mut printed = vec![0; 2 * keys.len()];
        stdout.read_exact(&mut printed).expect("every key is found");
        Asking { child, stdout, printed, close, feeder }
    }

    /// A count of the kernel's, in bytes, over all mappings of the process or of one file.
    fn memory(&self, field: &str, file: Option<&str>) -> u64 {
        let smaps = std::fs::read_to_string(format!("/proc/{}/smaps", self.child.id())).expect("a living process");
        let (mut counts, mut sum) = (file.is_none(), 0);
        for line in smaps.lines() {
            let first = line.split_whitespace().next().unwrap_or_default();
            if !first.ends_with(':') {
                counts = file.is_none_or(|name| line.ends_with(name));
            } else if counts && first.trim_end_matches(':') == field {
                let kib: u64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
                sum += kib << 10;
            }
        }
        sum
    }

    fn private(&self) -> u64 {
        self.memory("Private_Dirty", None) + self.memory("Private_Clean", None)
    }

    /// Ends the input, and checks that all answers were right.
    fn finish(mut self, keys: &str) {
        drop(self.close);
        self.stdout.read_to_end(&mut self.printed).expect("its output");
        self.feeder.join().expect("the feeder ends");
        assert!(self.child.wait().expect("it ends").success());
        assert!(self.printed == keys.repeat(ROUNDS).as_bytes(), "every key is in the filter");
    }
}

#[test]
fn a_mapped_filter_adds_no_memory_of_its_own_to_any_process() {
    let folder = Folder::new();
    // Three probes of each of 60,000 keys: 15 into each of the file's 12,288 pages.
    let keys = numbered("user", 60_000);
    folder.write("keys.txt", &keys);
    for (kind, words) in [("bloom", ",num_hashes=3"), ("blocked", "")] {
        let build = |bytes: u64, name: &str| {
            let spec = format!("{kind}:num_bits={}{words}", bytes * 8);
            folder.output_of(&["build", "keys.txt", "--filter", &spec, "-o", name]);
        };
        build(FILTER_BYTES, "large.ebf");
        build(128 << 10, "small.ebf");

        let small = Asking::start(&folder, &["small.ebf", "--mmap"], &keys);
        let mapped: Vec<Asking> = (0..3).map(|_| Asking::start(&folder, &["large.ebf", "--mmap"], &keys)).collect();
        let loaded = Asking::start(&folder, &["large.ebf"], &keys);
        let usual = small.private();
        for one in &mapped {
            let of_file = |field: &str| one.memory(field, Some("/large.ebf"));
            assert!(of_file("Rss") > FILTER_BYTES * 9 / 10, "{kind}: only {} bytes were asked", of_file("Rss"));
            assert_eq!((of_file("Private_Dirty"), of_file("Anonymous")), (0, 0), "{kind}: pages were copied");
            assert_eq!(of_file("Private_Clean"), 0, "{kind}: pages are not shared");
            assert_eq!(of_file("Shared_Clean") + of_file("Shared_Dirty"), of_file("Rss"), "{kind}");
            // What a process takes to read lines and answer varies by its buffers.
            assert!(one.private() < usual + (1 << 20), "{kind}: {} bytes, not about {usual}", one.private());
        }
        assert_eq!(loaded.memory("Rss", Some("/large.ebf")), 0, "{kind}: nothing is mapped unasked");
        assert!(loaded.private() > usual + FILTER_BYTES * 9 / 10, "{kind}: {} bytes show no copy", loaded.private());
        mapped.into_iter().chain([small, loaded]).for_each(|one| one.finish(&keys));
    }
}
