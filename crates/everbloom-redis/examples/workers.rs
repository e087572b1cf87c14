//! Ten workers share one memory of what was seen; important keys are remembered longer; a window forgets what is old.
//!
//! `cargo run -p everbloom-redis --example workers [redis://127.0.0.1:6379]`, beside `cargo xtask redis`.

use redis::{Client, Connection, RedisResult, cmd};
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

const EVENTS: u64 = 20_000;

fn main() -> RedisResult<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let client = Client::open(url)?;
    shared_dedup(&client)?;
    importance(&mut client.get_connection()?)?;
    window(&mut client.get_connection()?)
}

/// Each event is handled by one worker, whoever sees it first.
fn shared_dedup(client: &Client) -> RedisResult<()> {
    cmd("DEL").arg("seen").exec(&mut client.get_connection()?)?;
    let workers: Vec<_> = (0..10)
        .map(|number| {
            let client = client.clone();
            thread::spawn(move || worker(&mut client.get_connection()?, number))
        })
        .collect();
    let mut handled = Vec::new();
    for worker in workers {
        handled.extend(worker.join().expect("a worker")?);
    }
    let distinct: HashSet<&u64> = handled.iter().collect();
    let twice = handled.len() - distinct.len();
    println!("{} of {EVENTS} events were handled, {twice} of them twice", handled.len());
    // Where more keys than a word of the filter has room for meet in it, which with so few keys happens in one run of forty,
    // a handful of repeats are taken for new.
    assert!((twice as u64) < EVENTS / 1000, "events were handled twice");
    assert!(handled.len() as u64 > EVENTS * 99 / 100, "more than one in a hundred was lost");
    Ok(())
}

/// Gets events from a queue that delivers each to five of the ten workers, and gives those that nobody had before.
fn worker(connection: &mut Connection, number: u64) -> RedisResult<Vec<u64>> {
    // The first worker makes the filter; the others find it. It never takes more than a mebibyte, however long this runs.
    let options = ["MEMORY", "1mb", "FPR", "0.1%", "NX"];
    cmd("EB.RESERVE").arg("seen").arg("auto").arg(&options).exec(connection)?;
    let mut mine: Vec<u64> = (0..EVENTS).filter(|event| (event + number) % 10 < 5).collect();
    if number % 2 == 1 {
        mine.reverse();
    }
    let mut handled = Vec::new();
    for batch in mine.chunks(500) {
        let items: Vec<String> = batch.iter().map(|event| format!("event-{event}")).collect();
        let new: Vec<bool> = cmd("EB.MADD").arg("seen").arg(&items).query(connection)?;
        handled.extend(batch.iter().zip(new).filter(|(_, is_new)| *is_new).map(|(event, _)| *event));
    }
    Ok(handled)
}

/// In little memory, what is remembered is what matters.
fn importance(connection: &mut Connection) -> RedisResult<()> {
    cmd("DEL").arg("alerts").exec(connection)?;
    let options = ["MEMORY", "16kb", "FPR", "1%", "IMPORTANCE", "100"];
    cmd("EB.RESERVE").arg("alerts").arg("auto").arg(&options).exec(connection)?;
    // One in fifty is an outage; the rest is chatter.
    let alerts: Vec<(String, u32)> =
        (0..50_000).map(|number| (format!("alert-{number}"), if number % 50 == 0 { 100 } else { 1 })).collect();
    for batch in alerts.chunks(500) {
        let mut command = cmd("EB.IADD");
        command.arg("alerts");
        for (alert, importance) in batch {
            command.arg(alert).arg(*importance);
        }
        command.exec(connection)?;
    }
    let mut kept = |first: usize| -> RedisResult<f64> {
        let keys: Vec<&str> = alerts.iter().skip(first).step_by(50).map(|(alert, _)| alert.as_str()).collect();
        let found: Vec<bool> = cmd("EB.MEXISTS").arg("alerts").arg(&keys).query(connection)?;
        Ok(found.iter().filter(|found| **found).count() as f64 / keys.len() as f64)
    };
    let (outages, chatter) = (kept(0)?, kept(1)?);
    println!("of the outages {:.0} % are remembered, of the chatter {:.0} %", outages * 100.0, chatter * 100.0);
    assert!(outages > 2.0 * chatter);
    Ok(())
}

/// Each visitor once in a while: two seconds here, by the server's clock.
fn window(connection: &mut Connection) -> RedisResult<()> {
    cmd("DEL").arg("visits").exec(connection)?;
    let options = ["MEMORY", "256kb", "FPR", "1%", "WINDOW", "2s"];
    cmd("EB.RESERVE").arg("visits").arg("auto").arg(&options).exec(connection)?;
    let mut ask = |command: &str, visitor: &str| -> RedisResult<bool> {
        cmd(command).arg("visits").arg(visitor).query(connection)
    };
    assert!(ask("EB.ADD", "alice")? && !ask("EB.ADD", "alice")?);
    let since = Instant::now();
    loop {
        thread::sleep(Duration::from_millis(100));
        // Windows turn when something is added: reading changes nothing.
        ask("EB.ADD", "bob")?;
        if !ask("EB.EXISTS", "alice")? {
            println!("alice is new again");
            return Ok(());
        }
        assert!(since.elapsed() < Duration::from_secs(60), "the window does not turn");
    }
}
