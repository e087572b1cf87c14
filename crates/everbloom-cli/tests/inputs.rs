//! What is read: packed inputs of every kind, whole or not, from files and from pipes that stay open.

mod common;

use common::{Folder, assert_refused, error_of};
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn numbered(count: usize) -> Vec<u8> {
    (0..count).flat_map(|number| format!("line {number}\n").into_bytes()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("gzip")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("zstd");
    encoder.include_checksum(true).expect("a checksum");
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("zstd")
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("bzip2")
}

fn xz_with(bytes: &[u8], dictionary: u32) -> Vec<u8> {
    let mut options = lzma_rust2::XzOptions::with_preset(1);
    options.lzma_options.dict_size = dictionary;
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).expect("xz");
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("xz")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    xz_with(bytes, 1 << 20)
}

fn lz4_with(bytes: &[u8], info: lz4_flex::frame::FrameInfo) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).expect("lz4");
    encoder.finish().expect("lz4")
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new().content_checksum(true).block_checksums(true);
    lz4_with(bytes, info.block_mode(lz4_flex::frame::BlockMode::Linked))
}

type Pack = fn(&[u8]) -> Vec<u8>;
const KINDS: [(&str, Pack); 5] = [("gz", gzip), ("zst", zstd), ("bz2", bzip2), ("xz", xz), ("lz4", lz4)];

fn skippable(content: &[u8]) -> Vec<u8> {
    [&[0x53, 0x2a, 0x4d, 0x18], &(content.len() as u32).to_le_bytes()[..], content].concat()
}

#[test]
fn every_kind_is_known_by_its_content() {
    let folder = Folder::new();
    let text = numbered(300_000);
    for (name, pack) in KINDS {
        let packed = pack(&text);
        folder.write("in.txt", &packed);
        assert!(folder.output_of(&["dedup", "--exact", "in.txt"]) == text, "{name} from a file");
        assert!(folder.output_with(&["dedup", "--exact"], &packed) == text, "{name} from a pipe");
        assert_eq!(folder.output_with(&["dedup", "--exact"], &pack(b"")), b"", "{name} of nothing");
    }
    let plain = lz4_with(&text, lz4_flex::frame::FrameInfo::new());
    assert!(folder.output_with(&["dedup", "--exact"], &plain) == text, "independent blocks without checksums");
    assert_eq!(folder.output_with(&["dedup", "--exact"], b"BZh is a word\n("), b"BZh is a word\n(\n");
}

#[test]
fn members_frames_and_padding_follow_each_other() {
    let folder = Folder::new();
    let run = |bytes: &[u8]| folder.output_with(&["dedup", "--exact"], bytes);
    let (one, two) = (b"one\ntw".as_slice(), b"o\nthree\n".as_slice());
    for (name, pack) in KINDS {
        let both = [pack(one), pack(two)].concat();
        assert_eq!(run(&both), b"one\ntwo\nthree\n", "{name}");
        assert_eq!(run(&[&both[..], &[0; 512]].concat()), b"one\ntwo\nthree\n", "{name} padded");
        let garbage = folder.run_with(&["dedup", "--exact"], &[&both[..], b"garbage"].concat());
        assert_refused(&garbage, "not packed");
        assert_eq!(garbage.stdout, b"one\ntwo\nthree\n", "{name}: all before the garbage");
    }
    for pack in [zstd, lz4] {
        let (start, middle, end) = (skippable(b"pzst"), skippable(&[7; 100_000]), skippable(b""));
        let all = [&start[..], &pack(one), &middle, &end, &pack(two), &end, &start].concat();
        assert_eq!(run(&all), b"one\ntwo\nthree\n");
        assert_refused(&folder.run_with(&["dedup", "--exact"], &all[..all.len() - 1]), "cut short");
    }
    assert_eq!(run(&skippable(b"nothing else")), b"");
}

#[test]
fn what_is_cut_or_damaged_is_an_error() {
    let folder = Folder::new();
    // Several blocks of each kind, so that some cuts lie between two of them.
    let text = numbered(200_000);
    for (name, pack) in KINDS {
        let packed = pack(&text);
        for cut in (1..40).map(|part| packed.len() * part / 40).chain([packed.len() - 1, packed.len() - 4]) {
            let output = folder.run_with(&["dedup", "--exact"], &packed[..cut]);
            assert_eq!(output.status.code(), Some(2), "{name} cut to {cut} of {} bytes", packed.len());
            assert!(text.starts_with(&output.stdout) || name == "bz2", "{name} cut to {cut}");
        }
        for part in 1..20 {
            let mut damaged = packed.clone();
            damaged[packed.len() * part / 20] ^= 0x55;
            let output = folder.run_with(&["dedup", "--exact"], &damaged);
            assert_eq!(output.status.code(), Some(2), "{name} with byte {} damaged", packed.len() * part / 20);
            assert!(!error_of(&output).contains("panicked"), "{}", error_of(&output));
        }
    }
    assert_refused(&folder.run_with(&["dedup"], &[2, 0x21, 0x4c, 0x18, 0, 0, 0, 0]), "legacy");
}

#[test]
fn dictionaries_beyond_the_limit_are_refused() {
    let folder = Folder::new();
    // The size of the dictionary is a byte of the block's header, behind which its checksum follows.
    let mut packed = xz(b"a\n");
    let header = 12..12 + (usize::from(packed[12]) + 1) * 4;
    let at = header.start + 4;
    assert_eq!(packed[header.start + 2..at], [0x21, 1], "the filter is LZMA2");
    packed[at] = 37;
    let checksum = crc32(&packed[header.start..header.end - 4]);
    packed[header.end - 4..header.end].copy_from_slice(&checksum.to_le_bytes());
    let output = folder.run_with(&["dedup"], &packed);
    assert_refused(&output, "at most 128 MiB");
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// A command that is talked to while it runs.
struct Live {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
}

impl Live {
    fn new(folder: &Folder, arguments: &[&str]) -> Self {
        let mut child =
            folder.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("everbloom runs");
        let (input, mut stdout) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Live { child, input, output }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.as_mut().expect("an open pipe").write_all(bytes).expect("a live pipe");
    }

    /// Waits until so much has come; a minute is for ever.
    fn receive(&self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            match self.output.recv_timeout(Duration::from_secs(60)) {
                Ok(more) => bytes.extend(more),
                Err(_) => break,
            }
        }
        bytes
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.input = None;
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_member_in_an_open_pipe_is_given_at_once() {
    let folder = Folder::new();
    let text = numbered(200_000);
    for (name, pack) in KINDS {
        let mut live = Live::new(&folder, &["dedup", "--exact"]);
        live.send(&pack(&text));
        assert!(live.receive(text.len()) == text, "{name}");
        live.send(&pack(b"another member\n"));
        assert_eq!(live.receive(15), b"another member\n", "{name}");
    }
}

#[test]
fn what_was_flushed_is_given_at_once() {
    let folder = Folder::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut live = Live::new(&folder, &["dedup", "--exact"]);
    for number in 0..5 {
        let line = format!("event {number} {}\n", "long".repeat(number * 100));
        encoder.write_all(line.as_bytes()).and_then(|()| encoder.flush()).expect("gzip");
        live.send(&std::mem::take(encoder.get_mut()));
        assert_eq!(live.receive(line.len()), line.as_bytes());
    }
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("zstd");
    let mut live = Live::new(&folder, &["dedup", "--exact"]);
    for number in 0..5 {
        let line = format!("event {number}\n");
        encoder.write_all(line.as_bytes()).and_then(|()| encoder.flush()).expect("zstd");
        live.send(&std::mem::take(encoder.get_mut()));
        assert_eq!(live.receive(line.len()), line.as_bytes());
    }
}

#[test]
fn queries_are_answered_line_by_line() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered(1000));
    folder.output_of(&["build", "keys.txt", "-o", "keys.ebf"]);
    let mut live = Live::new(&folder, &["query", "keys.ebf"]);
    for number in 0..20 {
        // Half of the next line must not hold back the answer to this one.
        live.send(format!("ne {number}\nli").replace("ne", if number == 0 { "line" } else { "ne" }).as_bytes());
        let line = format!("line {number}\n");
        assert_eq!(live.receive(line.len()), line.as_bytes());
    }
    // Nor must a pipe behind a file hold back the answers to the file.
    let mut live = Live::new(&folder, &["query", "keys.ebf", "keys.txt", "-"]);
    assert!(live.receive(numbered(1000).len()) == numbered(1000));
    live.send(b"line 7\n");
    assert_eq!(live.receive(7), b"line 7\n");
}
