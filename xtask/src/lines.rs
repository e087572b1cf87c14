//! `cargo xtask lines [--rooms] [--at REVISION | FOLDER]`: lines of code by crate, without comments (documentation is one)
//! and blanks. Unit tests are what `#[cfg(test)]` is written above, files of modules included. Python counts where a crate
//! has some.

use crate::{Outcome, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KINDS: [&str; 5] = ["src", "unit tests", "tests", "benches", "examples"];
const LISTING: &str = "xtask/tests/golden/public-surface.txt";

/// Lines of each of [`KINDS`], for each crate, or each room of one.
type Counts = BTreeMap<String, [usize; 5]>;

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let by_room = arguments.iter().any(|word| word == "--rooms");
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "--rooms").collect();
    let folder = match words[..] {
        [] => root(),
        ["--at", revision] => checked_out(revision)?,
        [folder] => PathBuf::from(folder),
        _ => return Err("usage: cargo xtask lines [--rooms] [--at REVISION | FOLDER]".into()),
    };
    let mut files = Vec::new();
    for top in ["crates", "fuzz", "xtask", "examples"] {
        find(&folder.join(top), &mut files);
    }
    print(&count(&folder, &files, by_room));
    let listing = fs::read_to_string(folder.join(LISTING)).unwrap_or_default();
    println!("{} public functions in {LISTING}", listing.matches("fn ").count());
    Ok(())
}

/// A revision's files in a folder of their own.
fn checked_out(revision: &str) -> Result<PathBuf, String> {
    let folder = root().join("target/lines").join(revision);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let unpack = "git archive \"$0\" crates fuzz xtask examples | tar -x -C \"$1\"";
    let status = Command::new("sh").args(["-c", unpack, revision]).arg(&folder).current_dir(root()).status();
    if status.is_ok_and(|status| status.success()) { Ok(folder) } else { Err(format!("git has no {revision}")) }
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "py") {
            files.push(path);
        }
    }
}

fn count(folder: &Path, files: &[PathBuf], by_room: bool) -> Counts {
    let sources = files.iter().map(|file| (file, shown(file, &fs::read_to_string(file).unwrap_or_default())));
    let sources: Vec<(&PathBuf, Shown)> = sources.collect();
    let only_tests: BTreeSet<PathBuf> = sources.iter().flat_map(|(file, source)| source.files_of_tests(file)).collect();
    let mut counts = Counts::new();
    for (file, source) in &sources {
        let name = file.strip_prefix(folder).unwrap_or(file);
        let (krate, within) = place(name);
        let kind = KINDS.iter().position(|kind| within.starts_with(kind)).unwrap_or(0);
        let is_test = file.ancestors().any(|part| only_tests.contains(&part.with_extension("")));
        let room = within.strip_prefix("src/").and_then(|rest| rest.split(['/', '.']).next()).unwrap_or_default();
        let row = if by_room { format!("{krate} {room}") } else { krate.to_string() };
        let row = counts.entry(row).or_default();
        row[if is_test { 1 } else { kind }] += lines(&source.ships);
        row[1] += lines(&source.tests);
    }
    counts
}

/// The crate, and the path within it.
fn place(name: &Path) -> (&str, &str) {
    let name = name.to_str().unwrap_or_default();
    let below = name.strip_prefix("crates/").unwrap_or(name);
    below.split_once('/').unwrap_or((below, ""))
}

fn lines(text: &str) -> usize {
    text.lines().filter(|line| !line.trim().is_empty()).count()
}

fn print(counts: &Counts) {
    println!(
        "{:<28}{:>10}{:>12}{:>10}{:>10}{:>10}{:>10}",
        "", "src", "unit tests", "tests", "benches", "examples", "all"
    );
    let mut total = [0; 5];
    for (name, row) in counts {
        print_row(name, row);
        total.iter_mut().zip(row).for_each(|(sum, lines)| *sum += lines);
    }
    print_row("total", &total);
}

fn print_row(name: &str, row: &[usize; 5]) {
    let [src, unit_tests, tests, benches, examples] = row;
    let all: usize = row.iter().sum();
    println!("{name:<28}{src:>10}{unit_tests:>12}{tests:>10}{benches:>10}{examples:>10}{all:>10}");
}

/// A file without comments, and with strings that say nothing: what ships, and what only tests see.
#[derive(Default)]
struct Shown {
    ships: String,
    tests: String,
}

impl Shown {
    /// The modules of tests that lie in files of their own, without `.rs`.
    fn files_of_tests(&self, file: &Path) -> Vec<PathBuf> {
        let stem = file.with_extension("");
        let is_root = ["mod", "lib", "main"].iter().any(|name| stem.ends_with(name));
        let folder = if is_root { file.parent().unwrap_or(file) } else { &stem };
        let items = self.tests.split("#[cfg(test)]").filter_map(|item| item.trim().strip_prefix("mod "));
        items.filter_map(|item| item.strip_suffix(';')).map(|name| folder.join(name)).collect()
    }
}

fn shown(file: &Path, text: &str) -> Shown {
    if file.extension().is_some_and(|extension| extension == "py") {
        return Shown { ships: python(text), tests: String::new() };
    }
    let mut shown = Shown::default();
    let mut rest: &str = &rust(text);
    while let Some((before, after)) = rest.split_once("#[cfg(test)]") {
        let (tests, behind) = after.split_at(end_of_item(after));
        shown.ships += before;
        shown.tests += &format!("\n#[cfg(test)]{tests}\n");
        rest = behind;
    }
    shown.ships += rest;
    shown
}

/// Where the item at the beginning ends: behind its `;` or its last `}`.
fn end_of_item(text: &str) -> usize {
    let mut depth = 0;
    for (index, char) in text.char_indices() {
        depth += i32::from("({[".contains(char)) - i32::from(")}]".contains(char));
        if depth == 0 && (char == ';' || char == '}') {
            return index + 1;
        }
    }
    text.len()
}

/// Rust without comments; strings and characters keep their lines and lose what they say.
fn rust(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let comment = comment(rest);
        let quoted = if comment.is_some() || is_word { None } else { quoted(rest) };
        let (part, behind) = rest.split_at(comment.or(quoted).unwrap_or(first.len_utf8()));
        match (comment, quoted) {
            (None, None) => code.push(first),
            _ => code.extend(part.lines().map(|_| if quoted.is_some() { "_\n" } else { "\n" })),
        }
        if comment.or(quoted).is_some() && !part.ends_with('\n') {
            code.pop();
        }
        rest = behind;
    }
    code
}

/// How long the comment is that the text begins with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    text.strip_prefix("/*")?;
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let mark = [b"/*", b"*/"].iter().position(|mark| text.as_bytes()[at..].starts_with(*mark));
        depth += mark.map_or(0, |mark| 1 - 2 * mark as i32);
        at += if mark.is_some() { 2 } else { 1 };
        if depth == 0 {
            break;
        }
    }
    Some(at)
}

/// How long the string or character is that the text begins with; a lifetime is neither.
fn quoted(text: &str) -> Option<usize> {
    let prefix = text.find(|char| !"bcr".contains(char)).filter(|length| *length < 3)?;
    let hashes = text[prefix..].bytes().take_while(|byte| *byte == b'#').count();
    let open = prefix + hashes;
    match text.as_bytes().get(open)? {
        b'"' if text[..prefix].ends_with('r') => {
            let close = format!("\"{}", "#".repeat(hashes));
            Some(open + 1 + text[open + 1..].find(&close)? + close.len())
        }
        b'"' if hashes == 0 => closed(text, open, '"'),
        b'\'' if hashes == 0 => {
            let mut behind = text[open + 1..].chars();
            (behind.next() == Some('\\') || behind.next() == Some('\'')).then(|| closed(text, open, '\''))?
        }
        _ => None,
    }
}

/// Where what opens at a place is closed by the same mark, escaped ones apart.
fn closed(text: &str, open: usize, mark: char) -> Option<usize> {
    let mut escaped = false;
    for (index, char) in text[open + 1..].char_indices() {
        if char == mark && !escaped {
            return Some(open + index + 2);
        }
        escaped = char == '\\' && !escaped;
    }
    None
}

/// Python without lines that are comments, and without its strings of documentation.
fn python(text: &str) -> String {
    let mut in_text = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        let marks = line.matches("\"\"\"").count();
        let opens = line.trim_start().trim_start_matches('r').starts_with("\"\"\"");
        let is_code = !in_text && !opens && !line.trim_start().starts_with('#');
        in_text = if in_text { marks == 0 } else { opens && marks == 1 };
        kept.extend(is_code.then_some(line));
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blanks_do_not_count_and_tests_count_apart() {
        let code = "//! a\nuse b; // c\n\nfn d<'e>() {\n    /* f /* g */\n    h */\n    i(\"{ // j\n    k\", '{', '\\'', r#\"l\"}\"#);\n}\n\n\
                    /// m\n#[cfg(test)]\nmod n {\n    fn o() {}\n}\n#[cfg(test)]\nmod p;\nfn q() {}\n";
        let shown = shown(Path::new("r/s.rs"), code);
        assert_eq!((lines(&shown.ships), lines(&shown.tests)), (6, 6), "{}\n---\n{}", shown.ships, shown.tests);
        assert_eq!(shown.files_of_tests(Path::new("r/s.rs")), [Path::new("r/s/p")]);
    }

    #[test]
    fn what_documents_python_does_not_count() {
        assert_eq!(python("\"\"\"A.\n\nB.\n\"\"\"\nc = \"\"\"d\ne\"\"\"\n# f\n"), "c = \"\"\"d\ne\"\"\"");
    }
}
