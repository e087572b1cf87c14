//! Typos, units, places of keys: what people type, and what they get for it.

mod common;

use common::{Folder, assert_refused, error_of, json_of};

const CSV: &str = "id,name,city\n1,Ann,Rome\n2,Bob,Oslo\n1,Ann,Rome\n";

/// A folder with a file that has names, one with tabs and one of JSON.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("people.csv", CSV);
    folder.write("fields.tsv", "a\tb\tc\td\na\tb\tx\td\na\tb\tc\ty\na\tb\tc\td\n");
    folder.write("events.jsonl", "{\"user\":{\"id\":1,\"a b\":\"x\"},\"l\":[{\"k\":7}]}\n{\"user\":{\"id\":2,\"a b\":\"x\"},\"l\":[{\"k\":7}]}\n");
    folder.write("keys.txt", "one\ntwo\nthree\n");
    folder.write("spaced.csv", "id, email\n1, a\n");
    folder
}

#[test]
fn every_typo_gets_a_suggestion() {
    let folder = folder();
    folder.output_of(&["build", "keys.txt", "-o", "keys.ebf"]);
    for (arguments, meant) in [
        (&["dedup", "--filter", "Bloom", "keys.txt"][..], "bloom"),
        (&["dedup", "--filter", "blom", "keys.txt"], "bloom"),
        (&["dedup", "--filter", "bloom:num_hash=3", "keys.txt"], "num_hashes"),
        (&["dedup", "--filter", "stable:layout=Blocked", "keys.txt"], "blocked"),
        (&["dedup", "--filter", "stable:layout=blokced", "keys.txt"], "blocked"),
        (&["dedup", "--csv", "--header", "--key", "nmae", "people.csv"], "name"),
        (&["dedup", "--csv", "-H", "-k", "City", "people.csv"], "city"),
        (&["dedup", "--on-error", "skp", "keys.txt"], "skip"),
        (&["query", "keys.ebf", "keys.txt", "-c", "--format", "jsno"], "json"),
        (&["dedup", "--memroy", "1MiB", "keys.txt"], "--memory"),
        (&["dedpu"], "dedup"),
        (&["lab", "rnu"], "run"),
        (&["lab", "run", "--out", "results", "lecture-sizin"], "lecture-sizing"),
        (&["lab", "run", "--out", "results", "thesis_tables"], "thesis-tables"),
        (&["lab", "generate", "zpif"], "zipf"),
        (&["lab", "simulate", "caching", "--generate", "zipf-0.8"], "zipf-0.9"),
        (&["filters", "ibf-3"], "ibf3"),
        (&["plan", "--expect", "1k", "--stream", "zipff:1"], "zipf:1"),
        (&["plan", "--expect", "1k", "--importance", "linar"], "linear"),
        (
            &["plan", "--expect", "1k", "--cost-fp", "1", "--cost-fn", "1", "--cost-fn-by-importance", "lineer"],
            "linear",
        ),
        (&["dedup", "--json", "-k", ".user.idd", "events.jsonl"], ".user.id"),
        (&["dedup", "--json", "-k", "/usr/id", "events.jsonl"], "/user/id"),
        (&["dedup", "--json", "-k", "/l/0/K", "--on-error", "fail", "events.jsonl"], "/l/0/k"),
        (&["build", "--json", "-k", ".user.ID", "events.jsonl", "-o", "x.ebf"], ".user.id"),
        (&["dedup", "--csv", "-H", "-k", "email", "spaced.csv"], " email"),
        (&["man", "dedpu"], "dedup"),
    ] {
        let output = folder.run(arguments);
        assert_refused(&output, &format!("did you mean '{meant}'?"));
        assert!(error_of(&output).ends_with('?'), "{}", error_of(&output));
    }
    assert_refused(&folder.run(&["dedup", "--filter", "cuckoo", "keys.txt"]), "take one of auto, bloom, blocked");
    assert_refused(&folder.run(&["dedup", "-H", "--csv", "-k", "zip", "people.csv"]), "it has id, name, city");
}

#[test]
fn sizes_are_exactly_what_they_say_and_other_spellings_are_errors() {
    let folder = folder();
    let memory = |size: &str| {
        let spec = ["plan", "--expect", "1000", "--filter", "ranked", "--fpr", "10%", "--format", "json", "-m", size];
        json_of(&folder.output_of(&spec))["memory_bits"].as_u64().expect("a number")
    };
    assert_eq!(memory("64k"), memory("64KiB"));
    assert_eq!(memory("1M"), memory("1MiB"));
    assert_eq!(memory("1M"), memory("8388608b"));
    assert!(memory("64KB") < memory("64KiB") && memory("64KB") == memory("64000"));
    for (size, likely) in
        [("64mb", "64MiB"), ("64kB", "64KiB"), ("64Mb", "64MiB"), ("64 megabytes", "64MiB"), ("64kb", "64KiB")]
    {
        let output = folder.run(&["dedup", "keys.txt", "-m", size]);
        assert_refused(&output, "KiB, MiB, GiB (times 1024), KB, MB, GB (times 1000), B (bytes) or b (bits)");
        assert!(error_of(&output).ends_with(&format!("try {likely}")), "{}", error_of(&output));
    }
    for expect in ["10k", "5M", "1e6"] {
        folder.output_of(&["plan", "--expect", expect]);
    }
    // A window is said as it would be typed, by every command.
    for (window, said) in
        [("1w", "1w"), ("7d", "1w"), ("1h30m", "1h30m"), ("90m", "1h30m"), ("24h", "1d"), ("36h", "1d12h")]
    {
        let plan = folder.output_of(&["plan", "--window", window, "--expect", "1000"]);
        let plan = String::from_utf8(plan).expect("text");
        assert!(plan.contains(&format!("every repeat within {said} is found")), "{plan}");
        let paste = plan.split("command line").nth(1).expect("lines to paste");
        assert!(paste.contains(&format!("--window {said} ")), "{plan}");
        let dedup = folder.run(&["dedup", "-v", "--window", window, "--expect", "1000", "keys.txt"]);
        assert!(error_of(&dedup).contains(&format!("no repeat within {said} ")), "{}", error_of(&dedup));
    }
    // So are memory and rates.
    let many: String = (0..2000).map(|key| format!("{key}\n")).collect();
    let full = folder.run_with(&["dedup", "-m", "64", "--fpr", "10%"], many.as_bytes());
    assert!(error_of(&full).contains("(64 bytes): exact up to here"), "{}", error_of(&full));
    let rare = String::from_utf8(folder.output_of(&["plan", "--expect", "1000", "--fpr", "1e-12"])).expect("text");
    assert!(!rare.contains("e-10 %") && rare.contains("e-1"), "{rare}");
    for window in ["1w", "1h30m", "90s"] {
        folder.output_of(&["dedup", "-q", "--window", window, "--expect", "1000", "keys.txt"]);
    }
    assert_refused(&folder.run(&["dedup", "--window", "5M", "keys.txt"]), "write 5000000 if lines are meant");
}

#[test]
fn ranges_of_fields_are_the_fields_they_name() {
    let folder = folder();
    let unique = |key: &str| folder.output_of(&["dedup", "-k", key, "fields.tsv"]);
    assert_eq!(unique("1-3"), unique("1,2,3"));
    assert_eq!(unique("1-2,4"), unique("1,2,4"));
    assert_eq!(unique("-3"), unique("1,2,3"));
    assert_eq!(unique("2-"), unique("2,3,4"));
    assert_eq!(unique("2-2"), unique("2"));
    assert_eq!((unique("1-2").len(), unique("1-3").len(), unique("1-4").len()), (8, 16, 24));
    // The same keys, and so the same filter.
    folder.output_of(&["build", "-k", "1-3", "fields.tsv", "-o", "range.ebf"]);
    folder.output_of(&["build", "-k", "1,2,3", "fields.tsv", "-o", "list.ebf"]);
    assert_eq!(folder.read("range.ebf"), folder.read("list.ebf"));
    for (key, problem) in
        [("3-1", "write 1-3"), ("0-2", "count from 1"), ("1-5000", "write 1- for all"), ("x-2", "is not a number")]
    {
        assert_refused(&folder.run(&["dedup", "-k", key, "fields.tsv"]), problem);
    }
    // Records of different lengths are different keys, and one that ends before the range has none.
    let ragged = b"a\tb\na\tb\t\na\tb\na\n";
    let output = folder.run_with(&["dedup", "-k", "2-"], ragged);
    assert_eq!(output.stdout, b"a\tb\na\tb\t\na\n");
    assert!(error_of(&output).contains("there is no field 2"), "{}", error_of(&output));
    // What begins with a dash is a range, too.
    assert_eq!(unique("-2,3"), unique("1,2,3"));
    // Names with dashes are names.
    let named = b"user-id,1-x\n1,2\n1,3\n";
    assert_eq!(folder.output_with(&["dedup", "--csv", "-H", "-k", "user-id"], named), b"user-id,1-x\n1,2\n");
}

/// What a header calls a field is its name, whatever it looks like.
#[test]
fn names_that_look_like_ranges_or_numbers_are_names() {
    let folder = folder();
    let unique = |key: &str, csv: &str| {
        String::from_utf8(folder.output_with(&["dedup", "--csv", "-H", "-k", key], csv.as_bytes())).expect("text")
    };
    assert_eq!(unique("1-2", "1-2,b\na,x\na,y\n"), "1-2,b\na,x\n");
    assert_eq!(unique("2019-2020", "id,2019-2020\n1,x\n2,x\n"), "id,2019-2020\n1,x\n");
    assert_eq!(unique("2020", "2019,2020\n1,x\n2,x\n"), "2019,2020\n1,x\n");
    assert_eq!(unique("1-2", "a,b\n1,x\n1,y\n1,x\n"), "a,b\n1,x\n1,y\n", "a range where nothing is called so");
    // A filter file keeps the name.
    folder.write("years.csv", "1-2,b\na,x\nc,y\n");
    folder.output_of(&["build", "--csv", "-H", "-k", "1-2", "--fpr", "1e-9", "years.csv", "-o", "years.ebf"]);
    assert_eq!(folder.output_with(&["query", "years.ebf", "-c"], b"1-2,b\na,other\nd,y\n"), b"1\n");
    // A name that two fields have names none.
    let twice = folder.run_with(&["dedup", "--csv", "-H", "-k", "id"], b"id,x,id\n1,2,3\n");
    assert_refused(&twice, "the header has 2 fields 'id'; give the number of the one that is meant, such as 1 or 3");
    assert_eq!(unique("x", "id,x,id\n1,2,3\n"), "id,x,id\n1,2,3\n");
}

#[test]
fn a_forgotten_option_is_named() {
    let folder = folder();
    assert_refused(&folder.run(&["dedup", "-H", "-k", "name", "people.csv"]), "separated by ',': add --csv");
    let other = b"id;\"name\";city\n1;2;3\n";
    assert_refused(&folder.run_with(&["dedup", "--csv", "-H", "-k", "name"], other), "separated by ';': add -d ';'");
    for key in [".user.id", "/user/id"] {
        assert_refused(&folder.run(&["dedup", "-k", key, "events.jsonl"]), "add --json");
    }
    folder.write("spaced.txt", "a 1\na 2\n");
    let spaced = folder.run(&["dedup", "-k", "1", "spaced.txt"]);
    assert!(spaced.status.success());
    let note =
        "note: no line so far has a tab, so the whole line is the key; where a space is between fields, add -d ' '";
    assert!(error_of(&spaced).contains(note), "{}", error_of(&spaced));
    for arguments in [
        &["dedup", "-q", "-k", "1", "spaced.txt"][..],
        &["dedup", "-k", "1", "-d", " ", "spaced.txt"],
        &["dedup", "-k", "1", "fields.tsv"],
        &["dedup", "--csv", "-k", "1", "spaced.txt"],
        &["dedup", "spaced.txt"],
    ] {
        assert_eq!(error_of(&folder.run(arguments)), "", "{arguments:?}");
    }
    for (key, ending) in [("$.user.id", "write .user.id"), (".l[].k", ".l[0].k"), (".l[-1].k", "none of them")] {
        let output = folder.run(&["dedup", "--json", "-k", key, "events.jsonl"]);
        assert_refused(&output, ending);
        assert!(error_of(&output).ends_with(ending), "{}", error_of(&output));
    }
}

#[test]
fn json_keys_in_jqs_style_are_the_pointers() {
    let folder = folder();
    let count = |key: &str| {
        let output = folder.output_of(&["dedup", "--json", "-k", key, "events.jsonl"]);
        output.iter().filter(|byte| **byte == b'\n').count()
    };
    for key in ["/user/id", ".user.id", r#".["user"].id"#, r#".user["id"]"#] {
        assert_eq!(count(key), 2, "{key}");
    }
    for key in ["/user/a b", r#".user["a b"]"#, r#".user."a b""#, ".l[0].k", "/l/0/k", r#".l[0].k,.user["a b"]"#] {
        assert_eq!(count(key), 1, "{key}");
    }
    // A file that stored one spelling takes the other for the same key, and says nothing.
    folder.output_of(&["build", "--json", "-k", "/user/id", "events.jsonl", "-o", "one.ebf"]);
    folder.output_of(&["build", "--json", "-k", ".user.id", "events.jsonl", "-o", "other.ebf"]);
    assert_eq!(folder.read("one.ebf"), folder.read("other.ebf"));
    for key in [".user.id", "/user/id"] {
        assert_eq!(folder.output_of(&["query", "one.ebf", "events.jsonl", "--json", "-k", key, "-c"]), b"2\n");
    }
    // So does a state.
    let state = |key: &str| folder.run(&["dedup", "--json", "-k", key, "--state", "s", "-o", "out", "events.jsonl"]);
    assert!(state(".user.id").status.success());
    let again = state("/user/id");
    assert!(again.status.success(), "{}", error_of(&again));
    assert_refused(&state("/user/name"), "the state was saved with --key .user.id");
}

#[test]
fn counts_are_json_where_that_is_asked() {
    let folder = folder();
    folder.output_of(&["build", "keys.txt", "-o", "keys.ebf"]);
    let query = folder.output_with(&["query", "keys.ebf", "-c", "--format", "json"], b"one\nfour\nthree\n");
    assert_eq!(json_of(&query), serde_json::json!({"lines": 3, "matched": 2, "errors": 0}));
    let dedup = folder.output_with(&["dedup", "-c", "--format", "json"], b"a\nb\na\n");
    assert_eq!(json_of(&dedup), serde_json::json!({"items": 3, "new": 2, "repeats": 1, "errors": 0}));
    assert_refused(&folder.run(&["dedup", "--format", "json", "keys.txt"]), "--count");
}

#[test]
fn filters_are_listed_and_explained() {
    let folder = folder();
    let all = String::from_utf8(folder.output_of(&["filters"])).expect("text");
    let document = json_of(&folder.output_of(&["filters", "--format", "json"]));
    let kinds = document["filters"].as_array().expect("a list");
    assert!(kinds.len() > 15, "{}", kinds.len());
    for kind in kinds {
        let name = kind["name"].as_str().expect("a name");
        assert!(all.lines().any(|line| line.starts_with(name)), "{name}");
        let one = String::from_utf8(folder.output_of(&["filters", name])).expect("text");
        assert!(one.lines().all(|line| line.chars().count() <= 100), "{one}");
        for parameter in kind["parameters"].as_array().expect("a list") {
            let said = ["name", "meaning", "takes", "default"].map(|part| parameter[part].as_str().expect("a text"));
            let flowing = one.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.iter().all(|part| flowing.contains(part)), "{said:?}\n{one}");
        }
        assert!(one.contains(kind["example"].as_str().expect("a text")));
    }
    assert!(all.lines().all(|line| line.chars().count() <= 100), "{all}");
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all.contains("never misses a key that was inserted"));
}

/// The calls that `filters KIND` shows work.
#[test]
fn the_example_of_every_kind_runs() {
    let folder = folder();
    folder.write("lines.txt", "a\nb\na\n");
    // As many as RedisBloom's filter needs to keep the usual rate.
    folder.write("members.txt", (0..300).map(|member| format!("{member}\n")).collect::<String>());
    folder.write("visits.tsv", "a\t1\nb\t50\na\t1\n");
    folder.write("queries.txt", "x\ny\nx\nx\ny\nz\nx\nx\n");
    folder.output_of(&["tune", "--keys", "members.txt", "--log", "queries.txt", "-m", "1KiB", "-o", "members.ebs"]);
    let document = json_of(&folder.output_of(&["filters", "--format", "json"]));
    for kind in document["filters"].as_array().expect("a list") {
        let example = kind["example"].as_str().expect("a text");
        let arguments: Vec<&str> = example.split(' ').skip(1).collect();
        let output = folder.run(&arguments);
        assert!(output.status.success(), "{example}: {}", error_of(&output));
    }
}

/// What `filters` says a kind never does is what its plan promises.
#[test]
fn a_kind_that_never_exceeds_its_rate_promises_so() {
    let folder = folder();
    let document = json_of(&folder.output_of(&["filters", "--format", "json"]));
    let mut kinds = Vec::new();
    for kind in document["filters"].as_array().expect("a list") {
        let name = kind["name"].as_str().expect("a name");
        let never = kind["never"].as_array().expect("a list");
        if never.iter().any(|never| never == "exceeds the planned rate") {
            let plan = ["plan", "--filter", name, "-m", "4KiB", "--fpr", "2%", "--format", "json"];
            assert_eq!(json_of(&folder.output_of(&plan))["promise"], "always", "{name}");
            kinds.push(name);
        }
    }
    assert!(["ranked", "stable", "reservoir", "ibf", "graceful"].iter().all(|name| kinds.contains(name)), "{kinds:?}");
}

#[test]
fn auto_is_explained_and_shells_know_the_kinds() {
    let folder = folder();
    let text = |arguments: &[&str]| String::from_utf8(folder.output_of(arguments)).expect("text");
    assert!(text(&["filters", "auto"]).contains("without --filter"), "{}", text(&["filters", "auto"]));
    assert_eq!(json_of(&folder.output_of(&["filters", "auto", "--format", "json"]))["name"], "auto");
    let completions = text(&["completions", "bash"]);
    let kinds =
        completions.split("everbloom__subcmd__filters)").nth(1).or(completions.split("everbloom__filters)").nth(2));
    let words = kinds.and_then(|part| part.split("opts=\"").nth(1)).and_then(|part| part.split('"').next());
    let words: Vec<&str> = words.unwrap_or_default().split_whitespace().collect();
    assert!(["ranked", "bloom", "auto"].iter().all(|kind| words.contains(kind)), "{words:?}");
}

#[test]
fn one_is_not_several() {
    let folder = folder();
    let count = error_of(&folder.run_with(&["dedup", "-v", "-c"], b"a\na\n"));
    assert!(count.contains("1 new, 1 repeat.") && count.contains("2 lines"), "{count}");
    let one = error_of(&folder.run_with(&["dedup", "-v"], b"a\n"));
    assert!(one.contains("1 line: 1 new, 0 repeats."), "{one}");
    let counts = error_of(&folder.run_with(&["dedup", "-v", "--counts"], b"a\n"));
    assert!(counts.contains("1 line: 1 new, 0 repeats;"), "{counts}");
    let plan = String::from_utf8(folder.output_of(&["plan", "--filter", "bloom", "--expect", "1k", "--fpr", "40%"]));
    let plan = plan.expect("text");
    assert!(plan.contains(", 1 hash)"), "{plan}");
}
