//! Filters that are loaded, saved, replaced, deleted and asked for through replicas.

#[path = "../../everbloom-redis/tests/common/mod.rs"]
mod common;

use common::{Cluster, Server, on_every_server};
use everbloom::{AnyFilter, Goal, Hashing, Importances, Plan, Verdict};
use everbloom_all::KINDS;
use everbloom_redis_client::{Error, Filter, Options, Writer, record_key, shard_key};
use std::time::Duration;

fn at(server: &Server) -> Options {
    options(format!("redis://127.0.0.1:{}", server.port))
}

fn options(urls: String) -> Options {
    let mut options = Options::new(urls);
    options.patience = Duration::from_secs(30);
    options
}

fn plan(spec: &str, items: u64) -> Plan {
    Goal::new().expected_items(items).fpr(0.01).hashing(Hashing::seeded(3)).plan_among(KINDS, spec).expect("a plan")
}

/// A filter with so many keys.
fn filled(spec: &str, promised: u64, keys: u64) -> AnyFilter {
    let mut filter = plan(spec, promised).build().expect("memory");
    filter.extend(0..keys);
    filter
}

fn keys(server: &Server, pattern: &str) -> Vec<String> {
    server.wire().call(&["KEYS", pattern]).items().iter().map(common::Reply::text).collect()
}

fn told<T>(outcome: Result<T, Error>) -> String {
    outcome.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn loaded_items_count_towards_the_promise() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        for (name, spec) in [("one", "bloom"), ("many", "blocked:shards=8"), ("grows", "scalable:shards=4")] {
            let mut file = filled(spec, 2000, 1500);
            // Repeats are arrivals, and no keys.
            file.extend(0..1500u64);
            let mut loaded = Filter::load(&at(&server), name, file.clone(), None, false).expect("loaded");
            let info = loaded.info().expect("counts");
            assert_eq!(info.observed, file.status().arrivals, "{name}");
            let estimated = file.status().estimated_items.expect("not full");
            assert!(info.distinct as f64 <= estimated && estimated - (info.distinct as f64) < 8.0, "{name} {info:?}");
            // As many as promised are kept, whatever the estimate says; more are not.
            let mut watch = loaded.watch();
            assert!(!watch.note_total(info.distinct), "{name}: {info:?}");
            let full =
                Filter::load(&at(&server), name, filled(spec, 2000, 2000), None, true).and_then(|mut full| full.info());
            assert!(!watch.note_total(full.expect("counts").distinct), "{name}");
            let mut broken = Filter::load(&at(&server), name, filled(spec, 2000, 4000), None, true).expect("loaded");
            let counted = broken.info().expect("counts").distinct;
            assert!(watch.note_total(counted) || watch.limit() == u64::MAX, "{name}: {counted}");
            assert_eq!(broken.status().expect("a status"), filled(spec, 2000, 4000).status(), "{name}");
        }
    });
}

#[test]
fn an_address_that_asks_for_another_protocol_is_told_the_same() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let (filter, named) = (
            filled("bloom:shards=3", 2000, 500),
            options(format!("redis://127.0.0.1:{}/?protocol=resp3", server.port)),
        );
        let mut loaded = Filter::load(&named, "three", filter.clone(), None, false).expect("loaded");
        assert_eq!(loaded.info().expect("counts").observed, 500);
        assert_eq!(loaded.status().expect("a status"), filter.status());
    });
}

#[test]
fn a_load_that_is_refused_leaves_everything_as_it_was() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let small = filled("bloom:shards=4", 1000, 900);
        Filter::load(&at(&server), "kept", small.clone(), None, false).expect("loaded");
        server.wire().ok("CONFIG SET everbloom.max-filter-bytes 4096");
        let large = filled("bloom:shards=4", 100_000, 10);
        let refused = told(Filter::load(&at(&server), "kept", large.clone(), None, true));
        assert!(refused.contains("max-filter-bytes"), "{refused}");
        let mut kept = Filter::open(&at(&server), "kept").expect("it is there");
        assert!(kept.save().expect("shards").to_bytes() == small.to_bytes(), "the bytes differ");
        // Nothing is left of what was refused, under a new name either; nor of a filter that cannot be made.
        let refused = told(Filter::load(&at(&server), "new", large, None, false));
        assert!(refused.contains("max-filter-bytes"), "{refused}");
        let refused = told(Filter::create(&at(&server), "new", &plan("bloom:shards=4", 100_000), None));
        assert!(refused.contains("max-filter-bytes") && refused.contains("shards or more"), "{refused}");
        // Who may not ask what is allowed hears of it from the server.
        server.wire().ok("ACL SETUSER guest on >secret ~* +@all -config");
        let guest = options(format!("redis://guest:secret@127.0.0.1:{}", server.port));
        let refused = told(Filter::create(&guest, "new", &plan("bloom:shards=4", 100_000), None));
        assert!(refused.contains("beyond max-filter-bytes"), "{refused}");
        assert_eq!(keys(&server, "*").len(), 5, "{:?}", keys(&server, "*"));
        // With as many shards or others, it takes the place when it can.
        server.wire().ok("CONFIG SET everbloom.max-filter-bytes 536870912");
        for shards in [7, 2] {
            let other = filled(&format!("bloom:shards={shards}"), 1000, 20);
            let mut replaced = Filter::load(&at(&server), "kept", other.clone(), None, true).expect("replaced");
            assert!(replaced.save().expect("shards").to_bytes() == other.to_bytes(), "the bytes differ");
            assert_eq!(keys(&server, "*").len(), shards + 1, "{:?}", keys(&server, "*"));
            // Nothing of it goes by itself.
            assert!(
                keys(&server, "*").iter().all(|key| server.wire().call(&["TTL", key]) == common::Reply::Integer(-1))
            );
        }
    });
}

#[test]
fn a_record_that_nobody_can_read_is_deleted_with_its_shards() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let (plan, key) = (plan("bloom:shards=5", 1000), record_key("hurt"));
        for damage in ["format=1 shards=5 routing_seed=0\nnothing", "format=1 shards=5 routing_seed=0 spec=blom"] {
            Filter::create(&at(&server), "hurt", &plan, None).expect("a filter");
            server.wire().call(&["HSET", &key, "record", damage]);
            let open = told(Filter::open(&at(&server), "hurt"));
            assert!(open.contains("damaged") && open.contains("redis delete hurt"), "{open}");
            Filter::delete_named(&at(&server), "hurt").expect("deleted");
            assert_eq!(keys(&server, "*"), Vec::<String>::new());
        }
        Filter::create(&at(&server), "hurt", &plan, None).expect("a filter");
        server.wire().call(&["HSET", &key, "record", "what?"]);
        let by_hand = told(Filter::delete_named(&at(&server), "hurt"));
        assert!(by_hand.contains("{hurt.*}"), "{by_hand}");
        server.wire().call(&["HSET", &key, "record", "format=2 shards=5 routing_seed=0"]);
        let later = told(Filter::delete_named(&at(&server), "hurt"));
        assert!(later.contains("upgrade"), "{later}");
        // A file takes its place only if that can be cleared.
        let refused = told(Filter::load(&at(&server), "hurt", filled("bloom", 100, 5), None, true));
        assert!(refused.contains("upgrade"), "{refused}");
        assert_eq!(keys(&server, "*:load-*"), Vec::<String>::new());
        server.wire().call(&["SET", "{text}", "something"]);
        assert!(told(Filter::open(&at(&server), "text")).contains("something else"));
    });
}

#[test]
fn a_missing_shard_is_named() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let mut filter =
            Filter::load(&at(&server), "holed", filled("bloom:shards=5", 1000, 9), None, false).expect("loaded");
        let lost = shard_key("holed", 3, 5);
        server.wire().call(&["DEL", &lost]);
        let hashes: Vec<_> = (0..100u64).map(|key| filter.hashing().hash(&key.to_le_bytes())).collect();
        let asked = [
            told(filter.info()),
            told(filter.status()),
            told(filter.save()),
            told(filter.contains(&hashes, &mut [false; 100])),
        ];
        for text in asked {
            assert!(text.contains(&lost) && text.contains("redis delete holed"), "{text}");
        }
        Filter::delete_named(&at(&server), "holed").expect("deleted");
        assert_eq!(keys(&server, "*"), Vec::<String>::new());
    });
}

/// How often a server was asked whether it has hashes.
fn asked(server: &Server) -> u64 {
    let stats = server.wire().call(&["INFO", "commandstats"]).text();
    let calls =
        stats.split("cmdstat_eb.existshashes:calls=").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

#[test]
fn replicas_answer_whichever_is_named_first_and_while_slots_move() {
    on_every_server(|maker| {
        let primary = Server::new(maker);
        let replica = common::Start::new(maker).replica_of(&primary).start();
        primary.wait_for(&replica);
        let file = filled("bloom:shards=4", 1000, 500);
        let hashes: Vec<_> = (0..1000u64).map(|key| file.hashing().hash(&key.to_le_bytes())).collect();
        let expected: Vec<bool> = hashes.iter().map(|hash| file.contains_hash(*hash)).collect();
        Filter::load(&at(&primary), "read", file.clone(), None, false).expect("loaded");
        primary.wait_for(&replica);
        let url = |server: &Server| format!("redis://127.0.0.1:{}", server.port);
        for urls in [[&primary, &replica], [&replica, &primary]].map(|servers| servers.map(url).join(",")) {
            let mut options = options(urls);
            options.from_replicas = true;
            let before = (asked(&primary), asked(&replica));
            let mut filter = Filter::open(&options, "read").expect("a filter");
            let mut found = vec![false; hashes.len()];
            filter.contains(&hashes, &mut found).expect("answers");
            assert_eq!(found, expected);
            let now = (asked(&primary), asked(&replica));
            assert_eq!(now, (before.0, before.1 + 4));
        }
        // One that is gone is not asked again.
        let mut options = options([&primary, &replica].map(url).join(","));
        options.from_replicas = true;
        let mut filter = Filter::open(&options, "read").expect("a filter");
        assert!(filter.save().expect("shards").to_bytes() == file.to_bytes());
        drop(replica);
        assert_eq!(filter.info().expect("counts").observed, 500);

        let cluster = Cluster::start(maker, 2, true);
        let mut options = self::options(cluster.urls());
        (options.from_replicas, options.replicas) = (true, 1);
        let mut filter = Filter::load(&options, "read", file.clone(), None, false).expect("loaded");
        // A shard of the first node is on its way, and its slot is not: so the node's replica does not have it.
        let (from, to) = (&cluster.nodes[0], &cluster.nodes[1]);
        let (slot, id) = (everbloom_redis_client::slot(shard_key("read", 0, 4).as_bytes()), |node: &Server| {
            node.wire().say("CLUSTER MYID").text()
        });
        to.wire().ok(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from)));
        from.wire().ok(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to)));
        let moved =
            from.wire().call(&["MIGRATE", "127.0.0.1", &to.port.to_string(), &shard_key("read", 0, 4), "0", "60000"]);
        assert!(!moved.is_error(), "{moved:?}");
        from.wait_for(&cluster.nodes[2]);
        let mut found = vec![false; hashes.len()];
        filter.contains(&hashes, &mut found).expect("answers");
        assert_eq!(found, expected);
        assert_eq!(filter.info().expect("counts").observed, 500);
        assert!(filter.save().expect("shards").to_bytes() == file.to_bytes());
    });
}

#[test]
fn replacing_load_yields_to_a_new_filter_of_that_name() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            // One who makes it whenever it is not there, beside one who loads in its place.
            let other = scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = Filter::open_or_create(&at(&server), "fought", &plan("exact:shards=3", 10), None);
                }
            });
            let file = filled("bloom:shards=3", 1000, 500);
            for _ in 0..30 {
                match Filter::load(&at(&server), "fought", file.clone(), None, true) {
                    Ok(mut loaded) => assert!(loaded.save().expect("shards").to_bytes() == file.to_bytes()),
                    Err(error) => assert!(matches!(error, Error::Exists(_)), "{error}"),
                }
                // Whatever it is, it is whole.
                let mut there = Filter::open(&at(&server), "fought").expect("a filter");
                assert_eq!(there.save().expect("shards").spec(), there.spec());
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            other.join().expect("no panic");
        });
        let filter = Filter::open(&at(&server), "fought").expect("a filter");
        let mut writer = Writer::new(filter, "one").expect("a client");
        let hash = [writer.filter_ref().hashing().hash(b"new")];
        writer.observe(&hash, Importances::default(), &mut [Verdict::Distinct]).expect("a verdict");
    });
}
