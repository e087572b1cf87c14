//! `dedup --counts`, and where outputs go that are called `-`.

mod common;

use common::{Folder, assert_refused, error_of, json_of};
use std::collections::HashMap;

/// Lines that a filter takes for repeats are missing, and it is said how many.
#[test]
fn estimates_say_how_many_lines_are_missing() {
    let folder = Folder::new();
    let lines: String = (0..3000).map(|at| format!("line {at}\n")).collect();
    folder.write("lines.txt", lines);
    let spectral = ["dedup", "--counts", "lines.txt", "-v", "-o", "out", "--stats", "-", "--filter", "spectral"];
    let output = folder.run(&[&spectral[..], &["--expect", "3000", "--fpr", "10%"]].concat());
    assert!(output.status.success(), "{}", error_of(&output));
    let stats = json_of(&output.stdout);
    let number = |name: &str| stats[name].as_f64().expect("a number");
    let missing = 3000.0 - number("written");
    assert!(missing > 0.0 && number("repeats") == missing, "{stats}");
    // Six deviations of a count that is at most binomial.
    let rate = number("predicted_fpr");
    let deviation = (3000.0 * rate * (1.0 - rate)).sqrt();
    assert!(missing <= number("expected_missing") + 6.0 * deviation, "{stats}");
    // No more than did not get through.
    let expected = (number("written") * rate / (1.0 - rate)).min(missing);
    assert!((number("expected_missing") - expected).abs() <= 1.0, "{stats}");
    let said = error_of(&output);
    assert!(
        said.contains("new lines was taken for a repeat and is missing") && said.contains("promised 10 %"),
        "{said}"
    );
    let exact = json_of(&folder.output_of(&["dedup", "--counts", "lines.txt", "-o", "out", "--stats", "-"]));
    assert!(exact["expected_missing"] == 0 && exact["written"] == 3000, "{exact}");
}

#[test]
fn counts_that_fade_are_refused_and_a_full_counter_is_so_often_or_more() {
    let folder = Folder::new();
    folder.write("lines.txt", "a\nb\n".repeat(65_540) + "c\n");
    let spectral = |spec: &str| folder.run(&["dedup", "--counts", "lines.txt", "--expect", "100", "--filter", spec]);
    assert_refused(
        &spectral("spectral:half_life=100"),
        "counts that fade are too low; leave half_life out of --filter",
    );
    for spec in ["spectral", "spectral:half_life=0"] {
        let full = spectral(spec);
        assert_eq!(String::from_utf8_lossy(&full.stdout), " 65535+ a\n 65535+ b\n      1 c\n");
        assert_eq!(full.status.code(), Some(3), "{}", error_of(&full));
        assert!(error_of(&full).contains("counters are full"), "{}", error_of(&full));
    }
}

#[test]
fn exact_counts_have_no_limit_where_none_is_wanted() {
    let folder = Folder::new();
    // More than the 64 MiB hold that are the default.
    let (mut lines, mut wanted) = (String::new(), String::new());
    for at in 0..1_840_000 {
        lines.push_str(&format!("{at}\n"));
        wanted.push_str(&format!("      1 {at}\n"));
    }
    folder.write("lines.txt", lines);
    let refused = folder.run(&["dedup", "--counts", "lines.txt"]);
    assert_refused(&refused, "64.0 MiB holds the exact counts of 1,835,008 different lines");
    assert!(error_of(&refused).contains("--exact for as much as it takes"), "{}", error_of(&refused));
    let exact = folder.run(&["dedup", "--counts", "--exact", "lines.txt"]);
    assert!(exact.status.success() && exact.stdout == wanted.as_bytes(), "{}", error_of(&exact));
    folder.write("few.txt", "a\n");
    assert_refused(&folder.run(&["dedup", "--counts", "-j", "2", "few.txt"]), "--counts and --threads");
    folder.output_of(&["dedup", "--counts", "-j", "1", "few.txt"]);
}

/// What `uniq -c` would print of lines in order of their first arrival.
fn counted(lines: &[String]) -> String {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    lines.iter().for_each(|line| *counts.entry(line).or_default() += 1);
    let mut text = String::new();
    for line in lines {
        if let Some(count) = counts.remove(line.as_str()) {
            text.push_str(&format!("{count:>7} {line}\n"));
        }
    }
    text
}

fn lines(count: u64, distinct: u64) -> Vec<String> {
    (0..count).map(|at| format!("line {}", at.wrapping_mul(at).wrapping_mul(2_654_435_761) % distinct)).collect()
}

#[test]
fn every_new_line_comes_with_how_often_it_came() {
    let folder = Folder::new();
    let lines = lines(50_000, 3000);
    folder.write("lines.txt", lines.join("\n") + "\n");
    let wanted = counted(&lines);
    assert!(folder.output_of(&["dedup", "--counts", "lines.txt"]) == wanted.as_bytes());
    let stats = json_of(&folder.output_of(&["dedup", "--counts", "lines.txt", "-o", "counts.txt", "--stats", "-"]));
    assert!(stats["exact"] == true && stats["items"] == 50_000 && stats["filter"].is_null(), "{stats}");
    assert!(folder.read("counts.txt") == wanted.as_bytes());
    // Estimates in ample memory are right, too, and it is said which they are.
    let spectral =
        ["dedup", "--counts", "lines.txt", "--filter", "spectral", "--expect", "3000", "--fpr", "1e-6", "-v"];
    let output = folder.run(&spectral);
    assert!(output.stdout == wanted.as_bytes() && output.status.success());
    assert!(error_of(&output).contains("the counts are estimates of spectral"), "{}", error_of(&output));
    let exact = folder.run(&["dedup", "--counts", "lines.txt", "-v"]);
    assert!(error_of(&exact).contains("the counts are exact"), "{}", error_of(&exact));
}

#[test]
fn counts_follow_keys_headers_and_records_without_a_key() {
    let folder = Folder::new();
    let csv = b"id,name\n1,a\n2,b\n1,c\n";
    let output = folder.output_with(&["dedup", "--counts", "--csv", "-H", "-k", "id"], csv);
    assert_eq!(String::from_utf8_lossy(&output), "  count id,name\n      2 1,a\n      1 2,b\n");
    let broken = b"{\"k\":1}\nnonsense\n{\"k\":1}\nnonsense\n{\"k\":2}\n";
    let kept = folder.run_with(&["dedup", "--counts", "--json", "-k", ".k"], broken);
    let wanted = "      2 {\"k\":1}\n      1 nonsense\n      1 nonsense\n      1 {\"k\":2}\n";
    assert_eq!(String::from_utf8_lossy(&kept.stdout), wanted);
    let skipped = folder.output_with(&["dedup", "--counts", "--json", "-k", ".k", "--on-error", "skip", "-q"], broken);
    assert_eq!(String::from_utf8_lossy(&skipped), "      2 {\"k\":1}\n      1 {\"k\":2}\n");
    assert_eq!(folder.output_with(&["dedup", "--counts", "-z"], b"x\0y\0x\0"), b"      2 x\0      1 y\0");
    assert_eq!(folder.output_with(&["dedup", "--counts"], b""), b"");
}

#[test]
fn counts_stay_within_their_memory_and_refuse_what_makes_no_sense() {
    let folder = Folder::new();
    let many: String = (0..20_000).map(|at| format!("line {}\n", at % 15_000)).collect();
    folder.write("lines.txt", many);
    folder.write("out.txt", "before\n");
    assert_refused(
        &folder.run(&["dedup", "--counts", "-m", "64KiB", "lines.txt", "-o", "out.txt"]),
        "give more --memory",
    );
    assert_eq!(folder.read("out.txt"), b"before\n", "what could not be counted replaces nothing");
    for (option, value) in [
        ("--follow", None),
        ("--state", Some("s")),
        ("--window", Some("5")),
        ("--flag", None),
        ("--only-duplicates", None),
        ("--duplicates", Some("d")),
    ] {
        let arguments: Vec<&str> = ["dedup", "--counts", "lines.txt", option].into_iter().chain(value).collect();
        assert_refused(&folder.run(&arguments), &format!("--counts and {option} cannot be combined: "));
    }
    assert_refused(&folder.run(&["dedup", "--counts", "--filter", "stable", "lines.txt"]), "or take spectral");
    // A filter that is too full says so.
    let full =
        folder.run(&["dedup", "--counts", "--filter", "spectral", "--expect", "100", "--fpr", "1%", "lines.txt"]);
    assert_eq!(full.status.code(), Some(3), "{}", error_of(&full));
}

#[test]
fn a_dash_is_stdout_and_not_a_file() {
    let folder = Folder::new();
    folder.write("lines.txt", "a\nb\na\n");
    assert_eq!(folder.output_of(&["dedup", "lines.txt", "-o", "-"]), b"a\nb\n");
    let stats = folder.output_of(&["dedup", "lines.txt", "-o", "out.txt", "--stats", "-"]);
    assert_eq!(json_of(&stats)["repeats"], 1);
    assert_eq!(folder.output_of(&["dedup", "lines.txt", "-o", "out.txt", "--duplicates", "-"]), b"a\n");
    assert_refused(
        &folder.run(&["dedup", "lines.txt", "--stats", "-"]),
        "where the new lines go; send those to a file with -o",
    );
    assert_refused(&folder.run(&["dedup", "lines.txt", "--duplicates", "-"]), "where the new lines go");
    assert_refused(&folder.run(&["dedup", "lines.txt", "-c", "--stats", "-"]), "where the totals go");
    assert_refused(&folder.run(&["dedup", "lines.txt", "--state", "-"]), "name a file");
    let both = ["dedup", "lines.txt", "-o", "out.txt", "--stats", "-", "--duplicates", "-"];
    assert_refused(&folder.run(&both), "cannot both be stdout");
    let built = folder.output_of(&["build", "lines.txt", "-o", "-"]);
    folder.output_of(&["build", "lines.txt", "-o", "file.ebf"]);
    assert_eq!(built, folder.read("file.ebf"));
    let merged = folder.output_of(&["merge", "file.ebf", "file.ebf", "-o", "-"]);
    assert!(merged.starts_with(&built[..4]));
    folder.output_of(&["build", "lines.txt", "--filter", "counting", "-o", "counting.ebf"]);
    folder.write("gone.txt", "a\n");
    assert_refused(&folder.run(&["remove", "counting.ebf", "gone.txt", "-o", "-"]), "where the report goes");
    let tune = ["tune", "--keys", "lines.txt", "--log", "lines.txt", "-m", "1KiB", "-o", "-"];
    assert_refused(&folder.run(&tune), "where the report goes");
    assert!(!folder.names().iter().any(|name| name == "-"), "{:?}", folder.names());
}

#[test]
fn a_wrong_key_destroys_nothing() {
    let folder = Folder::new();
    folder.write("people.csv", "id,name\n1,a\n");
    let arguments = ["dedup", "--csv", "--header", "--key", "nmae", "-o", "out.csv", "--duplicates", "dup.csv"];
    let from_file: Vec<&str> = arguments.iter().copied().chain(["people.csv"]).collect();
    let with_state: Vec<&str> = from_file.iter().copied().chain(["--state", "state"]).collect();
    for name in ["out.csv", "dup.csv"] {
        folder.write(name, "precious\n");
    }
    assert_refused(&folder.run(&from_file), "did you mean 'name'?");
    assert_refused(&folder.run(&with_state), "did you mean 'name'?");
    assert_refused(&folder.run_with(&arguments, b"id,name\n1,a\n"), "did you mean 'name'?");
    assert_eq!((folder.read("out.csv"), folder.read("dup.csv")), (b"precious\n".to_vec(), b"precious\n".to_vec()));
    // What is right replaces them, even by nothing.
    folder.output_with(&["dedup", "--csv", "-H", "-k", "name", "-o", "out.csv"], b"");
    assert_eq!(folder.read("out.csv"), b"");
    folder.output_with(&["dedup", "--csv", "-H", "-k", "name", "-o", "dup.csv"], b"id,name\n1,a\n2,a\n");
    assert_eq!(folder.read("dup.csv"), b"id,name\n1,a\n");
}

/// A mistake that shows at once leaves the output as it was.
#[test]
fn what_fails_at_the_first_records_destroys_nothing() {
    let folder = Folder::new();
    let many: String = (0..3000).map(|at| format!("{{\"id\":{at}}}\n")).collect();
    folder.write("few.jsonl", "{\"id\":1}\n{\"id\":2}\n{\"key\":1}\n");
    folder.write("many.jsonl", many);
    folder.write("cut.gz", b"\x1f\x8b\x08\x00\x00");
    folder.write("one.csv", "id,name\n1,a\n");
    folder.write("two.csv", "id,age\n1,a\n");
    let calls: [&[&str]; 5] = [
        &["--json", "-k", ".key", "few.jsonl"],
        &["--json", "-k", ".key", "many.jsonl"],
        &["--json", "-k", ".key", "many.jsonl", "--on-error", "fail"],
        &["cut.gz"],
        &["--csv", "-H", "-k", "id", "one.csv", "two.csv"],
    ];
    for call in calls {
        folder.write("out.txt", "precious\n");
        folder.write("dup.txt", "precious\n");
        let output = folder.run(&[&["dedup", "-o", "out.txt", "--duplicates", "dup.txt"], call].concat());
        assert_eq!(output.status.code(), Some(2), "{call:?}: {}", error_of(&output));
        assert_eq!((folder.read("out.txt"), folder.read("dup.txt")), (b"precious\n".to_vec(), b"precious\n".to_vec()));
    }
    let headers = folder.run(&["dedup", "--csv", "-H", "-k", "id", "one.csv", "two.csv", "-o", "out.txt"]);
    assert_refused(&headers, "one.csv and two.csv have different headers");
    let piped = folder.run_with(&["dedup", "--csv", "-H", "-k", "id", "-", "two.csv"], b"id,x\n1,2\n");
    assert!(error_of(&piped).contains("stdin and two.csv have different headers"), "{}", error_of(&piped));
    // What was doubtful at first, and is not, is written whole and in order.
    let good: String = (0..900).map(|at| format!("{{\"key\":{at}}}\n")).collect();
    folder.write("bad.jsonl", "{}\n".repeat(300));
    folder.write("good.jsonl", &good);
    let late = folder.run(&["dedup", "--json", "-k", ".key", "-o", "out.txt", "bad.jsonl", "good.jsonl"]);
    assert!(late.status.success(), "{}", error_of(&late));
    assert!(folder.read("out.txt") == ("{}\n".repeat(300) + &good).as_bytes());
}

#[test]
fn a_checkpoint_without_a_state_is_an_error() {
    let folder = Folder::new();
    folder.write("lines.txt", "a\n");
    assert_refused(&folder.run(&["dedup", "lines.txt", "--checkpoint", "5s"]), "add --state FILE");
    folder.output_of(&["dedup", "lines.txt", "--checkpoint", "5s", "--state", "state", "-o", "out.txt"]);
}

#[test]
fn no_more_lines_are_missing_than_did_not_get_through() {
    let folder = Folder::new();
    let lines: String = (0..20_000).map(|line| format!("{}\n", line % 15_000)).collect();
    folder.write("in", lines);
    for memory in ["1KiB", "4KiB", "16KiB", "64KiB"] {
        let arguments = ["dedup", "in", "--counts", "--filter", "spectral", "-m", memory, "-o", "out", "-v"];
        let output = folder.run(&[&arguments[..], &["--stats", "stats.json"]].concat());
        let (said, stats) = (error_of(&output), json_of(&folder.read("stats.json")));
        let number = |name: &str| stats[name].as_u64().expect("a number");
        assert!(number("expected_missing") <= number("repeats"), "{memory}: {stats}");
        assert!(number("expected_missing") >= 15_000 - number("written"), "{memory}: as many are: {stats}");
        let odd = ["999 in 1,000 (100 %)", "the filter is full, and the filter was", " 1 lines"];
        assert!(!odd.iter().any(|words| said.contains(words)), "{said}");
    }
    let one = folder.run_with(&["dedup", "--counts", "--filter", "spectral", "-m", "1KiB", "-v"], b"a\nb\na\n");
    assert!(
        error_of(&one).contains("missing, up to 1 line, all that did not get through (promised"),
        "{}",
        error_of(&one)
    );
}
