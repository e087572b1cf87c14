//! Filters of records of every shape: fields, CSV, JSON, packed inputs, ends of lines.

use crate::common::live::numbered;
use crate::common::{Folder, assert_refused, error_of};
use crate::folder_with_filter;
use std::io::Write as _;

#[test]
fn keys_are_bytes() {
    let folder = Folder::new();
    let keys = b"\xfe\x00\xff \x80\nplain\n\xc3\x28\r\nlast without newline";
    folder.write("keys.bin", keys);
    folder.output_of(&["build", "keys.bin", "-o", "keys.ebf"]);
    assert_eq!(folder.output_of(&["query", "keys.ebf", "keys.bin"]), [&keys[..], b"\n"].concat());
    assert_eq!(
        folder.run_with(&["query", "keys.ebf"], b"\xc3\x28\n").status.code(),
        Some(1),
        "the return is part of the key"
    );
}

#[test]
fn records_can_end_with_nul() {
    let folder = Folder::new();
    folder.output_with(&["build", "--null", "-o", "keys.ebf"], b"a\nb\0c\0");
    assert_eq!(folder.output_with(&["query", "--null", "keys.ebf"], b"c\0d\0a\nb\0"), b"c\0a\nb\0");
}

#[test]
fn a_line_longer_than_any_buffer_is_one_key() {
    let folder = Folder::new();
    let long = vec![b'x'; 40 << 20];
    let mut keys = b"short\n".to_vec();
    keys.extend_from_slice(&long);
    keys.extend_from_slice(b"\nafter\n");
    folder.write("keys.txt", &keys);
    folder.output_of(&["build", "keys.txt", "-o", "keys.ebf"]);
    assert!(folder.output_of(&["query", "keys.ebf", "keys.txt"]) == keys);
    assert_eq!(folder.run_with(&["query", "keys.ebf"], &long[1..]).status.code(), Some(1));
}

#[test]
fn packed_inputs_are_read_as_they_are_whatever_their_name() {
    let folder = folder_with_filter();
    let keys = folder.read("keys.txt");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&keys).expect("gzip");
    let gzip = gzip.finish().expect("gzip");
    folder.write("keys.gz", &gzip);
    folder.write("keys.renamed", zstd::encode_all(&keys[..], 3).expect("zstd"));
    for name in ["keys.gz", "keys.renamed"] {
        assert_eq!(folder.output_of(&["query", "keys.ebf", name]), keys);
    }
    assert_eq!(folder.output_with(&["query", "keys.ebf"], &gzip), keys);
}

#[test]
fn what_was_read_of_a_broken_packed_file_is_answered_then_exit_2() {
    let folder = folder_with_filter();
    let keys = folder.read("keys.txt");
    let packed = zstd::encode_all(&keys[..], 3).expect("zstd");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&keys).expect("gzip");
    let gzip = gzip.finish().expect("gzip");
    folder.write("cut.zst", &packed[..packed.len() - 5]);
    folder.write("cut.gz", &gzip[..gzip.len() - 9]);
    for name in ["cut.zst", "cut.gz"] {
        let output = folder.run(&["query", "keys.ebf", name]);
        assert_refused(&output, name);
        assert!(keys.starts_with(&output.stdout), "{name}");
    }
    assert!(!folder.run(&["query", "keys.ebf", "cut.gz"]).stdout.is_empty());
}

#[test]
fn keys_come_from_fields_csv_headers_and_json() {
    let folder = Folder::new();
    folder.output_with(&["build", "-o", "keys.ebf"], b"ann\nbob, jr\n7\n");
    let ask = |arguments: &[&str], input: &[u8]| {
        let mut all = vec!["query", "keys.ebf"];
        all.extend_from_slice(arguments);
        folder.output_with(&all, input)
    };
    assert_eq!(ask(&["--key", "2"], b"1\tann\t3\n2\tcat\t3\n"), b"1\tann\t3\n");
    assert_eq!(ask(&["--key", "2", "--delimiter", ";"], b"1;cat\r\n2;ann\r\n"), b"2;ann\r\n");
    assert_eq!(ask(&["--key", "1", "--csv"], b"\"bob, jr\",1\nbob,2\n"), b"\"bob, jr\",1\n");
    assert_eq!(ask(&["--key", "name", "--header", "--csv"], b"id,name\n1,cat\n2,ann\n"), b"id,name\n2,ann\n");
    assert_eq!(
        ask(&["--json", "--key", "/u/n"], b"{\"u\":{\"n\":7}}\n{\"u\":{\"n\":\"7\"}}\n"),
        b"{\"u\":{\"n\":\"7\"}}\n",
        "a number is no text"
    );
    assert_eq!(ask(&["--ignore-case"], b"ANN\nDan\n"), b"ANN\n");
}

#[test]
fn a_record_without_a_key_stops_or_is_skipped() {
    let folder = Folder::new();
    folder.output_with(&["build", "-o", "keys.ebf"], b"ann\n");
    let input = b"1\tann\nno tab here\n";
    assert_refused(&folder.run_with(&["query", "keys.ebf", "--key", "2"], input), "record 2");
    assert_eq!(folder.output_with(&["query", "keys.ebf", "--key", "2", "--on-error", "skip"], input), b"1\tann\n");
    let missing = ["query", "keys.ebf", "--key", "2", "--on-error", "keep", "--missing"];
    assert_eq!(folder.output_with(&missing, input), b"no tab here\n");
    let header = ["query", "keys.ebf", "--header", "--key", "nme"];
    assert_refused(&folder.run_with(&header, b"id\tname\n1\tann\n"), "did you mean 'name'?");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = Folder::new();
    folder.write("keys.txt", numbered("a key that fills the pipe soon", 100_000));
    folder.output_of(&["build", "keys.txt", "-o", "keys.ebf"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "\"$0\" query keys.ebf keys.txt | head -n 1; exit ${PIPESTATUS:-0}"]);
    command.arg(env!("CARGO_BIN_EXE_everbloom")).current_dir(folder.path(""));
    let output = command.output().expect("sh runs");
    assert_eq!(error_of(&output), "");
    assert_eq!(output.stdout, b"a key that fills the pipe soon-0\n");
}

#[test]
fn two_inputs_never_run_into_each_other() {
    let folder = Folder::new();
    folder.write("a.txt", "one");
    folder.write("b.txt", "two");
    folder.output_of(&["build", "a.txt", "b.txt", "-o", "keys.ebf"]);
    assert_eq!(folder.output_of(&["query", "keys.ebf", "a.txt", "b.txt"]), b"one\ntwo\n");
}

#[test]
fn a_spectral_filter_says_how_often_each_key_came() {
    let folder = Folder::new();
    folder.write("keys.txt", "a\nb\na\nc\na\n");
    folder.output_of(&["build", "keys.txt", "--filter", "spectral", "--fpr", "1e-6", "-o", "counts.ebf"]);
    let counts = folder.output_with(&["query", "counts.ebf", "--count-each"], b"c\na\nnever\n");
    assert_eq!(String::from_utf8_lossy(&counts), "1\tc\n3\ta\n0\tnever\n");
    folder.output_of(&["build", "keys.txt", "-o", "plain.ebf"]);
    assert_refused(&folder.run(&["query", "plain.ebf", "keys.txt", "--count-each"]), "spectral");
}
