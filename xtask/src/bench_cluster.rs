//! `cargo xtask bench-redis cluster`: what a filter on servers costs beside one of one's own.
//!
//! Two processes of `everbloom dedup --redis` read a file each, at once, against three primaries on loopback; before them the
//! same two files go through `everbloom dedup` with a filter of the same size. Of every round the CPU a line is taken: of the
//! clients as the kernel counts children that ended, of the servers by their threads. What a server spends on the protocol
//! is measured by commands of the same shape for a key that is not there: they are parsed and answered, and no filter is asked.
//! `EVERBLOOM_BINARY` and `EVERBLOOM_MODULE` name programs that are there already.

use crate::bench_redis::{Options, Server, exchange, mixed, quartiles};
use crate::{Outcome, cargo, dist, redis, servers};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::env;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PRIMARIES: usize = 3;
const CLIENTS: usize = 2;
const SHARDS: usize = 64;
/// What dedup reads at a time, each of which is a batch.
const BLOCK_BYTES: usize = 512 << 10;

/// What a round came to.
struct Round {
    lines_a_second: f64,
    /// Nanoseconds of CPU a line: a filter of one's own, the clients, the servers, and what of theirs is no filter.
    local: f64,
    client: f64,
    server: f64,
    protocol: f64,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let module = redis::module()?;
    let binary = match env::var_os("EVERBLOOM_BINARY") {
        Some(named) => PathBuf::from(named),
        None => {
            cargo("build", &["--release", "--package", "everbloom-cli"], &[], &[])?;
            dist::target_folder().join("release/everbloom")
        }
    };
    let folder = servers::folder().join("bench");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (line_bytes, distinct) = write_parts(&folder, options.items).map_err(|error| error.to_string())?;
    for maker in &options.makers {
        let program = servers::ensure(*maker)?;
        let mut rounds = Vec::new();
        for round in 0..=options.rounds {
            let measured = measure(&program, &module, &binary, &folder, options.items, line_bytes)?;
            check(&folder, distinct)?;
            eprintln!("xtask: round {round} of {}", options.rounds);
            // The first one warms up.
            rounds.extend((round > 0).then_some(measured));
        }
        print!("{}", table(maker.name(), options, &rounds));
    }
    fs::remove_dir_all(&folder).map_err(|error| error.to_string())
}

/// Whether the clients wrote every line once, but for the false positives that are promised and four standard deviations.
fn check(folder: &Path, distinct: usize) -> Outcome {
    let mut written = 0;
    for part in 0..CLIENTS {
        let text = fs::read(folder.join(format!("out{part}"))).map_err(|error| error.to_string())?;
        written += text.iter().filter(|byte| **byte == b'\n').count();
    }
    let mistaken = 0.01 * distinct as f64;
    match written <= distinct && (distinct - written) as f64 <= mistaken + 4.0 * mistaken.sqrt() {
        true => Ok(()),
        false => Err(format!("{written} lines were written, and {distinct} are different")),
    }
}

/// A file for each client, in which 70 lines in 100 came before in one of them; the bytes of a line, and how many are different.
fn write_parts(folder: &Path, lines: usize) -> std::io::Result<(usize, usize)> {
    let universe = (lines * CLIENTS * 3 / 10) as u64;
    let line = |number: u64| format!("user-{number:010},page-{:06}\n", mixed(number) % 1_000_000);
    let mut came = vec![false; universe as usize];
    for part in 0..CLIENTS {
        let mut out = BufWriter::new(File::create(folder.join(format!("part{part}")))?);
        for place in 0..lines {
            let number = mixed((part * lines + place) as u64) % universe;
            came[number as usize] = true;
            out.write_all(line(number).as_bytes())?;
        }
        out.flush()?;
    }
    Ok((line(0).len(), came.iter().filter(|came| **came).count()))
}

fn measure(
    program: &Path,
    module: &Path,
    binary: &Path,
    folder: &Path,
    items: usize,
    line_bytes: usize,
) -> Result<Round, String> {
    let (lines, expect) = ((items * CLIENTS) as f64, (items * CLIENTS).to_string());
    let goal = ["--filter", "blocked", "--expect", &expect, "--fpr", "1%", "--threads", "1"];
    let (local, _) = clients(binary, folder, &goal, false)?;
    let nodes = cluster(program, module, folder)?;
    let url = format!("redis://127.0.0.1:{}", nodes[0].port);
    let remote = [&goal[..], &["--redis", &url, "--name", "bench"]].concat();
    let before: f64 = nodes.iter().map(Server::cpu).sum::<Result<_, _>>()?;
    let (client, wall) = clients(binary, folder, &remote, true)?;
    let server = nodes.iter().map(Server::cpu).sum::<Result<f64, _>>()? - before;
    drop(nodes);
    let protocol = protocol(program, module, BLOCK_BYTES / line_bytes / SHARDS)?;
    Ok(Round {
        lines_a_second: lines / wall,
        local: local / lines,
        client: client / lines,
        server: server / lines,
        protocol,
    })
}

/// Runs a client on each part, at once or one after another; nanoseconds of CPU and seconds of time.
fn clients(binary: &Path, folder: &Path, options: &[&str], at_once: bool) -> Result<(f64, f64), String> {
    let cpu = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
        Ok::<_, String>((usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()) as f64)
    };
    let (before, started) = (cpu()?, Instant::now());
    let mut running = Vec::new();
    for part in 0..CLIENTS {
        let mut command = Command::new(binary);
        command.arg("dedup").arg(folder.join(format!("part{part}"))).args(options);
        command.arg("-o").arg(folder.join(format!("out{part}"))).stdin(Stdio::null());
        running.push(command.spawn().map_err(|error| format!("{}: {error}", binary.display()))?);
        if !at_once || part + 1 == CLIENTS {
            for mut client in running.drain(..) {
                let status = client.wait().map_err(|error| error.to_string())?;
                if !status.success() {
                    return Err(format!("dedup {} ended with {status}", options.join(" ")));
                }
            }
        }
    }
    Ok((cpu()? - before, started.elapsed().as_secs_f64()))
}

/// Primaries with equal parts of the slots.
fn cluster(program: &Path, module: &Path, folder: &Path) -> Result<Vec<Server>, String> {
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    let mut nodes = Vec::new();
    for node in 0..PRIMARIES {
        let own: PathBuf = folder.join(format!("node{node}"));
        let _ = fs::remove_dir_all(&own);
        fs::create_dir_all(&own).map_err(|error| error.to_string())?;
        let bus = free().map_err(|error| error.to_string())?.port().to_string();
        let own = own.display().to_string();
        let settings = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--dir", &own];
        let server = Server::start(program, module, &settings)?;
        let part = |at: usize| at * 16_384 / PRIMARIES;
        server.ask(&format!("CLUSTER SET-CONFIG-EPOCH {}", node + 1))?;
        server.ask(&format!("CLUSTER ADDSLOTSRANGE {} {}", part(node), part(node + 1) - 1))?;
        nodes.push((server, bus));
        let (first, bus) = &nodes[0];
        nodes[node].0.ask(&format!("CLUSTER MEET 127.0.0.1 {} {bus}", first.port))?;
    }
    let nodes: Vec<Server> = nodes.into_iter().map(|(server, _)| server).collect();
    for _ in 0..600 {
        let states: Result<Vec<String>, String> = nodes.iter().map(|node| node.ask("CLUSTER INFO")).collect();
        let is_whole = |text: &String| {
            text.contains("cluster_state:ok") && text.contains(&format!("cluster_known_nodes:{PRIMARIES}"))
        };
        if states?.iter().all(is_whole) {
            return Ok(nodes);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err("the nodes did not become a cluster within half a minute".into())
}

/// Nanoseconds of a server's CPU for a hash that no filter is asked for, in commands of so many.
fn protocol(program: &Path, module: &Path, hashes: usize) -> Result<f64, String> {
    let server = Server::start(program, module, &[])?;
    let mut wire = server.wire()?;
    let blob: Vec<u8> = (0..2 * hashes as u64).flat_map(|number| mixed(number).to_le_bytes()).collect();
    let (batches, together) = (2000, SHARDS.div_ceil(PRIMARIES));
    let commands = vec![vec![b"EB.EXISTSHASHES".to_vec(), b"missing".to_vec(), blob]; together];
    let before = server.cpu()?;
    (0..batches).try_for_each(|_| exchange(&mut wire, &commands))?;
    Ok((server.cpu()? - before) / (batches * together * hashes) as f64)
}

/// What is taken of a round.
type Value = fn(&Round) -> f64;

fn table(maker: &str, options: &Options, rounds: &[Round]) -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (lines, count) = (options.items * CLIENTS, options.rounds);
    let mut text = format!(
        "### {maker}: {CLIENTS} clients, {PRIMARIES} primaries, {SHARDS} shards, {lines} lines, {count} rounds, {cores} cores for all\n\n"
    );
    let of = |value: Value| quartiles(rounds.iter().map(value).collect());
    let [low, middle, high] = of(|round| round.lines_a_second);
    text += &format!("{middle:.0} lines a second together ({low:.0}–{high:.0})\n\n");
    text += "| CPU | ns a line (quartiles) |\n|---|---|\n";
    let rows: [(&str, Value); 5] = [
        ("a filter of its own", |round| round.local),
        ("clients", |round| round.client),
        ("servers", |round| round.server),
        ("— of which protocol", |round| round.protocol),
        ("— of which filter, tokens and the rest", |round| round.server - round.protocol),
    ];
    for (name, value) in rows {
        let [low, middle, high] = of(value);
        text += &format!("| {name} | {middle:.0} ({low:.0}–{high:.0}) |\n");
    }
    let [low, middle, high] = of(|round| round.client / round.local);
    let verdict = if middle <= 4.0 { "kept" } else { "missed" };
    text + &format!(
        "\n| ratio | aim | measured |\n|---|---|---|\n| client / a filter of its own | ≤ 4 | {middle:.2} ({low:.2}–{high:.2}) {verdict} |\n\n"
    )
}
