//! `dedup` and its files: no line is lost, doubled or glued to another, whatever becomes of inputs, outputs and the process.

mod common;

use common::{Folder, assert_refused, error_of, json_of};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Waits until something holds; a minute is for ever.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A run that goes on while the test does other things.
struct Running(Child);

impl Running {
    fn start(folder: &Folder, arguments: &[&str], input: Stdio, output: Stdio) -> Self {
        let mut command = folder.command(arguments);
        Running(command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn().expect("everbloom runs"))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// How it ended, and what it said. What does not end is ended, and has no code.
    fn end(&mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        while self.0.try_wait().expect("a child").is_none() {
            if start.elapsed() > Duration::from_secs(60) {
                self.0.kill().expect("a signal");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut said = String::new();
        self.0.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        (self.0.wait().expect("an end").code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn append(folder: &Folder, name: &str, text: &str) {
    let mut file = File::options().append(true).create(true).open(folder.path(name)).expect("a file");
    file.write_all(text.as_bytes()).expect("a line appended");
}

/// Runs, and says what it said.
#[track_caller]
fn run(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", error_of(&output));
    error_of(&output)
}

fn text(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).expect("text")
}

fn numbered(word: &str, count: usize) -> String {
    (0..count).map(|number| format!("{word}-{number}\n")).collect()
}

const STATE: [&str; 6] = ["dedup", "--exact", "--state", "s", "-o", "out"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&STATE[..], more].concat()
}

#[test]
fn the_end_of_input_ends_the_last_line() {
    let folder = Folder::new();
    folder.write("a", "x\nb");
    folder.write("b", "c\nb");
    assert_eq!(folder.output_of(&["dedup", "--exact", "a", "b"]), b"x\nb\nc\n");
    assert_eq!(folder.output_with(&["dedup", "--exact"], b"x\ny\nx\nz"), b"x\ny\nz\n");
    assert_eq!(folder.output_with(&["dedup", "--exact", "--null"], b"x\0z"), b"x\0z\0");
}

#[test]
fn a_last_line_that_goes_on_is_taken_back() {
    let folder = Folder::new();
    folder.write("in", "ta\nalpha\nbe");
    run(&folder, &with(&["--duplicates", "dup", "in"]));
    assert_eq!(text(&folder, "out"), "ta\nalpha\nbe\n");
    run(&folder, &with(&["--duplicates", "dup", "in"]));
    assert_eq!((text(&folder, "out"), text(&folder, "dup")), ("ta\nalpha\nbe\n".into(), String::new()), "nothing new");
    append(&folder, "in", "ta\ngamma\nal");
    run(&folder, &with(&["--duplicates", "dup", "in"]));
    assert_eq!(text(&folder, "out"), "ta\nalpha\nbeta\ngamma\nal\n");
    append(&folder, "in", "pha\nbe\n");
    run(&folder, &with(&["--duplicates", "dup", "in"]));
    assert_eq!(text(&folder, "out"), "ta\nalpha\nbeta\ngamma\nbe\n", "be was never remembered, al is gone");
    assert_eq!(text(&folder, "dup"), "alpha\n");
}

#[test]
fn a_last_line_that_only_gets_its_ending_is_no_repeat() {
    let folder = Folder::new();
    folder.write("in", "one\ntwo");
    let arguments = with(&["--duplicates", "dup", "--stats", "stats", "in"]);
    run(&folder, &arguments);
    append(&folder, "in", "\nthree\ntwo\n");
    assert_eq!(run(&folder, &arguments), "everbloom: resuming in at byte 8");
    assert_eq!((text(&folder, "out"), text(&folder, "dup")), ("one\ntwo\nthree\n".into(), "two\n".into()));
    assert_eq!(json_of(&folder.read("stats"))["total"]["items"], 4);
}

#[test]
fn a_last_line_stays_where_it_cannot_be_taken_back() {
    let folder = Folder::new();
    folder.write("in", "one\ntw");
    run(&folder, &with(&["in"]));
    // Another input: the line stays, and is known.
    folder.write("other", "tw\nthree\n");
    run(&folder, &with(&["other"]));
    assert_eq!(text(&folder, "out"), "one\ntw\nthree\n");
    // Its file goes on while others write to the output: nothing of theirs is cut.
    folder.write("more", "four\nfi");
    run(&folder, &with(&["more"]));
    append(&folder, "out", "theirs\n");
    append(&folder, "more", "ve\n");
    let said = run(&folder, &with(&["more"]));
    assert!(said.contains("others wrote"), "{said}");
    assert_eq!(text(&folder, "out"), "one\ntw\nthree\nfour\nfi\ntheirs\nfive\n");
}

#[test]
fn files_are_known_by_what_they_are() {
    let folder = Folder::new();
    let arguments = with(&["--duplicates", "dup", "log"]);
    let mut expected = numbered("old", 100);
    folder.write("log", &expected);
    run(&folder, &arguments);
    // Renamed and made anew.
    fs::rename(folder.path("log"), folder.path("log.1")).expect("a rename");
    folder.write("log", numbered("renamed", 300));
    run(&folder, &arguments);
    expected += &numbered("renamed", 300);
    assert_eq!(text(&folder, "out"), expected);
    // The renamed one goes on under its new name.
    append(&folder, "log.1", "late\n");
    let said = run(&folder, &with(&["--duplicates", "dup", "log.1"]));
    assert!(said.starts_with("everbloom: resuming log.1 at byte"), "{said}");
    // Overwritten with as many bytes.
    folder.write("log", numbered("namered", 300));
    run(&folder, &arguments);
    expected += &("late\n".to_string() + &numbered("namered", 300));
    assert_eq!(text(&folder, "out"), expected);
    // Copied and truncated.
    fs::copy(folder.path("log"), folder.path("log.2")).expect("a copy");
    folder.write("log", "short\n");
    run(&folder, &arguments);
    expected += "short\n";
    assert_eq!((text(&folder, "out"), text(&folder, "dup")), (expected, String::new()));
}

#[test]
fn each_of_several_files_may_grow() {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        folder.write(name, format!("{name}1\n{name}2"));
    }
    let arguments = with(&["--duplicates", "dup", "a", "b", "c"]);
    run(&folder, &arguments);
    for name in ["b", "a", "c"] {
        append(&folder, name, &format!("\n{name}3\n"));
        run(&folder, &arguments);
    }
    // The last line of all has no ending, so that it is taken back until it has one.
    assert_eq!(text(&folder, "out"), "a1\na2\nb1\nb2\nc1\nb3\na3\nc2\nc3\n");
    assert_eq!(text(&folder, "dup"), "");
}

#[test]
fn a_packed_file_goes_on_behind_its_last_member() {
    let folder = Folder::new();
    let gzip = |bytes: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes.as_bytes()).and_then(|()| encoder.finish()).expect("gzip")
    };
    let zstd = |bytes: &str| zstd::encode_all(bytes.as_bytes(), 1).expect("zstd");
    for (name, pack) in [("in.gz", &gzip as &dyn Fn(&str) -> Vec<u8>), ("in.zst", &zstd)] {
        let first = numbered("line", 50_000);
        let mut packed = pack(&first);
        folder.write(name, &packed);
        let arguments =
            ["dedup", "--exact", "--state", "p", "-o", "packed", "--duplicates", "dup", "--stats", "stats", name];
        run(&folder, &arguments);
        packed.extend(pack("new\nha"));
        folder.write(name, &packed);
        assert_eq!(run(&folder, &arguments), format!("everbloom: resuming {name} at byte {}", first.len()));
        packed.extend(pack("lf\n"));
        folder.write(name, &packed);
        run(&folder, &arguments);
        assert_eq!(text(&folder, "packed"), first + "new\nhalf\n", "{name}");
        assert_eq!(text(&folder, "dup"), "", "{name}");
        assert_eq!(json_of(&folder.read("stats"))["total"]["items"], 50_002);
        for name in ["p", "packed", "dup"] {
            fs::remove_file(folder.path(name)).expect("a file");
        }
    }
}

#[test]
fn stdin_has_no_mark() {
    let folder = Folder::new();
    folder.write("in", "one\ntwo\n");
    for count in [2, 0] {
        let input = File::open(folder.path("in")).expect("a file");
        let arguments = ["dedup", "--exact", "--state", "s", "--stats", "stats", "/dev/stdin"];
        let output = folder.command(&arguments).stdin(input).output().expect("everbloom runs");
        assert_eq!((error_of(&output).as_str(), common::lines(&output.stdout).len()), ("", count), "{output:?}");
        assert_eq!(json_of(&folder.read("stats"))["items"], 2, "it is read from its start");
    }
}

#[test]
fn a_forgotten_output_is_left_alone() {
    let folder = Folder::new();
    folder.write("in", "a\nb\na\n");
    run(&folder, &with(&["--duplicates", "dup", "in"]));
    append(&folder, "in", "c\n");
    let forgotten = folder.run(&["dedup", "--state", "s", "in"]);
    assert_eq!(forgotten.stdout, b"c\n", "{}", error_of(&forgotten));
    append(&folder, "in", "d\na\n");
    run(&folder, &with(&["--duplicates", "dup", "in"]));
    assert_eq!((text(&folder, "out"), text(&folder, "dup")), ("a\nb\nd\n".into(), "a\na\n".into()));
    // Another one that is not empty is appended to.
    folder.write("mine", "precious");
    append(&folder, "in", "e\n");
    run(&folder, &["dedup", "--state", "s", "-o", "mine", "in"]);
    assert_eq!(text(&folder, "mine"), "precious\ne\n");
}

#[test]
fn a_removed_output_is_an_error_and_changes_nothing() {
    let folder = Folder::new();
    folder.write("in", "a\nb\na\n");
    let arguments = with(&["--duplicates", "dup", "in"]);
    run(&folder, &arguments);
    append(&folder, "in", "c\n");
    let state = folder.read("s");
    fs::remove_file(folder.path("dup")).expect("a file");
    assert_refused(&folder.run(&arguments), "dup: is gone, with 2 bytes");
    folder.write("dup", "a\n");
    folder.write("out", "a\n");
    assert_refused(&folder.run(&arguments), "out: is shorter than the 4 bytes");
    assert!(folder.read("s") == state && folder.read("out") == b"a\n" && folder.read("dup") == b"a\n");
    folder.write("out", "a\nb\n");
    run(&folder, &arguments);
    assert_eq!(text(&folder, "out"), "a\nb\nc\n");
}

#[test]
fn lines_of_others_stay() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    run(&folder, &with(&["in"]));
    append(&folder, "out", "theirs");
    append(&folder, "in", "b\n");
    let said = run(&folder, &with(&["in"]));
    assert!(said.contains("out: 6 bytes that others wrote"), "{said}");
    assert_eq!(text(&folder, "out"), "a\ntheirs\nb\n");
}

#[test]
fn what_was_written_after_the_last_checkpoint_is_taken_back_and_said() {
    let folder = Folder::new();
    folder.write("in", numbered("line", 300_000));
    let mut killed = Running::start(&folder, &with(&["in"]), Stdio::null(), Stdio::null());
    let length = || fs::metadata(folder.path("out")).map_or(0, |data| data.len());
    wait_until("some output", || length() > 0);
    killed.signal("KILL");
    let (code, _) = killed.end();
    let more = length();
    let said = run(&folder, &with(&["in"]));
    if code.is_none() {
        assert!(
            said.contains(&format!("out: {more} bytes written after the last checkpoint are taken back")),
            "{said}"
        );
    }
    assert!(folder.read("out") == folder.read("in"));
}

#[test]
fn a_state_has_one_owner() {
    let folder = Folder::new();
    let arguments = ["dedup", "--exact", "--state", "s"];
    let mut first = Running::start(&folder, &arguments, Stdio::piped(), Stdio::null());
    wait_until("a state", || fs::metadata(folder.path("s")).is_ok_and(|data| data.len() > 0));
    let id = first.0.id();
    assert_refused(&folder.run_with(&arguments, b"intruder\n"), &format!("s: the state is in use by process {id}"));
    first.0.stdin.take().expect("a pipe").write_all(b"one\n").expect("a live pipe");
    assert_eq!(first.end(), (Some(0), String::new()));
    assert_eq!(folder.output_with(&arguments, b"one\nintruder\n"), b"intruder\n");
    // A run that comes to nothing leaves nothing.
    assert_refused(&folder.run(&["dedup", "--state", "t", "--filter", "nonsense"]), "nonsense");
    assert_refused(&folder.run(&["dedup", "--state", "t", "--memory", "1b", "--filter", "stable"]), "memory");
    assert_eq!(folder.names(), ["s"]);
    folder.write("empty", "");
    assert_eq!(folder.output_with(&["dedup", "--state", "empty"], b"a\na\n"), b"a\n", "an empty file is no state");
}

#[test]
fn options_that_decide_verdicts_need_not_be_repeated() {
    let folder = Folder::new();
    folder.write("in", "id;x\n1;a\n2;b\n");
    let long =
        ["--csv", "--header", "--delimiter", ";", "--key", "id", "--memory", "1MiB", "--fpr", "1%", "--seed", "7"];
    run(&folder, &[&["dedup", "--state", "s", "-o", "out", "in"], &long[..]].concat());
    append(&folder, "in", "1;c\n3;\"d\ne\"\n");
    run(&folder, &["dedup", "--state", "s", "-o", "out", "in"]);
    assert_eq!(text(&folder, "out"), "id;x\n1;a\n2;b\n3;\"d\ne\"\n");
    // The same in other words, and what does not matter to verdicts.
    append(&folder, "in", "4;f\n");
    let same = ["--memory", "1024KiB", "--fpr=0.01", "--importance-scale", "linear", "--threads", "1", "--quiet"];
    run(&folder, &[&["dedup", "--state", "s", "-o", "out", "in"], &same[..]].concat());
    assert_eq!(text(&folder, "out"), "id;x\n1;a\n2;b\n3;\"d\ne\"\n4;f\n");
    let refused = |option: &[&str], mention: &str| {
        assert_refused(&folder.run(&[&["dedup", "--state", "s", "-o", "out", "in"], option].concat()), mention);
    };
    refused(&["--fpr", "2%"], "saved with --fpr 1%, not --fpr 2%; leave --fpr out to go on with it, or name another");
    refused(&["--window", "9"], "saved without --window, not with --window 9");
    refused(&["--key", "x"], "saved with --key id, not --key x");
}

#[test]
fn a_state_goes_on_with_its_filter_whatever_auto_takes_now() {
    let folder = Folder::new();
    // What is planned for many keys is not what is planned for few, so that a new plan would be another one.
    folder.write("in", "a\nb\n");
    run(
        &folder,
        &["dedup", "--state", "s", "-o", "out", "--memory", "64KiB", "--filter", "bloom", "--expect", "100", "in"],
    );
    let filter = |name: &str| json_of(&folder.output_of(&["info", name, "--format", "json"]))["filter"].clone();
    let before = filter("s");
    append(&folder, "in", "a\nc\n");
    run(&folder, &["dedup", "--state", "s", "-o", "out", "in"]);
    assert_eq!((text(&folder, "out"), filter("s")), ("a\nb\nc\n".into(), before));
}

fn fifo(folder: &Folder, name: &str) {
    assert!(Command::new("mkfifo").arg(folder.path(name)).status().expect("mkfifo runs").success());
}

#[test]
fn half_a_line_is_neither_written_nor_remembered_when_a_signal_comes() {
    let folder = Folder::new();
    fifo(&folder, "pipe");
    for (name, arguments) in [("TERM", with(&["pipe"])), ("INT", with(&[]))] {
        let _ = fs::remove_file(folder.path("s"));
        let mut first = Running::start(&folder, &arguments, Stdio::piped(), Stdio::null());
        let mut pipe: Box<dyn std::io::Write> = match name {
            "TERM" => Box::new(File::options().write(true).open(folder.path("pipe")).expect("a pipe")),
            _ => Box::new(first.0.stdin.take().expect("a pipe")),
        };
        pipe.write_all(b"one\ntwo\nthr").expect("a live pipe");
        wait_until("two lines", || fs::read(folder.path("out")).is_ok_and(|out| out == b"one\ntwo\n"));
        first.signal(name);
        let (code, said) = first.end();
        assert_eq!(code, Some(if name == "TERM" { 143 } else { 130 }), "{said}");
        assert!(said.contains("3 bytes of a line") && said.contains("'thr'"), "{said}");
        drop(pipe);
        let mut second = Running::start(&folder, &arguments, Stdio::piped(), Stdio::null());
        let mut pipe: Box<dyn std::io::Write> = match name {
            "TERM" => Box::new(File::options().write(true).open(folder.path("pipe")).expect("a pipe")),
            _ => Box::new(second.0.stdin.take().expect("a pipe")),
        };
        pipe.write_all(b"two\nthree\nthr\nfour").expect("a live pipe");
        drop(pipe);
        assert_eq!(second.end(), (Some(0), String::new()));
        assert_eq!(text(&folder, "out"), "one\ntwo\nthree\nthr\nfour\n");
    }
}

#[test]
fn nobody_keeps_a_signal_waiting() {
    let folder = Folder::new();
    fifo(&folder, "silent");
    folder.write("in", numbered("line", 200_000));
    let has_state = |name: &str| fs::metadata(folder.path(name)).is_ok_and(|data| data.len() > 0);
    // A named pipe that nobody opens, and one whose writer says nothing.
    let mut waiting = Running::start(&folder, &["dedup", "--state", "a", "silent"], Stdio::null(), Stdio::null());
    wait_until("a state", || has_state("a"));
    waiting.signal("TERM");
    assert_eq!(waiting.end().0, Some(143));
    let before = folder.read("a");
    let mut waiting = Running::start(&folder, &["dedup", "--state", "a"], Stdio::piped(), Stdio::null());
    wait_until("a state of its own", || folder.read("a") != before);
    waiting.signal("INT");
    assert_eq!(waiting.end().0, Some(130));
    // A reader that does not read.
    let mut blocked =
        Running::start(&folder, &["dedup", "--exact", "--state", "b", "in"], Stdio::null(), Stdio::piped());
    let mut reader = blocked.0.stdout.take().expect("a pipe");
    let mut got = vec![0; 10];
    reader.read_exact(&mut got).expect("a line");
    wait_until("a state", || has_state("b"));
    blocked.signal("TERM");
    assert_eq!(blocked.end().0, Some(143));
    reader.read_to_end(&mut got).expect("what was written");
    assert!(got.ends_with(b"\n"), "no half a line is in the pipe");
    // What came after the last checkpoint comes again, and nothing is lost.
    let again = folder.run(&["dedup", "--state", "b", "in"]);
    let all = [got, again.stdout].concat();
    let unseen = |line: &&str| !common::lines(&all).contains(&format!("{line}\n").as_bytes());
    let last = numbered("line", 200_000).lines().rev().take(100).map(str::to_string).collect::<Vec<_>>();
    assert!(!last.iter().map(String::as_str).any(|line| unseen(&line)));
}

#[test]
fn a_closed_stdout_is_noticed_though_nothing_is_written() {
    let folder = Folder::new();
    // While repeats come, and while nothing does.
    for feeds in [true, false] {
        let mut run = Running::start(&folder, &["dedup", "--exact"], Stdio::piped(), Stdio::piped());
        let mut input = run.0.stdin.take().expect("a pipe");
        input.write_all(b"y\n").expect("a live pipe");
        let mut output = run.0.stdout.take().expect("a pipe");
        output.read_exact(&mut [0; 2]).expect("a line");
        drop(output);
        while feeds && input.write_all(&b"y\n".repeat(1 << 16)).is_ok() {}
        assert_eq!(run.end(), (Some(0), String::new()));
    }
}

#[test]
fn followed_files_are_read_as_they_grow_and_are_rotated() {
    let folder = Folder::new();
    folder.write("log", "one\ntw");
    folder.write("other", "x\n");
    let arguments = with(&["--follow", "--duplicates", "dup", "log", "other"]);
    let mut run = Running::start(&folder, &arguments, Stdio::null(), Stdio::null());
    let is = |expected: &str| fs::read(folder.path("out")).is_ok_and(|out| out == expected.as_bytes());
    wait_until("whole lines", || is("one\nx\n"));
    append(&folder, "log", "o\n");
    wait_until("the end of a line", || is("one\nx\ntwo\n"));
    append(&folder, "other", "y\n");
    wait_until("a line of the other", || is("one\nx\ntwo\ny\n"));
    append(&folder, "log", "last");
    fs::rename(folder.path("log"), folder.path("log.1")).expect("a rename");
    append(&folder, "log.1", " words");
    folder.write("log", "three\n");
    wait_until("rotation by rename", || is("one\nx\ntwo\ny\nlast words\nthree\n"));
    folder.write("log", "four\n");
    wait_until("an overwritten file", || is("one\nx\ntwo\ny\nlast words\nthree\nfour\n"));
    folder.write("log", "");
    append(&folder, "log", "five\nsi");
    wait_until("a truncated file", || is("one\nx\ntwo\ny\nlast words\nthree\nfour\nfive\n"));
    run.signal("TERM");
    assert_eq!(run.end().0, Some(143));
    append(&folder, "log", "x\n");
    let mut run = Running::start(&folder, &arguments, Stdio::null(), Stdio::null());
    wait_until("the rest", || is("one\nx\ntwo\ny\nlast words\nthree\nfour\nfive\nsix\n"));
    run.signal("TERM");
    let (_, said) = run.end();
    assert!(said.contains("resuming log at byte 5") && said.contains("resuming other at byte 4"), "{said}");
    assert_eq!(text(&folder, "dup"), "", "nothing is read twice");
}

#[test]
fn a_followed_run_ends_with_its_reader() {
    let folder = Folder::new();
    folder.write("log", "one\n");
    let mut run = Running::start(&folder, &["dedup", "--exact", "-F", "log"], Stdio::null(), Stdio::piped());
    let mut output = run.0.stdout.take().expect("a pipe");
    output.read_exact(&mut [0; 4]).expect("a line");
    drop(output);
    assert_eq!(run.end(), (Some(0), String::new()));
}
