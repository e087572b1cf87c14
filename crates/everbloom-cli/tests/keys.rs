//! Which part of a record is its key, and what happens where there is none.

mod common;

use common::{Folder, assert_refused, error_of, json_of, lines};

fn table(rows: usize) -> String {
    (0..rows).map(|row| format!("name{row}\t{}\n", 500 + row)).collect()
}

#[test]
fn a_mistyped_key_stops_with_the_first_line_and_what_was_looked_for() {
    let folder = Folder::new();
    folder.write("in.tsv", table(3000));
    let documents: String = (0..3000).map(|id| format!("{{\"user\": {{\"id\": {id}}}}}\n")).collect();
    folder.write("in.jsonl", documents);
    let wrong: [(&[&str], &[&str]); 5] = [
        (&["--key", "99", "in.tsv"], &["--key 99", r"'name0\t500'", "record 1"]),
        (&["--json", "--key", "/usr/id", "in.jsonl"], &["--key /usr/id", r#"'{"user": {"id": 0}}'"#]),
        (&["--json", "--key", "/user/id", "in.tsv"], &["not JSON", "--key /user/id"]),
        (
            &["--key", "1", "--importance", "2", "--importance-max", "9", "in.tsv"],
            &["500", "--importance 2 --importance-max 9", "name0"],
        ),
        (&["--window", "1h", "--key", "1", "--time", "1", "in.tsv"], &["--time 1", "'name0'"]),
    ];
    for (arguments, mentions) in wrong {
        let mut outputs = Vec::new();
        for threads in ["1", "2", "8"] {
            let output = folder.run(&[&["dedup", "--threads", threads], arguments].concat());
            mentions.iter().for_each(|mention| assert_refused(&output, mention));
            assert_refused(&output, "501 of the first 501 records");
            assert_eq!(lines(&output.stdout).len(), 500, "what came before is written");
            outputs.push((output.stdout.clone(), error_of(&output)));
        }
        assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]), "threads decide");
        let kept = folder.output_of(&[&["dedup", "--on-error", "keep"], arguments].concat());
        assert_eq!(lines(&kept).len(), 3000);
        assert_eq!(folder.output_of(&[&["dedup", "--on-error", "skip", "--quiet"], arguments].concat()), b"");
    }
}

#[test]
fn half_of_the_first_thousand_is_not_more_than_half() {
    let folder = Folder::new();
    let mixed = |good: usize, bad: usize| format!("{}{}", "a\tb\n".repeat(good), "c\n".repeat(bad));
    let run = |input: String| folder.run_with(&["dedup", "--exact", "--key", "2"], input.as_bytes());
    assert_eq!(run(mixed(500, 5000)).status.code(), Some(0), "500 of the first 1,000");
    assert_refused(&run(mixed(499, 5000)), "501 of the first 1000 records");
    assert_eq!(run(mixed(1000, 5000)).status.code(), Some(0), "only the first 1,000 decide");
    assert_eq!(run(mixed(3, 3)).status.code(), Some(0), "half of all");
    let short = run(mixed(2, 3));
    assert_refused(&short, "3 of the first 5 records");
    assert_refused(&short, "'c'");
    assert_eq!(short.stdout, b"a\tb\nc\nc\nc\n", "what came before is written");
    assert_eq!(run(String::new()).status.code(), Some(0), "nothing at all");
}

#[test]
fn kept_records_are_counted_at_the_end_and_others_fail_at_once() {
    let folder = Folder::new();
    folder.write("in.tsv", "a\t1\nb\n\x1b[31mc\nd\t1\ne\t2\n");
    let output = folder.run(&["dedup", "--exact", "--key", "2", "in.tsv"]);
    assert_eq!(output.stdout, b"a\t1\nb\n\x1b[31mc\ne\t2\n");
    let said = error_of(&output);
    assert!(said.contains("2 records") && said.contains("record 2") && said.contains("--key 2"), "{said}");
    for command in [&["build", "-o", "x.ebf"][..], &["compare", "--memory", "1KiB"]] {
        let output = folder.run(&[command, &["--key", "2", "in.tsv"]].concat());
        assert_refused(&output, "record 2 cannot be used: there is no field 2 (--key 2): 'b'");
    }
    folder.write("bad.tsv", "\x1b[31mred\n");
    assert_refused(&folder.run(&["build", "-o", "x.ebf", "--key", "2", "bad.tsv"]), r"'\u{1b}[31mred'");
    assert_refused(&folder.run(&["plan", "--stream", "in.tsv", "--key", "2", "--memory", "1KiB"]), "record 2");
}

#[test]
fn only_before_a_newline_is_a_carriage_return_no_part_of_a_field() {
    let folder = Folder::new();
    let run =
        |more: &[&str], input: &[u8]| folder.output_with(&[&["dedup", "--exact", "--key", "1"], more].concat(), input);
    assert_eq!(run(&[], b"x\r\nx\n"), b"x\r\n");
    assert_eq!(run(&["--null"], b"x\0x\r\0x\r\0"), b"x\0x\r\0");
}

#[test]
fn csv_records_may_have_several_lines() {
    let folder = Folder::new();
    let run = |more: &[&str], input: &[u8]| {
        let base = ["dedup", "--exact", "--csv", "--key", "1", "--stats", "s.json"];
        folder.output_with(&[&base[..], more].concat(), input)
    };
    let input = b"1,\"a\nb\"\r\n1,x\r\n\"2\r\n\",\"c\"\"\n\"\r\n\"2\r\n\",d\r\n";
    assert_eq!(run(&[], input), b"1,\"a\nb\"\r\n\"2\r\n\",\"c\"\"\n\"\r\n");
    assert_eq!(json_of(&folder.read("s.json"))["items"], 4);
    assert_eq!(run(&["--delimiter", ";"], b"1;\"a\n\"\n\"1\";b\n"), b"1;\"a\n\"\n");
    assert_eq!(run(&["--null"], b"1,\"a\0b\"\x001,c\0"), b"1,\"a\0b\"\0");
    assert_eq!(run(&[], b"a\"b,1\na\"b,2\nc,3\n"), b"a\"b,1\nc,3\n", "a quote within a field is a letter");
    assert_eq!(run(&["--header"], b"\"a\nname\",b\n1,2\n1,3\n"), b"\"a\nname\",b\n1,2\n");
    let long = [b"1,\"".as_slice(), &b"x\n".repeat(400_000), b"\"\n1,y\n"].concat();
    assert!(run(&[], &long) == long[..long.len() - 4], "longer than any block");
    let many: String = (0..20_000).map(|row| format!("{},\"{}\n\"\n", row % 700, "y".repeat(row % 50))).collect();
    let alone = run(&["--threads", "1"], many.as_bytes());
    assert_eq!(json_of(&folder.read("s.json"))["written"], 700);
    assert!(run(&["--threads", "8"], many.as_bytes()) == alone);
    for refused in ["\"", "\n"] {
        assert_refused(&folder.run(&["dedup", "--csv", "--key", "1", "--delimiter", refused]), "--delimiter");
    }
}

#[test]
fn a_quote_that_is_not_closed_is_an_error_that_says_where() {
    let folder = Folder::new();
    folder.write("in.csv", "id,text\n1,\"two\nlines\"\n2,\"never closed\n3,x\n");
    let output = folder.run(&["dedup", "--csv", "--header", "--key", "id", "in.csv"]);
    assert_refused(&output, "in.csv: the quote opened in line 4 is not closed");
    assert_eq!(output.stdout, b"id,text\n1,\"two\nlines\"\n", "what came before is written");
}

#[test]
fn headers_are_no_items_and_marks_of_byte_order_no_letters() {
    let folder = Folder::new();
    folder.write("a.csv", "\u{feff}id,text\n1,x\n2,y\n");
    folder.write("b.csv", "id,text\r\n2,z\r\n3,w");
    let arguments = ["dedup", "--exact", "--csv", "--header", "--key", "id", "--stats", "s.json", "a.csv", "b.csv"];
    assert_eq!(folder.output_of(&arguments), b"id,text\n1,x\n2,y\n3,w\n");
    let stats = json_of(&folder.read("s.json"));
    assert_eq!((&stats["items"], &stats["written"], &stats["dropped"]), (&4.into(), &3.into(), &1.into()));
    assert_eq!(folder.output_with(&["dedup", "--exact"], b"\xef\xbb\xbfa\na\n"), b"a\n");
    assert_eq!(folder.output_with(&["dedup", "--exact"], b"\xef\xbb\xbf"), b"");
    for utf16 in [&b"\xff\xfea\0\n\0"[..], b"\xfe\xff\0a\0\n"] {
        assert_refused(&folder.run_with(&["dedup", "--exact"], utf16), "UTF-16");
    }
    assert_eq!(folder.output_with(&["dedup", "--exact"], b"\xff\n\xff\n"), b"\xff\n", "not every such byte is a mark");
}

#[test]
fn a_header_behind_a_mark_is_found_again_when_a_run_resumes() {
    let folder = Folder::new();
    let arguments =
        ["dedup", "--exact", "--csv", "--header", "--key", "id", "--state", "s", "-o", "out.csv", "in.csv", "-q"];
    folder.write("in.csv", "\u{feff}\"id\",\"a\nb\"\n1,x\n");
    folder.output_of(&arguments);
    folder.write("in.csv", "\u{feff}\"id\",\"a\nb\"\n1,x\n1,y\n2,z\n");
    folder.output_of(&arguments);
    assert_eq!(folder.read("out.csv"), b"\"id\",\"a\nb\"\n1,x\n2,z\n");
}

#[test]
fn json_numbers_are_compared_by_value_and_texts_as_texts() {
    let folder = Folder::new();
    let run = |key: &str, input: &str| {
        let output = folder.output_with(&["dedup", "--exact", "--json", "--key", key], input.as_bytes());
        String::from_utf8(output).expect("text")
    };
    let numbers =
        "{\"id\":1}\n{\"id\":1.0}\n{\"id\":1e0}\n{\"id\":\"1\"}\n{\"id\":\"1.0\"}\n{\"id\":10e-1}\n{\"id\":2}\n";
    assert_eq!(run("/id", numbers), "{\"id\":1}\n{\"id\":\"1\"}\n{\"id\":\"1.0\"}\n{\"id\":2}\n");
    assert_eq!(run(".id", numbers), run("/id", numbers), "as jq writes it");
    let letters = "{\"id\":65}\n{\"id\":97}\n{\"id\":\"A\"}\n{\"id\":\"a\"}\n";
    let folded =
        folder.output_with(&["dedup", "--exact", "--json", "--key", "/id", "--ignore-case"], letters.as_bytes());
    assert_eq!(String::from_utf8_lossy(&folded), "{\"id\":65}\n{\"id\":97}\n{\"id\":\"A\"}\n", "numbers have no case");
    assert_refused(&folder.run(&["dedup", "--json", "--key", "user.id"]), "write /user/id");
}

#[test]
fn a_filter_file_knows_how_its_keys_were_found() {
    let folder = Folder::new();
    let rows: String = (0..500).map(|row| format!("row{row},\"key\n{row}\"\n")).collect();
    folder.write("in.csv", &rows);
    folder.write("plain.txt", "key1\n");
    for more in [&[][..], &["--compress"], &["--filter", "bloom:shards=4"]] {
        let build = ["build", "--csv", "--key", "2", "--fpr", "1e-6", "-o", "k.ebf", "in.csv"];
        folder.output_of(&[&build[..], more].concat());
        assert_eq!(folder.output_of(&["query", "k.ebf", "in.csv"]), rows.as_bytes());
        assert_eq!(json_of(&folder.output_of(&["info", "k.ebf", "--format", "json"]))["keys"], "--csv --key 2");
    }
    folder.output_of(&["build", "--csv", "--key", "2", "--fpr", "1e-6", "-o", "k.ebf", "in.csv"]);
    assert_eq!(folder.output_of(&["query", "k.ebf", "--mmap", "in.csv"]), rows.as_bytes());
    let other = folder.run(&["query", "k.ebf", "--csv", "--key", "1", "in.csv"]);
    assert_eq!((other.status.code(), &other.stdout[..]), (Some(1), &b""[..]));
    assert!(error_of(&other).contains("was built with --csv --key 2"), "{}", error_of(&other));
    assert_eq!(folder.output_of(&["query", "k.ebf", "--csv", "--key", "2", "in.csv"]), rows.as_bytes());
    assert_refused(&folder.run(&["query", "k.ebf", "plain.txt"]), "k.ebf was built with --csv --key 2");

    let whole = folder.output_of(&["build", "--fpr", "1e-6", "-o", "w.ebf", "plain.txt"]);
    assert_eq!(whole, b"");
    folder.write("log.tsv", "x\tkey1\ny\tkey2\n");
    assert_eq!(
        folder.output_of(&["query", "w.ebf", "--key", "2", "log.tsv"]),
        b"x\tkey1\n",
        "a list of keys suits any log"
    );

    // A state of dedup begins with its filter.
    folder.output_of(&["dedup", "--exact", "--csv", "--key", "2", "--state", "s.ebf", "-o", "out", "in.csv"]);
    assert_eq!(folder.output_of(&["query", "s.ebf", "in.csv"]), rows.as_bytes());
}

#[test]
fn merged_files_keep_key_options_that_they_share() {
    let folder = Folder::new();
    let spec = ["--filter", "bloom:num_bits=65536,num_hashes=5"];
    folder.write("in.tsv", "a\tb\n");
    for (name, key) in [("one.ebf", "2"), ("two.ebf", "2"), ("three.ebf", "1")] {
        folder.output_of(&[&["build", "in.tsv", "--key", key, "-o", name], &spec[..]].concat());
    }
    folder.output_of(&["merge", "one.ebf", "two.ebf", "-o", "same.ebf"]);
    assert_eq!(folder.output_of(&["query", "same.ebf", "in.tsv"]), b"a\tb\n");
    let output = folder.run(&["merge", "one.ebf", "three.ebf", "-o", "mixed.ebf"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(error_of(&output).contains("--key 2") && error_of(&output).contains("--key 1"), "{}", error_of(&output));
    assert_eq!(json_of(&folder.output_of(&["info", "mixed.ebf", "--format", "json"]))["keys"], serde_json::Value::Null);
}

#[test]
fn a_file_for_the_wire_has_room_for_its_key_options() {
    let folder = Folder::new();
    let rows: String = (0..5000).map(|row| format!("row{row}\tkey{row}\n")).collect();
    folder.write("in.tsv", rows);
    folder.output_of(&["build", "in.tsv", "--key", "2", "--transmit", "5KiB", "-o", "k.ebf"]);
    assert!(folder.read("k.ebf").len() <= 5 << 10);
    assert_eq!(lines(&folder.output_of(&["query", "k.ebf", "in.tsv"])).len(), 5000);
}

#[test]
fn an_empty_entry_in_a_list_of_json_keys_is_refused() {
    let folder = Folder::new();
    folder.write("in.jsonl", "{\"id\":1,\"x\":1}\n{\"id\":1,\"x\":2}\n");
    for key in [".id,", ",/id", ".id,,.x"] {
        let output = folder.run(&["dedup", "--json", "--key", key, "in.jsonl"]);
        assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()), "{key}");
    }
    assert_eq!(lines(&folder.output_of(&["dedup", "--json", "--key", ".", "in.jsonl"])).len(), 2);
}
