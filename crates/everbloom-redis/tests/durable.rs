//! Nothing that was acknowledged is lost, and nothing large is freed while clients wait.

mod common;

use common::{Chance, Server, Start, on_every_server, seed, times, words};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Adds until the server dies; gives the numbers that were acknowledged.
fn add_until_killed(port: u16, first: u64, killed: &AtomicBool) -> Vec<u64> {
    let mut wire = common::Wire::new(port, 2);
    let mut acknowledged = Vec::new();
    for number in first.. {
        let item = number.to_string();
        let family = [["EB.ADD", "eb"], ["BF.ADD", "bf"]][(number % 2) as usize];
        match wire.try_bytes(&[family[0], family[1], &item]) {
            Ok(reply) => assert!(reply.starts_with(b":"), "{}", reply.escape_ascii()),
            Err(_) => break,
        }
        acknowledged.push(number);
    }
    assert!(killed.load(Ordering::SeqCst), "the server went by itself");
    acknowledged
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    on_every_server(|maker| {
        let settings = ["appendonly yes", "appendfsync always", "auto-aof-rewrite-min-size 64kb"];
        let mut server = Start::new(maker).with(&settings).start();
        let mut chance = Chance(seed());
        server.wire().ok("EB.RESERVE eb scalable FPR 0.1%");
        server.wire().ok("BF.RESERVE bf 0.001 100");
        for round in 0..times(3) {
            let killed = AtomicBool::new(false);
            let port = server.port;
            let acknowledged: Vec<u64> = std::thread::scope(|scope| {
                let writers: Vec<_> = (0..3)
                    .map(|writer| {
                        let killed = &killed;
                        scope.spawn(move || add_until_killed(port, (round * 3 + writer) << 32, killed))
                    })
                    .collect();
                std::thread::sleep(Duration::from_millis(50 + chance.below(400)));
                killed.store(true, Ordering::SeqCst);
                server.kill();
                writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
            });
            assert!(acknowledged.len() > 10, "{} were acknowledged", acknowledged.len());
            server.start_again();
            let lost = lost(&server, &acknowledged);
            assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), acknowledged.len());
        }
        server.check("kills");
    });
}

/// The numbers that were acknowledged and are not there. Neither filter forgets, so there is no excuse.
fn lost(server: &Server, acknowledged: &[u64]) -> Vec<u64> {
    let mut wire = server.wire();
    let mut missing = Vec::new();
    for number in acknowledged {
        let family = [["EB.EXISTS", "eb"], ["BF.EXISTS", "bf"]][(number % 2) as usize];
        if !wire.call(&[family[0], family[1], &number.to_string()]).is_yes() {
            missing.push(*number);
        }
    }
    missing
}

/// Looks at the clock, so it runs in a soak alone.
#[test]
#[ignore = "measures time; cargo xtask soak redis"]
fn half_a_gibibyte_is_freed_in_the_background() {
    on_every_server(|maker| {
        let mut server = Start::new(maker).with(&["slowlog-log-slower-than 0", "lazyfree-lazy-user-del no"]).start();
        let mut chance = Chance(seed());
        for forget in ["UNLINK large", "FLUSHALL ASYNC"] {
            let mut wire = server.wire();
            wire.ok("EB.RESERVE large blocked:num_bits=4294967296");
            // Every page is touched, or there would be nothing to free.
            for _ in 0..200 {
                let blob: Vec<u8> = (0..20_000).flat_map(|_| chance.bits().to_le_bytes()).collect();
                assert!(!wire.call(words!["EB.ADDHASHES", "large", blob]).is_error());
            }
            let resident = server.memory("VmRSS");
            assert!(resident > 500 << 20, "{resident} bytes are there");
            wire.ok("SLOWLOG RESET");
            let before = server.cpu();
            let reply = wire.say(forget);
            let busy = (server.cpu() - before) / 1000;
            assert!(!reply.is_error(), "{reply:?}");
            let word = forget.split(' ').next().expect("a word");
            let slow = wire.say("SLOWLOG GET 10");
            let entry = slow.items().iter().find(|entry| entry.items()[3].items()[0].text() == word);
            let microseconds = entry.expect("an entry").items()[2].number();
            eprintln!("{maker:?}: {forget} of 512 MiB: {busy} µs of the main thread, {microseconds} µs by the clock");
            // By its CPU: the clock also counts what other programs took.
            assert!(busy < 1000, "{forget} took {busy} µs");
            let since = std::time::Instant::now();
            while server.memory("VmRSS") > resident - (400 << 20) {
                assert!(since.elapsed() < Duration::from_secs(30), "the memory does not come back");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        server.check("frees");
    });
}
