//! `dedup` while it runs: signals, readers that go, files that are followed.

mod common;

use common::Folder;
use common::live::{Running, append, numbered, text, wait_until, with};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

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
    let (code, said) = blocked.end();
    assert!(code == Some(143) && said.contains("files give it again, pipes do not"), "{code:?} {said}");
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
    wait_until("rotation by rename", || is("one\nx\ntwo\ny\nthree\n"));
    // Only when nothing more comes has the last line ended.
    wait_until("the end of the renamed file", || is("one\nx\ntwo\ny\nthree\nlast words\n"));
    folder.write("log", "four\n");
    wait_until("an overwritten file", || is("one\nx\ntwo\ny\nthree\nlast words\nfour\n"));
    folder.write("log", "");
    append(&folder, "log", "five\nsi");
    wait_until("a truncated file", || is("one\nx\ntwo\ny\nthree\nlast words\nfour\nfive\n"));
    run.signal("TERM");
    assert_eq!(run.end().0, Some(143));
    append(&folder, "log", "x\n");
    let mut run = Running::start(&folder, &arguments, Stdio::null(), Stdio::null());
    wait_until("the rest", || is("one\nx\ntwo\ny\nthree\nlast words\nfour\nfive\nsix\n"));
    run.signal("TERM");
    let (_, said) = run.end();
    assert!(said.contains("resuming log at byte 5") && said.contains("resuming other at byte 4"), "{said}");
    assert_eq!(text(&folder, "dup"), "", "nothing is read twice");
}

#[test]
fn what_comes_to_a_file_after_it_was_renamed_is_not_lost() {
    let folder = Folder::new();
    folder.write("log", "one\n");
    let arguments = with(&["--follow", "--duplicates", "dup", "log"]);
    let mut run = Running::start(&folder, &arguments, Stdio::null(), Stdio::null());
    let is = |expected: &str| fs::read(folder.path("out")).is_ok_and(|out| out == expected.as_bytes());
    wait_until("a line", || is("one\n"));
    append(&folder, "log", "two\n");
    fs::rename(folder.path("log"), folder.path("log.1")).expect("a rename");
    folder.write("log", "three\n");
    wait_until("the old file before the new one", || is("one\ntwo\nthree\n"));
    // As a service does until it is told to open its log anew.
    let pause = || std::thread::sleep(std::time::Duration::from_millis(700));
    pause();
    append(&folder, "log.1", "four\nfi");
    wait_until("a line of the old file", || is("one\ntwo\nthree\nfour\n"));
    append(&folder, "log", "five\n");
    wait_until("a line of the new file", || is("one\ntwo\nthree\nfour\nfive\n"));
    pause();
    append(&folder, "log.1", "ve of the old\n");
    wait_until("the rest of a line", || is("one\ntwo\nthree\nfour\nfive\nfive of the old\n"));
    append(&folder, "log.1", "six\n");
    run.signal("TERM");
    assert_eq!(run.end().0, Some(143));
    // What was left of both goes on where it was, whatever it is called.
    append(&folder, "log", "seven\n");
    let arguments = with(&["--duplicates", "dup", "log.1", "log"]);
    let (_, said) = Running::start(&folder, &arguments, Stdio::null(), Stdio::null()).end();
    assert!(said.contains("resuming log.1 at byte") && said.contains("resuming log at byte 11"), "{said}");
    assert_eq!(text(&folder, "out"), "one\ntwo\nthree\nfour\nfive\nfive of the old\nsix\nseven\n");
    assert_eq!(text(&folder, "dup"), "", "nothing is read twice");
}

#[test]
fn a_file_that_is_renamed_to_another_followed_name_is_not_read_again() {
    let folder = Folder::new();
    folder.write("log.1", "a\nb\nc\n");
    folder.write("log", "d\ne\n");
    let arguments = with(&["--follow", "--duplicates", "dup", "log.1", "log"]);
    let mut run = Running::start(&folder, &arguments, Stdio::null(), Stdio::null());
    let is = |expected: &str| fs::read(folder.path("out")).is_ok_and(|out| out == expected.as_bytes());
    wait_until("both files", || is("a\nb\nc\nd\ne\n"));
    fs::rename(folder.path("log.1"), folder.path("log.2")).expect("a rename");
    fs::rename(folder.path("log"), folder.path("log.1")).expect("a rename");
    folder.write("log", "f\n");
    wait_until("the new file", || is("a\nb\nc\nd\ne\nf\n"));
    append(&folder, "log.1", "g\n");
    wait_until("a line of the renamed file", || is("a\nb\nc\nd\ne\nf\ng\n"));
    append(&folder, "log", "h\n");
    wait_until("a line of the new file", || is("a\nb\nc\nd\ne\nf\ng\nh\n"));
    run.signal("TERM");
    assert_eq!(run.end().0, Some(143));
    assert_eq!(text(&folder, "dup"), "", "nothing is read twice");
}

#[test]
fn a_file_that_a_run_writes_to_is_not_replaced() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    let mut run = Running::start(&folder, &["dedup", "--exact", "-o", "out"], Stdio::piped(), Stdio::null());
    run.0.stdin.as_mut().expect("a pipe").write_all(b"one\n").expect("a live pipe");
    wait_until("a line", || fs::read(folder.path("out")).is_ok_and(|out| out == b"one\n"));
    for call in [
        &["dedup", "--counts", "in", "-o", "out"][..],
        &["dedup", "in", "-o", "other", "--stats", "out"],
        &["build", "in", "-o", "out"],
    ] {
        common::assert_refused(&folder.run(call), "in use by another process");
    }
    drop(run.0.stdin.take());
    assert_eq!(run.end(), (Some(0), String::new()));
    assert_eq!(text(&folder, "out"), "one\n");
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

#[test]
fn a_followed_file_may_still_come() {
    let folder = Folder::new();
    folder.write("here", "one\n");
    let arguments = with(&["--follow", "late", "here"]);
    let mut run = Running::start(&folder, &arguments, Stdio::null(), Stdio::null());
    let is = |expected: &str| fs::read(folder.path("out")).is_ok_and(|out| out == expected.as_bytes());
    wait_until("the other file", || is("one\n"));
    folder.write("late", "two\nth");
    wait_until("a whole line", || is("one\ntwo\n"));
    run.signal("TERM");
    let (code, said) = run.end();
    assert!(code == Some(143) && said.contains("late: is not there yet"), "{code:?} {said}");
    append(&folder, "late", "ree\n");
    let mut run = Running::start(&folder, &arguments, Stdio::null(), Stdio::null());
    wait_until("the rest", || is("one\ntwo\nthree\n"));
    run.signal("TERM");
    assert!(run.end().1.contains("resuming late at byte 4"));
}

#[test]
fn a_closed_stream_is_an_error_and_no_dev_null() {
    let folder = Folder::new();
    folder.write("in", "one\none\n");
    folder.run(&["build", "in", "-o", "f.ebf"]);
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        let script = script.replace("everbloom", &format!("'{}'", env!("CARGO_BIN_EXE_everbloom")));
        command.args(["-c", &script]).current_dir(folder.path("")).output().expect("a shell")
    };
    for call in ["dedup in", "dedup --count in", "dedup --state s in", "query f.ebf in", "info f.ebf", "--help"] {
        common::assert_refused(&shell(&format!("everbloom {call} >&-")), "stdout: is closed");
    }
    common::assert_refused(&shell("everbloom dedup <&-"), "stdin: is closed");
    for call in ["dedup in > /dev/null", "dedup in 1<> /dev/null", "dedup in -o out >&-", "dedup in 2>&-", "dedup < in"]
    {
        assert!(shell(&format!("everbloom {call}")).status.success(), "{call}");
    }
    assert_eq!(text(&folder, "out"), "one\n");
}

#[test]
fn a_run_without_a_state_is_ended_between_two_lines_too() {
    use std::os::unix::process::ExitStatusExt as _;
    let folder = Folder::new();
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        let mut run = Running::start(&folder, &["dedup", "--exact", "-o", "out"], Stdio::piped(), Stdio::null());
        let mut pipe = run.0.stdin.take().expect("a pipe");
        pipe.write_all(b"one\ntwo\nthr").expect("a live pipe");
        wait_until("two lines", || fs::read(folder.path("out")).is_ok_and(|out| out == b"one\ntwo\n"));
        run.signal(name);
        let (code, said) = run.end();
        assert!(code.is_none() && said.contains("3 bytes of a line"), "{code:?} {said}");
        // Shells that wait for it stop as well.
        assert_eq!(run.0.wait().expect("an end").signal(), Some(number));
        fs::remove_file(folder.path("out")).expect("an output");
    }
}

#[test]
fn a_packed_file_that_is_followed_may_be_in_the_middle_of_a_member() {
    let folder = Folder::new();
    let member = |text: &str| zstd::encode_all(text.as_bytes(), 1).expect("zstd");
    let all = [member("one\n"), member("two\nth"), member("ree\n")].concat();
    let mut file = File::create(folder.path("log.zst")).expect("a log");
    let mut run = Running::start(&folder, &with(&["--follow", "log.zst"]), Stdio::null(), Stdio::null());
    for piece in all.chunks(9) {
        file.write_all(piece).expect("a piece");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    wait_until("all of it", || fs::read(folder.path("out")).is_ok_and(|out| out == b"one\ntwo\nthree\n"));
    run.signal("TERM");
    assert_eq!(run.end().0, Some(143));
}

#[test]
fn a_reader_that_leaves_while_a_checkpoint_is_due_stops_nobody() {
    let folder = Folder::without_disk();
    folder.write("in", numbered("line", 100_000));
    let arguments = ["dedup", "--exact", "--threads", "4", "--state", "s", "--checkpoint", "0s", "in"];
    for round in 0..30 {
        let _ = fs::remove_file(folder.path("s"));
        let mut run = Running::start(&folder, &arguments, Stdio::null(), Stdio::piped());
        let mut output = run.0.stdout.take().expect("a pipe");
        output.read_exact(&mut vec![0; 1 + round * 10_000]).expect("some lines");
        drop(output);
        assert_eq!(run.end(), (Some(0), String::new()), "round {round}");
    }
}
