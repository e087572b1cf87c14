//! Batches that were cut off, clients that come back, servers that forgot: nothing is guessed, nothing lost without a word.

use super::common::{self, Link, Maker, Reply, Server, on_every_server, pass_through};
use super::{options, pair, plan, url};
use everbloom::{Importances, KeyHash, Verdict};
use everbloom_redis_client::{Error, Filter, Forgotten, MOST_KEYS, Options, Session, Writer, shard_key};
use std::time::Duration;

fn impatient(port: u16) -> Options {
    let mut options = url(port);
    options.patience = Duration::from_secs(1);
    options
}

/// Different keys, from a number on.
fn keys(from: u64, count: usize) -> Vec<KeyHash> {
    let hashing = everbloom::Hashing::seeded(3);
    (from..from + count as u64).map(|key| hashing.hash(&key.to_le_bytes())).collect()
}

/// A filter that remembers everything, and a client.
fn exact(server: &Server, port: u16, shards: u32) -> Writer {
    let plan = plan(&format!("exact:shards={shards}"));
    Filter::create(&url(server.port), "all", &plan, None).expect("a filter");
    Writer::new(Filter::open(&impatient(port), "all").expect("a filter"), "one").expect("a client")
}

fn observe(writer: &mut Writer, keys: &[KeyHash]) -> Result<usize, Error> {
    let mut verdicts = vec![Verdict::Duplicate; keys.len()];
    writer.observe(keys, Importances::default(), &mut verdicts)?;
    Ok(verdicts.iter().filter(|verdict| verdict.is_distinct()).count())
}

/// A batch as it is noted before it is sent, and its new keys.
fn noted(writer: &mut Writer, keys: &[KeyHash]) -> (Vec<Session>, usize) {
    writer.stage_batch(keys, Importances::default(), true).expect("a batch");
    let sessions = writer.sessions();
    (sessions, sent(writer, keys.len()).expect("verdicts"))
}

fn sent(writer: &mut Writer, count: usize) -> Result<usize, Error> {
    let mut verdicts = vec![Verdict::Duplicate; count];
    writer.send(&mut verdicts)?;
    Ok(verdicts.iter().filter(|verdict| verdict.is_distinct()).count())
}

/// A run that goes on after one that was killed: it sends what was noted.
fn resumed(port: u16, client: &str, sessions: &[Session], keys: &[KeyHash]) -> Writer {
    let filter = Filter::open(&impatient(port), "all").expect("a filter");
    let mut writer = Writer::resume(filter, client, sessions).expect("a client");
    writer.stage_batch(keys, Importances::default(), false).expect("a batch");
    writer
}

#[test]
fn a_batch_that_comes_again_counts_only_when_a_replica_has_it() {
    on_every_server(|maker| {
        let (primary, replica, link) = pair(maker);
        let mut options = options(format!("redis://127.0.0.1:{},redis://127.0.0.1:{}", primary.port, replica.port));
        (options.replicas, options.patience) = (1, Duration::from_secs(1));
        let filter = Filter::create(&options, "kept", &plan("exact:shards=2"), None).expect("a filter");
        let mut writer = Writer::new(filter, "one").expect("a client");
        let keys = keys(0, 100);
        link.freeze();
        writer.stage_batch(&keys, Importances::default(), true).expect("a batch");
        let sessions = writer.sessions();
        let is_unconfirmed = |sent: Result<usize, Error>| {
            assert!(matches!(&sent, Err(Error::Unreachable(text)) if text.contains("0 of 1 replicas")), "{sent:?}");
        };
        is_unconfirmed(sent(&mut writer, 100));
        assert_eq!(primary.info("everbloom", "observed"), "100");
        is_unconfirmed(sent(&mut writer, 100));
        // Another process, which has not sent anything yet.
        let filter = Filter::open(&options, "kept").expect("a filter");
        let mut resumed = Writer::resume(filter, "one", &sessions).expect("a client");
        resumed.stage_batch(&keys, Importances::default(), false).expect("a batch");
        is_unconfirmed(sent(&mut resumed, 100));
        assert_eq!(primary.info("everbloom", "observed"), "100");
    });
}

#[test]
fn a_long_call_again_gets_all_of_its_answers() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let link = Link::to(server.port);
        let mut writer = exact(&server, link.port(), 2);
        let (long, other) = (keys(0, 3 * MOST_KEYS), keys(1 << 40, 100));
        let call = |writer: &mut Writer, keys: &[KeyHash], bytes: u64| {
            link.limit(bytes);
            let new = observe(writer, keys);
            link.limit(u64::MAX);
            new
        };
        // Cut off in the third batch, again in the same, and with another call in between.
        let bytes = (5 * MOST_KEYS / 2 * 16) as u64;
        assert!(matches!(call(&mut writer, &long, bytes), Err(Error::Unreachable(_))));
        let counted = server.info("everbloom", "observed").parse().expect("a number");
        assert!((2 * MOST_KEYS..3 * MOST_KEYS).contains(&counted), "{counted}");
        assert!(matches!(call(&mut writer, &long, 0), Err(Error::Unreachable(_))));
        assert!(matches!(call(&mut writer, &other, 0), Err(Error::Unreachable(_))));
        assert_eq!(call(&mut writer, &other, u64::MAX), Ok(100));
        assert_eq!(call(&mut writer, &long, u64::MAX), Ok(long.len()));
        assert_eq!(server.info("everbloom", "observed"), (long.len() + 100).to_string());
        // One that ended well is over: the same keys are repeats.
        assert_eq!(call(&mut writer, &long[..MOST_KEYS], u64::MAX), Ok(0));
        // One that goes on otherwise is another, from there on.
        let (one, two) = (keys(1 << 41, 2 * MOST_KEYS), keys(1 << 42, 50));
        let bytes = (3 * MOST_KEYS / 2 * 16) as u64;
        assert!(matches!(call(&mut writer, &one, bytes), Err(Error::Unreachable(_))));
        let mixed = [&one[..MOST_KEYS], &two].concat();
        assert_eq!(call(&mut writer, &mixed, u64::MAX), Ok(mixed.len()));
        assert_eq!(call(&mut writer, &one[MOST_KEYS..], u64::MAX), Ok(0), "it counted first");
    });
}

/// Puts shards back to where they were, as a failover does to a replica that lagged.
fn lagging(server: &Server, shards: u32, meanwhile: impl FnOnce()) {
    let wire = || server.wire();
    let all: Vec<String> = (0..shards).map(|shard| shard_key("all", shard, shards)).collect();
    let dumps: Vec<Vec<u8>> = all.iter().map(|key| wire().say(&format!("DUMP {key}")).into_bytes()).collect();
    meanwhile();
    for (key, dump) in all.iter().zip(dumps) {
        let words: [&[u8]; 5] = [b"RESTORE", key.as_bytes(), b"0", &dump, b"REPLACE"];
        assert_eq!(wire().call(&words).text(), "OK");
    }
}

#[test]
fn a_run_that_ends_after_a_failover_is_gone_on_with() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let mut writer = exact(&server, server.port, 2);
        assert_eq!(observe(&mut writer, &keys(0, 100)), Ok(100));
        lagging(&server, 2, || {
            assert_eq!(observe(&mut writer, &keys(1000, 30)), Ok(30));
            assert_eq!(observe(&mut writer, &keys(2000, 20)), Ok(20));
        });
        let (acknowledged, last) = (writer.acknowledged(16), keys(3000, 40));
        let (sessions, new) = noted(&mut writer, &last);
        let lost = Forgotten { keys: 50, or_more: false };
        assert_eq!((new, writer.forgotten()), (40, lost));
        // Killed before the next note, and started again, twice.
        for _ in 0..2 {
            let mut again = resumed(server.port, "one", &sessions, &last);
            assert_eq!((sent(&mut again, 40), again.forgotten()), (Ok(40), Forgotten { keys: 0, or_more: true }));
            let again = resumed(server.port, "one", &sessions, &last);
            let mut again = again.remembering(Forgotten::default(), &acknowledged);
            assert_eq!((sent(&mut again, 40), again.forgotten()), (Ok(40), lost));
        }
        let mut again = resumed(server.port, "one", &sessions, &last);
        assert_eq!(sent(&mut again, 40), Ok(40));
        assert_eq!(observe(&mut again, &keys(0, 5000)), Ok(5000 - 140));
        // A state from before that is too old.
        let mut old = resumed(server.port, "one", &sessions, &last);
        let told = sent(&mut old, 40);
        assert!(matches!(&told, Err(Error::TokenOrder(2, text)) if text.contains("newest state")), "{told:?}");
    });
}

#[test]
fn a_registration_that_fails_is_made_up_for() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let link = Link::to(server.port);
        let mut writer = exact(&server, link.port(), 1);
        lagging(&server, 1, || {
            assert_eq!(observe(&mut writer, &keys(0, 10)), Ok(10));
            assert_eq!(observe(&mut writer, &keys(10, 10)), Ok(10));
        });
        // The batch passes and is refused; the registration does not.
        link.limit(1);
        let told = observe(&mut writer, &keys(20, 10));
        assert!(matches!(told, Err(Error::Unreachable(_))), "{told:?}");
        link.limit(u64::MAX);
        assert_eq!(observe(&mut writer, &keys(20, 10)), Ok(10));
        assert_eq!(observe(&mut writer, &keys(0, 30)), Ok(20), "the lost ones are new again");
        assert_eq!(writer.forgotten(), Forgotten { keys: 20, or_more: false });
    });
}

#[test]
fn a_client_that_was_pushed_out_goes_on_unless_a_batch_is_in_doubt() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let mut first = exact(&server, server.port, 2);
        let crowd = |round: &str| {
            for number in 0..64 {
                let filter = Filter::open(&url(server.port), "all").expect("a filter");
                Writer::new(filter, &format!("{round} {number}")).map(drop).expect("a client");
            }
        };
        crowd("before it wrote");
        assert_eq!((observe(&mut first, &keys(0, 50)), first.forgotten()), (Ok(50), Forgotten::default()));
        crowd("after");
        let (sessions, new) = noted(&mut first, &keys(50, 50));
        // What it had written may be gone with it.
        assert_eq!((new, first.forgotten()), (50, Forgotten { keys: 0, or_more: true }));
        // Killed before the next note: it finds what became of its batch.
        assert_eq!(sent(&mut resumed(server.port, "one", &sessions, &keys(50, 50)), 50), Ok(50));
        crowd("at last");
        let told = sent(&mut resumed(server.port, "one", &sessions, &keys(50, 50)), 50);
        assert!(matches!(&told, Err(Error::TokenLost(text)) if text.contains("64")), "{told:?}");
        assert_eq!(observe(&mut first, &keys(0, 110)), Ok(10));
    });
}

#[test]
fn clients_that_end_leave_their_places() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let mut idle = exact(&server, server.port, 2);
        assert_eq!(observe(&mut idle, &keys(0, 50)), Ok(50));
        let clients = || {
            let info = server.wire().say(&format!("EB.INFO {}", shard_key("all", 0, 2)));
            info.field("token_clients").map(Reply::number)
        };
        for number in 0..80u64 {
            let filter = Filter::open(&url(server.port), "all").expect("a filter");
            let mut writer = Writer::new(filter, &format!("client {number}")).expect("a client");
            assert_eq!(
                (observe(&mut writer, &keys(100 * number, 100)), clients()),
                (Ok(if number == 0 { 50 } else { 100 }), Some(2))
            );
            writer.release();
        }
        assert_eq!(clients(), Some(1));
        assert_eq!((observe(&mut idle, &keys(0, 60)), idle.forgotten()), (Ok(0), Forgotten::default()));
    });
}

#[test]
fn a_node_that_was_named_in_a_redirection_and_is_dead_is_not_asked_for_ever() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let mut asks = 1;
        let dead = common::free_port();
        let port = pass_through(server.port, move |words| {
            let is_batch = words[0] == b"EB.ADDHASHES" && words[5] == b"1";
            (is_batch && std::mem::take(&mut asks) > 0).then(|| format!("-ASK 7 127.0.0.1:{dead}\r\n"))
        });
        let mut writer = exact(&server, port, 1);
        assert_eq!(observe(&mut writer, &keys(0, 10)), Ok(10));
    });
}

#[test]
fn a_node_that_is_cut_off_from_its_cluster_is_not_believed_for_ever() {
    on_every_server(|maker| {
        let server = Server::new(maker);
        let slots = |port: u16| format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n");
        // One says that it has all slots, and serves none of them.
        let mut own = None;
        let stale = pass_through(server.port, move |words| match words[0].as_slice() {
            b"PORT" => {
                own = std::str::from_utf8(&words[1]).ok().and_then(|port| port.parse().ok());
                Some("+OK\r\n".into())
            }
            b"CLUSTER" => own.map(slots),
            b"ROLE" => None,
            _ => Some("-CLUSTERDOWN The cluster is down\r\n".into()),
        });
        common::Wire::new(stale, 2).ok(&format!("PORT {stale}"));
        let good = server.port;
        let good = pass_through(good, move |words| (words[0] == b"CLUSTER").then(|| slots(good)));
        let mut options = options(format!("redis://127.0.0.1:{stale},redis://127.0.0.1:{good}"));
        options.patience = Duration::from_secs(5);
        let filter = Filter::create(&options, "found", &plan("exact:shards=2"), None).expect("a filter");
        let mut writer = Writer::new(filter, "one").expect("a client");
        assert_eq!(observe(&mut writer, &keys(0, 10)), Ok(10));
    });
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    on_every_server(|maker: Maker| {
        let server = Server::new(maker);
        let mut writer = exact(&server, server.port, 2);
        let all = keys(0, MOST_KEYS + 1);
        let mut few = [Verdict::Distinct; 5];
        assert!(matches!(writer.observe(&all[..6], Importances::default(), &mut few), Err(Error::Usage(_))));
        assert!(matches!(writer.stage_batch(&all, Importances::default(), true), Err(Error::Usage(_))));
        assert!(matches!(writer.observe(&all[..5], Importances::Each(&[]), &mut few), Err(Error::Filter(_))));
        assert_eq!(observe(&mut writer, &all), Ok(all.len()));
        for client in [String::new(), "x".repeat(54)] {
            let filter = Filter::open(&url(server.port), "all").expect("a filter");
            assert!(matches!(Writer::new(filter, &client), Err(Error::Usage(_))), "{client}");
        }
    });
}
