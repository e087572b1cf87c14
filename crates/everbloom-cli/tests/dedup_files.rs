//! `dedup` and its files: no line is lost, doubled or glued to another, whatever becomes of inputs, outputs and the process.

mod common;

use common::live::{Running, append, numbered, run, text, wait_until, with};
use common::{Folder, assert_refused, error_of, json_of};
use std::fs::{self, File};
use std::io::Write as _;
use std::process::Stdio;

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
    assert_eq!(text(&folder, "out"), "a1\nb1\nc1\nb2\nb3\na2\na3\nc2\nc3\n");
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
    assert_eq!(
        folder.output_with(&["dedup", "-q", "--state", "empty"], b"a\na\n"),
        b"a\n",
        "an empty file is no state"
    );
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
    let mut taken = 0;
    for kind in everbloom_all::KINDS {
        let folder = Folder::new();
        folder.write("in", "a\nb\n");
        // Not what auto takes without options, so that a new plan would be another one.
        let asked = ["--memory", "64KiB", "--filter", kind.name, "--expect", "100"];
        if !folder.run(&[&["dedup", "--state", "s", "-o", "out"], &asked[..], &["in"]].concat()).status.success() {
            continue;
        }
        let filter = || json_of(&folder.output_of(&["info", "s", "--format", "json"]))["filter"].clone();
        let before = filter();
        append(&folder, "in", "a\nc\n");
        run(&folder, &["dedup", "--state", "s", "-o", "out", "in"]);
        // Some kinds may have forgotten a key by now.
        let out = text(&folder, "out").replacen("b\na\n", "b\n", 1);
        assert_eq!((out, filter()), ("a\nb\nc\n".into(), before), "{}", kind.name);
        taken += 1;
    }
    assert!(taken > 10, "most kinds need no more than that");
}

#[test]
fn a_journal_may_be_long() {
    let folder = Folder::new();
    let names: Vec<String> = (0..3000).map(|number| format!("{:0>100}", number)).collect();
    names.iter().for_each(|name| drop(folder.write(name, format!("of {name}\n"))));
    let all = with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    run(&folder, &all);
    append(&folder, &names[1234], "more\n");
    run(&folder, &all);
    let out = text(&folder, "out");
    assert_eq!((out.lines().count(), out.ends_with("\nmore\n")), (3001, true));
}

#[test]
fn each_of_several_files_may_be_caught_in_a_line() {
    let folder = Folder::new();
    let all = with(&["--duplicates", "dup", "a", "b", "c"]);
    for (name, text) in [("a", "a1\na"), ("b", "b1\n"), ("c", "a1\nc")] {
        folder.write(name, text);
    }
    run(&folder, &all);
    // They come last, so that they can be taken back.
    assert_eq!((text(&folder, "out"), text(&folder, "dup")), ("a1\nb1\na\nc\n".into(), "a1\n".into()));
    append(&folder, "a", "2\nc\n");
    append(&folder, "b", "a");
    run(&folder, &all);
    assert_eq!((text(&folder, "out"), text(&folder, "dup")), ("a1\nb1\na2\nc\na\n".into(), "a1\nc\n".into()));
    append(&folder, "b", "2\n");
    append(&folder, "c", "\n");
    run(&folder, &all);
    assert_eq!((text(&folder, "out"), text(&folder, "dup")), ("a1\nb1\na2\nc\n".into(), "a1\na2\nc\n".into()));
    // One that is not read again keeps its line, and can still take it back.
    append(&folder, "a", "x");
    append(&folder, "b", "y");
    run(&folder, &all);
    append(&folder, "b", "z\n");
    run(&folder, &with(&["--duplicates", "dup", "b"]));
    assert_eq!(text(&folder, "out"), "a1\nb1\na2\nc\nyz\nx\n");
    append(&folder, "b", "half");
    run(&folder, &with(&["--duplicates", "dup", "b"]));
    assert_eq!(text(&folder, "out"), "a1\nb1\na2\nc\nyz\nhalf\nx\n");
    append(&folder, "a", "w\n");
    run(&folder, &all);
    assert_eq!(text(&folder, "out"), "a1\nb1\na2\nc\nyz\nxw\nhalf\n");
    // Without its file, whose rest nobody will ever read, it stays.
    std::fs::remove_file(folder.path("b")).expect("a file");
    for _ in 0..3 {
        run(&folder, &with(&["--duplicates", "dup", "a"]));
        assert_eq!(text(&folder, "out"), "a1\nb1\na2\nc\nyz\nxw\nhalf\n");
    }
}

#[test]
fn a_half_line_of_another_file_does_not_hide_how_far_this_one_was_read() {
    let folder = Folder::new();
    let lossy = |files: &[&str]| {
        let call = ["dedup", "--memory", "1KiB", "--fpr", "1%", "--state", "s", "-o", "out"];
        run(&folder, &[&call[..], files].concat());
        text(&folder, "out").lines().count()
    };
    folder.write("half", "a\nb\nc");
    folder.write("other", numbered("other", 3000));
    folder.write("last", numbered("last", 3000));
    lossy(&["half"]);
    let first = lossy(&["other"]);
    assert_eq!([lossy(&["other"]), lossy(&["other"])], [first; 2], "each file is read once");
    let all = lossy(&["half", "other", "last"]);
    assert!(all > first, "the last one is new");
    assert_eq!([lossy(&["other", "last"]), lossy(&["last"])], [all; 2]);
}

#[test]
fn nothing_is_destroyed_by_a_call_that_cannot_work() {
    let folder = Folder::new();
    folder.write("in", "a\nb\na\n");
    folder.write("out", "precious\n");
    assert_refused(&folder.run(&["dedup", "in", "-o", "out", "--duplicates", "nowhere/dup"]), "nowhere/dup");
    assert_eq!(text(&folder, "out"), "precious\n");
    // Stdout is a file like any other.
    for (arguments, problem) in [
        (vec!["dedup", "--flag", "in"], "is also read as in"),
        (vec!["dedup", "x", "--duplicates", "in"], "is also written as in"),
        (vec!["dedup", "x", "--stats", "in"], "is also written as in"),
    ] {
        folder.write("x", "x\n");
        let stdout = std::fs::File::options().append(true).open(folder.path("in")).expect("a file");
        let mut command = folder.command(&arguments);
        let output = command.stdin(std::process::Stdio::null()).stdout(stdout).output().expect("everbloom runs");
        assert_refused(&output, problem);
        assert_eq!(text(&folder, "in"), "a\nb\na\n");
    }
}

#[test]
fn stdout_by_another_name_is_appended_to_where_the_shell_appends() {
    let folder = Folder::new();
    folder.write("in", "a\nb\na\n");
    for (script, wanted) in [
        ("everbloom dedup -o /dev/stdout in >> log", "before\na\nb\n"),
        ("everbloom dedup --counts -o /dev/fd/1 in >> log", "before\n      2 a\n      1 b\n"),
        ("everbloom dedup -o out --duplicates /dev/stdout in >> log", "before\na\n"),
        ("everbloom dedup -o out --duplicates /dev/stderr in 2>> log", "before\na\n"),
        ("{ everbloom dedup -o /dev/stdout in; echo after; } >> log", "before\na\nb\nafter\n"),
        ("ln -sf /dev/stdout link; everbloom dedup -o link in >> log", "before\na\nb\n"),
    ] {
        folder.write("log", "before\n");
        shell(&folder, script);
        assert_eq!(text(&folder, "log"), wanted, "{script}");
    }
    folder.write("log", "before\n");
    shell(&folder, "everbloom dedup -o out --stats /dev/stderr in 2>> log");
    assert!(text(&folder, "log").starts_with("before\n{"), "{}", text(&folder, "log"));
}

#[test]
fn a_folder_that_is_not_there_is_noticed_before_anything_is_read() {
    let folder = Folder::new();
    folder.write("in", "a\nb\na\n");
    for option in ["-o", "--stats", "--duplicates", "--state"] {
        let output = folder.run(&["dedup", "in", option, "nowhere/file"]);
        assert_refused(&output, "there is no folder nowhere; make it first");
        assert!(output.stdout.is_empty());
    }
    assert_refused(&folder.run(&["build", "in", "-o", "nowhere/file"]), "there is no folder nowhere; make it first");
}

#[test]
fn the_output_is_whole_or_the_run_says_that_it_is_not() {
    let folder = Folder::new();
    let twice: String = (0..200_000).map(|line| format!("{line}\n{line}\n")).collect();
    folder.write("in", twice);
    let output = shell(&folder, "{ everbloom dedup --duplicates - -o out in; echo $? > status; } | head -n 1");
    assert_eq!(text(&folder, "status"), "1\n", "{}", error_of(&output));
    assert!(error_of(&output).contains("reader has gone"), "{}", error_of(&output));
}

#[test]
fn two_runs_do_not_write_to_one_file() {
    let folder = Folder::new();
    for option in ["-o", "--duplicates"] {
        let arguments = ["dedup", "--exact", option, "w"];
        let mut first = Running::start(&folder, &arguments, Stdio::piped(), Stdio::null());
        let mut pipe = first.0.stdin.take().expect("a pipe");
        pipe.write_all(b"a\na\n").expect("a live pipe");
        wait_until("the first line", || fs::read(folder.path("w")).is_ok_and(|bytes| bytes == b"a\n"));
        assert_refused(
            &folder.run_with(&arguments, b"z\nz\n"),
            "w: the output is in use by another process; wait for it",
        );
        let stated = [&arguments[..], &["--state", "s"]].concat();
        assert_refused(&folder.run_with(&stated, b"z\nz\n"), "w: the output is in use by another process; wait for it");
        pipe.write_all(b"b\nb\n").expect("a live pipe");
        drop(pipe);
        assert_eq!(first.end(), (Some(0), String::new()));
        assert_eq!(text(&folder, "w"), "a\nb\n");
        assert_eq!(folder.names(), ["w"], "nothing else is left");
        assert!(folder.run_with(&arguments, b"z\nz\n").status.success());
        assert_eq!(text(&folder, "w"), "z\n", "the file is free with the end of the process");
        fs::remove_file(folder.path("w")).expect("a file removed");
    }
}

/// What a shell does with our commands in a folder.
fn shell(folder: &Folder, script: &str) -> std::process::Output {
    let script = script.replace("everbloom", &format!("'{}'", env!("CARGO_BIN_EXE_everbloom")));
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", &script]).current_dir(folder.path("")).output().expect("a shell")
}
