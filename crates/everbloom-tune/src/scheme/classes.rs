//! Classes of keys, and how a key finds its own.

use crate::ribbon::{MAX_WIDTH, Ribbon};
use everbloom::sizing::closed_forms::one_minus_exp;
use everbloom::{Error, Hashing, KeyHash, Result};
use libm::{exp, expm1, pow};

/// The most hashes of a key.
pub const MAX_HASHES: u32 = 32;
/// The most classes.
pub const MAX_CLASSES: usize = 64;

/// Some keys that are treated alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeyClass {
    /// Hashes of each of its keys; with none, every key of the class counts as a member.
    pub num_hashes: u32,
    /// The share of the members of sets that belong to it.
    pub key_share: f64,
    /// The share of the negative queries that ask for its keys.
    pub query_share: f64,
}

impl KeyClass {
    /// A class of which only the number of hashes is known.
    pub fn of(num_hashes: u32) -> Self {
        KeyClass { num_hashes, key_share: 0.0, query_share: 0.0 }
    }

    fn checked(self) -> Result<Self> {
        if self.num_hashes > MAX_HASHES {
            let needed = format!("at most {MAX_HASHES}");
            return Err(Error::parameter("num_hashes", self.num_hashes, needed, "more never help"));
        }
        let share = |share: f64| (0.0..=1.0 + 1e-9).contains(&share);
        if !share(self.key_share) || !share(self.query_share) {
            let given = format!("{} of the keys, {} of the queries", self.key_share, self.query_share);
            return Err(Error::parameter("class", given, "shares between 0 and 1", "give shares"));
        }
        Ok(self)
    }
}

/// All classes, the first of which is the default.
#[derive(Debug, Clone, PartialEq)]
pub struct Classes {
    pub(super) classes: Vec<KeyClass>,
    /// The fewest hashes of any of them.
    least_hashes: u32,
    /// The class of every length, where lengths tell keys apart.
    pub(super) by_length: Option<Box<[u8; 256]>>,
    pub(super) exceptions: Option<Exceptions>,
}

/// The keys that the default does not fit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exceptions {
    /// The class that each value of the map stands for; values beyond stand for no exception.
    pub(super) codes: Vec<u8>,
    pub(super) map: Ribbon,
}

impl Exceptions {
    /// The class that a value of the map stands for.
    #[inline]
    fn class(&self, value: u32) -> Option<usize> {
        self.codes.get(value as usize).map(|class| usize::from(*class))
    }

    /// The values of the map that stand for a class are below this.
    #[inline]
    fn below(&self) -> u32 {
        self.codes.len() as u32
    }
}

impl Classes {
    /// These classes; every key is in the first, unless lengths or exceptions say otherwise.
    pub fn new(classes: Vec<KeyClass>) -> Result<Self> {
        if !(1..=MAX_CLASSES).contains(&classes.len()) {
            let needed = format!("between 1 and {MAX_CLASSES}");
            return Err(Error::parameter("classes", classes.len(), needed, "two give most of the gain"));
        }
        let classes = classes.into_iter().map(KeyClass::checked).collect::<Result<Vec<_>>>()?;
        let least_hashes = classes.iter().map(|class| class.num_hashes).min().unwrap_or(0);
        Ok(Classes { classes, least_hashes, by_length: None, exceptions: None })
    }

    /// Every key with this many hashes.
    pub fn uniform(num_hashes: u32) -> Result<Self> {
        Self::new(vec![KeyClass { num_hashes, key_share: 1.0, query_share: 1.0 }])
    }

    /// The classes, told apart by the length of keys (255 stands for all that are longer). Needs
    /// [`Hashing::Measured`].
    pub fn by_length(mut self, class_of_length: [u8; 256]) -> Result<Self> {
        class_of_length.iter().try_for_each(|class| self.check_class(*class))?;
        self.by_length = Some(Box::new(class_of_length));
        Ok(self)
    }

    /// The classes, with exceptions: keys and the class of each. `width` bits a key keep all but
    /// codes/2^width of the other keys from being taken for exceptions.
    pub fn with_exceptions(mut self, keys: &[(KeyHash, u8)], width: u32) -> Result<Self> {
        if keys.is_empty() {
            // An empty map is written as no map.
            self.exceptions = None;
            return Ok(self);
        }
        keys.iter().try_for_each(|(_, class)| self.check_class(*class))?;
        let mut codes: Vec<u8> = keys.iter().map(|(_, class)| *class).collect();
        codes.sort_unstable();
        codes.dedup();
        check_width(codes.len(), width)?;
        let code = |class: u8| codes.partition_point(|code| *code < class) as u32;
        let entries: Vec<_> = keys.iter().map(|(hash, class)| (*hash, code(*class))).collect();
        let map = Ribbon::build(&entries, width)?;
        self.exceptions = Some(Exceptions { codes, map });
        Ok(self)
    }

    pub(super) fn check_class(&self, class: u8) -> Result<()> {
        if usize::from(class) < self.classes.len() {
            return Ok(());
        }
        let needed = format!("below {}, the number of classes", self.classes.len());
        Err(Error::parameter("class", class, needed, "add the class first"))
    }

    /// Lengths are in a hash only if they were put there.
    pub(super) fn check_hashing(&self, hashing: &Hashing) -> Result<()> {
        match (&self.by_length, hashing) {
            (Some(_), Hashing::Xxh3 { .. } | Hashing::SipHash { .. } | Hashing::Murmur) => {
                let remedy = "take Hashing::measured, which puts the length into the hash";
                Err(Error::parameter("hashing", hashing.name(), "one that knows the key's length", remedy))
            }
            _ => Ok(()),
        }
    }

    /// All classes.
    pub fn all(&self) -> &[KeyClass] {
        &self.classes
    }

    /// The class of a key.
    #[inline]
    pub fn class_of(&self, hash: KeyHash) -> usize {
        let exception = self.exceptions.as_ref().and_then(|exceptions| {
            let value = exceptions.map.get_below(exceptions.below(), hash);
            exceptions.class(value)
        });
        exception.unwrap_or_else(|| self.usual_class(hash))
    }

    /// The class of a key that is no exception.
    #[inline]
    fn usual_class(&self, hash: KeyHash) -> usize {
        self.by_length.as_ref().map_or(0, |classes| usize::from(classes[usize::from(hash.key_length())]))
    }

    /// The number of hashes of a key.
    #[inline]
    pub fn hashes_for(&self, hash: KeyHash) -> u32 {
        self.classes[self.class_of(hash)].num_hashes
    }

    /// [`Classes::hashes_for`] for a batch; `num_hashes` is as long as `hashes`.
    pub(crate) fn hashes_for_batch(&self, hashes: &[KeyHash], num_hashes: &mut [u32]) {
        let Some(exceptions) = &self.exceptions else {
            return hashes.iter().zip(num_hashes).for_each(|(hash, number)| *number = self.hashes_for(*hash));
        };
        exceptions.map.get_batch_below(exceptions.below(), hashes, num_hashes);
        let default = self.classes[0].num_hashes;
        let usual = |hash| match self.by_length {
            None => default,
            Some(_) => self.classes[self.usual_class(hash)].num_hashes,
        };
        for (hash, number) in hashes.iter().zip(num_hashes) {
            *number = match exceptions.class(*number) {
                Some(class) => self.classes[class].num_hashes,
                None => usual(*hash),
            };
        }
    }

    /// The hashes that every key has, whatever its class.
    #[inline]
    pub(crate) fn least_hashes(&self) -> u32 {
        self.least_hashes
    }

    /// The map of exceptions, if there is one.
    pub(crate) fn map(&self) -> Option<&Ribbon> {
        self.exceptions.as_ref().map(|exceptions| &exceptions.map)
    }

    /// The number of hashes, if all keys have the same and nothing tells them apart.
    pub(crate) fn uniform_hashes(&self) -> Option<u32> {
        match (&self.classes[..], &self.by_length, &self.exceptions) {
            ([class], None, None) => Some(class.num_hashes),
            _ => None,
        }
    }

    /// Bits of a value in the map of exceptions, if there is one.
    pub fn map_width(&self) -> Option<u32> {
        self.map().map(|map| map.shape().width)
    }

    /// Bits of the map of exceptions.
    pub fn map_bits(&self) -> u64 {
        self.map().map_or(0, |map| map.shape().bits())
    }

    /// Hashes of a member, on average.
    pub fn load(&self) -> f64 {
        self.classes.iter().map(|class| class.key_share * f64::from(class.num_hashes)).sum()
    }

    /// The rate of false positives to expect at this share of set bits: Σ q′_c · fill^k_c \[Zhong et al. 2008\].
    /// Where nothing is known of the queries, that of the worst class.
    pub fn fpr_at_fill(&self, fill: f64) -> f64 {
        self.expected(|num_hashes| pow(fill, f64::from(num_hashes)))
    }

    /// The rate of false positives to expect of `num_bits` bits with `items` members inside.
    ///
    /// The fill is 1 − e^(−load·items/bits), and it varies: a power of it is larger on average than the power of
    /// its average, which shows at high numbers of hashes (see [`bloom_fpr`](everbloom::sizing::closed_forms::bloom_fpr)).
    pub fn predicted_fpr(&self, num_bits: u64, items: f64) -> f64 {
        let load = self.load() * items / num_bits as f64;
        if load <= 0.0 {
            return self.fpr_at_fill(0.0);
        }
        let fill = one_minus_exp(load);
        let variance = (exp(-2.0 * load) * (expm1(load) - load) / num_bits as f64).max(0.0);
        self.expected(|num_hashes| {
            let k = f64::from(num_hashes);
            (pow(fill, k) * (1.0 + k * (k - 1.0) / 2.0 * variance / (fill * fill))).min(1.0)
        })
    }

    fn expected(&self, rate: impl Fn(u32) -> f64) -> f64 {
        let known: f64 = self.classes.iter().map(|class| class.query_share).sum();
        if known == 0.0 {
            return rate(self.least_hashes);
        }
        self.classes.iter().map(|class| class.query_share * rate(class.num_hashes)).sum::<f64>().min(1.0)
    }
}

/// Refuses maps that cannot hold so many codes and still tell other keys apart.
pub(super) fn check_width(codes: usize, width: u32) -> Result<()> {
    if (1..=MAX_WIDTH).contains(&width) && codes < 1 << width {
        return Ok(());
    }
    let needed =
        format!("between {} and {MAX_WIDTH} for {codes} classes of exceptions", usize::BITS - codes.leading_zeros());
    Err(Error::parameter("width", width, needed, "one bit more halves the keys that are misread"))
}
