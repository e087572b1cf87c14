//! `dedup --state`: a run that was interrupted, however rudely, ends as if it had not been.

mod common;

use common::{Folder, assert_refused, error_of, lines, stream};
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::Duration;

fn start(folder: &Folder, arguments: &[&str]) -> Child {
    let mut command = folder.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("everbloom runs")
}

/// Kills a run at random moments until one gets to the end; says how many were killed.
fn kill_until_done(folder: &Folder, arguments: &[&str], kills: u32) -> u32 {
    let mut random = 12345u64;
    for killed in 0..kills {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut child = start(folder, arguments);
        std::thread::sleep(Duration::from_micros((random >> 40) % 25_000));
        child.kill().expect("a signal");
        if child.wait().expect("an end").success() {
            return killed;
        }
    }
    let last = folder.run(arguments);
    assert!(last.status.success(), "{}", error_of(&last));
    kills
}

#[test]
fn a_hundred_kills_leave_no_trace() {
    let folder = Folder::new();
    // Several files, one packed, none ending where a block does; a filter that forgets, so that a
    // single record observed twice or not at all would change what comes out.
    folder.write("a.txt", stream(1, 60_000, 40_000));
    folder.write("b.zst", zstd::encode_all(stream(2, 60_000, 40_000).as_bytes(), 1).expect("zstd"));
    folder.write("c.txt", stream(3, 60_000, 40_000));
    let files = ["a.txt", "b.zst", "c.txt", "a.txt"];
    let more = ["--memory", "32KiB", "--fpr", "1%"];
    folder.output_of(&[&["dedup", "-o", "whole.txt", "--duplicates", "whole.dup"], &files[..], &more[..]].concat());
    let arguments = [
        &["dedup", "-o", "out.txt", "--duplicates", "out.dup", "--state", "s.ebf", "--checkpoint", "1ms"],
        &files[..],
        &more[..],
    ]
    .concat();
    let (mut kills, mut rounds) = (0, 0);
    while kills < 100 {
        for name in ["out.txt", "out.dup", "s.ebf"] {
            let _ = std::fs::remove_file(folder.path(name));
        }
        kills += kill_until_done(&folder, &arguments, 100 - kills);
        rounds += 1;
        assert!(folder.read("out.txt") == folder.read("whole.txt"), "the output differs after {kills} kills");
        assert!(folder.read("out.dup") == folder.read("whole.dup"), "the repeats differ after {kills} kills");
        assert!(rounds < 100, "runs end before they can be killed");
    }
}

#[test]
fn exact_runs_survive_kills_too() {
    let folder = Folder::new();
    folder.write("in.txt", stream(4, 150_000, 100_000));
    folder.output_of(&["dedup", "--exact", "in.txt", "-o", "whole.txt"]);
    let arguments = ["dedup", "--exact", "in.txt", "-o", "out.txt", "--state", "s.ebf", "--checkpoint", "1ms"];
    kill_until_done(&folder, &arguments, 20);
    assert!(folder.read("out.txt") == folder.read("whole.txt"));
}

#[test]
fn a_polite_signal_saves_the_state_at_once() {
    let folder = Folder::new();
    let state = ["dedup", "--memory", "64KiB", "--state", "s.ebf", "-o", "out.txt"];
    let mut child = folder.command(&state).stdin(Stdio::piped()).spawn().expect("everbloom runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"one\ntwo\nthr").expect("a live pipe");
    while std::fs::read(folder.path("out.txt")).unwrap_or_default() != b"one\ntwo\n" {
        std::thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
    assert_eq!(child.wait().expect("an end").code(), Some(143), "128 and the signal");
    assert_eq!(folder.read("out.txt"), b"one\ntwo\n", "half a line is not written");
    let rest = folder.run_with(&state, b"two\nthree\n");
    assert!(rest.status.success(), "{}", error_of(&rest));
    assert_eq!(folder.read("out.txt"), b"one\ntwo\nthree\n", "nor glued to another, and repeats are known");
}

#[test]
fn an_idle_pipe_is_saved_when_the_checkpoint_is_due() {
    let folder = Folder::new();
    let state = ["dedup", "--memory", "64KiB", "--state", "s.ebf", "--checkpoint", "20ms"];
    let mut child = folder.command(&state).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("everbloom runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"one\ntwo\n").expect("a live pipe");
    let knows = |key: &[u8]| folder.run_with(&["query", "s.ebf"], key).status.code() == Some(0);
    while !folder.path("s.ebf").exists() || !knows(b"two\n") {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("a signal");
    child.wait().expect("an end");
    assert_eq!(folder.output_with(&state, b"two\nthree\n"), b"three\n");
}

#[test]
fn a_log_that_grows_is_read_where_the_last_run_ended() {
    let folder = Folder::new();
    let arguments = ["dedup", "log.txt", "--exact", "--state", "s.ebf", "-o", "out.txt", "--stats", "stats.json"];
    folder.write("log.txt", "a\nb\na\n");
    folder.output_of(&arguments);
    folder.write("log.txt", "a\nb\na\nb\nc\n");
    assert_eq!(error_of(&folder.run(&arguments)), "everbloom: resuming log.txt at byte 6");
    assert_eq!(folder.read("out.txt"), b"a\nb\nc\n");
    let stats = common::json_of(&folder.read("stats.json"));
    assert_eq!((&stats["items"], &stats["total"]["items"]), (&2.into(), &5.into()), "every line is read once");
    folder.write("log.txt", "d\n");
    folder.output_of(&arguments);
    assert_eq!(folder.read("out.txt"), b"a\nb\nc\nd\n", "a rotated log is read from its beginning");
}

#[test]
fn a_file_that_was_written_over_is_read_from_its_beginning() {
    let rows = |status: &dyn Fn(u32) -> &'static str, count: u32| -> String {
        (1..=count).map(|row| format!("{row:07},{}\n", status(row))).collect()
    };
    for (count, changed) in [(30_000, 14_000..16_000), (25_000, 12_000..12_001), (300_000, 90_000..99_000)] {
        let folder = Folder::new();
        let arguments = ["dedup", "data.csv", "--exact", "--state", "s.ebf", "-o", "out.txt"];
        folder.write("data.csv", rows(&|_| "OPEN", count));
        folder.output_of(&arguments);
        // The same file, longer than before, with equal ends.
        let is_paid = |row: u32| if changed.contains(&row) { "PAID" } else { "OPEN" };
        folder.write("data.csv", rows(&is_paid, count + 10));
        folder.output_of(&arguments);
        assert_eq!(lines(&folder.read("out.txt")).len(), count as usize + 10 + changed.len(), "{changed:?} of {count}");
    }
}

#[test]
fn what_was_not_read_of_a_renamed_file_is_said() {
    let folder = Folder::new();
    let arguments = ["dedup", "log", "--exact", "--state", "s.ebf", "-o", "out.txt"];
    folder.write("log", "a\nb\n");
    folder.output_of(&arguments);
    folder.write("log", "a\nb\nc\nd\n");
    std::fs::rename(folder.path("log"), folder.path("log.1")).expect("renamed");
    folder.write("log", "e\n");
    let said = error_of(&folder.run(&arguments));
    assert!(said.contains("4 bytes of log.1, which was log, were never read; name it, too: log.1 log"), "{said}");
    let said = error_of(&folder.run(&["dedup", "log.1", "log", "--exact", "--state", "s.ebf", "-o", "out.txt"]));
    assert!(said.contains("resuming log.1 at byte 4") && !said.contains("never read"), "{said}");
    assert_eq!(folder.read("out.txt"), b"a\nb\ne\nc\nd\n");
    // All of it was read now.
    std::fs::rename(folder.path("log"), folder.path("log.2")).expect("renamed");
    folder.write("log", "f\n");
    let said = error_of(&folder.run(&arguments));
    assert!(!said.contains("never read"), "{said}");
}

#[test]
fn a_pipe_is_no_state() {
    let folder = Folder::new();
    let made = std::process::Command::new("mkfifo").arg(folder.path("pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    folder.write("log", "a\n");
    assert_refused(&folder.run(&["dedup", "log", "--state", "pipe"]), "is not a regular file");
}

#[test]
fn one_bad_line_of_a_growing_log_is_no_mistaken_option() {
    let folder = Folder::new();
    let run = |lines: &[u8]| folder.run_with(&["dedup", "--key", "2", "--state", "s"], lines);
    assert_eq!(run(b"a\t1\nb\t2\n").status.code(), Some(0));
    let output = run(b"no key\n");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"no key\n"[..]));
    let alone = folder.run_with(&["dedup", "--key", "2"], b"no key\n");
    assert_eq!(alone.status.code(), Some(2), "without a past it may well be one");
}

#[test]
fn a_state_knows_what_earlier_inputs_held() {
    let folder = Folder::new();
    let input = stream(5, 20_000, 5000).into_bytes();
    folder.write("one.txt", &input);
    let state = ["dedup", "--memory", "1MiB", "--state", "s.ebf"];
    folder.output_of(&[&state[..], &["one.txt", "-o", "out.txt"]].concat());
    let again = folder.output_with(&state, &input);
    let distinct = lines(&folder.read("out.txt")).len();
    assert!(lines(&again).len() * 100 < distinct, "{} of {distinct} forgotten", lines(&again).len());
    assert_eq!(folder.output_with(&["query", "s.ebf", "--count"], &input), b"20000\n", "a state is a filter, too");
}

#[test]
fn a_state_of_other_choices_is_refused_and_left_alone() {
    let folder = Folder::new();
    folder.write("in.txt", "a\t1\nb\t2\n");
    folder.output_of(&["dedup", "in.txt", "--memory", "64KiB", "--state", "s.ebf", "-o", "out.txt"]);
    let before = folder.read("s.ebf");
    let refused = |more: &[&str], mention: &str| {
        let arguments = [&["dedup", "in.txt", "--state", "s.ebf", "-o", "out.txt"], more].concat();
        assert_refused(&folder.run(&arguments), mention);
        assert!(folder.read("s.ebf") == before, "{more:?} touched the state");
        assert_eq!(folder.read("out.txt"), b"a\t1\nb\t2\n", "{more:?} touched the output");
    };
    refused(&["--memory", "128KiB"], "saved with --memory 64KiB, not --memory 128KiB; leave --memory out");
    refused(&["--exact"], "saved without --exact; leave --exact out");
    refused(&["--memory", "64KiB", "--seed", "3"], "saved without --seed, not with --seed 3");
    refused(&["--key", "1"], "saved without --key, not with --key 1");
    refused(&["--ignore-case"], "--ignore-case");
    folder.write("s.ebf", &before[..before.len() - 1]);
    assert_refused(&folder.run(&["dedup", "in.txt", "--memory", "64KiB", "--state", "s.ebf"]), "not a state");
    folder.write("s.ebf", "something else altogether, which is long enough to have a footer");
    assert_refused(&folder.run(&["dedup", "in.txt", "--memory", "64KiB", "--state", "s.ebf"]), "not a state");
}

#[test]
fn every_damaged_byte_of_a_state_is_refused() {
    let folder = Folder::new();
    folder.write("in.txt", "a\nb\n");
    for memory in [&["--memory", "512b", "--fpr", "10%"][..], &["--exact"]] {
        let arguments = [&["dedup", "in.txt", "--state", "s.ebf", "-o", "out.txt"], memory].concat();
        let _ = std::fs::remove_file(folder.path("s.ebf"));
        folder.output_of(&arguments);
        let whole = folder.read("s.ebf");
        for index in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[index] ^= 0xff;
            folder.write("s.ebf", &flipped);
            let output = folder.run(&arguments);
            assert_refused(&output, "s.ebf");
            assert!(folder.read("s.ebf") == flipped, "byte {index}: a refused state is not touched");
        }
    }
}

#[test]
fn rows_never_come_under_the_header_of_another_run() {
    let folder = Folder::new();
    folder.write("one.csv", "id,email\n1,a\n2,b");
    folder.write("two.csv", "email,id\nq,9\n");
    let csv = |key, state, file, out| ["dedup", "--csv", "-H", "-k", key, "--state", state, file, "-o", out];
    folder.output_of(&csv("2", "s", "one.csv", "out"));
    assert_refused(
        &folder.run(&csv("2", "s", "two.csv", "out")),
        "two.csv has its keys in columns of other names than one.csv, which this state knows; give it another --state and -o",
    );
    assert_eq!(folder.read("out"), b"id,email\n1,a\n2,b\n", "a refused run changes nothing");
    assert_refused(&folder.run(&csv("2", "s", "two.csv", "other")), "columns of other names");
    let piped = folder.run_with(&["dedup", "--state", "s"], &folder.read("two.csv"));
    assert_refused(&piped, "stdin has its keys in columns of other names");
    folder.output_of(&csv("2", "s2", "two.csv", "out2"));
    assert_eq!(folder.read("out2"), b"email,id\nq,9\n", "what is advised works");

    // Columns that are named are found in any order, but their rows belong under a header of their own.
    folder.output_of(&csv("email", "n", "one.csv", "named"));
    folder.write("two.csv", "email,id\nq,9\na,7\n");
    let mention =
        "named, which is being appended to, begins with another header than two.csv; name another file with -o";
    assert_refused(&folder.run(&csv("email", "n", "two.csv", "named")), mention);
    assert_eq!(folder.read("named"), b"id,email\n1,a\n2,b\n");
    folder.output_of(&csv("email", "n", "two.csv", "named2"));
    assert_eq!(folder.read("named2"), b"email,id\nq,9\n", "and the state knows what it had seen");

    // The same header goes on, with marks, too.
    folder.write("three.csv", "id,email\r\n3,c\n1,a\n");
    folder.output_of(&csv("2", "s", "three.csv", "out"));
    assert_eq!(folder.read("out"), b"id,email\n1,a\n2,b\n3,c\n");
    let flagged = |file| folder.output_of(&[&csv("2", "f", file, "flagged")[..], &["--flag"]].concat());
    flagged("one.csv");
    flagged("three.csv");
    assert_eq!(folder.read("flagged"), b"mark\tid,email\nnew\t1,a\nnew\t3,c\ndup\t1,a\nnew\t2,b\n");
}

#[test]
fn an_empty_state_is_said_to_know_nothing() {
    let folder = Folder::new();
    folder.write("s", "");
    let output = folder.run_with(&["dedup", "--state", "s"], b"a\na\n");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"a\n"[..]));
    assert_eq!(error_of(&output), "everbloom: note: s is empty, so nothing is known of earlier runs; starting anew");
    assert_eq!(error_of(&folder.run_with(&["dedup", "--state", "new"], b"a\n")), "");
}

#[test]
fn a_state_that_is_small_yet_shows_what_it_may_take() {
    let folder = Folder::new();
    folder.output_with(&["dedup", "--state", "s", "--memory", "64MiB"], b"a\n");
    let document = common::json_of(&folder.output_of(&["info", "s", "--format", "json"]));
    let [now, most] = ["memory_bits", "most_memory_bits"].map(|name| document[name].as_u64().expect("bits"));
    assert!(now < 1 << 20 && most > 63 << 23 && most <= 64 << 23, "{now} {most}");
    let shown = String::from_utf8(folder.output_of(&["info", "s"])).expect("text");
    assert!(shown.contains("64 bytes now, up to 64.0 MiB"), "{shown}");
}
