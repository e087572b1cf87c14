//! What a client can send to harm: payloads that were tampered with and signed again, chunks beside their places, numbers
//! without measure. The server lives, its memory stays within the limit, and its replica stays equal.

#[path = "../../everbloom-all/tests/common/document.rs"]
#[allow(unreachable_pub, dead_code)]
mod document;

mod common;

use common::{Chance, Field, Payload, Server, Start, Wire, kinds, on_every_server, reserve, seed, sign, times, words};
use document::Document;
use std::panic::AssertUnwindSafe;

/// The limit that the servers here are started with.
const LIMIT: u64 = 4 << 20;

/// A server with little memory to give, and a replica that stops at the first command which fails there.
fn guarded(maker: common::Maker) -> (Server, Server) {
    let primary = Start::new(maker).module(&format!("max-filter-bytes {LIMIT}")).start();
    let replica = Start::new(maker).with(&["propagation-error-behavior panic"]).replica_of(&primary).start();
    primary.wait_for(&replica);
    (primary, replica)
}

/// Fails with what was sent if the server went away or took more memory than it may: the old value, the new one, a third
/// that is made of them, and what clients and allocator keep.
fn still_well(servers: &mut (Server, Server), start: u64, what: &str) {
    servers.0.check(what);
    servers.1.check(what);
    let peak = servers.0.memory("VmHWM");
    assert!(peak < start + 3 * LIMIT + (32 << 20), "{} MiB after {what}", peak >> 20);
    servers.0.wait_for(&servers.1);
    let digest = |server: &Server| server.wire().say("DEBUG DIGEST").text();
    assert_eq!(digest(&servers.0), digest(&servers.1), "the replica differs after {what}");
}

/// Sends something, and says what it was if the server does not survive it.
fn send<A: AsRef<[u8]>>(wire: &mut Wire, arguments: &[A]) -> common::Reply {
    let sent = std::panic::catch_unwind(AssertUnwindSafe(|| wire.call(arguments)));
    sent.unwrap_or_else(|_| {
        let words: Vec<String> = arguments.iter().map(|word| word.as_ref().escape_ascii().to_string()).collect();
        panic!("the server did not answer\n{}", words.join(" "))
    })
}

/// Every command that takes an EB key.
fn use_eb(wire: &mut Wire, key: &str) {
    const COMMANDS: &str = "EB.INFO K; EB.STATUS K; EB.EXISTS K a; EB.MEXISTS K a b; EB.COUNT K a; EB.DUMP K; \
                 EB.DUMP K COMPRESSED; MEMORY USAGE K; DEBUG DIGEST-VALUE K; EB.ADD K a; \
                 EB.ADD K a IMPORTANCE 1; EB.MADD K a b c a; EB.IADD K a 1 b 0.5; EB.REMOVE K a z; \
                 EB.ADVANCE K 2; EB.ADDHASHES K H; EB.ADDHASHES K H TOKEN client 1; \
                 EB.ADDHASHES K H TOKEN client 2; EB.ADDHASHES K  TOKEN c 0; EB.ADDHASHES K  TOKEN c END; \
                 EB.ADDHASHES K H TOKEN c 1; EB.INSERT K TOKEN c 2 ITEMS x y; EB.EXISTSHASHES K H; \
                 COPY K copy REPLACE; EB.MERGE UNION copy K; EB.MERGE INTERSECT copy K; DUMP K; EB.CLEAR copy; \
                 EB.INFO K; DEL copy";
    let hashes = "0123456789abcdef".repeat(3);
    for line in COMMANDS.split("; ") {
        let line = line.replace('K', key).replace('H', &hashes);
        send(wire, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    }
}

/// Every command that takes a BF key.
fn use_bf(wire: &mut Wire, key: &str) {
    const COMMANDS: &str = "BF.INFO K; BF.DEBUG K; BF.CARD K; BF.EXISTS K a; BF.MEXISTS K a b; BF.SCANDUMP K 0; \
                 BF.SCANDUMP K 1; BF.SCANDUMP K 9223372036854775807; MEMORY USAGE K; DEBUG DIGEST-VALUE K; \
                 BF.ADD K a; BF.MADD K a b c d e f g h; BF.INSERT K ITEMS x y z; COPY K copy REPLACE; DUMP K; \
                 BF.INFO K; DEL copy";
    for line in COMMANDS.split("; ") {
        let line = line.replace('K', key);
        send(wire, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    }
}

/// Numbers at which something begins or ends.
const EDGES: [u64; 16] =
    [0, 1, 2, 3, 7, 63, 64, 255, 1 << 16, 1 << 31, 1 << 32, (1 << 32) - 1, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX];

const DOUBLES: [f64; 12] =
    [0.0, -0.0, -1.0, 0.5, 1.0, 2.0, 1e-308, 5e-324, 1e308, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// A payload with something changed, signed again.
fn tampered(original: &[u8], chance: &mut Chance) -> Vec<u8> {
    let version = [original[original.len() - 10], original[original.len() - 9]];
    if chance.one_in(2) {
        let mut payload = Payload::read(original);
        lie(&mut payload, chance);
        return payload.write();
    }
    let mut bytes = original[..original.len() - 10].to_vec();
    let at = |chance: &mut Chance, bytes: &[u8]| chance.below(bytes.len() as u64) as usize;
    for _ in 0..=chance.below(3) {
        let place = at(chance, &bytes);
        match chance.below(6) {
            0..3 => bytes[place] ^= 1 << chance.below(8),
            3 => bytes[place] = chance.bits() as u8,
            4 => bytes.insert(place, chance.bits() as u8),
            _ if bytes.len() > 20 => drop(bytes.drain(place..bytes.len().min(place + 1 + chance.below(8) as usize))),
            _ => {}
        }
    }
    sign(bytes, version)
}

/// Another value in a field, another document in the text, or fields in another order.
fn lie(payload: &mut Payload, chance: &mut Chance) {
    let place = chance.below(payload.fields.len() as u64) as usize;
    if chance.one_in(10) {
        let other = chance.below(payload.fields.len() as u64) as usize;
        match chance.below(3) {
            0 => payload.fields.swap(place, other),
            1 => drop(payload.fields.remove(place)),
            _ => payload.fields.insert(other, payload.fields[place].clone()),
        }
        return;
    }
    match &mut payload.fields[place] {
        Field::Unsigned(value) => {
            *value = match chance.below(3) {
                0 => value.wrapping_add(chance.below(5)).wrapping_sub(2),
                _ => chance.pick(&EDGES),
            }
        }
        Field::Double(value) => *value = chance.pick(&DOUBLES),
        Field::Text(text) if text.starts_with(b"\x89EBF") && chance.one_in(2) => {
            if let Ok(changed) = std::panic::catch_unwind(AssertUnwindSafe(|| document_lie(text, chance))) {
                *text = changed;
            }
        }
        Field::Text(text) => match chance.below(4) {
            0 => text.truncate(chance.below(text.len() as u64 + 1) as usize),
            1 => text.extend(vec![0xff; 1 + chance.below(100) as usize]),
            2 if !text.is_empty() => {
                let at = chance.below(text.len() as u64) as usize;
                text[at] ^= 1 << chance.below(8);
            }
            _ => text.clear(),
        },
    }
}

/// A lie in a filter's own bytes, with right checksums.
fn document_lie(text: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut document = Document::parse(text);
    let flip = |bytes: &mut Vec<u8>, chance: &mut Chance| {
        if !bytes.is_empty() {
            let at = chance.below(bytes.len() as u64) as usize;
            bytes[at] = chance.pick(&[0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at].wrapping_add(1)]);
        }
    };
    match chance.below(5) {
        0 => {
            let at = 8 + chance.below(48) as usize;
            document.fixed[at] = chance.bits() as u8;
        }
        1 => {
            // A digit of the spec, which stays text.
            let digits: Vec<usize> =
                (0..document.spec.len()).filter(|at| document.spec[*at].is_ascii_digit()).collect();
            if !digits.is_empty() {
                document.spec[chance.pick(&digits)] = b'0' + chance.below(10) as u8;
            }
        }
        2 | 3 => flip(&mut document.state, chance),
        _ => flip(&mut document.body, chance),
    }
    document.bytes()
}

#[test]
fn tampered_values_of_every_kind_are_refused_or_harmless() {
    on_every_server(|maker| {
        let mut servers = guarded(maker);
        let start = servers.0.memory("VmHWM");
        for (number, kind) in kinds().into_iter().enumerate() {
            let mut wire = servers.0.wire();
            wire.ok(&reserve(kind, "original", 1));
            for round in 0..20 {
                let items: Vec<String> = (0..40).map(|item| format!("{round}:{item}")).collect();
                wire.say(&format!("EB.MADD original {}", items.join(" ")));
            }
            let hashes = "0123456789abcdef".repeat(2);
            wire.call(&["EB.ADDHASHES", "original", "", "TOKEN", "client", "0"]);
            let sent = wire.say(&format!("EB.ADDHASHES original {hashes} TOKEN client 1"));
            assert_eq!(sent.is_error(), kind.can.own_hash.is_some(), "{sent:?}");
            let original = wire.call(&["DUMP", "original"]).into_bytes();
            assert_eq!(Payload::read(&Payload::read(&original).write()), Payload::read(&original));
            tamper(&mut wire, &original, seed() * 1000 + number as u64, use_eb);
            still_well(&mut servers, start, &format!("tampered values of {}", kind.name));
            servers.0.wire().ok("FLUSHALL");
        }
    });
}

#[test]
fn tampered_values_of_redisblooms_type_are_refused_or_harmless() {
    on_every_server(|maker| {
        let mut servers = guarded(maker);
        let start = servers.0.memory("VmHWM");
        let mut wire = servers.0.wire();
        for (number, line) in
            ["BF.RESERVE original 0.01 10", "BF.RESERVE original 0.01 500 NONSCALING"].iter().enumerate()
        {
            wire.ok(line);
            (0..200).for_each(|item| drop(wire.call(&["BF.ADD", "original", &item.to_string()])));
            let original = wire.call(&["DUMP", "original"]).into_bytes();
            tamper(&mut wire, &original, seed() * 1000 + number as u64, use_bf);
            every_edge(&mut wire, &original);
            still_well(&mut servers, start, &format!("tampered values of {line}"));
            servers.0.wire().ok("FLUSHALL");
        }
    });
}

/// So many tampered payloads, and every cut. What is accepted is used.
fn tamper(wire: &mut Wire, original: &[u8], seed: u64, use_it: fn(&mut Wire, &str)) {
    let mut chance = Chance(seed);
    let mut accepted = 0;
    for _ in 0..times(1000) {
        let payload = tampered(original, &mut chance);
        if !send(wire, words!["RESTORE", "tampered", "0", &payload, "REPLACE"]).is_error() {
            accepted += 1;
            use_it(wire, "tampered");
        }
    }
    let version = [original[original.len() - 10], original[original.len() - 9]];
    for end in 1..original.len() - 10 {
        let cut = sign(original[..end].to_vec(), version);
        let reply = send(wire, words!["RESTORE", "cut", "0", &cut, "REPLACE"]);
        assert!(reply.is_error(), "cut at {end} of {} it was accepted", original.len());
    }
    eprintln!("{accepted} of {} tampered payloads were accepted", times(1000));
}

/// Each field at each of its edges, one at a time.
fn every_edge(wire: &mut Wire, original: &[u8]) {
    let payload = Payload::read(original);
    for place in 0..payload.fields.len() {
        let changed: Vec<Field> = match &payload.fields[place] {
            Field::Unsigned(_) => EDGES.map(Field::Unsigned).into(),
            Field::Double(_) => DOUBLES.map(Field::Double).into(),
            Field::Text(text) => {
                let lengths = [0, 1, text.len() - 1, text.len() + 1, text.len() * 2];
                lengths.map(|length| Field::Text(vec![0xff; length])).into()
            }
        };
        for field in changed {
            let mut lie = payload.clone();
            lie.fields[place] = field;
            if !send(wire, words!["RESTORE", "edge", "0", &lie.write(), "REPLACE"]).is_error() {
                use_bf(wire, "edge");
            }
        }
    }
}

#[test]
fn chunks_beside_their_places_are_refused() {
    on_every_server(|maker| {
        let mut servers = guarded(maker);
        let start = servers.0.memory("VmHWM");
        let mut wire = servers.0.wire();
        wire.ok("BF.RESERVE original 0.01 20");
        (0..300).for_each(|item| drop(wire.call(&["BF.ADD", "original", &item.to_string()])));
        let header = wire.say("BF.SCANDUMP original 0").items()[1].clone().into_bytes();
        // The borders of the stages, as the chunks tell them.
        let (mut borders, mut iterator) = (vec![0], 1);
        while iterator != 0 {
            borders.push(iterator);
            iterator = wire.say(&format!("BF.SCANDUMP original {iterator}")).items()[0].number();
        }
        let near = borders.iter().flat_map(|border| (-2..=2).map(move |step| border + step));
        let far = [i64::MIN, i64::MIN + 1, -1, i64::MAX - 1, i64::MAX, 1 << 31, 1 << 32, 1 << 40];
        for iterator in near.chain(far) {
            for length in [0, 1, 2, 7, 8, 9, 23, 24, 25, 100, 1000, 70_000] {
                let (iterator, chunk) = (iterator.to_string(), vec![0xff; length]);
                send(&mut wire, words!["BF.LOADCHUNK", "loaded", "1", &header]);
                send(&mut wire, words!["BF.LOADCHUNK", "loaded", iterator, &chunk]);
                send(&mut wire, words!["BF.LOADCHUNK", "missing", iterator, &chunk]);
                send(&mut wire, words!["BF.EXISTS", "loaded", "7"]);
                send(&mut wire, words!["BF.SCANDUMP", "loaded", iterator]);
                send(&mut wire, words!["DEL", "loaded", "missing"]);
            }
        }
        // Headers with every byte at its edges, and cut everywhere.
        for place in 0..header.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut lie = header.clone();
                lie[place] = value;
                if !send(&mut wire, words!["BF.LOADCHUNK", "lie", "1", &lie]).is_error() {
                    use_bf(&mut wire, "lie");
                }
                send(&mut wire, words!["DEL", "lie"]);
            }
            send(&mut wire, words!["BF.LOADCHUNK", "lie", "1", header[..place]]);
            send(&mut wire, words!["DEL", "lie"]);
        }
        still_well(&mut servers, start, "chunks beside their places");
    });
}

const NUMBERS: &str = "0|-1|1|-0|0.5|1073741824|1073741825|2147483648|4294967296|9223372036854775807|\
                        9223372036854775808|18446744073709551615|18446744073709551616|1e18|1e308|1e309|1e-308|\
                        5e-324|nan|inf|-inf|0x10|| |1 |32768|32769|10tb";

#[test]
fn numbers_without_measure_are_refused_or_kept_within_the_limit() {
    on_every_server(|maker| {
        let mut servers = guarded(maker);
        let start = servers.0.memory("VmHWM");
        let mut wire = servers.0.wire();
        for one in NUMBERS.split('|') {
            for two in NUMBERS.split('|') {
                send(&mut wire, words!["BF.RESERVE", "", one, two]);
                send(&mut wire, words!["BF.RESERVE", "", "0.01", one, "EXPANSION", two]);
                let insert = ["BF.INSERT", "b", "CAPACITY", one, "ERROR", "0.01", "EXPANSION", two, "ITEMS", "a", "b"];
                send(&mut wire, &insert);
                send(&mut wire, words!["BF.ADD", "", "x"]);
                send(&mut wire, words!["DEL", ""]);
            }
        }
        still_well(&mut servers, start, "BF.RESERVE");
        for kind in kinds() {
            let mut wire = servers.0.wire();
            for one in NUMBERS.split('|') {
                for option in ["MEMORY", "FPR", "EXPECT", "IMPORTANCE", "SEED", "EVERY"] {
                    for fixed in [&["FPR", "1%"][..], &["EXPECT", "1000"], &["MEMORY", "64kb"], &[]] {
                        let mut words = vec!["EB.RESERVE", "e", kind.name, option, one];
                        words.extend(fixed);
                        if !send(&mut wire, &words).is_error() {
                            send(&mut wire, words!["EB.ADD", "e", "x"]);
                            send(&mut wire, words!["DEL", "e"]);
                        }
                    }
                }
                for parameter in kind.parameters {
                    let spec = format!("{}:{}={one}", kind.name, parameter.name);
                    for fixed in [&["MEMORY", "64kb"][..], &["FPR", "1%", "EXPECT", "1000"]] {
                        let mut words = vec!["EB.RESERVE", "e", &spec];
                        words.extend(fixed);
                        if !send(&mut wire, &words).is_error() {
                            send(&mut wire, words!["EB.MADD", "e", "x", "y"]);
                            send(&mut wire, words!["EB.STATUS", "e"]);
                            send(&mut wire, words!["DEL", "e"]);
                        }
                    }
                }
            }
            still_well(&mut servers, start, &format!("EB.RESERVE of {}", kind.name));
        }
    });
}

/// Words that commands know, and others.
const WORDS: &str = "k|k|k|j|s|a|b|0|1|-1|2|100|1e308|nan|18446744073709551616||NX|MEMORY|64kb|10tb|FPR|1%|\
                        0.01|EXPECT|1000|IMPORTANCE|LOG|SEED|EVERY|1s|TOKEN|COUNTS|REPLACE|UNION|INTERSECT|\
                        bloom|auto|scalable|ITEMS|CAPACITY|ERROR|NOCREATE|0123456789abcdef|PROMISE";

#[test]
fn commands_of_words_by_chance_are_answered() {
    on_every_server(|maker| {
        let mut servers = guarded(maker);
        let start = servers.0.memory("VmHWM");
        let mut wire = servers.0.wire();
        let listed = wire.say("COMMAND LIST FILTERBY MODULE everbloom");
        let names: Vec<String> = listed.items().iter().map(common::Reply::text).collect();
        assert!(names.len() >= 17, "{names:?}");
        let (mut chance, known) = (Chance(seed()), WORDS.split('|').collect::<Vec<_>>());
        wire.call(&["SET", "s", "a string"]);
        for _ in 0..times(20_000) {
            let mut words = vec![chance.pick(&names)];
            words.extend((0..chance.below(9)).map(|_| chance.pick(&known).to_string()));
            send(&mut wire, &words);
            if chance.one_in(100) {
                send(&mut wire, words!["DEL", "k", "j"]);
                send(&mut wire, words!["EB.RESERVE", "k", "counting", "EXPECT", "100", "FPR", "1%"]);
            }
        }
        still_well(&mut servers, start, "words by chance");
    });
}
