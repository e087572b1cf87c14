//! The examples run, as a user would run them, and their own assertions hold.

mod common;

use common::{Server, on_every_server, servers};
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}:\n{}\n{}", said[0], said[1]);
    eprintln!("{}", said[0]);
}

#[test]
fn a_client_in_rust() {
    let test = std::env::current_exe().expect("this test");
    let built = test.parent().and_then(Path::parent).expect("a target folder").join("examples/workers");
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        run(Command::new(&built).arg(format!("redis://127.0.0.1:{}", server.port)));
        server.check("the example");
    });
}

#[test]
fn a_client_in_python() {
    let python = servers().join("redis-py/bin/python");
    if !servers().join("redis-py/whole").exists() {
        let missing = format!("the client in Python, since there is no {}", python.display());
        assert!(std::env::var_os("EVERBLOOM_CI").is_none(), "{missing}");
        eprintln!("SKIPPED: {missing}; `cargo xtask redis --fetch` fetches it");
        return;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/workers.py");
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        run(Command::new(&python).arg(&program).arg(format!("redis://127.0.0.1:{}", server.port)));
        server.check("the example");
    });
}
