//! Frozen files: today's encoder writes them byte for byte, today's decoder reads them to the verdict.
//!
//! `tests/golden/frozen.tsv` names each file, its full spec, how it hashes, and what it answers: which of
//! the keys 0..256 it contains, then its verdicts on 256 further arrivals, as hexadecimal bits. A filter
//! kind or choice without a file fails the test; `EVERBLOOM_BLESS=1 cargo test -p everbloom --test codec
//! golden` writes the missing ones. It never touches a file that exists: bytes are the format's promise,
//! and a change of them needs a new format version, not a blessing.

use crate::common::{arrivals, observe_all, small_goal, variants};
use everbloom::codec::encode;
use everbloom::{AnyFilter, Filter, FilterExt, Goal, Hashing, SecretKey, Verdict};
use everbloom_all::KINDS;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

const SECRET: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// One line of the list.
struct Frozen {
    file: String,
    spec: String,
    hash: String,
    contains: String,
    verdicts: String,
}

fn frozen() -> Vec<Frozen> {
    let list = fs::read_to_string(folder().join("frozen.tsv")).unwrap_or_default();
    let read = |line: &str| {
        let mut columns = line.split('\t').map(str::to_string);
        let mut next = || columns.next().unwrap_or_else(|| panic!("too few columns: {line}"));
        Frozen { file: next(), spec: next(), hash: next(), contains: next(), verdicts: next() }
    };
    list.lines().filter(|line| !line.starts_with('#')).map(read).collect()
}

fn hashing(hash: &str) -> Hashing {
    match hash {
        "siphash" => Hashing::keyed(SecretKey::new(SECRET)),
        seed => Hashing::seeded(seed.parse().expect("a seed")),
    }
}

/// A filter of the spec after the arrivals that every golden file has seen.
fn recipe(spec: &str, hash: &str) -> AnyFilter {
    let plan =
        Goal::new().hashing(hashing(hash)).plan_among(KINDS, spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let mut filter = plan.build().unwrap_or_else(|error| panic!("{spec}: {error}"));
    observe_all(&mut *filter, &arrivals(200, 160, 1));
    filter
}

fn hexadecimal(bits: impl Iterator<Item = bool>) -> String {
    let bits: Vec<bool> = bits.collect();
    bits.chunks(4).fold(String::new(), |mut text, four| {
        let digit = four.iter().fold(0, |digit, bit| digit << 1 | u32::from(*bit));
        write!(text, "{digit:x}").expect("a string takes all");
        text
    })
}

/// What a filter contains, and its verdicts on what comes next.
fn answers(filter: &mut dyn Filter) -> (String, String) {
    let contains = hexadecimal((0..256u64).map(|key| filter.contains(key)));
    let verdicts = observe_all(filter, &arrivals(256, 300, 2));
    (contains, hexadecimal(verdicts.into_iter().map(|verdict| verdict == Verdict::Duplicate)))
}

fn decode_frozen(frozen: &Frozen) -> (Vec<u8>, AnyFilter) {
    let bytes = fs::read(folder().join(&frozen.file)).unwrap_or_else(|error| panic!("{}: {error}", frozen.file));
    let key = (frozen.hash == "siphash").then(|| SecretKey::new(SECRET));
    let filter = KINDS.decoder().secret_key(key).read(&mut &bytes[..], bytes.len() as u64);
    (bytes, filter.map(AnyFilter::from).unwrap_or_else(|error| panic!("{}: {error}", frozen.file)))
}

#[test]
fn golden_files_are_read_to_the_verdict() {
    for frozen in frozen() {
        let (bytes, mut filter) = decode_frozen(&frozen);
        assert_eq!(filter.spec().to_string(), frozen.spec, "{}", frozen.file);
        assert_eq!(encode(&*filter), bytes, "{} is written differently", frozen.file);
        let (contains, verdicts) = answers(&mut *filter);
        assert_eq!((contains, verdicts), (frozen.contains, frozen.verdicts), "{}", frozen.file);
    }
}

#[test]
fn golden_files_are_written_byte_for_byte() {
    for frozen in frozen() {
        let (bytes, kept) = decode_frozen(&frozen);
        let mut made = recipe(&frozen.spec, &frozen.hash);
        assert_eq!(encode(&*made)[64 + 8..], bytes[64 + 8..], "{}: body or spec", frozen.file);
        assert_eq!(made.promise(), kept.promise(), "{}", frozen.file);
        assert_eq!(encode(&*made), bytes, "{}", frozen.file);
        assert_eq!(answers(&mut *made), (frozen.contains, frozen.verdicts), "{}", frozen.file);
    }
}

/// The files that should be there: one for every variant, one in which so many cells are in use that they are
/// drawn from in another way, some with numbers that have no names, wide words of each number of keys, and the first
/// kind with a secret key.
fn wanted() -> Vec<(String, String, String)> {
    let small = Goal::new().memory_bits(4096).expected_items(100).fpr(0.1);
    let full = |spec: &str| {
        small
            .plan_among(KINDS, spec)
            .or_else(|_| small_goal(0).plan_among(KINDS, spec))
            .expect("plans")
            .spec
            .to_string()
    };
    let name = |spec: &str| spec.replace([':', '='], "-").replace(',', "+");
    let mut wanted: Vec<_> =
        variants().iter().map(|spec| (format!("{}.ebf", name(spec)), full(spec), "7".to_string())).collect();
    let crowded = "ibf6:num_cells=300,num_hashes=4,decrements=1,cell_max=3".to_string();
    wanted.push(("ibf6-crowded.ebf".into(), crowded, "7".to_string()));
    // Numbers that are left out of a spec where they are the usual ones; small enough that they matter.
    let small = "reservoir:memory_bits=256,num_filters=2,insert_floor=0.5";
    for (file, bias) in [("insert_prob", "constant,insert_prob=0.4"), ("half_life", "exponential,half_life=50")] {
        wanted.push((format!("reservoir-{file}.ebf"), format!("{small},bias={bias},layout=spread"), "7".to_string()));
    }
    let wide = "packing=packed,words=wide,insert=middle,hit=front";
    for (file, sizes) in [("5x9", "num_words=61,lanes=5,lane_bits=9"), ("7x8", "num_words=31,lanes=7,lane_bits=8")] {
        wanted.push((format!("ranked-wide-{file}.ebf"), format!("ranked:{sizes},{wide},gate=off"), "7".into()));
    }
    wanted.push(("graceful-wide.ebf".into(), format!("graceful:num_words=60,lanes=5,lane_bits=9,{wide}"), "7".into()));
    let (_, first, _) = &wanted[0];
    wanted.push(("secret-key.ebf".into(), first.clone(), "siphash".into()));
    wanted
}

#[test]
fn every_kind_and_choice_has_a_golden_file() {
    let known = frozen();
    let missing: Vec<_> =
        wanted().into_iter().filter(|(file, ..)| known.iter().all(|frozen| frozen.file != *file)).collect();
    if std::env::var_os("EVERBLOOM_BLESS").is_some_and(|value| value == "1") {
        return bless(&missing);
    }
    let names: Vec<_> = missing.iter().map(|(file, ..)| file.as_str()).collect();
    assert!(
        missing.is_empty(),
        "no golden file yet for {}: EVERBLOOM_BLESS=1 cargo test -p everbloom --test codec golden",
        names.join(", ")
    );
}

/// Writes the missing files and their lines.
fn bless(missing: &[(String, String, String)]) {
    let path = folder().join("frozen.tsv");
    let mut list = fs::read_to_string(&path)
        .unwrap_or_else(|_| "# file\tspec\tseed or siphash\tcontains 0..256\tverdicts on what comes next\n".into());
    for (file, spec, hash) in missing {
        let target = folder().join(file);
        assert!(!target.exists(), "{file} exists but is not listed: never overwritten");
        let mut filter = recipe(spec, hash);
        fs::write(target, encode(&*filter)).expect("a writable folder");
        let (contains, verdicts) = answers(&mut *filter);
        writeln!(list, "{file}\t{spec}\t{hash}\t{contains}\t{verdicts}").expect("a string takes all");
    }
    fs::write(path, list).expect("a writable folder");
}

#[test]
fn every_file_is_listed_once() {
    let mut listed: Vec<String> = frozen().into_iter().map(|frozen| frozen.file).collect();
    let mut found: Vec<String> = fs::read_dir(folder())
        .expect("golden files")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".ebf"))
        .collect();
    listed.sort();
    found.sort();
    assert_eq!(listed, found);
}
