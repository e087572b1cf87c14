//! Filters on servers are the library's: same verdicts, same bytes.

#[path = "../../everbloom-redis/tests/common/mod.rs"]
mod common;
#[path = "equal/cut_off.rs"]
mod cut_off;

use common::{Chance, Cluster, Cutter, Server, is_soak, kinds, on_every_server, seed, share, small_spec, times};
use everbloom::{AnyFilter, Goal, Hashing, Importance, Importances, KeyHash, Plan, Verdict, Window, planning};
use everbloom_all::KINDS;
use everbloom_redis_client::{Error, Filter, Forgotten, Options, Writer};
use std::time::Duration;

fn options(urls: String) -> Options {
    let mut options = Options::new(urls);
    options.patience = Duration::from_secs(30);
    options
}

fn url(port: u16) -> Options {
    options(format!("redis://127.0.0.1:{port}"))
}

/// A batch of a stream with repeats, with an importance for each key.
fn batch(hashing: &Hashing, chance: &mut Chance, universe: u64) -> (Vec<KeyHash>, Vec<Importance>) {
    let count = 1 + chance.below(700);
    let keys: Vec<u64> = (0..count).map(|_| chance.below(universe)).collect();
    let importance = |key: &u64| Importance::new((key % 50) as u32, 50).expect("of 50");
    (keys.iter().map(|key| hashing.hash(&key.to_le_bytes())).collect(), keys.iter().map(importance).collect())
}

fn observed(filter: &mut AnyFilter, hashes: &[KeyHash], importances: Importances<'_>) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Distinct; hashes.len()];
    filter.make_room(hashes).expect("memory");
    filter.observe_hashes(hashes, importances, &mut verdicts).expect("as many");
    verdicts
}

/// Both judge the same stream.
fn compare(writer: &mut Writer, twin: &mut AnyFilter, chance: &mut Chance, batches: u64) {
    for _ in 0..batches {
        let (hashes, weights) = batch(twin.hashing(), chance, 4000);
        let importances = if chance.one_in(2) { Importances::Each(&weights) } else { Importances::default() };
        let mut verdicts = vec![Verdict::Duplicate; hashes.len()];
        writer.observe(&hashes, importances, &mut verdicts).expect("servers");
        assert!(verdicts == observed(twin, &hashes, importances), "{}: verdicts differ", twin.spec());
    }
}

fn plan(spec: &str) -> Plan {
    let goal = Goal::new().memory_bits(1 << 18).expected_items(4000).fpr(0.1).hashing(Hashing::seeded(3));
    goal.plan_among(KINDS, spec).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

fn in_shards(kind: &everbloom::kind::Kind, shards: u32) -> String {
    let spec = small_spec(kind);
    let sign = if spec.contains(':') { ',' } else { ':' };
    format!("{spec}{sign}shards={shards}")
}

#[test]
fn every_kind_judges_as_the_library_does_and_is_the_same_when_saved() {
    on_every_server(|maker| {
        let mut cluster = Cluster::start(maker, 3, false);
        let options = options(cluster.urls());
        for (number, kind) in kinds().into_iter().filter(|kind| kind.can.shard).enumerate() {
            let plan = plan(&in_shards(kind, 7));
            if plan.hashing.seed().is_none() {
                let refused = Filter::create(&options, kind.name, &plan, None).err().map(|error| error.to_string());
                assert!(refused.is_some_and(|text| text.contains("cannot be split")), "{}", kind.name);
                continue;
            }
            let mut twin = plan.build().expect("memory");
            let filter = Filter::create(&options, kind.name, &plan, None).expect("a filter");
            let mut writer = Writer::new(filter, "one").expect("a client");
            let mut chance = Chance(seed() + number as u64);
            compare(&mut writer, &mut twin, &mut chance, times(4));
            let saved = writer.filter().save().expect("shards");
            assert!(saved.to_bytes() == twin.to_bytes(), "{}: the bytes differ", kind.name);
            assert_eq!(writer.filter().status().expect("a status"), twin.status(), "{}", kind.name);
            // From a file into another filter, which goes on the same.
            let name = format!("{}-loaded", kind.name);
            let loaded = Filter::load(&options, &name, saved, None, false).expect("loaded");
            let mut writer = Writer::new(loaded, "two").expect("a client");
            compare(&mut writer, &mut twin, &mut chance, 1);
            let saved = writer.filter().save().expect("shards");
            assert!(saved.to_bytes() == twin.to_bytes(), "{}: the bytes differ", kind.name);
            let (hashes, _) = batch(twin.hashing(), &mut chance, 8000);
            let mut found = vec![false; hashes.len()];
            writer.filter().contains(&hashes, &mut found).expect("answers");
            let expected: Vec<bool> = hashes.iter().map(|hash| twin.contains_hash(*hash)).collect();
            assert_eq!(found, expected, "{}", kind.name);
            Filter::delete_named(&options, &name).expect("deleted");
            assert!(matches!(Filter::open(&options, &name), Err(Error::NotFound(_))));
        }
        cluster.check("filters of every kind");
    });
}

#[test]
fn windows_of_time_judge_as_the_librarys_do_wherever_they_turn() {
    on_every_server(|maker| {
        let mut cluster = Cluster::start(maker, 3, false);
        // So long that no clock turns it meanwhile.
        let long = Duration::from_secs(10_000 * 365 * 86_400);
        let spec = planning::windowed_in_shards(&Window::Time(long), Some(4000), true, 7).expect("a spec");
        let plan =
            Goal::new().fpr(0.05).hashing(Hashing::seeded(3)).plan_among(KINDS, &spec.to_string()).expect("a plan");
        let mut twin = plan.build().expect("memory");
        let filter = Filter::create(&options(cluster.urls()), "recent", &plan, Some(long)).expect("a filter");
        let (window, planned) = filter.window().expect("a window");
        // Each shard's part is rounded up.
        assert!(window >= long && (4000..=4007).contains(&planned), "{window:?} {planned}");
        let mut writer = Writer::new(filter, "one").expect("a client");
        let mut chance = Chance(seed() + 70);
        for _ in 0..times(20) {
            compare(&mut writer, &mut twin, &mut chance, 2);
            let generations = 1 + chance.below(5);
            for shard in 0..7 {
                let key = everbloom_redis_client::shard_key("recent", shard, 7);
                let words = ["EB.ADVANCE", &key, &generations.to_string()];
                let turned = cluster.nodes.iter().filter(|node| !node.wire().call(&words).is_error()).count();
                assert_eq!(turned, 1, "{key}");
            }
            (0..generations).for_each(|_| twin.advance().expect("a window"));
        }
        let saved = writer.filter().save().expect("shards");
        assert!(saved.to_bytes() == twin.to_bytes(), "the bytes differ");
        assert!(!writer.filter().watch().is_broken_by(&writer.filter().sampled_status().expect("a status")));
        // A file does not say how long its window is.
        let loaded = |window| Filter::load(&options(cluster.urls()), "again", saved.clone(), window, false);
        assert!(matches!(loaded(None), Err(Error::Usage(_))));
        assert_eq!(loaded(Some(long)).expect("loaded").window(), Some((window, planned)));
        let other = Filter::open_or_create(&options(cluster.urls()), "recent", &plan, Some(long / 2));
        assert!(matches!(&other, Err(Error::Exists(text)) if text.contains("generation every")));
        cluster.check("windows");
    });
}

#[test]
fn a_file_without_shards_and_a_single_server_work_the_same() {
    on_every_server(|maker| {
        let mut server = Server::new(maker);
        let mut twin = plan("ranked").build().expect("memory");
        observed(&mut twin, &[KeyHash::from(7u128)], Importances::default());
        let filter = Filter::load(&url(server.port), "plain", twin.clone(), None, false).expect("loaded");
        assert!(!filter.is_clustered());
        let mut writer = Writer::new(filter, "one").expect("a client");
        compare(&mut writer, &mut twin, &mut Chance(seed()), 5);
        assert!(writer.filter().save().expect("a shard").to_bytes() == twin.to_bytes());
        let again = Filter::load(&url(server.port), "plain", twin.clone(), None, false);
        assert!(matches!(again, Err(Error::Exists(_))));
        Filter::load(&url(server.port), "plain", twin.clone(), None, true).expect("replaced");
        let mut opened = Filter::open(&url(server.port), "plain").expect("it is there");
        assert!(opened.save().expect("a shard").to_bytes() == twin.to_bytes());
        server.check("a file without shards");
    });
}

#[test]
fn simultaneous_creation_makes_one_filter() {
    on_every_server(|maker| {
        let cluster = Cluster::start(maker, 2, false);
        // It has no false positives, so that each key is new to one client.
        let plan = plan("exact:shards=16");
        let make = |name: &str| Filter::open_or_create(&options(cluster.urls()), name, &plan, None);
        for round in 0..times(5) {
            let name = format!("clicks{round}");
            let new: u64 = std::thread::scope(|scope| {
                let client = |number: u64| {
                    let (make, name) = (&make, &name);
                    scope.spawn(move || {
                        let filter = make(name).expect("a filter");
                        let hashing = *filter.hashing();
                        let mut writer = Writer::new(filter, &format!("client {number}")).expect("a client");
                        let hashes: Vec<_> = (0..500u64).map(|key| hashing.hash(&key.to_le_bytes())).collect();
                        let mut verdicts = vec![Verdict::Duplicate; hashes.len()];
                        writer.observe(&hashes, Importances::default(), &mut verdicts).expect("servers");
                        verdicts.iter().filter(|verdict| verdict.is_distinct()).count() as u64
                    })
                };
                let clients: Vec<_> = (0..6).map(client).collect();
                clients.into_iter().map(|client| client.join().expect("no panic")).sum()
            });
            assert_eq!(new, 500);
        }
        let other = Goal::new().memory_bits(1 << 17).fpr(0.1).plan_among(KINDS, "bloom:shards=8").expect("a plan");
        let other = Filter::open_or_create(&options(cluster.urls()), "clicks0", &other, None);
        assert!(matches!(other, Err(Error::Exists(_))));
    });
}

#[test]
fn connections_cut_anywhere_lose_nothing_and_count_nothing_twice() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let plan = plan("stable:shards=4");
        let mut twin = plan.build().expect("memory");
        let cutter = Cutter::to(server.port, seed() + 5, 30_000);
        let filter = Filter::create(&url(server.port), "cut", &plan, None).expect("a filter");
        Writer::new(filter, "one").map(drop).expect("registered");
        // With a way that is cut, from the first word on.
        let filter = loop {
            match Filter::open(&url(cutter.port()), "cut") {
                Ok(filter) => break filter,
                Err(error) => assert!(matches!(error, Error::Unreachable(_)), "{error}"),
            }
        };
        let mut writer = Writer::resume(filter, "one", &[Default::default(); 4]).expect("a client");
        let mut chance = Chance(seed() + 9);
        while cutter.cuts() < share(1000).max(100) {
            compare(&mut writer, &mut twin, &mut chance, 5);
        }
        eprintln!("{} cuts", cutter.cuts());
        let mut direct = Filter::open(&url(server.port), "cut").expect("a filter");
        assert!(direct.save().expect("shards").to_bytes() == twin.to_bytes(), "the bytes differ");
        assert_eq!(writer.forgotten(), Forgotten::default());
    });
}

#[test]
fn wrong_password_error_hides_the_password() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        server.wire().ok("ACL SETUSER guest on >secret ~* +@all");
        let wrong = options(format!("redis://guest:wrong-secret@127.0.0.1:{}", server.port));
        let error = Filter::open(&wrong, "busy").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("refuses") && !error.contains("secret"), "{error}");
    });
}

/// A primary whose replica hears of it through a link that can be frozen.
fn pair(maker: common::Maker) -> (Server, Server, common::Link) {
    let primary = Server::new(maker);
    let link = common::Link::to(primary.port);
    let line = format!("replicaof 127.0.0.1 {}", link.port());
    let replica = common::Start::new(maker).with(&[&line]).start();
    primary.wait_for(&replica);
    (primary, replica, link)
}

#[test]
fn failover_keeps_what_a_replica_confirmed() {
    on_every_server(|maker| {
        for round in 0..share(20) {
            let (mut primary, replica, link) = pair(maker);
            let mut options = options(format!("redis://127.0.0.1:{},redis://127.0.0.1:{}", primary.port, replica.port));
            options.replicas = 1;
            let plan = plan("stable:shards=4");
            let mut twin = plan.build().expect("memory");
            let filter = Filter::create(&options, "kept", &plan, None).expect("a filter");
            let mut writer = Writer::new(filter, "one").expect("a client");
            let mut chance = Chance(seed() + 40 + round);
            compare(&mut writer, &mut twin, &mut chance, 5);
            // From here on nothing is confirmed, and a batch waits until the replica is the primary.
            link.freeze();
            let (hashes, _) = batch(twin.hashing(), &mut chance, 4000);
            let mut verdicts = vec![Verdict::Duplicate; hashes.len()];
            let applied = |server: &Server| server.info("everbloom", "observed").parse::<u64>().expect("a count");
            let before = applied(&primary);
            std::thread::scope(|scope| {
                let sent = scope.spawn(|| writer.observe(&hashes, Importances::default(), &mut verdicts));
                common::wait("the primary to have the batch", || applied(&primary) > before);
                primary.kill();
                replica.wire().ok("REPLICAOF NO ONE");
                // A server without a replica confirms nothing, so another one joins.
                let third = common::Start::new(maker).replica_of(&replica).start();
                sent.join().expect("no panic").expect("a failover in time");
                drop(third);
            });
            assert!(verdicts == observed(&mut twin, &hashes, Importances::default()), "verdicts differ");
            assert_eq!(writer.forgotten(), Forgotten::default());
            let mut kept = Filter::open(&options, "kept").expect("a filter");
            assert!(kept.save().expect("shards").to_bytes() == twin.to_bytes(), "the bytes differ");
            rejoin(&mut primary, &replica);
        }
        eprintln!("{} primaries were killed, and nothing that a replica had confirmed was lost", share(20));
    });
}

/// A primary that was killed comes back as a replica of its replica, and is the same.
fn rejoin(old: &mut Server, new: &Server) {
    old.start_again();
    old.wire().ok(&format!("REPLICAOF 127.0.0.1 {}", new.port));
    new.wait_for(old);
    let keys = new.wire().call(&["KEYS", "*"]);
    assert!(keys.items().len() > 3, "{keys:?}");
    for key in keys.items().iter().map(common::Reply::text) {
        assert_eq!(old.digest(&key), new.digest(&key), "{key}");
    }
}

#[test]
fn failover_counts_what_no_replica_confirmed() {
    on_every_server(|maker| {
        let mut forgotten = 0;
        for round in 0..share(20) {
            let (mut primary, replica, link) = pair(maker);
            let options = options(format!("redis://127.0.0.1:{},redis://127.0.0.1:{}", primary.port, replica.port));
            let plan = plan("exact:shards=3");
            let mut twin = plan.build().expect("memory");
            let filter = Filter::create(&options, "lost", &plan, None).expect("a filter");
            let mut writer = Writer::new(filter, "one").expect("a client");
            let mut chance = Chance(seed() + 50 + round);
            compare(&mut writer, &mut twin, &mut chance, 5);
            primary.wait_for(&replica);
            let mut at_replica = twin.clone();
            link.freeze();
            compare(&mut writer, &mut twin, &mut chance, 5);
            let items = |filter: &AnyFilter| filter.status().estimated_items.expect("a count");
            let lost = items(&twin) - items(&at_replica);
            primary.kill();
            replica.wire().ok("REPLICAOF NO ONE");
            // It goes on as if the lost batches had never been, and says how many keys they had.
            compare(&mut writer, &mut at_replica, &mut chance, 3);
            let known = writer.forgotten();
            assert!(known.keys as f64 == lost && lost > 0.0 && !known.or_more, "{known:?} of {lost}");
            forgotten += known.keys;
            rejoin(&mut primary, &replica);
        }
        eprintln!("{} primaries were killed without WAIT, and lost {forgotten} keys, all of them told", share(20));
    });
}

#[test]
fn slots_that_move_under_load_change_nothing() {
    on_every_server(|maker| {
        let mut cluster = Cluster::start(maker, 2, true);
        let plan = plan("ranked:shards=8");
        let mut twin = plan.build().expect("memory");
        let mut options = options(cluster.urls());
        options.replicas = 1;
        let filter = Filter::create(&options, "moving", &plan, None).expect("a filter");
        let mut writer = Writer::new(filter, "one").expect("a client");
        let mut chance = Chance(seed() + 60);
        // The slots of the shards that the first node has, and a few around them.
        let shards = (0..4).map(|shard| {
            everbloom_redis_client::slot(everbloom_redis_client::shard_key("moving", shard, 8).as_bytes())
        });
        let around = |slot: u16| slot.saturating_sub(1)..(slot + 2).min(8192);
        let slots: Vec<_> = if is_soak() { std::iter::once(0..8192).collect() } else { shards.map(around).collect() };
        std::thread::scope(|scope| {
            let cluster = &cluster;
            let moving = scope.spawn(move || slots.into_iter().for_each(|slots| cluster.move_slots(0, 1, slots)));
            while !moving.is_finished() {
                compare(&mut writer, &mut twin, &mut chance, 1);
            }
            compare(&mut writer, &mut twin, &mut chance, 3);
        });
        let info = writer.filter().info().expect("nodes");
        assert_eq!(info.nodes.iter().map(|(_, shards)| *shards).max(), Some(8), "{:?}", info.nodes);
        assert!(writer.filter().save().expect("shards").to_bytes() == twin.to_bytes(), "the bytes differ");
        cluster.check("slots that moved");
    });
}
