//! `cargo xtask redis`: a server on loopback that has the module, to try it.

use crate::servers::{self, Maker};
use crate::{Outcome, cargo, dist};
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

const USAGE: &str = "cargo xtask redis [--valkey] [--port N] [--fetch] [-- OPTION OF THE SERVER …]
  --valkey  Valkey instead of Redis
  --port    this port instead of 6379, or a free one where that is taken
  --fetch   fetch both servers, and redis-py for the tests; start none";

/// Where servers listen unless they are told otherwise.
const PORT: u16 = 6379;

/// What was asked for.
struct Wanted {
    maker: Maker,
    port: Option<u16>,
    fetch: bool,
    options: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Outcome {
    if arguments.iter().any(|word| word == "--help" || word == "-h") {
        println!("usage: {USAGE}");
        return Ok(());
    }
    let wanted = parse(arguments).ok_or_else(|| format!("usage: {USAGE}"))?;
    if wanted.fetch {
        let missing = servers::ensure_all();
        return if missing.is_empty() { Ok(()) } else { Err(missing.join("; ")) };
    }
    let program = servers::ensure(wanted.maker)?;
    let module = module()?;
    let port = match wanted.port {
        Some(port) => port,
        None => free_port()?,
    };
    let data = servers::folder().join("data");
    fs::create_dir_all(&data).map_err(|error| format!("{}: {error}", data.display()))?;
    let mut server = Command::new(&program);
    server.args(["--bind", "127.0.0.1", "--loglevel", "warning", "--save", "", "--port", &port.to_string()]);
    server.arg("--dir").arg(&data).arg("--loadmodule").arg(&module).args(&wanted.options);
    let mut server = server.spawn().map_err(|error| format!("{} did not start: {error}", program.display()))?;
    let version = wait(&mut server, port)?;
    println!("{}", welcome(wanted.maker, &version, port, &module.display().to_string()));
    let ended = server.wait().map_err(|error| error.to_string())?;
    if ended.success() { Ok(()) } else { Err(format!("the server ended with {ended}")) }
}

fn parse(arguments: &[String]) -> Option<Wanted> {
    let mut wanted = Wanted { maker: Maker::Redis, port: None, fetch: false, options: Vec::new() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--valkey" => wanted.maker = Maker::Valkey,
            "--fetch" => wanted.fetch = true,
            "--port" => wanted.port = Some(words.next()?.parse().ok().filter(|port| *port > 0)?),
            "--" => wanted.options = words.by_ref().cloned().collect(),
            _ => return None,
        }
    }
    Some(wanted)
}

/// Builds the module, and says where it is; `EVERBLOOM_MODULE` names one that is there already.
pub(crate) fn module() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("EVERBLOOM_MODULE") {
        return fs::canonicalize(&named).map_err(|error| format!("EVERBLOOM_MODULE={}: {error}", named.display()));
    }
    cargo("build", &["--release", "--package", "everbloom-redis"], &[], &[])?;
    let module = dist::target_folder().join("release").join(dist::MODULE);
    fs::canonicalize(&module).map_err(|error| format!("{}: {error}", module.display()))
}

/// The port that clients try first, or any that is free.
fn free_port() -> Result<u16, String> {
    let listens = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|socket| socket.local_addr());
    let address = listens(PORT).or_else(|_| listens(0)).map_err(|error| format!("no port is free: {error}"))?;
    Ok(address.port())
}

/// Waits until the server answers, and says its version.
pub(crate) fn wait(server: &mut Child, port: u16) -> Result<String, String> {
    for _ in 0..200 {
        if let Some(ended) = server.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("the server ended with {ended}; what it wrote above says why"));
        }
        if let Some(version) = version(port) {
            return Ok(version);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = server.kill();
    Err(format!("the server did not answer on port {port} within ten seconds"))
}

/// The version that the server on this port says it is, if it answers.
fn version(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.write_all(b"INFO server\r\nQUIT\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_string);
    field("valkey_version:").or_else(|| field("redis_version:"))
}

/// What a user can type now.
fn welcome(maker: Maker, version: &str, port: u16, module: &str) -> String {
    let client = servers::folder().join("redis-cli");
    let client = if client.exists() { client.display().to_string() } else { "redis-cli".into() };
    let name = maker.name();
    format!(
        "
{name} {version} with everbloom listens on 127.0.0.1:{port}. It keeps nothing on disk; Ctrl-C ends it.

In another terminal:

  {client} -p {port}

  BF.ADD users alice                              as with RedisBloom: 1, and 0 for whoever was there before
  EB.RESERVE seen auto MEMORY 16mb FPR 0.1%       a filter for an endless stream, in 16 MiB
  EB.MADD seen a b a                              1 1 0: which of them are new
  EB.INFO seen                                    what it is, and what it promises
  COMMAND DOCS EB.RESERVE                         what the rest of its options are

In a server of your own:

  loadmodule {module}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<Wanted> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_and_the_servers_own_are_passed_on() {
        let wanted = parsed("--valkey --port 7000 -- --appendonly yes").expect("options");
        assert_eq!((wanted.maker, wanted.port, wanted.fetch), (Maker::Valkey, Some(7000), false));
        assert_eq!(wanted.options, ["--appendonly", "yes"]);
        for wrong in ["--port", "--port 0", "--port 70000", "--port x", "valkey"] {
            assert!(parsed(wrong).is_none(), "{wrong}");
        }
    }
}
