//! `cargo xtask bench-redis`: what the module costs a server, beside what the server itself costs.
//!
//! CPU of the server's thread per item, as the kernel counts it, so that neither the client nor whatever else runs here is
//! part of it. All contenders run in every round, in an order that turns; a ratio is taken within a round, and its median
//! and quartiles are printed. Keys have twelve bytes; commands of one item come 32 at a time, batches of a hundred 4 at a
//! time, hashes by the thousand.
//!
//! Every filter has taken up to 200,000 other keys before it is measured, so that its pages are there: the first key of a page
//! also pays for the kernel to make it, once in the life of a filter.
//!
//! The floor is `EB.MEXISTS` of a hundred items on a key that is not there: its words are parsed, the key is looked up and a
//! hundred answers are written, and no item is hashed. Nothing that takes a hundred items can cost less.

use crate::servers::{self, Maker};
use crate::wire::Wire;
use crate::{Outcome, bench_cluster, redis};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const USAGE: &str = "cargo xtask bench-redis [cluster] [--rounds N] [--items N] [redis|valkey]";

/// Keys that a filter has taken before it is measured, at most.
const WARM: usize = 200_000;

/// Items of a batch, and hashes of a blob.
const BATCH: usize = 100;
const HASHES: usize = 1000;

pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) items: usize,
    pub(crate) makers: Vec<Maker>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options { rounds: 9, items: 400_000, makers: Maker::ALL.into() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut number =
                || words.next().and_then(|text| text.parse().ok()).filter(|number| *number > 0).ok_or(USAGE);
            match word.as_str() {
                "--rounds" => options.rounds = number()?,
                "--items" => options.items = number()?.next_multiple_of(HASHES),
                "redis" => options.makers = vec![Maker::Redis],
                "valkey" => options.makers = vec![Maker::Valkey],
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(arguments: &[String]) -> Outcome {
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "cluster") {
        return bench_cluster::run(&Options::parse(rest)?);
    }
    let options = Options::parse(arguments)?;
    let programs: Vec<PathBuf> =
        options.makers.iter().map(|maker| servers::ensure(*maker)).collect::<Result<_, _>>()?;
    let module = redis::module()?;
    for (maker, program) in options.makers.iter().zip(programs) {
        let server = Server::start(&program, &module, &[])?;
        let times = measure(&server, &options)?;
        print!("{}", table(*maker, &server.version, &options, &times));
    }
    Ok(())
}

/// What is sent: its name, what is done before a round, and how items become commands.
struct Contender {
    name: &'static str,
    /// Commands that make its key anew; they are not measured.
    before: &'static str,
    form: Form,
}

enum Form {
    /// One command an item: the words before it, and after.
    Single(&'static [&'static str], &'static [&'static str]),
    /// A hundred items a command.
    Many(&'static [&'static str]),
    /// A thousand hashes in a blob.
    Blob(&'static [&'static str]),
}

const BF: &str = "DEL b; BF.RESERVE b 0.01 800000";
const BF_LARGE: &str = "DEL b; BF.RESERVE b 0.01 48000000; BF.ADD b x";
const BLOCKED: &str = "DEL e; EB.RESERVE e blocked:num_bits=8388608";
const BLOCKED_LARGE: &str = "DEL e; EB.RESERVE e blocked:num_bits=536870912";
const AUTO: &str = "DEL e; EB.RESERVE e auto MEMORY 1mb FPR 1%";
const AUTO_LARGE: &str = "DEL e; EB.RESERVE e auto MEMORY 64mb FPR 1%";

/// Every contender; ratios name them.
const CONTENDERS: &[Contender] = &[
    Contender { name: "SET", before: "", form: Form::Single(&["SET"], &["1"]) },
    Contender { name: "BF.ADD", before: BF, form: Form::Single(&["BF.ADD", "b"], &[]) },
    Contender { name: "EB.ADD blocked", before: BLOCKED, form: Form::Single(&["EB.ADD", "e"], &[]) },
    Contender { name: "EB.ADD auto", before: AUTO, form: Form::Single(&["EB.ADD", "e"], &[]) },
    Contender { name: "floor", before: "", form: Form::Many(&["EB.MEXISTS", "missing"]) },
    Contender { name: "BF.MADD", before: BF, form: Form::Many(&["BF.MADD", "b"]) },
    Contender { name: "EB.MADD blocked", before: BLOCKED, form: Form::Many(&["EB.MADD", "e"]) },
    Contender { name: "EB.MADD auto", before: AUTO, form: Form::Many(&["EB.MADD", "e"]) },
    Contender { name: "BF.MADD 64 MiB", before: BF_LARGE, form: Form::Many(&["BF.MADD", "b"]) },
    Contender { name: "EB.MADD blocked 64 MiB", before: BLOCKED_LARGE, form: Form::Many(&["EB.MADD", "e"]) },
    Contender { name: "EB.MADD auto 64 MiB", before: AUTO_LARGE, form: Form::Many(&["EB.MADD", "e"]) },
    Contender { name: "EB.ADDHASHES blocked", before: BLOCKED, form: Form::Blob(&["EB.ADDHASHES", "e"]) },
    Contender { name: "EB.ADDHASHES auto", before: AUTO, form: Form::Blob(&["EB.ADDHASHES", "e"]) },
];

/// What must not be exceeded: one contender's time, another's, and how many times that.
const BARS: &[(&str, &str, f64)] = &[
    ("BF.ADD", "SET", 1.05),
    ("EB.ADD blocked", "SET", 1.05),
    ("EB.ADD auto", "SET", 1.05),
    ("BF.MADD", "floor", 1.6),
    ("EB.MADD blocked", "floor", 1.6),
    ("EB.MADD auto", "floor", 1.6),
    ("BF.MADD 64 MiB", "BF.MADD", 1.3),
    ("EB.MADD blocked 64 MiB", "EB.MADD blocked", 1.3),
    ("EB.MADD auto 64 MiB", "EB.MADD auto", 1.3),
    ("EB.ADDHASHES blocked", "EB.MADD blocked", 0.5),
    ("EB.ADDHASHES auto", "EB.MADD auto", 0.5),
];

/// Nanoseconds of CPU an item, by contender and round.
fn measure(server: &Server, options: &Options) -> Result<Vec<Vec<f64>>, String> {
    let mut times = vec![Vec::new(); CONTENDERS.len()];
    let mut key: u64 = 0;
    // The first round warms up: SET has its keys then, allocators their memory.
    for round in 0..=options.rounds {
        for turn in 0..CONTENDERS.len() {
            let index = (turn + round) % CONTENDERS.len();
            let nanoseconds = one(server, &CONTENDERS[index], options.items, &mut key)?;
            if round > 0 {
                times[index].push(nanoseconds);
            }
        }
        eprintln!("xtask: round {round} of {}", options.rounds);
    }
    Ok(times)
}

fn one(server: &Server, contender: &Contender, items: usize, key: &mut u64) -> Result<f64, String> {
    let mut wire = server.wire()?;
    for line in contender.before.split("; ").filter(|line| !line.is_empty()) {
        server.ask(line)?;
    }
    // SET goes over the same keys in every round; filters get keys that they have not seen.
    if contender.name == "SET" {
        return send(server, &mut wire, contender, 0, items);
    }
    let (warm, first) = (items.min(WARM), *key);
    *key += (warm + items) as u64;
    send(server, &mut wire, contender, first, warm)?;
    send(server, &mut wire, contender, first + warm as u64, items)
}

/// Sends items from one number on; nanoseconds of CPU each.
fn send(server: &Server, wire: &mut Wire, to: &Contender, first: u64, items: usize) -> Result<f64, String> {
    let (together, per_command) = match to.form {
        Form::Single(..) => (32, 1),
        Form::Many(_) => (4, BATCH),
        Form::Blob(_) => (1, HASHES),
    };
    let one = |index: usize| one_command(&to.form, first + (index * per_command) as u64, per_command as u64);
    let commands: Vec<Vec<Vec<u8>>> = (0..items / per_command).map(one).collect();
    let before = server.cpu()?;
    commands
        .chunks(together)
        .try_for_each(|some| exchange(wire, some).map_err(|error| format!("{}: {error}", to.name)))?;
    Ok((server.cpu()? - before) / items as f64)
}

/// Sends commands at once and reads their replies, none of which may be an error.
pub(crate) fn exchange(wire: &mut Wire, commands: &[Vec<Vec<u8>>]) -> Outcome {
    commands.iter().for_each(|command| wire.put(command));
    wire.flush().map_err(|error| error.to_string())?;
    for _ in commands {
        let reply = wire.receive_bytes().map_err(|error| error.to_string())?;
        if reply.starts_with(b"-") {
            return Err(String::from_utf8_lossy(&reply).trim().to_string());
        }
    }
    Ok(())
}

fn one_command(form: &Form, first: u64, count: u64) -> Vec<Vec<u8>> {
    let (before, after): (&[&str], &[&str]) = match form {
        Form::Single(before, after) => (before, after),
        Form::Many(before) | Form::Blob(before) => (before, &[]),
    };
    let numbers = first..first + count;
    let items: Vec<Vec<u8>> = match form {
        Form::Blob(_) => {
            let bits = numbers.flat_map(|key| [mixed(2 * key), mixed(2 * key + 1)]);
            vec![bits.flat_map(u64::to_le_bytes).collect()]
        }
        _ => numbers.map(|key| format!("{:012}", scattered(key)).into_bytes()).collect(),
    };
    let fixed = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    [fixed(before), items, fixed(after)].concat()
}

/// Numbers of up to twelve digits, each once, in no order.
fn scattered(key: u64) -> u64 {
    (u128::from(key) * 618_033_988_749 % 1_000_000_000_000) as u64
}

/// 64 bits that look random (SplitMix64).
pub(crate) fn mixed(number: u64) -> u64 {
    crate::bench_dedup::mixed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A server on loopback; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    version: String,
}

impl Server {
    pub(crate) fn start(program: &Path, module: &Path, settings: &[&str]) -> Result<Server, String> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|socket| socket.local_addr())
            .map_err(|error| error.to_string())?
            .port();
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
        command.args(settings).arg("--loadmodule").arg(module).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let mut server = Server { child, port, version: String::new() };
        server.version = redis::wait(&mut server.child, port)?;
        std::thread::sleep(Duration::from_millis(100));
        Ok(server)
    }

    pub(crate) fn wire(&self) -> Result<Wire, String> {
        Wire::open(self.port).map_err(|error| error.to_string())
    }

    /// What it answers to a line of words.
    pub(crate) fn ask(&self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split(' ').collect();
        let reply = self.wire()?.try_bytes(&words).map_err(|error| error.to_string())?;
        let reply = String::from_utf8_lossy(&reply).into_owned();
        if reply.starts_with('-') { Err(format!("{line}: {}", reply.trim())) } else { Ok(reply) }
    }

    /// Nanoseconds that the thread which carries out commands has run, where the kernel counts them; else what
    /// `/proc/PID/stat` has, in hundredths of a second.
    pub(crate) fn cpu(&self) -> Result<f64, String> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.child.id()));
        if let Some(nanoseconds) = read("schedstat").ok().and_then(|text| text.split(' ').next()?.parse::<f64>().ok()) {
            return Ok(nanoseconds);
        }
        let stat = read("stat").map_err(|error| error.to_string())?;
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let ticks: Vec<f64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
        Ok(ticks.iter().sum::<f64>() * 1e7)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn table(maker: Maker, version: &str, options: &Options, times: &[Vec<f64>]) -> String {
    let mut text = format!("### {} {version}, {} items, {} rounds\n\n", maker.name(), options.items, options.rounds);
    text += "| command | ns of the server's CPU an item (quartiles) |\n|---|---|\n";
    for (contender, times) in CONTENDERS.iter().zip(times) {
        let [low, middle, high] = quartiles(times.clone());
        text += &format!("| {} | {middle:.0} ({low:.0}–{high:.0}) |\n", contender.name);
    }
    text += "\n| ratio | bar | measured (quartiles) | |\n|---|---|---|---|\n";
    let of = |name: &str| CONTENDERS.iter().position(|contender| contender.name == name).map(|index| &times[index]);
    for (one, other, bar) in BARS {
        let (Some(ours), Some(theirs)) = (of(one), of(other)) else { continue };
        let [low, middle, high] = quartiles(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect());
        let verdict = if middle <= *bar { "kept" } else { "missed" };
        text += &format!("| {one} / {other} | ≤ {bar} | {middle:.2} ({low:.2}–{high:.2}) | {verdict} |\n");
    }
    text + "\n"
}

pub(crate) fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values.get((values.len().saturating_sub(1)) * quarter / 4).copied().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_name_contenders_and_keys_differ() {
        let named = |name: &str| CONTENDERS.iter().any(|contender| contender.name == name);
        assert!(BARS.iter().all(|(one, other, _)| named(one) && named(other)));
        let keys: std::collections::HashSet<u64> = (0..100_000).map(scattered).collect();
        assert_eq!(keys.len(), 100_000);
        let text = one_command(&Form::Single(&["SET"], &["1"]), 1, 1);
        assert_eq!(text, [&b"SET"[..], b"618033988749", b"1"]);
    }
}
