//! What people see on a terminal: text that fits it, and how far a command is; and what others never see.
#![cfg(target_os = "linux")]

mod common;

use common::Folder;
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A terminal of so many columns.
const COLUMNS: u16 = 80;

/// What is on the terminal after a command, with its stdout there too or not, and what it wrote elsewhere.
struct Seen {
    screen: String,
    stdout: String,
}

/// Runs a command with stderr on a terminal. `input` is written piece by piece, with a pause after each that a bar needs
/// to be shown.
fn on_terminal(command: Command, stdout_too: bool, input: &[&str]) -> Seen {
    on_terminal_of(COLUMNS, command, stdout_too, input)
}

/// Runs a command on a terminal of so many columns.
fn on_terminal_of(columns: u16, mut command: Command, stdout_too: bool, input: &[&str]) -> Seen {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).expect("a terminal");
    let end = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
    command.stdin(Stdio::piped()).stderr(end()).env("TERM", "xterm");
    command.stdout(if stdout_too { end() } else { Stdio::piped() });
    let mut child = command.spawn().expect("it starts");
    // Only the child may hold the other end, so that reading ends when it does.
    drop((command, terminal.slave));
    let mut master = File::from(terminal.master);
    let reading = std::thread::spawn(move || {
        let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
        // The end of a terminal is an error.
        while let Ok(length @ 1..) = master.read(&mut buffer) {
            all.extend_from_slice(&buffer[..length]);
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    let mut stdin = child.stdin.take().expect("a pipe");
    for piece in input {
        stdin.write_all(piece.as_bytes()).expect("it reads");
        std::thread::sleep(Duration::from_millis(700));
    }
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    Seen { screen: reading.join().expect("read"), stdout: String::from_utf8_lossy(&output.stdout).into_owned() }
}

/// The letters of a line, without what makes them bold.
fn letters(line: &str) -> usize {
    line.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "").trim_end_matches('\r').chars().count()
}

fn folder_with_stream() -> Folder {
    let folder = Folder::new();
    let stream = folder.output_of(&["lab", "generate", "linear", "--items", "20000", "--seed", "1"]);
    folder.write("stream.tsv", stream);
    folder
}

#[test]
fn tables_fit_the_terminal_and_mark_the_best_with_bold_letters_or_a_star() {
    let folder = folder_with_stream();
    let command = |no_color: Option<&str>| {
        let options = ["--memory", "1KiB", "--fpr", "1%", "--key", "1", "--importance", "2", "--importance-max", "50"];
        let mut command = folder.command(&[&["compare", "stream.tsv", "--by-importance"], &options[..]].concat());
        command.env_remove("NO_COLOR");
        no_color.map(|value| command.env("NO_COLOR", value));
        command
    };
    let bold = on_terminal(command(None), true, &[]).screen;
    let table = bold.lines().filter(|line| line.contains("FNR") || line.contains(" %"));
    assert!(table.clone().count() > 20 && bold.lines().all(|line| letters(line) <= COLUMNS.into()), "{bold}");
    assert!(bold.contains("\u{1b}[1m") && bold.contains("bold: best") && !bold.contains("%*"), "{bold}");
    let plain = on_terminal(command(Some("1")), true, &[]).screen;
    assert!(plain.contains("%*") && plain.contains("*: best") && !plain.contains("\u{1b}[1m"), "{plain}");
}

#[test]
fn plans_fit_the_terminal_up_to_the_lines_to_paste() {
    let folder = Folder::new();
    for arguments in [&["--memory", "4KiB", "--expect", "20k", "--stream", "zipf:1"][..], &["--expect", "20k"]] {
        let screen = on_terminal(folder.command(&[&["plan"], arguments].concat()), true, &[]).screen;
        let text = screen.split("command line").next().unwrap_or_default();
        // A spinner may have come and gone before.
        let text = &text[text.rfind("With ").unwrap_or(0)..];
        assert!(text.lines().count() > 8 && text.lines().all(|line| letters(line) <= COLUMNS.into()), "{screen}");
    }
}

#[test]
fn a_command_that_takes_its_time_says_how_far_it_is() {
    let folder = folder_with_stream();
    let keys: String = (0..2_000).map(|key| format!("{key}\n")).collect();
    folder.output_with(&["build", "-o", "keys.ebf", "--filter", "counting", "--expect", "2000"], keys.as_bytes());
    let pieces = ["1\n2\n", "3\n4\n", "5\n"];
    for call in [
        &["dedup", "-o", "out.txt"][..],
        &["build", "-o", "other.ebf"],
        &["query", "keys.ebf", "--count"],
        &["compare", "--memory", "1KiB", "--filter", "ranked"],
        &["remove", "keys.ebf", "-o", "fewer.ebf"],
    ] {
        let screen = on_terminal(folder.command(call), false, &pieces).screen;
        assert!(screen.contains("lines/s"), "{call:?}: {screen:?}");
        // It is gone in the end.
        assert!(screen.contains("\u{1b}[2K") || screen.contains('\r'), "{call:?}: {screen:?}");
    }
    // Nothing on request, and nothing where nobody watches.
    for call in [&["dedup", "-o", "out.txt", "--quiet"][..], &["build", "-o", "other.ebf", "--quiet"]] {
        assert_eq!(on_terminal(folder.command(call), false, &pieces).screen, "", "{call:?}");
    }
    let unwatched = folder.run_with(&["build", "-o", "other.ebf"], b"1\n2\n");
    assert!(unwatched.stderr.is_empty(), "{unwatched:?}");
}

#[test]
fn a_file_has_a_bar_with_the_time_left() {
    let folder = Folder::new();
    folder.write("keys.txt", (0..2_000_000).map(|key| format!("{key}\n")).collect::<String>());
    // Nobody reads the lines for longer than a bar waits: the pipe is full, however fast the machine.
    let seen = on_terminal(folder.command(&["dedup", "keys.txt"]), false, &[""]);
    let screen = seen.screen;
    assert!(screen.contains(" left, ") && screen.contains("lines/s"), "{screen:?}");
    assert_eq!(seen.stdout.lines().count(), 2_000_000);
    // There is room for the bar itself: full cells and empty ones.
    let shown = screen.split(['\r', '\n']).filter(|line| line.contains("lines/s"));
    let cells = |line: &str| line.chars().filter(|letter| ('▏'..='█').contains(letter) || *letter == '░').count();
    assert!(shown.map(cells).max().is_some_and(|cells| cells >= 15), "{screen:?}");
}

#[test]
fn lines_on_the_same_terminal_are_left_alone() {
    let folder = Folder::new();
    folder.output_with(&["build", "-o", "keys.ebf"], b"1\n2\n3\n");
    for call in [&["query", "keys.ebf"][..], &["dedup", "--quiet"]] {
        let screen = on_terminal(folder.command(call), true, &["1\n", "2\n", "3\n"]).screen;
        assert_eq!(screen.replace('\r', ""), "1\n2\n3\n", "{call:?}");
    }
    // With stdout elsewhere there is room for a bar, and the lines are as they were.
    let seen = on_terminal(folder.command(&["query", "keys.ebf"]), false, &["1\n", "2\n", "3\n"]);
    assert!(seen.stdout == "1\n2\n3\n" && seen.screen.contains("lines/s"), "{} {:?}", seen.stdout, seen.screen);
}

#[test]
fn what_is_said_meanwhile_stands_on_a_line_of_its_own() {
    let folder = Folder::new();
    let many: String = (0..2_000).map(|key| format!("{key}\n")).collect();
    let call = ["build", "-o", "keys.ebf", "--expect", "1000", "--fpr", "1%"];
    let screen = on_terminal(folder.command(&call), false, &["a\n", &many, "b\n", "c\n"]).screen;
    let warning = screen.find("everbloom: warning").unwrap_or_else(|| panic!("{screen:?}"));
    // The bar was taken away before: what is left of the line is what clears it.
    let before = screen[..warning].rsplit(['\n', '\r']).next().unwrap_or_default();
    assert!(before.replace("\u{1b}[2K", "").is_empty(), "{screen:?}");
}

/// Statistics are text, and may be shown; the bytes of a filter may not.
#[test]
fn statistics_can_be_read_on_the_terminal() {
    let folder = Folder::new();
    for more in [&[][..], &["--counts"]] {
        let arguments = [&["dedup", "--stats", "-", "-o", "out.txt"][..], more].concat();
        let seen = on_terminal(folder.command(&arguments), true, &["a\nb\na\n"]);
        assert!(seen.screen.contains("\"repeats\": 1"), "{}", seen.screen);
    }
    let seen = on_terminal(folder.command(&["build", "-", "-o", "-"]), true, &["a\n"]);
    assert!(seen.screen.contains("stdout is a terminal"), "{}", seen.screen);
}

/// Counts come when all has been read; until then people see how far it is.
#[test]
fn counting_shows_how_far_it_is() {
    let folder = Folder::new();
    let seen = on_terminal(folder.command(&["dedup", "--counts", "-o", "out.txt"]), false, &["a\n", "b\n", "a\n"]);
    assert!(seen.screen.contains("lines/s"), "{}", seen.screen);
    assert_eq!(folder.read("out.txt"), b"      2 a\n      1 b\n");
}

/// Where words are broken, somebody reads them wrong: only what is longer than a line itself may be.
#[test]
fn text_is_wrapped_at_words_on_a_narrow_terminal() {
    const NARROW: u16 = 40;
    let folder = folder_with_stream();
    let plan = ["plan", "--memory", "4KiB", "--expect", "20k", "--stream", "zipf:1"];
    let dedup = ["dedup", "-v", "-k", "1", "-m", "1KiB", "--fpr", "10%", "-o", "out.txt", "stream.tsv"];
    let compare = ["compare", "--memory", "1KiB", "--fpr", "10%", "-k", "1", "stream.tsv"];
    for call in [&["filters"][..], &["filters", "stable"], &["lab", "list"], &plan, &dedup, &compare] {
        let screen = on_terminal_of(NARROW, folder.command(call), true, &[]).screen;
        let text = screen.split("command line").next().unwrap_or_default().replace("\u{1b}[2K", "");
        let lines = text.lines().flat_map(|line| line.split('\r')).filter(|line| letters(line) > NARROW.into());
        let broken: Vec<&str> = lines.filter(|line| line.split_whitespace().count() > 1).collect();
        assert!(text.lines().count() > 5 && broken.is_empty(), "{call:?}: {broken:#?}");
    }
}

#[test]
fn progress_keeps_to_one_line_and_knows_no_time_before_anything_is_done() {
    const NARROW: u16 = 40;
    let folder = Folder::new();
    folder.write("keys.txt", (0..2_000_000).map(|key| format!("{key}\n")).collect::<String>());
    let screen = on_terminal_of(NARROW, folder.command(&["dedup", "keys.txt"]), false, &[""]).screen;
    let frames: Vec<&str> = screen.split(['\r', '\n']).filter(|frame| frame.contains(" %")).collect();
    assert!(!frames.is_empty(), "{screen:?}");
    for frame in frames {
        let frame = frame.replace("\u{1b}[2K", "");
        assert!(letters(&frame) <= NARROW.into() && !frame.starts_with("0 %, 0s left"), "{frame:?}");
        // No number is cut.
        assert!(frame.trim_end().ends_with(['%', 't', 's', 'B']), "{frame:?}");
    }
}

#[test]
fn nothing_is_said_on_request() {
    let folder = folder_with_stream();
    folder.output_with(&["build", "-o", "keys.ebf"], b"1\n2\n");
    let pieces = ["1\n2\n", "3\n4\n"];
    for call in [&["query", "-q", "keys.ebf", "-c"][..], &["compare", "-q", "--memory", "1KiB", "--filter", "ranked"]] {
        assert_eq!(on_terminal(folder.command(call), false, &pieces).screen, "", "{call:?}");
    }
    folder.output_of(&["plan", "-q", "--expect", "1k"]);
}
