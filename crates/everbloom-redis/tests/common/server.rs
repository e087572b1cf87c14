//! Servers that a test starts, and that end with it.

use super::wire::{Reply, Wire};
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server that the module is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    Redis,
    Valkey,
}

impl Maker {
    fn program(self) -> PathBuf {
        let name = if self == Maker::Redis { "redis-server" } else { "valkey-server" };
        servers().join(name)
    }
}

/// The folder that has the servers: `cargo xtask redis --fetch` fills it.
pub fn servers() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    std::env::var_os("EVERBLOOM_SERVERS").map_or(own, PathBuf::from)
}

/// Runs a test in each server that is there. One that is missing is named aloud, and may not be missing in CI.
pub fn on_every_server(test: impl Fn(Maker)) {
    for maker in [Maker::Redis, Maker::Valkey] {
        if maker.program().exists() {
            eprintln!("in {maker:?}");
            test(maker);
            continue;
        }
        let missing = format!("{maker:?}, since there is no {}", maker.program().display());
        assert!(std::env::var_os("EVERBLOOM_CI").is_none(), "{missing}");
        eprintln!("SKIPPED: {missing}; `cargo xtask redis --fetch` fetches it");
    }
}

/// The module as these tests were built with it.
pub fn module() -> PathBuf {
    if let Some(named) = std::env::var_os("EVERBLOOM_MODULE") {
        return PathBuf::from(named);
    }
    let test = std::env::current_exe().expect("this test");
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("libeverbloom_redis.so")).find(|file| file.exists());
    found.unwrap_or_else(|| panic!("no libeverbloom_redis.so beside {}", test.display()))
}

/// A server that is to be started.
#[derive(Clone)]
pub struct Start {
    maker: Maker,
    settings: Vec<String>,
    module_arguments: String,
    instructions: Option<&'static str>,
    without_module: bool,
    database: Option<Vec<u8>>,
}

impl Start {
    pub fn new(maker: Maker) -> Start {
        Start {
            maker,
            settings: Vec::new(),
            module_arguments: String::new(),
            instructions: None,
            without_module: false,
            database: None,
        }
    }

    /// Lines of the server's configuration.
    pub fn with(mut self, settings: &[&str]) -> Start {
        self.settings.extend(settings.iter().map(|line| line.to_string()));
        self
    }

    /// Arguments of the module.
    pub fn module(mut self, arguments: &str) -> Start {
        self.module_arguments = arguments.to_string();
        self
    }

    /// No newer instructions than these.
    pub fn instructions(mut self, set: &'static str) -> Start {
        self.instructions = Some(set);
        self
    }

    /// Begins with this RDB file.
    pub fn database(mut self, rdb: Vec<u8>) -> Start {
        self.database = Some(rdb);
        self
    }

    pub fn replica_of(self, primary: &Server) -> Start {
        let line = format!("replicaof 127.0.0.1 {}", primary.port);
        self.with(&[&line])
    }

    pub fn start(self) -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        if let Some(rdb) = &self.database {
            fs::write(folder.path().join("dump.rdb"), rdb).expect("the database");
        }
        // Somebody else may take the port before the server does.
        for attempt in 1.. {
            let port = free_port();
            match Server::spawn(&self, folder.path(), port) {
                Ok(child) => return Server { start: self, child, port, folder },
                Err(log) => assert!(attempt < 5 && log.contains("Address already in use"), "{log}"),
            }
        }
        unreachable!("a start or a failure")
    }
}

/// A port that nobody has at this moment.
pub fn free_port() -> u16 {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    socket.local_addr().expect("an address").port()
}

/// A server on loopback, in a folder of its own. It is killed when it is dropped, by its process id.
pub struct Server {
    start: Start,
    child: Child,
    pub port: u16,
    folder: TempDir,
}

impl Server {
    pub fn new(maker: Maker) -> Server {
        Start::new(maker).start()
    }

    /// As servers come.
    pub fn without_module(maker: Maker) -> Server {
        Start { without_module: true, ..Start::new(maker) }.start()
    }

    /// Writes the configuration, starts the program and waits until it answers; else what it said.
    fn spawn(start: &Start, folder: &Path, port: u16) -> Result<Child, String> {
        let mut lines = vec![
            "bind 127.0.0.1".to_string(),
            "protected-mode no".into(),
            "save \"\"".into(),
            "enable-debug-command yes".into(),
            "repl-diskless-sync-delay 0".into(),
            format!("port {port}"),
            format!("dir {}", folder.display()),
        ];
        if !start.without_module {
            lines.push(format!("loadmodule {} {}", module().display(), start.module_arguments));
        }
        lines.extend(start.settings.iter().cloned());
        fs::write(folder.join("server.conf"), lines.join("\n") + "\n").expect("the configuration");
        Server::run(start, folder, port)
    }

    /// Starts a server with the configuration that is there.
    fn run(start: &Start, folder: &Path, port: u16) -> Result<Child, String> {
        let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
        let mut command = Command::new(start.maker.program());
        command.arg(folder.join("server.conf")).current_dir(folder).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        match start.instructions {
            Some(set) => command.env("EVERBLOOM_ISA", set),
            None => command.env_remove("EVERBLOOM_ISA"),
        };
        let mut child = command.spawn().expect("a server");
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(60) {
            if child.try_wait().expect("a child").is_some() {
                return Err(read_log(folder));
            }
            let pong = Wire::open(port).and_then(|mut wire| wire.try_bytes(&["PING"]));
            if pong.is_ok_and(|reply| reply == b"+PONG\r\n") {
                return Ok(child);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
        Err(format!("no answer in a minute\n{}", read_log(folder)))
    }

    pub fn maker(&self) -> Maker {
        self.start.maker
    }

    pub fn wire(&self) -> Wire {
        Wire::new(self.port, 2)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn log(&self) -> String {
        read_log(self.folder.path())
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether it ends within a minute.
    pub fn ends(&mut self) -> bool {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(60) {
            if self.child.try_wait().expect("a child").is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// Starts it again in its folder, with what it kept there.
    pub fn start_again(&mut self) {
        self.kill();
        let child = Server::spawn(&self.start, self.folder.path(), self.port);
        self.child = child.unwrap_or_else(|log| panic!("it does not start again:\n{log}"));
    }

    /// Starts it again with the configuration as it is now.
    pub fn start_again_as_configured(&mut self) {
        self.kill();
        let child = Server::run(&self.start, self.folder.path(), self.port);
        self.child = child.unwrap_or_else(|log| panic!("it does not start again:\n{log}"));
    }

    /// Fails unless the server lives, no panic was caught and nothing was logged about a crash.
    pub fn check(&mut self, after: &str) {
        if let Some(ended) = self.child.try_wait().expect("a child") {
            panic!("the server ended with {ended} after {after}");
        }
        let log = self.log();
        for word in ["panicked", "crashed by signal", "ASSERTION FAILED", "BUG REPORT"] {
            assert!(!log.contains(word), "'{word}' in the log after {after}");
        }
        assert_eq!(self.info("everbloom", "panics_caught"), "0", "after {after}");
    }

    /// A field of INFO.
    pub fn info(&self, section: &str, field: &str) -> String {
        // The module's own section has its name, which may be RedisBloom's.
        let sections: &[&str] = if section == "everbloom" { &["INFO", "everbloom", "bf"] } else { &["INFO", section] };
        let text = self.wire().call(sections).text();
        let value = text.lines().find_map(|line| {
            let (name, value) = line.trim().split_once(':')?;
            let own = name.strip_prefix("everbloom_").or(name.strip_prefix("bf_")).unwrap_or(name);
            (own == field).then(|| value.to_string())
        });
        value.unwrap_or_else(|| panic!("INFO {section} has no {field}:\n{text}"))
    }

    /// The digest of one value.
    pub fn digest(&self, key: &str) -> String {
        let reply = self.wire().call(&["DEBUG", "DIGEST-VALUE", key]);
        reply.items()[0].text()
    }

    /// Waits until the replica has all that this server did.
    pub fn wait_for(&self, replica: &Server) {
        let offset = |server: &Server, field| server.info("replication", field);
        let since = Instant::now();
        loop {
            let linked = offset(replica, "master_link_status") == "up";
            if linked && offset(self, "master_repl_offset") == offset(replica, "slave_repl_offset") {
                return;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "the replica lags:\n{}", replica.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A line of what the kernel says about the process, in bytes: `VmRSS`, `VmHWM`.
    pub fn memory(&self, line: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let found = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
        let kilobytes = found.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kilobytes.expect("a number") * 1024
    }

    /// Nanoseconds that the thread which carries out commands has run.
    pub fn cpu(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).expect("a kernel that counts");
        text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Writes the append-only file anew and waits until that is done.
    pub fn rewrite(&self) {
        let mut wire = self.wire();
        // The rewrite that `appendonly yes` began may still run.
        let done = |server: &Server| {
            let field = |name| server.info("persistence", name);
            field("aof_rewrite_in_progress") == "0" && field("aof_rewrite_scheduled") == "0"
        };
        super::wait("a rewrite", || done(self));
        let reply = wire.call(&["BGREWRITEAOF"]);
        assert!(matches!(reply, Reply::Simple(_)), "{reply:?}");
        super::wait("a rewrite", || done(self));
        assert_eq!(self.info("persistence", "aof_last_bgrewrite_status"), "ok");
    }
}

fn read_log(folder: &Path) -> String {
    let bytes = fs::read(folder.join("log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(400)..].join("\n")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the last lines of its log:\n{}", lines[lines.len().saturating_sub(30)..].join("\n"));
        }
    }
}
