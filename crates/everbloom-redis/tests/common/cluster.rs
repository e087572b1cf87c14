//! Clusters that a test starts.

use super::server::{Maker, Server, Start, free_port};
use super::wire::Reply;
use std::time::{Duration, Instant};

/// Primaries with equal parts of the slots, each with a replica or without.
pub struct Cluster {
    pub nodes: Vec<Server>,
    pub primaries: usize,
}

impl Cluster {
    pub fn start(maker: Maker, primaries: usize, has_replicas: bool) -> Cluster {
        let count = if has_replicas { 2 * primaries } else { primaries };
        let node = |_| {
            // A free port and ten thousand may be no port at all.
            let bus = format!("cluster-port {}", free_port());
            let settings =
                ["cluster-enabled yes", "cluster-node-timeout 5000", "cluster-replica-validity-factor 0", &bus];
            Start::new(maker).with(&settings).start()
        };
        let cluster = Cluster { nodes: (0..count).map(node).collect(), primaries };
        cluster.form();
        cluster
    }

    fn form(&self) {
        for (at, node) in self.nodes.iter().enumerate() {
            let mut wire = node.wire();
            wire.ok(&format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1));
            if at < self.primaries {
                let start = |part: usize| part * 16_384 / self.primaries;
                wire.ok(&format!("CLUSTER ADDSLOTSRANGE {} {}", start(at), start(at + 1) - 1));
            }
            if at > 0 {
                let first = &self.nodes[0];
                let bus = first.wire().say("CONFIG GET cluster-port").items()[1].text();
                wire.ok(&format!("CLUSTER MEET 127.0.0.1 {} {bus}", first.port));
            }
        }
        let knows = |node: &Server| {
            let text = node.wire().say("CLUSTER INFO").text();
            text.contains(&format!("cluster_known_nodes:{}", self.nodes.len()))
        };
        wait("all nodes to know each other", || self.nodes.iter().all(knows));
        for (at, node) in self.nodes.iter().enumerate().skip(self.primaries) {
            let primary = self.nodes[at - self.primaries].wire().say("CLUSTER MYID").text();
            wait("a replica", || {
                node.wire().say(&format!("CLUSTER REPLICATE {primary}")) == Reply::Simple("OK".into())
            });
        }
        self.wait_until_whole();
    }

    /// Waits until every node that lives agrees that all slots are served, and replicas have their primaries' state.
    pub fn wait_until_whole(&self) {
        let is_whole = |node: &Server| node.wire().say("CLUSTER INFO").text().contains("cluster_state:ok");
        wait("a cluster", || self.nodes.iter().all(is_whole));
        let linked = |node: &Server| {
            node.info("replication", "role") != "slave" || node.info("replication", "master_link_status") == "up"
        };
        wait("links to primaries", || self.nodes.iter().all(linked));
    }

    /// Addresses for clients: those of two nodes, which know the others.
    pub fn urls(&self) -> String {
        self.nodes.iter().take(2).map(|node| format!("redis://127.0.0.1:{}", node.port)).collect::<Vec<_>>().join(",")
    }

    /// Moves all slots of a range from one primary to another: key by key on Redis, as a stream of commands on Valkey.
    pub fn move_slots(&self, from: usize, to: usize, slots: std::ops::Range<u16>) {
        let (from, to) = (&self.nodes[from], &self.nodes[to]);
        let id = |node: &Server| node.wire().say("CLUSTER MYID").text();
        let (from_id, to_id) = (id(from), id(to));
        if from.maker() == Maker::Valkey {
            let (first, last) = (slots.start, slots.end - 1);
            from.wire().ok(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE {first} {last} NODE {to_id}"));
            wait("a migration", || {
                let shown = from.wire().say("CLUSTER GETSLOTMIGRATIONS");
                let state =
                    shown.items().first().and_then(|job| job.field("state")).map(Reply::text).unwrap_or_default();
                assert!(!["failed", "canceled"].contains(&state.as_str()), "{shown:?}");
                state == "success"
            });
            return;
        }
        let (mut source, mut target) = (from.wire(), to.wire());
        for slot in slots {
            target.ok(&format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"));
            source.ok(&format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"));
            let keys = source.say(&format!("CLUSTER GETKEYSINSLOT {slot} 1000"));
            for key in keys.items().iter().map(Reply::text) {
                let reply = source.call(&["MIGRATE", "127.0.0.1", &to.port.to_string(), &key, "0", "60000"]);
                assert!(!reply.is_error(), "{reply:?}");
            }
            target.ok(&format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
            // Who has given the last slot away may be a replica by now.
            let given = source.say(&format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
            assert!(!given.is_error() || given.text().contains("only with masters"), "{given:?}");
        }
    }

    pub fn check(&mut self, after: &str) {
        self.nodes.iter_mut().for_each(|node| node.check(after));
    }
}

pub fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}: more than a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}
