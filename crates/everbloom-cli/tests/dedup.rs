//! `dedup`: what is written, what is counted, what is refused.

mod common;

use common::{Folder, assert_refused, error_of, json_of, lines, stream};
use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

fn first_occurrences(text: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    lines(text).into_iter().filter(|line| seen.insert(line.to_vec())).flatten().copied().collect()
}

#[test]
fn exact_mode_gives_the_exact_answer_from_files_and_pipes() {
    let folder = Folder::new();
    let input = stream(1, 200_000, 50_000).into_bytes();
    folder.write("in.txt", &input);
    let exact = first_occurrences(&input);
    assert!(folder.output_of(&["dedup", "--exact", "in.txt"]) == exact);
    assert!(folder.output_with(&["dedup", "--exact"], &input) == exact);
    folder.output_of(&["dedup", "--exact", "in.txt", "-o", "out.txt"]);
    assert!(folder.read("out.txt") == exact);
}

#[test]
fn verdicts_do_not_depend_on_the_number_of_threads() {
    let folder = Folder::new();
    folder.write("in.txt", stream(1, 500_000, 200_000));
    for filter in
        [&["--memory", "64KiB"][..], &["--filter", "stable", "--memory", "64KiB", "--fpr", "1%"], &["--exact"]]
    {
        let run = |threads: &str| {
            let mut arguments = vec!["dedup", "in.txt", "--threads", threads];
            arguments.extend_from_slice(filter);
            folder.output_of(&arguments)
        };
        let alone = run("1");
        for threads in ["2", "3", "8"] {
            assert!(run(threads) == alone, "{filter:?} with {threads} threads");
        }
    }
}

#[test]
fn verdicts_do_not_depend_on_the_instructions_of_the_machine() {
    let folder = Folder::new();
    let rows: String =
        (0..30_000).map(|row| format!("{row},\"a \"\"{}\"\"\n\",{}\n", row % 7, row * row % 9973)).collect();
    folder.write("in.csv", rows);
    for options in [&["--memory", "64KiB"][..], &["--exact"], &["--csv", "--key", "3"]] {
        let output = |set: &str| {
            let output = folder.command(&["dedup", "in.csv", "-q"]).args(options).env("EVERBLOOM_ISA", set).output();
            let output = output.expect("it starts");
            assert!(output.status.success(), "{set}");
            output.stdout
        };
        let newest = output("");
        for set in ["portable", "avx2", "avx512"] {
            assert!(output(set) == newest, "{options:?} with {set}");
        }
    }
    let output = folder.command(&["dedup", "in.csv"]).env("EVERBLOOM_ISA", "sse9").output().expect("it starts");
    assert_refused(&output, "EVERBLOOM_ISA=sse9");
}

#[test]
fn nothing_within_the_window_is_written_twice() {
    let folder = Folder::new();
    let numbers = |keys: std::ops::Range<u32>| keys.map(|key| format!("{key}\n")).collect::<String>();
    // Each key comes back after 900 others, well within the window; then 5,000 others push it out.
    let round = numbers(0..900).repeat(5);
    let all = format!("{round}{}{}", numbers(10_000..15_000), numbers(0..900));
    let written = folder.output_with(&["dedup", "--window", "1000", "--fpr", "1e-6"], all.as_bytes());
    assert_eq!(
        String::from_utf8_lossy(&written),
        format!("{}{}{}", numbers(0..900), numbers(10_000..15_000), numbers(0..900))
    );
    // Without refresh a key goes when the line that was written leaves the window.
    let alone = "x\n".repeat(10_000);
    let refreshed = folder.output_with(&["dedup", "--window", "1000"], alone.as_bytes());
    let kept = folder.output_with(&["dedup", "--window", "1000", "--refresh", "no"], alone.as_bytes());
    assert_eq!(lines(&refreshed).len(), 1);
    assert!((8..=10).contains(&lines(&kept).len()), "{} of 10,000 lines in windows of 1,000", lines(&kept).len());
}

#[test]
fn windows_that_cannot_be_are_refused() {
    let folder = Folder::new();
    assert_refused(&folder.run(&["dedup", "--window", "0"]), "window");
    assert_refused(&folder.run(&["dedup", "--window", "1e9", "--memory", "1MiB"]), "a window of at most");
    assert_refused(&folder.run(&["dedup", "--window", "10", "--exact"]), "--exact");
    assert_refused(&folder.run(&["dedup", "--refresh", "no"]), "--window");
}

#[test]
fn every_record_is_accounted_for() {
    let folder = Folder::new();
    let input = stream(1, 50_000, 20_000).into_bytes();
    folder.write("in.txt", &input);
    let arguments =
        ["dedup", "in.txt", "--memory", "16KiB", "--duplicates", "dup.txt", "-o", "new.txt", "--stats", "stats.json"];
    folder.output_of(&arguments);
    let (new, repeats) = (folder.read("new.txt"), folder.read("dup.txt"));
    let mut both: Vec<&[u8]> = lines(&new).into_iter().chain(lines(&repeats)).collect();
    let mut all = lines(&input);
    both.sort_unstable();
    all.sort_unstable();
    assert!(both == all, "a line was lost or invented");
    let stats = json_of(&folder.read("stats.json"));
    assert_eq!(stats["items"], 50_000);
    assert_eq!(stats["written"], lines(&new).len());
    assert_eq!(stats["dropped"], lines(&repeats).len());
    assert_eq!((&stats["errors"], &stats["bytes"]), (&0.into(), &input.len().into()));
    assert!(stats["memory_bits"].as_u64().expect("bits") <= 16 << 13);
    for field in ["seconds", "filter", "predicted_fpr", "fill", "estimated_fpr"] {
        assert!(!stats[field].is_null(), "{field}");
    }
}

#[test]
fn a_forecast_is_kept_when_memory_is_scarce() {
    let folder = Folder::new();
    let input: Vec<u8> = (0..200_000).flat_map(|key| format!("distinct {key}\n").into_bytes()).collect();
    folder.write("in.txt", &input);
    folder.output_of(&["dedup", "in.txt", "--memory", "32KiB", "--fpr", "1%", "-o", "out.txt", "--stats", "s.json"]);
    let stats = json_of(&folder.read("s.json"));
    let (predicted, dropped) =
        (stats["predicted_fpr"].as_f64().expect("a rate"), stats["dropped"].as_f64().expect("a count"));
    assert!(predicted <= 0.01);
    let sigma = (200_000.0 * predicted * (1.0 - predicted)).sqrt();
    assert!(dropped <= 200_000.0 * predicted + 4.0 * sigma, "{dropped} wrongly dropped at {predicted}");
}

#[test]
fn repeats_can_be_flagged_selected_or_counted() {
    let folder = Folder::new();
    let input = b"a\nb\na\nc\nb\n";
    let run = |more: &[&str]| {
        let mut arguments = vec!["dedup", "--exact"];
        arguments.extend_from_slice(more);
        folder.output_with(&arguments, input)
    };
    assert_eq!(run(&[]), b"a\nb\nc\n");
    assert_eq!(run(&["--only-duplicates"]), b"a\nb\n");
    assert_eq!(run(&["--flag"]), b"new\ta\nnew\tb\ndup\ta\nnew\tc\ndup\tb\n");
    assert_eq!(String::from_utf8_lossy(&run(&["--count"])), "lines    5\nnew      3\nrepeats  2\nerrors   0\n");
    assert_refused(&folder.run(&["dedup", "--flag", "--count"]), "--count");
    run(&["--count", "--stats", "counted.json"]);
    let stats = json_of(&folder.read("counted.json"));
    assert_eq!((&stats["written"], &stats["dropped"]), (&3.into(), &2.into()), "as without --count: {stats}");
}

#[test]
fn lines_stay_as_they_are() {
    let folder = Folder::new();
    let run = |more: &[&str], input: &[u8]| {
        let mut arguments = vec!["dedup", "--exact"];
        arguments.extend_from_slice(more);
        folder.output_with(&arguments, input)
    };
    assert_eq!(run(&[], b"a\nb\na\nc"), b"a\nb\nc\n", "a missing last newline");
    assert_eq!(run(&[], b"a\r\nb\r\na\r\n"), b"a\r\nb\r\n", "carriage returns");
    assert_eq!(run(&[], b"\n\n\xff\xfe\n\n\xff\xfe\n"), b"\n\xff\xfe\n", "empty lines, no UTF-8");
    assert_eq!(run(&["--null"], b"a\nb\0c\0a\nb\0"), b"a\nb\0c\0", "NUL-ended records");
    assert_eq!(run(&["--ignore-case"], "Ärger\näRGER\nx\nX\n".as_bytes()), "Ärger\nx\n".as_bytes());
    assert_eq!(run(&[], b""), b"");
    let mut long = vec![b'x'; 20 << 20];
    long.extend_from_slice(b"\ny\n");
    let twice = long.repeat(2);
    assert!(run(&[], &twice) == long, "lines longer than any buffer");
    let short = b"\n".repeat(3_000_000);
    assert_eq!(run(&[], &short), b"\n", "blocks of nothing but endings");
}

#[test]
fn keys_can_be_fields_with_a_header_and_importance() {
    let folder = Folder::new();
    let input = b"id,name,cost\n1,ann,5\n2,\"ann\",7\n3,bob,1\n";
    let arguments = ["dedup", "--csv", "--header", "--key", "name", "--importance", "cost", "--importance-max", "10"];
    assert_eq!(folder.output_with(&arguments, input), b"id,name,cost\n1,ann,5\n3,bob,1\n");
    folder.write("a.csv", "id,name\n1,ann\n");
    folder.write("b.csv", "id,name\n2,ann\n3,bob\n");
    let two = ["dedup", "--exact", "--csv", "--header", "--key", "name", "a.csv", "b.csv"];
    assert_eq!(folder.output_of(&two), b"id,name\n1,ann\n3,bob\n");
    folder.write("c.csv", "name,id\nann,2\n");
    let unlike = ["dedup", "--exact", "--csv", "--header", "--key", "name", "a.csv", "c.csv"];
    assert_refused(&folder.run(&unlike), "different headers");
    assert_refused(&folder.run(&["dedup", "--key", "1", "--importance", "2"]), "--importance-max");
}

#[test]
fn records_without_a_key_are_kept_skipped_or_fatal() {
    let folder = Folder::new();
    let input = b"{\"k\":1}\nno json\n{\"k\":1}\n{\"j\":1}\n{\"k\":2}\n";
    let base = ["dedup", "--exact", "--json", "--key", "/k", "--stats", "s.json"];
    let run = |more: &[&str]| folder.run_with(&[&base[..], more].concat(), input);
    assert_eq!(run(&[]).stdout, b"{\"k\":1}\nno json\n{\"j\":1}\n{\"k\":2}\n");
    let stats = json_of(&folder.read("s.json"));
    assert_eq!(
        (&stats["items"], &stats["written"], &stats["dropped"], &stats["errors"]),
        (&5.into(), &4.into(), &1.into(), &2.into())
    );
    let skipped = run(&["--on-error", "skip"]);
    assert_eq!(skipped.stdout, b"{\"k\":1}\n{\"k\":2}\n");
    assert_eq!(
        error_of(&skipped),
        "everbloom: note: 2 records that cannot be used, left out; the first is record 2: it is not JSON (--key /k): 'no json'"
    );
    assert_eq!(error_of(&run(&["--on-error", "skip", "--quiet"])), "");
    let stats = json_of(&folder.read("s.json"));
    assert_eq!((&stats["written"], &stats["dropped"], &stats["skipped"]), (&2.into(), &1.into(), &2.into()));
    let failed = run(&["--on-error", "fail"]);
    assert_refused(&failed, "record 2");
    assert_eq!(failed.stdout, b"{\"k\":1}\n", "what came before is written");
    assert_eq!(
        run(&["--flag"]).stdout,
        b"new\t{\"k\":1}\nerr\tno json\ndup\t{\"k\":1}\nerr\t{\"j\":1}\nnew\t{\"k\":2}\n"
    );
}

#[test]
fn a_live_pipe_is_answered_line_by_line() {
    let folder = Folder::new();
    let mut child = folder
        .command(&["dedup", "--memory", "64KiB"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("everbloom runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    for number in 0..50 {
        write!(input, "event {number}\nevent {number}\nhalf of").expect("a live pipe");
        line.clear();
        output.read_line(&mut line).expect("an answer while the pipe is open");
        let half = if number == 0 { "" } else { "half of" };
        assert_eq!(line, format!("{half}event {number}\n"));
        if number > 0 {
            line.clear();
            output.read_line(&mut line).expect("the repeat is another line now");
            assert_eq!(line, format!("event {number}\n"));
        }
    }
    drop(input);
    assert!(child.wait().expect("an end").success());
}

#[test]
fn bad_inputs_are_refused_and_nothing_is_touched() {
    let folder = Folder::new();
    folder.write("in.txt", "a\n");
    folder.write("old.txt", "precious\n");
    assert_refused(&folder.run(&["dedup", "nowhere.txt", "-o", "old.txt"]), "nowhere.txt: no such file");
    assert_refused(&folder.run(&["dedup", ".", "-o", "old.txt"]), "directory");
    assert_refused(&folder.run(&["dedup", "in.txt", "--memory", "8b", "-o", "old.txt"]), "memory");
    assert_refused(&folder.run(&["dedup", "in.txt", "--fpr", "0", "-o", "old.txt"]), "--fpr");
    assert_refused(&folder.run(&["dedup", "in.txt", "--exact", "--memory", "1MiB"]), "--memory");
    assert_refused(&folder.run(&["dedup", "old.txt", "-o", "old.txt"]), "another file");
    assert_refused(&folder.run(&["dedup", "in.txt", "-o", "x", "--duplicates", "x"]), "name two files");
    assert_eq!(folder.read("old.txt"), b"precious\n");
}

#[test]
fn what_was_read_of_a_broken_gzip_is_written_then_exit_2() {
    let folder = Folder::new();
    let input = stream(1, 100_000, 30_000).into_bytes();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&input).expect("gzip");
    let gzip = gzip.finish().expect("gzip");
    folder.write("cut.gz", &gzip[..gzip.len() / 2]);
    let output = folder.run(&["dedup", "--exact", "cut.gz"]);
    assert_refused(&output, "cut.gz");
    let exact = first_occurrences(&input);
    let whole = output.stdout.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    assert!(whole > 10_000 && exact.starts_with(&output.stdout[..whole]));
}

#[test]
fn a_closed_pipe_ends_quietly_even_if_the_input_never_ends() {
    let folder = Folder::new();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "(yes a; cat) < /dev/null | \"$0\" dedup --flag | head -n 1"]);
    let output = command.arg(env!("CARGO_BIN_EXE_everbloom")).current_dir(folder.path("")).output().expect("sh runs");
    assert_eq!((error_of(&output).as_str(), &output.stdout[..]), ("", &b"new\ta\n"[..]));
}

#[test]
fn a_full_disk_is_exit_2_and_the_state_stays_whole() {
    let folder = Folder::new();
    folder.write("one.txt", stream(1, 1000, 500));
    folder.write("in.txt", stream(1, 500_000, 400_000));
    let state = ["--state", "seen.ebf", "--memory", "4KiB", "--checkpoint", "1ms"];
    folder.output_of(&[&["dedup", "one.txt", "-o", "out.txt"], &state[..]].concat());
    let output =
        folder.run_on_full_disk(512, &[&["dedup", "in.txt", "-o", "more.txt", "--quiet"], &state[..]].concat());
    assert_refused(&output, "more.txt");
    folder.output_of(&["info", "seen.ebf"]);
    folder.output_of(&[&["dedup", "in.txt", "-o", "more.txt", "--quiet"], &state[..]].concat());
    folder.output_of(&["dedup", "one.txt", "-o", "one.out", "--state", "again.ebf", "--memory", "4KiB"]);
    folder.output_of(&["dedup", "in.txt", "-o", "once.txt", "--state", "again.ebf", "--memory", "4KiB"]);
    assert!(folder.read("more.txt") == folder.read("once.txt"), "the run after the full disk gives the whole result");
}

#[test]
fn a_summary_is_printed_when_asked_for() {
    let folder = Folder::new();
    let output = folder.run_with(&["dedup", "--exact", "--verbose"], b"a\na\n");
    assert_eq!(output.stdout, b"a\n");
    let summary = error_of(&output);
    assert!(
        summary.contains("2 lines: 1 new, 1 repeat. No line was dropped by mistake and no repeat got through."),
        "{summary}"
    );
    assert_eq!(summary.lines().count(), 1);
}

#[test]
fn what_the_plan_notes_is_told_when_asked_for() {
    let folder = Folder::new();
    let dedup = |more: &[&str]| {
        let common = ["dedup", "--filter", "ibf5", "--memory", "4KiB", "--stats", "stats.json", "--key", "1"];
        let output = folder.run_with(&[&common, more].concat(), b"a\t1\na\t2\n");
        assert!(output.status.success(), "{}", error_of(&output));
        (error_of(&output), common::json_of(&folder.read("stats.json")))
    };
    let (text, stats) = dedup(&["--verbose"]);
    let note = stats["notes"][0].as_str().expect("a note");
    assert!(note.contains("without importances"), "{stats}");
    assert!(text.ends_with(&format!("\neverbloom: note: {note}")), "{text}");
    let (text, _) = dedup(&[]);
    assert_eq!(text, "", "nothing unasked");
    let (text, stats) = dedup(&["--verbose", "--importance", "2", "--importance-max", "9"]);
    assert_eq!((&stats["notes"], text.lines().count()), (&serde_json::json!([]), 1), "nothing to note");
}

#[test]
fn a_real_access_log_loses_its_repeated_visitors() {
    let folder = Folder::new();
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/access.log.zst");
    let arguments = ["dedup", log, "--key", "1", "--delimiter", " ", "--count", "--exact"];
    let counted = String::from_utf8(folder.output_of(&arguments)).expect("text");
    assert!(counted.starts_with("lines    10000\nnew      1753\n"), "{counted}");
}
