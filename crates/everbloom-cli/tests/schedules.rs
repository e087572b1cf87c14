//! `dedup` through whatever a day brings, by seed: files grow by whole and half lines, are rotated and emptied, runs are
//! ended by signals, faults and full disks, and in the end every line is in the outputs as often as it was written.
//!
//! A few days in every test; `cargo xtask soak 1000` for more.

mod common;

use common::{Folder, error_of};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Numbers that look random, the same for the same seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }
}

/// A folder with logs, who writes them, and what was written.
struct Day {
    folder: Folder,
    chance: Chance,
    /// Lines that were ever written to an input, and how often.
    written: BTreeMap<String, usize>,
    /// The parts of last lines that are still to come, by file.
    owed: BTreeMap<&'static str, String>,
    lines: u64,
    /// Files that were `log` once.
    rotated: usize,
    /// What happened, for whoever must find out.
    story: Vec<String>,
}

impl Day {
    fn new(seed: u64) -> Self {
        let folder = Folder::without_disk();
        folder.write("log", "");
        folder.write("other", "");
        let (written, story) = (BTreeMap::new(), Vec::new());
        Day { folder, chance: Chance(seed), written, owed: BTreeMap::new(), lines: 0, rotated: 0, story }
    }

    fn append(&self, name: &str, text: &str) {
        let mut file = File::options().append(true).create(true).open(self.folder.path(name)).expect("a log");
        file.write_all(text.as_bytes()).expect("lines appended");
    }

    /// A line that is new, or one in five times was there before.
    fn line(&mut self) -> String {
        if self.lines == 0 || !self.chance.one_in(5) {
            return self.new_line();
        }
        let number = self.chance.below(self.lines);
        self.write(number)
    }

    fn new_line(&mut self) -> String {
        self.lines += 1;
        self.write(self.lines - 1)
    }

    fn write(&mut self, number: u64) -> String {
        let line = format!("{number} {}\n", "x".repeat((number % 60) as usize));
        *self.written.entry(line.clone()).or_default() += 1;
        line
    }

    fn grow(&mut self) {
        let most = self.chance.pick(&[3, 50, 50, 2000, 12_000]);
        let (count, name) = (self.chance.below(most), self.chance.pick(&["log", "log", "other"]));
        let mut text = self.owed.remove(name).unwrap_or_default();
        (0..count).for_each(|_| text += &self.line());
        if self.chance.one_in(2) {
            let line = self.line();
            let (half, rest) = line.split_at(1 + self.chance.below(line.len() as u64 - 1) as usize);
            text += half;
            self.owed.insert(name, rest.to_string());
        }
        self.append(name, &text);
        self.story.push(format!("{count} lines in {name}, {:?} owed", self.owed));
    }

    /// Another file becomes `log`; who writes ends the line in the old one first.
    fn rotate(&mut self) {
        self.rotated += 1;
        let name = format!("log.{}", self.rotated);
        fs::rename(self.folder.path("log"), self.folder.path(&name)).expect("a rename");
        let owed = self.owed.remove("log").unwrap_or_default();
        self.append(&name, &owed);
        self.folder.write("log", "");
        self.story.push(format!("now {name}"));
    }

    fn arguments(&mut self, follow: bool) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["dedup", "--exact", "--state", "s", "-o", "out", "--duplicates", "dup"].map(String::from).into();
        let (checkpoint, threads) =
            (self.chance.pick(&["0s", "1ms", "20ms", "30s"]), self.chance.pick(&["1", "2", "5"]));
        arguments.extend(["--checkpoint", checkpoint, "--threads", threads].map(String::from));
        arguments.extend(follow.then(|| "--follow".to_string()));
        arguments.extend((1..=self.rotated).map(|number| format!("log.{number}")));
        arguments.extend(["other", "log"].map(String::from));
        arguments
    }

    /// A run to which something happens.
    fn run(&mut self) {
        let follow = self.chance.one_in(4);
        let arguments = self.arguments(follow);
        let what = self.chance.pick(&["fail", "full", "kill", "term", "limit", "TERM", "KILL", "TERM", "KILL"]);
        let (binary, number) = (env!("CARGO_BIN_EXE_everbloom"), self.chance.below(60));
        let mut command = if what == "limit" {
            let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", number * 20);
            let mut shell = Command::new("sh");
            shell.args(["-c", &script, binary]);
            shell
        } else {
            Command::new(binary)
        };
        command.args(&arguments).current_dir(self.folder.path("")).stdin(Stdio::null()).stderr(Stdio::piped());
        if ["fail", "full", "kill", "term"].contains(&what) {
            command.env("EVERBLOOM_FAULT", format!("{what} {number}"));
        }
        self.story.push(format!("{} {what} {number}", arguments.join(" ")));
        let mut child = command.spawn().expect("everbloom runs");
        let most = if follow { 300 } else { 30 };
        for _ in 0..self.chance.below(4) {
            std::thread::sleep(Duration::from_millis(self.chance.below(most)));
            match follow && self.chance.one_in(3) {
                true => self.rotate(),
                false => self.grow(),
            }
        }
        std::thread::sleep(Duration::from_millis(self.chance.below(most)));
        let signal = if what == "KILL" { "-KILL" } else { "-TERM" };
        if (follow || signal == "-KILL" || what == "TERM") && child.try_wait().expect("a child").is_none() {
            // It may just have ended.
            let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
        }
        let ended = child.wait_with_output().expect("an end");
        let said = error_of(&ended);
        self.story.push(format!("→ {}: {said}\n{}", ended.status, self.sizes()));
        self.check(!said.contains("panicked"), "a panic");
    }

    /// A run that nothing happens to.
    fn finish(&mut self) {
        let arguments = self.arguments(false);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ended = self.folder.run(&arguments);
        let (call, said) = (arguments.join(" "), error_of(&ended));
        self.story.push(format!("{call} → {}: {said}\n{}", ended.status, self.sizes()));
        self.check(ended.status.success(), "a failure without a cause");
    }

    fn sizes(&self) -> String {
        let size = |name: &String| fs::metadata(self.folder.path(name)).map_or(0, |data| data.len());
        self.folder.names().iter().map(|name| format!("{name} {} ", size(name))).collect()
    }

    /// All that was written is read, kept elsewhere and taken out of the file. What comes then begins with another line:
    /// nobody can tell a file that begins as it did from one that was never emptied.
    fn empty(&mut self) {
        self.end_lines();
        self.finish();
        let line = self.new_line();
        self.folder.write("log", line);
        self.story.push("emptied".into());
    }

    fn end_lines(&mut self) {
        std::mem::take(&mut self.owed).iter().for_each(|(name, owed)| self.append(name, owed));
    }

    /// Every line once in the output, and all its repeats aside.
    fn judge(&mut self) {
        self.end_lines();
        self.finish();
        let mut wrongs = Vec::new();
        for (name, expected) in [("out", (|_| 1) as fn(usize) -> usize), ("dup", |count| count - 1)] {
            let text = String::from_utf8(self.folder.read(name)).expect("text");
            let mut found: BTreeMap<&str, usize> = BTreeMap::new();
            text.split_inclusive('\n').for_each(|line| *found.entry(line).or_default() += 1);
            for (line, count) in &self.written {
                let times = found.remove(line.as_str()).unwrap_or(0);
                if times != expected(*count) {
                    wrongs.push(format!("{name}: {times} times, not {}: {line:?}", expected(*count)));
                }
            }
            wrongs.extend(found.keys().map(|line| format!("{name}: nobody wrote {line:?}")));
        }
        let some = wrongs.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
        self.check(wrongs.is_empty(), &format!("{} wrongs:\n{some}", wrongs.len()));
    }

    #[track_caller]
    fn check(&self, holds: bool, problem: &str) {
        assert!(holds, "{problem}\n{}", self.story.join("\n"));
    }
}

fn live(seed: u64) {
    let mut day = Day::new(seed);
    for _ in 0..3 + day.chance.below(8) {
        match day.chance.below(8) {
            0 => day.rotate(),
            1 if day.chance.one_in(2) => day.empty(),
            2..4 => day.grow(),
            _ => day.run(),
        }
    }
    day.judge();
}

/// Days from a seed on; EVERBLOOM_SOAK says how many, and from which seed.
#[test]
fn whatever_a_day_brings_every_line_arrives_once() {
    let asked = std::env::var("EVERBLOOM_SOAK").unwrap_or_default();
    let mut numbers = asked.split_whitespace().map(|word| word.parse().expect("a count and a seed"));
    let (count, first) = (numbers.next().unwrap_or(10), numbers.next().unwrap_or(0));
    let mut wrong = Vec::new();
    for seed in first..first + count {
        if std::panic::catch_unwind(|| live(seed)).is_err() {
            eprintln!("that was seed {seed}");
            wrong.push(seed);
        }
    }
    println!("{count} days from seed {first}, wrong: {wrong:?}");
    assert!(wrong.is_empty(), "the days of these seeds went wrong: {wrong:?}");
}
