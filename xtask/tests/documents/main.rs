//! The commands that README.md and the book show are run, and must do what the page says.
//!
//! A document with the line `<!-- commands are run by a test -->` is run from top to bottom in an empty folder of its own,
//! with `everbloom` built from these sources, and `data/` and `examples/` under their names. Its blocks share the folder,
//! and each is a `bash -euo pipefail` of its own:
//!
//! - ` ```console ` has commands behind `$ `, which go on in the next line after a `\`, each followed by what it prints to
//!   stdout and stderr. `…` alone in a line stands for any lines, within a line for any text: times, temporary names.
//!   A command that answers with another exit status than 0 says so: `$ everbloom query … || echo "exit $?"`.
//! - ` ```sh ` is run and must succeed; what it prints is not compared.
//! - ` ```sh no-run ` and ` ```console no-run ` are not run: what takes `cargo`, a network or an endless stream. Say why
//!   after it: ` ```sh no-run: needs a network `. Any other language is not run either.
//!
//! A block has two minutes. `EVERBLOOM_BLESS=1 cargo test -p xtask --test documents` writes what commands print into the
//! document where it differs.

mod blocks;
mod output;
mod shell;

use blocks::{Block, Command, Language, blocks};
use shell::Shell;
use std::path::{Path, PathBuf};
use std::{env, fs};

const MARK: &str = "<!-- commands are run by a test -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_path_buf()
}

/// What came of a document: what is wrong with it, and its text with what the commands print today.
struct Checked {
    problems: Vec<String>,
    text: String,
}

/// Runs the blocks of a document in order, up to the first command that fails.
fn check(name: &str, text: &str) -> Checked {
    let shell = Shell::new(&root());
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let mut problems = Vec::new();
    let mut blessed = Vec::new();
    for block in blocks(text) {
        match check_block(&shell, &block) {
            Ok(printed) => {
                problems.extend(
                    printed.iter().filter_map(|printed| printed.problem.clone()).map(|it| format!("{name}:{it}")),
                );
                blessed.push((block, printed));
            }
            Err(problem) => {
                problems.push(format!("{name}:{problem}"));
                break;
            }
        }
    }
    for (block, printed) in blessed.iter().rev().filter(|(_, printed)| printed.iter().any(|it| it.problem.is_some())) {
        lines.splice(block.inside.clone(), printed.iter().flat_map(|it| block.indented(&it.lines)));
    }
    let end = if text.ends_with('\n') { "\n" } else { "" };
    Checked { problems, text: lines.join("\n") + end }
}

/// A command's lines in the document, as they should be, and what is wrong if they are not so.
struct Printed {
    lines: Vec<String>,
    problem: Option<String>,
}

fn check_block(shell: &Shell, block: &Block) -> Result<Vec<Printed>, String> {
    let at = |line: usize, problem: &str| format!("{line}: {problem}");
    match block.language {
        Language::Sh => match shell.run(&block.lines.join("\n")) {
            Ok(_) => Ok(Vec::new()),
            Err(problem) => Err(at(block.inside.start + 1, &problem)),
        },
        Language::Console => {
            let commands = block.commands().map_err(|problem| at(block.inside.start + 1, &problem))?;
            let outputs = shell.run_each(&commands).map_err(|(index, problem)| at(commands[index].line, &problem))?;
            Ok(commands.iter().zip(outputs).map(|(command, output)| compare(command, &output)).collect())
        }
    }
}

fn compare(command: &Command, output: &str) -> Printed {
    let printed: Vec<String> = output.lines().map(|line| line.trim_end().to_string()).collect();
    if output::matches(&command.expected, &printed) {
        return Printed { lines: [&command.shown[..], &command.expected].concat(), problem: None };
    }
    let difference = output::difference(&command.expected, &printed);
    let problem = format!("{}: `{}` prints something else\n{difference}", command.line, command.shown.join("\n"));
    Printed { lines: [&command.shown[..], &printed].concat(), problem: Some(problem) }
}

/// README.md, and the pages of the book.
fn documents() -> Vec<PathBuf> {
    fn pages(folder: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
        paths.sort();
        let is_page = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
        paths
            .into_iter()
            .flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] })
            .filter(|path| is_page(path))
            .collect()
    }
    [vec![root().join("README.md")], pages(&root().join("book/src"))].concat()
}

#[test]
fn documents_show_what_commands_print() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a readable page");
        if !text.lines().any(|line| line == MARK) {
            // A page that shows commands and is not marked would go unread.
            let shows = text.lines().any(|line| line.trim_start().starts_with("```console") || line.trim() == "```sh");
            assert!(!shows, "{} shows commands and lacks the mark {MARK}", path.display());
            continue;
        }
        count += 1;
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let checked = check(&name, &text);
        if env::var_os("EVERBLOOM_BLESS").is_some() && checked.text != text {
            fs::write(&path, checked.text).expect("a page that can be written");
            problems.extend(checked.problems.into_iter().filter(|problem| !problem.contains("prints something else")));
        } else {
            problems.extend(checked.problems);
        }
    }
    assert!(count >= 5, "only {count} pages have the mark");
    assert!(
        problems.is_empty(),
        "if the output is right, run again with EVERBLOOM_BLESS=1\n\n{}",
        problems.join("\n\n")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page whose commands do what it says: continued lines, any lines, any text, a list's indentation, a shared folder.
    const PAGE: &str = r#"
```sh
printf '%s\n' b a b > keys.txt
```

1. In a list:

   ```console
   $ everbloom dedup \
       keys.txt
   b
   a
   $ test -f data/clicks.tsv.zst; seq 5
   1
   …
   5
   $ false || echo "exit $?" >&2
   exit 1
   ```

```console
$ echo "took $RANDOM ms"
took … ms
$ true
```

```sh no-run: no such command
cargo-nonsense
```

```text
$ not run
```
"#;

    #[test]
    fn a_page_that_is_right_stays_as_it_is() {
        let checked = check("page", PAGE);
        assert_eq!(checked.problems, [""; 0]);
        assert_eq!(checked.text, PAGE);
    }

    #[test]
    fn other_output_is_shown_and_can_be_written() {
        let wrong = PAGE.replace("   b\n   a\n", "   b\n   c\n").replace("$ true\n", "$ echo more\n");
        let checked = check("page", &wrong);
        assert_eq!(checked.problems.len(), 2);
        assert!(checked.problems[0].starts_with("page:9: `$ everbloom dedup"), "{}", checked.problems[0]);
        assert!(checked.problems[0].ends_with("  b\n- c\n+ a"), "{}", checked.problems[0]);
        assert_eq!(checked.text, PAGE.replace("$ true\n", "$ echo more\nmore\n"));
    }

    #[test]
    fn commands_that_fail_end_the_page() {
        let checked = check("page", "```sh\ntrue\nfalse\n```\n\n```sh\nfalse\n```\n");
        assert_eq!(checked.problems, ["page:2: exit status 1, after printing:\n"]);
        let checked = check("page", "```console\n$ true\n$ echo why; everbloom no-such-command | cat\n```\n");
        assert!(
            checked.problems[0].starts_with("page:3: exit status 2, after printing:\nwhy\n"),
            "{:?}",
            checked.problems
        );
        let checked = check("page", "```console\nno command\n```\n");
        assert_eq!(checked.problems, ["page:2: a console block starts with `$ ` and a command"]);
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let shell = Shell::with_patience(&root(), std::time::Duration::from_millis(300));
        let problem = shell.run("echo begun; sleep 100 | cat").expect_err("a timeout");
        assert_eq!(problem, "not done after 0 s, after printing:\nbegun\n");
    }
}
