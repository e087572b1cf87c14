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
use crate::{Outcome, bench_cluster, redis};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
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
    let mut wire = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).map_err(|error| error.to_string())?;
    wire.set_nodelay(true).map_err(|error| error.to_string())?;
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
fn send(server: &Server, wire: &mut TcpStream, to: &Contender, first: u64, items: usize) -> Result<f64, String> {
    let parts = requests(&to.form, first, items);
    let before = server.cpu()?;
    for (request, replies) in &parts {
        let reply = exchange(wire, request, *replies)?;
        if reply.starts_with(b"-") {
            return Err(format!("{}: {}", to.name, String::from_utf8_lossy(&reply).trim()));
        }
    }
    Ok((server.cpu()? - before) / items as f64)
}

/// Requests as they are sent, and how many replies each gets.
fn requests(form: &Form, first: u64, items: usize) -> Vec<(Vec<u8>, usize)> {
    let (together, per_command) = match form {
        Form::Single(..) => (32, 1),
        Form::Many(_) => (4, BATCH),
        Form::Blob(_) => (1, HASHES),
    };
    let commands: Vec<Vec<u8>> = (0..items / per_command)
        .map(|index| one_command(form, first + (index * per_command) as u64, per_command as u64))
        .collect();
    commands.chunks(together).map(|some| (some.concat(), some.len())).collect()
}

fn one_command(form: &Form, first: u64, count: u64) -> Vec<u8> {
    let keys: Vec<Vec<u8>> = (first..first + count).map(|key| format!("{:012}", scattered(key)).into_bytes()).collect();
    let (before, after): (&[&str], &[&str]) = match form {
        Form::Single(before, after) => (before, after),
        Form::Many(before) | Form::Blob(before) => (before, &[]),
    };
    let mut words: Vec<&[u8]> = before.iter().map(|word| word.as_bytes()).collect();
    let blob: Vec<u8>;
    match form {
        Form::Blob(_) => {
            let bits = (first..first + count).flat_map(|key| [mixed(2 * key), mixed(2 * key + 1)]);
            blob = bits.flat_map(u64::to_le_bytes).collect();
            words.push(&blob);
        }
        _ => words.extend(keys.iter().map(Vec::as_slice)),
    }
    words.extend(after.iter().map(|word| word.as_bytes()));
    command(&words)
}

/// Numbers of up to twelve digits, each once, in no order.
fn scattered(key: u64) -> u64 {
    (u128::from(key) * 618_033_988_749 % 1_000_000_000_000) as u64
}

/// 64 bits that look random (SplitMix64).
pub(crate) fn mixed(number: u64) -> u64 {
    crate::bench_dedup::mixed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

pub(crate) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend_from_slice(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Sends a request and reads so many replies.
pub(crate) fn exchange(wire: &mut TcpStream, request: &[u8], replies: usize) -> Result<Vec<u8>, String> {
    wire.write_all(request).map_err(|error| error.to_string())?;
    let (mut bytes, mut room) = (Vec::new(), [0; 1 << 16]);
    loop {
        let count = wire.read(&mut room).map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("the server closed the connection".into());
        }
        bytes.extend_from_slice(&room[..count]);
        if complete(&bytes, replies) {
            return Ok(bytes);
        }
    }
}

/// Whether these bytes hold so many replies: status, error, integer, bulk, or an array of such.
fn complete(bytes: &[u8], replies: usize) -> bool {
    let (mut at, mut open) = (0, replies);
    while open > 0 {
        let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n') else { return false };
        let line = &bytes[at..at + end];
        let number =
            || std::str::from_utf8(&line[1..]).ok().and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(0);
        at += end + 1;
        open -= 1;
        match line[0] {
            b'*' => open += number().max(0) as usize,
            b'$' if number() >= 0 => at += number() as usize + 2,
            _ => {}
        }
        if at > bytes.len() {
            return false;
        }
    }
    true
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

    /// What it answers to a line of words.
    pub(crate) fn ask(&self, line: &str) -> Result<String, String> {
        let mut wire = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).map_err(|error| error.to_string())?;
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let reply = String::from_utf8_lossy(&exchange(&mut wire, &command(&words), 1)?).into_owned();
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
    fn replies_are_counted() {
        assert!(complete(b"+OK\r\n", 1) && !complete(b"+OK", 1) && !complete(b"+OK\r\n", 2));
        assert!(complete(b"*2\r\n:1\r\n$3\r\na\nb\r\n:7\r\n", 2));
        assert!(!complete(b"*2\r\n:1\r\n$3\r\na\nb", 1));
    }

    #[test]
    fn ratios_name_contenders_and_keys_differ() {
        let named = |name: &str| CONTENDERS.iter().any(|contender| contender.name == name);
        assert!(BARS.iter().all(|(one, other, _)| named(one) && named(other)));
        let keys: std::collections::HashSet<u64> = (0..100_000).map(scattered).collect();
        assert_eq!(keys.len(), 100_000);
        let text = one_command(&Form::Single(&["SET"], &["1"]), 1, 1);
        assert_eq!(text, b"*3\r\n$3\r\nSET\r\n$12\r\n618033988749\r\n$1\r\n1\r\n");
    }
}
