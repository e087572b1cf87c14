//! A filter in a server and its twin in the library, to which the same happens.

use super::{Chance, Reply, Wire};
use everbloom::kind::Kind;
use everbloom::{AnyFilter, Error, Goal, ImportanceScale, Importances, KeyHash, Verdict};
use everbloom_all::KINDS;

/// The largest importance of the streams here.
pub const IMPORTANCE: f64 = 50.0;

/// The kinds that a server can build: all but those which need a scheme. A soak may name some of them.
pub fn kinds() -> Vec<&'static Kind> {
    let named = std::env::var("EVERBLOOM_KINDS").unwrap_or_default();
    let is_named = |kind: &Kind| named.is_empty() || named.split(',').any(|name| name == kind.name);
    let kinds: Vec<_> = KINDS.iter().filter(|kind| kind.can.follow_scheme.is_none() && is_named(kind)).collect();
    assert!(!kinds.is_empty(), "EVERBLOOM_KINDS={named} names none");
    kinds
}

/// A spec of this kind that a small goal can be planned for, with the number that its error asks for if need be.
pub fn small_spec(kind: &Kind) -> String {
    let goal = Goal::new().memory_bits(16_384).expected_items(600).fpr(0.1);
    match goal.plan_among(KINDS, kind.name) {
        Ok(_) => kind.name.to_string(),
        Err(Error::Parameter { name, needed, .. }) => {
            let number = needed.split(' ').next().unwrap_or_default();
            format!("{}:{name}={number}", kind.name)
        }
        Err(error) => panic!("{}: {error}", kind.name),
    }
}

/// The words that reserve a small filter of this kind.
pub fn reserve(kind: &Kind, key: &str, seed: u64) -> String {
    let importance = if kind.can.weigh_importance { format!("IMPORTANCE {IMPORTANCE}") } else { String::new() };
    // A kind that hashes in a way of its own takes no seed.
    let seed = if kind.can.own_hash.is_none() { format!("SEED {seed}") } else { String::new() };
    format!("EB.RESERVE {key} {} MEMORY 2048 FPR 0.1 EXPECT 600 {seed} {importance}", small_spec(kind))
}

/// Sixteen bytes a hash, the highest first, as `EB.ADDHASHES` takes them.
pub fn packed(hashes: &[KeyHash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| [hash.high.to_be_bytes(), hash.low.to_be_bytes()]).flatten().collect()
}

/// One bit each, the first in the highest bit of the first byte, as `GETBIT` counts.
pub fn bits(answers: &[bool]) -> Vec<u8> {
    let byte = |some: &[bool]| (0..8).fold(0, |bits, place| bits << 1 | u8::from(some.get(place) == Some(&true)));
    answers.chunks(8).map(byte).collect()
}

/// A filter that both hold.
pub struct Twin {
    pub kind: &'static Kind,
    pub key: String,
    pub filter: AnyFilter,
    observed: u64,
    distinct: u64,
    tokens: u64,
    /// The last answer to a batch with a token.
    last: Option<(Vec<Vec<u8>>, Reply)>,
}

impl Twin {
    /// Reserves a filter in the server, and takes it out as it is.
    pub fn new(wire: &mut Wire, kind: &'static Kind, key: &str, seed: u64) -> Twin {
        wire.ok(&reserve(kind, key, seed));
        let bytes = wire.call(&["EB.DUMP", key]).into_bytes();
        let filter = KINDS.from_bytes(&bytes).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        Twin { kind, key: key.into(), filter, observed: 0, distinct: 0, tokens: 0, last: None }
    }

    /// Does something by chance in both, and compares the answers.
    pub fn step(&mut self, wire: &mut Wire, chance: &mut Chance) {
        let can = self.kind.can;
        match chance.below(40) {
            0..10 => self.add(wire, chance),
            10..20 => self.add_many(wire, chance),
            20..24 => self.add_weighed(wire, chance),
            24..30 => self.ask(wire, chance),
            30..33 if can.remove => self.remove(wire, chance),
            33 if can.count => self.count(wire, chance),
            34 if can.advance => self.advance(wire, chance),
            35 if chance.one_in(20) => {
                self.filter.clear();
                (self.observed, self.distinct, self.tokens, self.last) = (0, 0, 0, None);
                wire.ok(&format!("EB.CLEAR {}", self.key));
            }
            36 if can.merge && chance.one_in(5) => self.merge(wire, chance),
            36..40 => self.add_hashes(wire, chance),
            _ => {}
        }
    }

    fn observe(&mut self, hashes: &[KeyHash], importances: Importances<'_>) -> Vec<bool> {
        let mut verdicts = vec![Verdict::Distinct; hashes.len()];
        self.filter.make_room(hashes).expect("memory");
        self.filter.observe_hashes(hashes, importances, &mut verdicts).expect("an importance for each");
        let new: Vec<bool> = verdicts.iter().map(|verdict| verdict.is_distinct()).collect();
        self.observed += new.len() as u64;
        self.distinct += new.iter().filter(|new| **new).count() as u64;
        new
    }

    fn hashes(&self, items: &[Vec<u8>]) -> Vec<KeyHash> {
        items.iter().map(|item| self.filter.hashing().hash(item)).collect()
    }

    fn command(&self, name: &str, items: &[Vec<u8>]) -> Vec<Vec<u8>> {
        [name.as_bytes(), self.key.as_bytes()].into_iter().map(<[u8]>::to_vec).chain(items.iter().cloned()).collect()
    }

    fn add(&mut self, wire: &mut Wire, chance: &mut Chance) {
        let items = [item(chance)];
        let (mut command, mut importance) = (self.command("EB.ADD", &items), everbloom::Importance::FULL);
        if self.kind.can.weigh_importance && chance.one_in(2) {
            let (text, value) = weight(chance);
            command.extend([b"IMPORTANCE".to_vec(), text.into_bytes()]);
            importance = value;
        }
        let new = self.observe(&self.hashes(&items), Importances::All(importance));
        assert_eq!(wire.call(&command).is_yes(), new[0], "{}", self.kind.name);
    }

    fn add_many(&mut self, wire: &mut Wire, chance: &mut Chance) {
        let items = items(chance, 200);
        let new = self.observe(&self.hashes(&items), Importances::default());
        assert_eq!(wire.call(&self.command("EB.MADD", &items)).yeses(), new, "{}", self.kind.name);
    }

    fn add_weighed(&mut self, wire: &mut Wire, chance: &mut Chance) {
        if !self.kind.can.weigh_importance {
            return;
        }
        let items = items(chance, 50);
        let weights: Vec<_> = items.iter().map(|_| weight(chance)).collect();
        let pairs: Vec<Vec<u8>> = items
            .iter()
            .zip(&weights)
            .flat_map(|(item, (text, _))| [item.clone(), text.clone().into_bytes()])
            .collect();
        let importances: Vec<_> = weights.iter().map(|(_, importance)| *importance).collect();
        let new = self.observe(&self.hashes(&items), Importances::Each(&importances));
        assert_eq!(wire.call(&self.command("EB.IADD", &pairs)).yeses(), new, "{}", self.kind.name);
    }

    fn ask(&mut self, wire: &mut Wire, chance: &mut Chance) {
        let items = items(chance, 100);
        let hashes = self.hashes(&items);
        let found: Vec<bool> = hashes.iter().map(|hash| self.filter.contains_hash(*hash)).collect();
        assert_eq!(wire.call(&self.command("EB.MEXISTS", &items)).yeses(), found, "{}", self.kind.name);
        assert_eq!(wire.call(&self.command("EB.EXISTS", &items[..1])).is_yes(), found[0], "{}", self.kind.name);
        if self.kind.can.own_hash.is_none() {
            let answer = wire.call(&self.command("EB.EXISTSHASHES", &[packed(&hashes)])).into_bytes();
            assert_eq!(answer, bits(&found), "{}", self.kind.name);
        }
    }

    fn remove(&mut self, wire: &mut Wire, chance: &mut Chance) {
        let items = items(chance, 5);
        let hashes = self.hashes(&items);
        let removal = self.filter.as_removal().expect("a filter that removes");
        let gone: Vec<bool> = hashes.iter().map(|hash| removal.remove_hash(*hash)).collect();
        assert_eq!(wire.call(&self.command("EB.REMOVE", &items)).yeses(), gone, "{}", self.kind.name);
    }

    fn count(&mut self, wire: &mut Wire, chance: &mut Chance) {
        let items = items(chance, 20);
        let counts: Vec<i64> = items.iter().map(|item| self.filter.count(&item[..]).expect("counts") as i64).collect();
        let reply = wire.call(&self.command("EB.COUNT", &items));
        assert_eq!(reply.items().iter().map(Reply::number).collect::<Vec<_>>(), counts, "{}", self.kind.name);
    }

    fn advance(&mut self, wire: &mut Wire, chance: &mut Chance) {
        let generations = chance.below(3) + 1;
        self.filter.as_windowed().expect("a window").advance_by(generations);
        wire.ok(&format!("EB.ADVANCE {} {generations}", self.key));
    }

    /// Takes another filter of the same spec and seed in.
    fn merge(&mut self, wire: &mut Wire, chance: &mut Chance) {
        let (mut other, name) = (self.filter.clone(), format!("{}:other", self.key));
        other.clear();
        let items = items(chance, 50);
        assert_eq!(wire.call(&["COPY", &self.key, &name, "REPLACE"]).number(), 1);
        wire.ok(&format!("EB.CLEAR {name}"));
        // As arrivals, which is what the server takes them for: a filter that counts does not count repeats of these.
        let (hashes, mut verdicts) = (self.hashes(&items), vec![Verdict::Distinct; items.len()]);
        other.make_room(&hashes).expect("memory");
        other.observe_hashes(&hashes, Importances::default(), &mut verdicts).expect("no importances");
        let mut command = self.command("EB.MADD", &items);
        command[1] = name.clone().into_bytes();
        let new = wire.call(&command).yeses();
        // Some kinds refuse to be merged in this spec; both do, or neither.
        let merged = self.filter.merge(&other);
        let reply = wire.say(&format!("EB.MERGE UNION {} {name}", self.key));
        assert_eq!(reply.is_error(), merged.is_err(), "{}: {reply:?} {merged:?}", self.kind.name);
        if merged.is_ok() {
            self.observed += new.len() as u64;
            self.distinct += new.iter().filter(|new| **new).count() as u64;
        }
        wire.call(&["UNLINK", &name]);
    }

    /// A batch of hashes with a token; now and then the same again, as after a lost connection.
    fn add_hashes(&mut self, wire: &mut Wire, chance: &mut Chance) {
        if let Some((command, answer)) = self.last.clone().filter(|_| chance.one_in(3)) {
            assert_eq!(wire.call(&command), answer, "{}", self.kind.name);
            return;
        }
        let items = items(chance, 100);
        let hashes = self.hashes(&items);
        let new = self.observe(&hashes, Importances::default());
        if self.kind.can.own_hash.is_some() {
            // Nobody else knows its hash: the keys themselves are sent.
            let refused = wire.call(&self.command("EB.ADDHASHES", &[packed(&hashes)]));
            assert!(refused.is_error(), "{}: {refused:?}", self.kind.name);
            assert_eq!(wire.call(&self.command("EB.MADD", &items)).yeses(), new, "{}", self.kind.name);
            return;
        }
        if self.tokens == 0 {
            let mut register = self.command("EB.ADDHASHES", &[Vec::new()]);
            register.extend(["TOKEN", "client-1", "0"].map(|word| word.as_bytes().to_vec()));
            assert_eq!(wire.call(&register), Reply::Bulk(Vec::new()), "{}", self.kind.name);
        }
        self.tokens += 1;
        let mut command = self.command("EB.ADDHASHES", &[packed(&hashes)]);
        command.extend(["TOKEN", "client-1", &self.tokens.to_string()].map(|word| word.as_bytes().to_vec()));
        let reply = wire.call(&command);
        assert_eq!(reply, Reply::Bulk(bits(&new)), "{}", self.kind.name);
        self.last = Some((command, reply));
    }

    /// The filter in the server is the twin, byte for byte, and counted what it counted.
    pub fn compare(&self, wire: &mut Wire) {
        let dumped = wire.call(&["EB.DUMP", &self.key]).into_bytes();
        // A file also notes the largest importance; the rest of it is the filter.
        let dumped = KINDS.from_bytes(&dumped).expect("a filter").to_bytes();
        assert!(dumped == self.filter.to_bytes(), "{}: the bytes differ", self.kind.name);
        let info = wire.call(&["EB.INFO", &self.key]);
        let counted = |name| info.field(name).map(Reply::number);
        let expected = (Some(self.observed as i64), Some(self.distinct as i64));
        assert_eq!((counted("observed"), counted("distinct")), expected, "{}", self.kind.name);
    }
}

/// A key of a stream with repeats: text, numbers, bytes that are neither, nothing at all.
fn item(chance: &mut Chance) -> Vec<u8> {
    let number = chance.below(3000);
    match number % 50 {
        0 => Vec::new(),
        1 => format!("a\r\nb\0{number}").into_bytes(),
        2 => "x".repeat(number as usize).into_bytes(),
        3..10 => number.to_le_bytes().to_vec(),
        _ => format!("item:{number}").into_bytes(),
    }
}

fn items(chance: &mut Chance, most: u64) -> Vec<Vec<u8>> {
    (0..=chance.below(most)).map(|_| item(chance)).collect()
}

/// An importance as it is typed, and as the library has it.
fn weight(chance: &mut Chance) -> (String, everbloom::Importance) {
    let value = chance.below(201) as f64 / 4.0;
    let scale = ImportanceScale::linear(IMPORTANCE).expect("a scale");
    (value.to_string(), scale.of(value).expect("within the scale"))
}
