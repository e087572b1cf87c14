//! Filters on their way from one server to another: slots of a cluster, links that freeze, limits that differ.

mod common;

use common::{
    Chance, Link, Maker, Reply, Server, Start, Twin, Wire, free_port, kinds, on_every_server, seed, times, wait,
};
use std::time::Duration;

/// Two primaries of a cluster; the first has the lower half of the slots.
fn cluster(maker: Maker, module_of_second: &str) -> [Server; 2] {
    let node = |module: &str| {
        // A free port and ten thousand may be no port at all.
        let bus = format!("cluster-port {}", free_port());
        Start::new(maker).with(&["cluster-enabled yes", "cluster-node-timeout 10000", &bus]).module(module).start()
    };
    let nodes = [node(""), node(module_of_second)];
    for (node, (slots, epoch)) in nodes.iter().zip([("0 8191", 1), ("8192 16383", 2)]) {
        node.wire().ok(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
        node.wire().ok(&format!("CLUSTER SET-CONFIG-EPOCH {epoch}"));
    }
    let bus = nodes[1].wire().say("CONFIG GET cluster-port").items()[1].text();
    nodes[0].wire().ok(&format!("CLUSTER MEET 127.0.0.1 {} {bus}", nodes[1].port));
    let is_whole = |node: &Server| node.wire().say("CLUSTER INFO").text().contains("cluster_state:ok");
    wait("a cluster", || nodes.iter().all(is_whole));
    nodes
}

fn id(node: &Server) -> String {
    node.wire().say("CLUSTER MYID").text()
}

fn keys_in(node: &Server, slot: i64) -> Vec<String> {
    node.wire().say(&format!("CLUSTER GETKEYSINSLOT {slot} 1000")).items().iter().map(Reply::text).collect()
}

/// Moves a slot as Redis does: the key is sent as a whole, and the source waits for it. The reply to MIGRATE if it failed.
fn migrate(from: &Server, to: &Server, slot: i64) -> Result<(), String> {
    to.wire().ok(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from)));
    from.wire().ok(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to)));
    for key in keys_in(from, slot) {
        let reply = from.wire().call(&["MIGRATE", "127.0.0.1", &to.port.to_string(), &key, "0", "60000"]);
        if reply.is_error() {
            return Err(reply.text());
        }
    }
    for node in [to, from] {
        node.wire().ok(&format!("CLUSTER SETSLOT {slot} NODE {}", id(to)));
    }
    Ok(())
}

/// Moves a slot as Valkey 9 does: a child writes the keys as commands, what comes meanwhile follows, and the slot changes
/// hands at once.
fn begin_to_migrate_slots(from: &Server, to: &Server, slot: i64) {
    from.wire().ok(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {}", id(to)));
}

fn has_moved(from: &Server) -> bool {
    let shown = from.wire().say("CLUSTER GETSLOTMIGRATIONS");
    let job = shown.items().first().expect("a migration");
    let state = job.field("state").map(Reply::text).unwrap_or_default();
    assert!(!["failed", "canceled"].contains(&state.as_str()), "{job:?}");
    state == "success"
}

fn move_slot(from: &Server, to: &Server, slot: i64) {
    match from.maker() {
        Maker::Redis => migrate(from, to, slot).expect("a migration"),
        Maker::Valkey => {
            begin_to_migrate_slots(from, to, slot);
            wait("a migration", || has_moved(from));
        }
    }
}

#[test]
fn a_slot_with_every_kind_moves_whole_and_goes_on_as_before() {
    on_every_server(|maker| {
        let mut nodes = cluster(maker, "");
        let slot = nodes[0].wire().say("CLUSTER KEYSLOT {b}").number();
        assert!(slot < 8192);
        let mut wire = nodes[0].wire();
        let mut twins: Vec<(Twin, Chance)> = Vec::new();
        for (number, kind) in kinds().into_iter().enumerate() {
            let mut chance = Chance(seed() + 77 + number as u64);
            let twin = Twin::new(&mut wire, kind, &format!("{{b}}:{}", kind.name), chance.bits() >> 1);
            twins.push((twin, chance));
        }
        wire.ok("EB.RESERVE {b}:window auto MEMORY 64kb FPR 1% EVERY 1h");
        for number in 0..500 {
            wire.call(&["BF.ADD", "{b}:bf", &number.to_string()]);
            wire.call(&["EB.ADD", "{b}:window", &number.to_string()]);
        }
        let mut here = 0;
        for _ in 0..times(2) {
            let mut wire = nodes[here].wire();
            for (twin, chance) in &mut twins {
                (0..50).for_each(|_| twin.step(&mut wire, chance));
            }
            let before: Vec<_> =
                keys_in(&nodes[here], slot).into_iter().map(|key| (nodes[here].digest(&key), key)).collect();
            assert!(before.len() >= twins.len() + 2, "{} keys", before.len());
            move_slot(&nodes[here], &nodes[1 - here], slot);
            here = 1 - here;
            for (digest, key) in &before {
                assert_eq!(nodes[here].digest(key), *digest, "{key}");
            }
            wait("the source to let go", || keys_in(&nodes[1 - here], slot).is_empty());
            let mut wire = nodes[here].wire();
            for (twin, chance) in &mut twins {
                (0..50).for_each(|_| twin.step(&mut wire, chance));
                twin.compare(&mut wire);
            }
        }
        nodes.iter_mut().for_each(|node| node.check("a migration"));
    });
}

/// A client that follows redirections and repeats what it had no answer to, by its token.
#[test]
fn moving_slot_loses_and_repeats_no_item() {
    on_every_server(|maker| {
        if maker == Maker::Redis {
            // There a key moves while everybody waits: nothing comes meanwhile.
            return;
        }
        let mut nodes = cluster(maker, "");
        let slot = nodes[0].wire().say("CLUSTER KEYSLOT {b}").number();
        let mut wires = [nodes[0].wire(), nodes[1].wire()];
        // Of 100,000 new items at most, one is taken for an old one in one run of 10,000.
        wires[0].ok("EB.RESERVE {b}:f scalable FPR 1e-9");
        wires[0].call(&["EB.ADDHASHES", "{b}:f", "", "TOKEN", "client", "0"]);
        let (mut here, mut sent) = (0, 0u64);
        begin_to_migrate_slots(&nodes[0], &nodes[1], slot);
        // Some after the move, too.
        let mut after = 0;
        while after < 200 {
            sent += 1;
            let (item, sequence) = (format!("item-{sent}"), sent.to_string());
            loop {
                let command = ["EB.INSERT", "{b}:f", "TOKEN", "client", &sequence, "ITEMS", &item, &item];
                let reply = wires[here].call(&command);
                match &reply {
                    Reply::Array(_) => {
                        assert_eq!(reply.yeses(), [true, false], "{item}");
                        break;
                    }
                    Reply::Error(error) if error.starts_with("MOVED") => here = 1 - here,
                    Reply::Error(error) if error.starts_with("TRYAGAIN") || error.starts_with("CLUSTERDOWN") => {}
                    other => panic!("{other:?}"),
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            after += usize::from(here == 1);
            assert!(sent < 100_000, "the slot does not move");
        }
        let info = wires[1].say("EB.INFO {b}:f");
        let counted = ["observed", "distinct"].map(|field| info.field(field).map(Reply::number));
        assert_eq!(counted, [Some(2 * sent as i64), Some(sent as i64)]);
        nodes.iter_mut().for_each(|node| node.check("a migration under way"));
    });
}

/// MIGRATE is a RESTORE like any other: a node that may not have so large a filter refuses it, and the source keeps it.
/// Valkey's own migration is obeyed, as a replica obeys.
#[test]
fn a_node_with_a_smaller_limit_refuses_what_clients_send_and_loses_nothing() {
    on_every_server(|maker| {
        let mut nodes = cluster(maker, "max-filter-bytes 64kb");
        let slot = nodes[0].wire().say("CLUSTER KEYSLOT {b}").number();
        let mut wire = nodes[0].wire();
        wire.ok("EB.RESERVE {b}:large bloom MEMORY 1mb EXPECT 100000");
        wire.ok("BF.RESERVE {b}:bf 0.01 100000");
        for number in 0..1000 {
            wire.call(&["EB.ADD", "{b}:large", &number.to_string()]);
            wire.call(&["BF.ADD", "{b}:bf", &number.to_string()]);
        }
        let keys = ["{b}:large", "{b}:bf"];
        let before = keys.map(|key| nodes[0].digest(key));
        if maker == Maker::Redis {
            let refused = migrate(&nodes[0], &nodes[1], slot).expect_err("beyond the limit");
            assert!(refused.contains("Target instance replied with error"), "{refused}");
            assert_eq!(keys.map(|key| nodes[0].digest(key)), before, "the source keeps it");
            assert!(nodes[1].log().contains("max-filter-bytes"), "the log of the target says why");
            // The remedy, and once more.
            nodes[1].wire().ok("CONFIG SET everbloom.max-filter-bytes 512mb");
        }
        move_slot(&nodes[0], &nodes[1], slot);
        assert_eq!(keys.map(|key| nodes[1].digest(key)), before);
        nodes.iter_mut().for_each(|node| node.check("a smaller limit"));
    });
}

/// What WAIT confirmed survives the loss of the primary; what it did not confirm is lost with a link that was frozen,
/// which shows that the trial could fail.
#[test]
fn wait_confirmed_items_survive_failover() {
    on_every_server(|maker| {
        for round in 0..times(2) {
            let mut primary = Start::new(maker).start();
            let link = Link::to(primary.port);
            let behind = format!("replicaof 127.0.0.1 {}", link.port());
            let mut replica = Start::new(maker).with(&[&behind]).start();
            primary.wait_for(&replica);
            let mut wire = primary.wire();
            wire.ok("EB.RESERVE eb scalable FPR 0.01%");
            wire.ok("BF.RESERVE bf 0.0001 1000");
            let items = |name: &str| (0..200).map(|item| format!("{round}:{name}:{item}")).collect::<Vec<_>>();
            let (confirmed, unconfirmed) = (items("confirmed"), items("unconfirmed"));
            let add = |wire: &mut Wire, items: &[String]| {
                for command in ["EB.MADD eb", "BF.MADD bf"] {
                    assert!(!wire.say(&format!("{command} {}", items.join(" "))).is_error());
                }
            };
            add(&mut wire, &confirmed);
            assert_eq!(wire.say("WAIT 1 60000").number(), 1, "the replica confirms");
            link.freeze();
            add(&mut wire, &unconfirmed);
            assert_eq!(wire.say("WAIT 1 100").number(), 0, "nobody can confirm");
            primary.kill();
            drop(link);
            let mut promoted = replica.wire();
            promoted.ok("REPLICAOF NO ONE");
            let kept = |wire: &mut Wire, items: &[String]| {
                ["EB.MEXISTS eb", "BF.MEXISTS bf"].map(|command| {
                    let found = wire.say(&format!("{command} {}", items.join(" "))).yeses();
                    found.into_iter().filter(|found| *found).count()
                })
            };
            assert_eq!(kept(&mut promoted, &confirmed), [200, 200], "what was confirmed is there");
            let left = kept(&mut promoted, &unconfirmed);
            // False positives apart, of which there is one in ten thousand.
            assert!(left.iter().all(|left| *left < 20), "{left:?} of 200 came through a frozen link");
            replica.check("a promotion");
        }
    });
}
