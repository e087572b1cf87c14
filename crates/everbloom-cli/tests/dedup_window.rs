//! `dedup --window` with times: nothing inside the window is missed, and what goes wrong is counted.

mod common;

use common::{Folder, assert_refused, error_of, json_of, lines};
use std::collections::HashMap;

/// An arrival: microseconds since 1970, and a key.
type Arrival = (i64, u64);

/// Arrivals of keys below `universe`, in bursts and pauses, in order.
fn stream(count: usize, universe: u64, seed: u64) -> Vec<Arrival> {
    let mut state = seed;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut time = 1_700_000_000_000_000i64;
    (0..count)
        .map(|_| {
            time += match next(1000) {
                0 => next(3_000_000_000),
                1..=20 => next(60_000_000),
                _ => next(2_000_000),
            } as i64;
            (time, next(universe))
        })
        .collect()
}

fn seconds(arrivals: &[Arrival]) -> String {
    arrivals
        .iter()
        .map(|(time, key)| format!("{}.{:06}\tkey-{key}\n", time / 1_000_000, time % 1_000_000))
        .collect::<String>()
}

const FIELDS: [&str; 4] = ["--key", "2", "--time", "1"];

fn dedup(more: &[&'static str]) -> Vec<&'static str> {
    ["dedup"].iter().chain(&FIELDS).chain(more).copied().collect()
}

/// Which arrivals of the stream were written; they come in order and each is unlike all others.
fn written(output: &[u8], arrivals: &[Arrival]) -> Vec<bool> {
    let (text, output) = (seconds(arrivals), lines(output));
    let mut rest = output.as_slice();
    let flags = lines(text.as_bytes())
        .into_iter()
        .map(|line| {
            let is_next = rest.first() == Some(&line);
            rest = if is_next { &rest[1..] } else { rest };
            is_next
        })
        .collect();
    assert!(rest.is_empty(), "lines that were never in the stream, or out of order");
    flags
}

/// Microseconds of a window, and of the generation by which keys may stay longer (23 of 32 slices at 1 %).
const WINDOW: i64 = 600_000_000;
const LONGER: i64 = WINDOW + WINDOW / 10;

#[test]
fn repeats_within_the_time_are_dropped_and_older_ones_written() {
    let folder = Folder::new();
    let arrivals = stream(30_000, 700, 1);
    for refresh in ["yes", "no"] {
        let arguments = dedup(&["--window", "10m", "--expect", "20000", "--fpr", "0.1%", "--refresh", refresh]);
        let output = folder.output_with(&arguments, seconds(&arrivals).as_bytes());
        let mut last: HashMap<u64, i64> = HashMap::new();
        let (mut fresh, mut lost) = (0.0f64, 0.0f64);
        for ((time, key), is_written) in arrivals.iter().zip(written(&output, &arrivals)) {
            let age = last.get(key).map(|before| time - before);
            assert!(!(is_written && age.is_some_and(|age| age <= WINDOW)), "{refresh}: a repeat after {age:?} µs");
            if age.is_none_or(|age| age > LONGER) {
                fresh += 1.0;
                lost += f64::from(!is_written);
            }
            // With refresh a key's age counts from its last arrival, else from the line that was written.
            if is_written || refresh == "yes" {
                last.insert(*key, *time);
            }
        }
        assert!(fresh > 1000.0, "{refresh}: only {fresh} new lines, the test tests little");
        assert!(lost <= fresh * 0.001 + 4.0 * (fresh * 0.001).sqrt(), "{refresh}: {lost} of {fresh} new lines lost");
    }
}

#[test]
fn a_window_of_time_over_a_file_says_which_time_counts() {
    let folder = Folder::new();
    folder.write("old.log", "a\nb\na\n");
    let said = |arguments: &[&str]| {
        let output = folder.run(&[&["dedup", "--window", "24h", "--expect", "1000"], arguments].concat());
        error_of(&output).contains("--time FIELD takes it from the lines")
    };
    assert!(said(&["old.log"]));
    assert!(!said(&["old.log", "-q"]) && !said(&["old.log", "--state", "seen.ebf"]));
}

#[test]
fn every_way_to_write_a_time_gives_the_same() {
    let folder = Folder::new();
    // Whole seconds, in November 2023.
    let arrivals: Vec<Arrival> = (0..5000).map(|i| (1_700_000_000 + i * 7, (i * i) as u64 % 1009)).collect();
    let table = |write: &dyn Fn(i64) -> String| {
        arrivals.iter().fold(String::new(), |text, (time, key)| text + &format!("{}\t{key}\n", write(*time)))
    };
    let day_time = |time: i64| {
        let (day, second) = ((time - 1_698_796_800) / 86_400 + 1, (time - 1_698_796_800) % 86_400);
        (day, second / 3600, second / 60 % 60, second % 60)
    };
    let forms: [&dyn Fn(i64) -> String; 5] = [
        &|time| time.to_string(),
        &|time| format!("{time}000"),
        &|time| {
            let (day, hour, minute, second) = day_time(time);
            format!("2023-11-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
        },
        &|time| {
            let (day, hour, minute, second) = day_time(time + 3600);
            format!("2023-11-{day:02} {hour:02}:{minute:02}:{second:02}.000+01:00")
        },
        &|time| {
            let (day, hour, minute, second) = day_time(time);
            format!("[{day:02}/Nov/2023:{hour:02}:{minute:02}:{second:02} +0000]")
        },
    ];
    let verdicts = |form: &dyn Fn(i64) -> String| {
        let arguments = dedup(&["--window", "30m", "--expect", "1000", "--flag"]);
        let output = folder.output_with(&arguments, table(form).as_bytes());
        lines(&output).iter().map(|line| line[..3].to_vec()).collect::<Vec<_>>()
    };
    let first = verdicts(forms[0]);
    assert!(first.iter().any(|mark| mark == b"dup") && first.iter().filter(|mark| *mark == b"new").count() > 400);
    for (index, form) in forms.iter().enumerate() {
        assert_eq!(verdicts(form), first, "form {index}");
    }
}

#[test]
fn a_web_server_log_is_read_as_it_is() {
    let folder = Folder::new();
    let line = |minute: u32, address: &str| {
        format!("{address} - - [14/Nov/2023:22:{minute:02}:00 +0100] \"GET / HTTP/1.1\" 200 512\n")
    };
    let log = [line(0, "a"), line(5, "b"), line(9, "a"), line(30, "a")].concat();
    let arguments = ["dedup", "--delimiter", " ", "--key", "1", "--time", "4,5", "--window", "10m"];
    let output = folder.output_with(&arguments, log.as_bytes());
    assert_eq!(String::from_utf8_lossy(&output), [line(0, "a"), line(5, "b"), line(30, "a")].concat());
    let json = "{\"k\":1,\"t\":\"2023-11-14T22:00:00Z\"}\n{\"k\":1,\"t\":1700000000}\n{\"k\":1,\"t\":1700003600}\n";
    let arguments = ["dedup", "--json", "--key", "/k", "--time", "/t", "--window", "50m"];
    assert_eq!(lines(&folder.output_with(&arguments, json.as_bytes())).len(), 2);
}

#[test]
fn times_that_cannot_be_read_are_errors_and_counted() {
    let folder = Folder::new();
    let input = b"100\ta\nsoon\ta\n101\ta\n\ta\n4102444800\ta\n102\tb\n";
    let output = folder.run_with(&dedup(&["--window", "1h", "--stats", "stats.json"]), input);
    assert_eq!(output.stdout, b"100\ta\nsoon\ta\n\ta\n4102444800\ta\n102\tb\n");
    assert!(error_of(&output).contains("3 records that cannot be used, treated as new"), "{}", error_of(&output));
    let stats = json_of(&folder.read("stats.json"));
    assert_eq!((&stats["errors"], &stats["dropped"], &stats["late"]), (&3.into(), &1.into(), &0.into()), "{stats}");
    let output = folder.output_with(&dedup(&["--window", "1h", "--on-error", "skip", "-q"]), input);
    assert_eq!(output, b"100\ta\n102\tb\n");
    let failed = folder.run_with(&dedup(&["--window", "1h", "--on-error", "fail"]), input);
    assert_refused(&failed, "record 2 cannot be used: its time 'soon' cannot be read");
}

#[test]
fn files_in_the_wrong_order_are_told() {
    let folder = Folder::new();
    folder.write("new", "20000\ta\n20001\tb\n");
    folder.write("old", "10000\ta\n19990\tb\n");
    let run = |more: &[&str]| {
        let call = ["dedup", "--window", "1h", "--memory", "64KiB", "--time", "1", "--key", "2"];
        error_of(&folder.run(&[&call[..], more].concat()))
    };
    let said = run(&["new", "old"]);
    assert!(said.contains("1 line came late by more than the window") && said.contains("oldest lines first"), "{said}");
    assert_eq!((run(&["old", "new"]), run(&["--quiet", "new", "old"])), (String::new(), String::new()));
}

#[test]
fn times_that_run_backwards_count_as_late_and_shorten_nothing() {
    let folder = Folder::new();
    // "a" comes, then a record from long ago, then "a" again within the hour; the old one's repeat is a repeat, too.
    let input = b"10000\ta\n20\told\n13000\ta\n21\told\n";
    let output = folder.run_with(&dedup(&["--window", "1h", "--stats", "stats.json"]), input);
    assert_eq!(output.stdout, b"10000\ta\n20\told\n");
    assert!(error_of(&output).contains("2 lines came late by more than the window"), "{}", error_of(&output));
    assert_eq!(json_of(&folder.read("stats.json"))["late"], 2);
}

#[test]
fn more_than_was_planned_raises_the_rate_not_the_misses() {
    let folder = Folder::new();
    let arrivals: Vec<Arrival> = (0..40_000).map(|i| (1_700_000_000_000_000 + i * 10_000, i as u64 % 15_000)).collect();
    let arguments = dedup(&["--window", "1h", "--expect", "2000", "--fpr", "1%", "--stats", "stats.json", "--verbose"]);
    let done = folder.run_with(&arguments, seconds(&arrivals).as_bytes());
    assert_eq!(done.status.code(), Some(3));
    let flags = written(&done.stdout, &arrivals);
    assert!(flags[15_000..].iter().all(|is_written| !is_written), "a repeat inside the window was written");
    let stats = json_of(&folder.read("stats.json"));
    assert_eq!((&stats["planned_arrivals"], &stats["most_arrivals"]), (&2000.into(), &40_000.into()), "{stats}");
    let lost = flags[..15_000].iter().filter(|is_written| !**is_written).count() as f64 / 15_000.0;
    let highest = stats["highest_fpr"].as_f64().expect("a rate");
    assert!(lost > 0.05 && highest >= lost, "{lost} lost, {highest} reported");
    let summary = error_of(&done);
    assert!(summary.contains("40,000 lines came in a window, and 2,000 were planned for"), "{summary}");
}

#[test]
fn threads_and_restarts_change_nothing() {
    let folder = Folder::new();
    let arrivals = stream(20_000, 900, 2);
    let text = seconds(&arrivals);
    let plan = ["--window", "10m", "--memory", "64KiB", "--fpr", "1%"];
    let whole = folder.output_with(&dedup(&[&plan[..], &["--threads", "1"]].concat()), text.as_bytes());
    assert_eq!(folder.output_with(&dedup(&[&plan[..], &["--threads", "4"]].concat()), text.as_bytes()), whole);
    let (mut parts, mut rest) = (Vec::new(), lines(text.as_bytes()).into_iter());
    for (part, count) in [1, 4999, 7000, 8000].into_iter().enumerate() {
        let input = rest.by_ref().take(count).collect::<Vec<_>>().concat();
        let state = ["--state", "window.ebf", "--stats", "stats.json"];
        parts.extend(folder.output_with(&dedup(&[&plan[..], &state].concat()), &input));
        assert!(part < 3 || json_of(&folder.read("stats.json"))["total"]["items"] == 20_000);
    }
    assert!(parts == whole, "a run in four parts differs from one");
    let other =
        folder.run_with(&dedup(&["--window", "11m", "--memory", "64KiB", "--fpr", "1%", "--state", "window.ebf"]), b"");
    assert_refused(&other, "saved with --window 10m, not --window 11m");
}

#[test]
fn sparse_streams_through_much_memory_do_not_take_for_ever() {
    // 200,000 turns of a window in 64 MiB: a pass over the memory for each would take minutes.
    let folder = Folder::new();
    let arrivals: Vec<Arrival> = (0..200_000).map(|i| (i * 3_600_000_000, i as u64 / 2 % 5)).collect();
    let output = folder.output_with(&dedup(&["--window", "90m", "--fpr", "1%"]), seconds(&arrivals).as_bytes());
    assert_eq!(lines(&output).len(), 100_000);
}

#[test]
fn without_a_field_the_time_is_that_of_arrival() {
    let folder = Folder::new();
    assert_eq!(folder.output_with(&["dedup", "--window", "1h"], b"a\nb\na\n"), b"a\nb\n");
    let run = |input: &[u8]| folder.output_with(&["dedup", "--window", "20ms", "--state", "seen.ebf"], input);
    assert_eq!(run(b"a\nb\na\n"), b"a\nb\n");
    std::thread::sleep(std::time::Duration::from_millis(60));
    assert_eq!(run(b"a\n"), b"a\n");
}

#[test]
fn windows_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    for window in ["0", "0s", "-5m", "soon", "1e40d", ""] {
        let argument = format!("--window={window}");
        assert_refused(&folder.run(&["dedup", &argument]), "--window");
    }
    assert_refused(&folder.run(&["dedup", "--window", "1000", "--time", "1"]), "--window 24h");
    assert_refused(&folder.run(&["dedup", "--time", "1"]), "--window");
    let too_much = ["dedup", "--window", "24h", "--expect", "1e9", "--memory", "1MiB"];
    assert_refused(&folder.run(&too_much), "give that much memory, or a window of at most");
    assert_refused(&folder.run(&["dedup", "--window", "24h", "--time", "0"]), "counted from 1");
    assert_refused(&folder.run(&["dedup", "--window", "24h", "--time", "when"]), "--header");
}
