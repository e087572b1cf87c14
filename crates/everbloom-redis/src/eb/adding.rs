//! Commands that judge arrivals and remember them.

use super::stored::Stored;
use super::tokens::{Bits, Token};
use super::words::{Words, not_found, number};
use crate::server::{Call, Failure};
use everbloom::{Importance, Importances, KeyHash, Verdict};

/// What may be said of all arrivals of a command.
#[derive(Default)]
struct Options<'a> {
    importance: Option<f64>,
    /// One for each, packed.
    importances: Option<&'a [u8]>,
    token: Option<Token<'a>>,
}

impl<'a> Options<'a> {
    /// The options from a place on, to the end.
    fn read(call: &Call<'a>, from: usize, known: &'static [&'static str]) -> Result<Self, Failure> {
        let mut options = Options::default();
        let mut words = Words::from(call, from, known);
        while let Some(option) = words.option()? {
            options.take(option, &mut words)?;
        }
        Ok(options)
    }

    /// The options up to the word `ITEMS`, and the place behind it.
    fn before_items(call: &Call<'a>, from: usize) -> Result<(Self, usize), Failure> {
        let mut options = Options::default();
        let mut words = Words::from(call, from, &["IMPORTANCE", "TOKEN", "ITEMS"]);
        while let Some(option) = words.option()? {
            match option {
                "ITEMS" if words.place() < call.len() || options.takes_no_items() => {
                    return Ok((options, words.place()));
                }
                "ITEMS" => break,
                option => options.take(option, &mut words)?,
            }
        }
        Err(Failure::new("ITEMS is missing, or nothing follows it; write EB.INSERT key [options] ITEMS item …"))
    }

    /// Whether a client is registered or ended, which takes no items.
    fn takes_no_items(&self) -> bool {
        self.token.is_some_and(|token| token.takes_no_items())
    }

    fn take(&mut self, option: &str, words: &mut Words<'_, 'a>) -> Result<(), Failure> {
        match option {
            "IMPORTANCE" => self.importance = Some(words.number(option)?),
            "IMPORTANCES" => self.importances = Some(words.value(option)?),
            _ => self.token = Some(Token::read(words.value(option)?, words.value(option)?)?),
        }
        Ok(())
    }
}

/// Arrivals of a command.
struct Batch<'a> {
    hashes: Vec<KeyHash>,
    importances: Vec<Importance>,
    importance: Importance,
    token: Option<Token<'a>>,
}

/// The answer to a batch that was here before. Replicas are told of it again, which changes nothing there: so that `WAIT`
/// behind it waits for the batch, whichever connection brought it.
fn answered<'s>(
    call: &Call<'_>,
    stored: &'s Stored,
    token: Option<Token<'_>>,
    hashes: &[KeyHash],
) -> Result<Option<&'s Bits>, Failure> {
    let Some(token) = token else { return Ok(None) };
    let answer = stored.tokens.answer(token, hashes)?;
    if answer.is_some() {
        call.replicate_verbatim();
    }
    Ok(answer)
}

/// Judges what `gather` finds in a command, unless its token was here before; `reply` answers with the verdicts.
fn arrive<'a>(
    call: &Call<'a>,
    gather: impl FnOnce(&Stored) -> Result<Batch<'a>, Failure>,
    reply: impl FnOnce(&Call<'a>, &Bits),
) -> Result<(), Failure> {
    let mut key = call.write::<Stored>(1)?;
    let stored = key.value().ok_or_else(not_found)?;
    let batch = gather(stored)?;
    if let Some(bits) = answered(call, stored, batch.token, &batch.hashes)? {
        reply(call, bits);
        return Ok(());
    }
    let mut verdicts = vec![Verdict::Distinct; batch.hashes.len()];
    let importances = match batch.importances.is_empty() {
        true => Importances::All(batch.importance),
        false => Importances::Each(&batch.importances),
    };
    stored.observe(call, &batch.hashes, importances, &mut verdicts, batch.token)?;
    added(call, verdicts.len());
    reply(call, &Bits::of_verdicts(&verdicts));
    Ok(())
}

/// Tells replicas what came, and who listens if something did: a client that registers brings nothing.
fn added(call: &Call<'_>, items: usize) {
    call.replicate_verbatim();
    if items > 0 {
        call.notify(c"eb.add", 1);
    }
}

fn reply_array(call: &Call<'_>, bits: &Bits) {
    let bits = bits.iter();
    call.reply_array(bits.len());
    bits.for_each(|bit| call.reply_bool(bit));
}

/// `EB.ADD key item [IMPORTANCE x] [TOKEN client seq]`
pub(super) fn add(call: &mut Call<'_>) -> Result<(), Failure> {
    let options = if call.len() == 3 { Options::default() } else { Options::read(call, 3, &["IMPORTANCE", "TOKEN"])? };
    let mut key = call.write::<Stored>(1)?;
    let stored = key.value().ok_or_else(not_found)?;
    let importance = stored.importance(options.importance)?;
    let (hashes, mut verdicts) = ([stored.hashing().hash(call.word(2))], [Verdict::Distinct]);
    if let Some(bits) = answered(call, stored, options.token, &hashes)? {
        bits.iter().for_each(|bit| call.reply_bool(bit));
        return Ok(());
    }
    stored.observe(call, &hashes, Importances::All(importance), &mut verdicts, options.token)?;
    call.replicate_verbatim();
    call.notify(c"eb.add", 1);
    call.reply_bool(verdicts[0].is_distinct());
    Ok(())
}

/// `EB.MADD key item…`
pub(super) fn madd(call: &mut Call<'_>) -> Result<(), Failure> {
    add_items(call, Options::default(), 2)
}

/// `EB.INSERT key [IMPORTANCE x] [TOKEN client seq] ITEMS item…`
pub(super) fn insert(call: &mut Call<'_>) -> Result<(), Failure> {
    let (options, first) = Options::before_items(call, 2)?;
    add_items(call, options, first)
}

fn add_items(call: &Call<'_>, options: Options<'_>, first: usize) -> Result<(), Failure> {
    arrive(
        call,
        |stored| {
            let (hashing, importance) = (stored.hashing(), stored.importance(options.importance)?);
            let hashes = call.words_from(first).map(|item| hashing.hash(item)).collect();
            Ok(Batch { hashes, importances: Vec::new(), importance, token: options.token })
        },
        reply_array,
    )
}

/// `EB.IADD key item importance [item importance …] [TOKEN client seq]`
pub(super) fn iadd(call: &mut Call<'_>) -> Result<(), Failure> {
    let (pairs, token) = pairs_and_token(call)?;
    arrive(
        call,
        |stored| {
            let hashing = stored.hashing();
            let mut batch = Batch { hashes: Vec::new(), importances: Vec::new(), importance: Importance::FULL, token };
            for place in (2..2 + pairs).step_by(2) {
                let importance = number(call.word(place + 1), "the importance behind an item")?;
                batch.importances.push(stored.importance(Some(importance))?);
                batch.hashes.push(hashing.hash(call.word(place)));
            }
            Ok(batch)
        },
        reply_array,
    )
}

/// The words that are pairs, and the token behind them. Pairs are even; a token makes the number of words odd, so that an
/// item may be called TOKEN.
fn pairs_and_token<'a>(call: &Call<'a>) -> Result<(usize, Option<Token<'a>>), Failure> {
    let words = call.len().saturating_sub(2);
    let is_even = words.is_multiple_of(2);
    let pairs = if is_even { words } else { words.saturating_sub(3) };
    let is_token = !is_even && call.word(2 + pairs).eq_ignore_ascii_case(b"TOKEN");
    if pairs == 0 || !is_even && !is_token {
        let usage = "write EB.IADD key item importance [item importance …] [TOKEN client sequence]";
        return Err(Failure::new(format!("an item has no importance; {usage}")));
    }
    let token = is_token.then(|| Token::read(call.word(3 + pairs), call.word(4 + pairs))).transpose()?;
    Ok((pairs, token))
}

/// `EB.ADDHASHES key blob [IMPORTANCE x | IMPORTANCES blob] [TOKEN client seq]`
pub(super) fn add_hashes(call: &mut Call<'_>) -> Result<(), Failure> {
    let options = Options::read(call, 3, &["IMPORTANCE", "IMPORTANCES", "TOKEN"])?;
    let blob = match call.word(2) {
        [] if options.takes_no_items() => &[],
        hashes => packed(hashes)?,
    };
    let importances = options.importances.map_or(Ok(Vec::new()), |packed| fractions(packed, blob.len()))?;
    if options.importances.is_some() && options.importance.is_some() {
        return Err(Failure::new("IMPORTANCE and IMPORTANCES say the same in two ways; give one of them"));
    }
    let Options { importance, token, .. } = options;
    arrive(
        call,
        |stored| {
            if !blob.is_empty() {
                takes_hashes(stored)?;
            }
            let hashes = blob.iter().map(|hash| u128::from_be_bytes(*hash).into()).collect();
            Ok(Batch { hashes, importances, importance: stored.importance(importance)?, token })
        },
        |call, bits| call.reply_bulk(bits.bytes()),
    )
}

/// Importances of 8 bytes each: a number and the largest it could be, both with the highest byte first. They are exact, and
/// need no scale of the filter's.
fn fractions(packed: &[u8], count: usize) -> Result<Vec<Importance>, Failure> {
    let (pairs, rest) = packed.as_chunks::<8>();
    if pairs.len() != count || !rest.is_empty() {
        let problem = format!("IMPORTANCES has {} bytes for {count} hashes", packed.len());
        return Err(Failure::new(format!("{problem}; send 8 bytes for each: a number and its maximum, 4 bytes each")));
    }
    let half = |bytes: &[u8]| bytes.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
    let pairs = pairs.iter().map(|pair| Importance::new(half(&pair[..4]), half(&pair[4..])));
    Ok(pairs.collect::<everbloom::Result<_>>()?)
}

/// Refuses hashes for a filter that hashes in a way of its own: no XXH3 would ever match what it has.
pub(super) fn takes_hashes(stored: &Stored) -> Result<(), Failure> {
    let hashing = stored.hashing();
    if hashing.seed().is_some() {
        return Ok(());
    }
    let problem = format!("{} filters hash keys by {}", stored.filter.spec().kind(), hashing.name());
    Err(Failure::new(format!("{problem}, not by XXH3; send the keys themselves, by EB.MADD, EB.INSERT or EB.MEXISTS")))
}

/// The most hashes of a command, 16 MiB: what is worked on at once, and for how long others wait.
const MOST_HASHES: usize = 1 << 20;

/// Hashes of 16 bytes each, as `xxh3_128_digest` gives them: the highest byte first.
pub(super) fn packed(blob: &[u8]) -> Result<&[[u8; 16]], Failure> {
    match blob.as_chunks() {
        (hashes, _) if hashes.len() > MOST_HASHES => {
            let problem = format!("a command may have {MOST_HASHES} hashes, not {}; send several", hashes.len());
            Err(Failure::new(problem))
        }
        (hashes, []) if !hashes.is_empty() => Ok(hashes),
        _ => {
            let problem =
                format!("the hashes have {} bytes, but must have 16 for each of one or more keys", blob.len());
            Err(Failure::new(format!("{problem}; send them as xxh3_128_digest(key, seed) gives them")))
        }
    }
}
