//! Answers that are kept for who asks again.
//!
//! A client whose connection broke does not know whether its batch arrived. Sent again, every key of it would look seen,
//! and a program that drops what was seen would drop keys that nobody has. So a batch may carry a token: the name of its client
//! and the number of the batch. The value keeps the last number and verdicts of each of the last [`MOST_CLIENTS`] clients, and a
//! batch that comes again is answered from there.
//!
//! A client that is not in the table may be new, or one that was pushed out and repeats a batch: nobody can tell. So nothing
//! is guessed. A client registers with number 0 and an empty batch, and its batches are 1, 2, 3, …; a batch of a client that
//! is not in the table is refused with the code `TOKENLOST`. A number that is neither the last nor the next is refused with
//! `TOKENORDER` and the last one: a server that was promoted may be behind what a client knows. A client that ends says so, and
//! leaves its place to others.
//!
//! ```text
//! the client's last    none        0 (registered)    n
//! 0, no items          register    as before         TOKENORDER
//! n                    TOKENLOST   -                 the answer that was kept; an error if it is another batch
//! n + 1                TOKENLOST   apply             apply
//! any other            TOKENLOST   TOKENORDER        TOKENORDER
//! END, no items        as before   forget it         forget it
//! ```
//!
//! What is answered from the table is told to replicas like a batch that is applied, although it changes nothing: `WAIT` counts replicas
//! that have what its connection wrote, and a batch that came through another connection must count, too.

use crate::server::Failure;
use everbloom::{KeyHash, Verdict};

/// Clients whose last answer is kept; the one that was silent for longest gives way.
pub(super) const MOST_CLIENTS: usize = 64;

/// The longest name of a client.
const MOST_NAME_BYTES: usize = 64;

/// Keys of a batch with a token: what is kept for all clients stays within half a megabyte.
pub(super) const MOST_ITEMS: usize = 1 << 16;

/// Who sends a batch, and which of its batches it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'w> {
    client: &'w [u8],
    /// Nothing for a client that ends.
    sequence: Option<u64>,
}

/// How a client registers, for those who are told to.
const REGISTER: &str = "register with EB.ADDHASHES key \"\" TOKEN client 0, then number batches 1, 2, 3";

/// What to do about a number that belongs to another batch.
const AGAIN: &str =
    "send the same batch again, or another with the next number; every start of a program needs a new name";

impl<'w> Token<'w> {
    /// A token of two words.
    pub(super) fn read(client: &'w [u8], sequence: &[u8]) -> Result<Self, Failure> {
        if client.is_empty() || client.len() > MOST_NAME_BYTES {
            return Err(Failure::new(format!("the client of TOKEN must have 1 to {MOST_NAME_BYTES} bytes")));
        }
        if sequence.eq_ignore_ascii_case(b"END") {
            return Ok(Token { client, sequence: None });
        }
        let number = std::str::from_utf8(sequence).ok().and_then(|text| text.parse().ok());
        let sequence = number.ok_or_else(|| {
            let needed = "a whole number from 0 to 18446744073709551615, or END";
            Failure::new(format!("the number of TOKEN must be {needed}; number batches 1, 2, 3"))
        })?;
        Ok(Token { client, sequence: Some(sequence) })
    }

    /// Whether it registers its client, or ends it. Such a batch is empty, and only such a one.
    pub(super) fn takes_no_items(&self) -> bool {
        matches!(self.sequence, None | Some(0))
    }
}

/// The client's name, for an error.
impl std::fmt::Display for Token<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&String::from_utf8_lossy(self.client))
    }
}

/// Verdicts, a bit each: 1 is new. The first is the highest bit of the first byte, as `GETBIT` counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

/// The answer to a client that is not there and ends.
static NOTHING: Bits = Bits { bytes: Vec::new(), count: 0 };

impl Bits {
    pub(super) fn of(bits: impl ExactSizeIterator<Item = bool>) -> Self {
        let count = bits.len();
        let mut bytes = vec![0; count.div_ceil(8)];
        bits.enumerate().for_each(|(index, bit)| bytes[index / 8] |= u8::from(bit) << (7 - index % 8));
        Bits { bytes, count }
    }

    pub(super) fn of_verdicts(verdicts: &[Verdict]) -> Self {
        Self::of(verdicts.iter().map(|verdict| verdict.is_distinct()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = bool> {
        (0..self.count).map(|index| self.bytes[index / 8] >> (7 - index % 8) & 1 == 1)
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Answer {
    client: Box<[u8]>,
    sequence: u64,
    /// Tells the batch from another of the same length.
    sum: u64,
    bits: Bits,
}

/// A number that batches share only by a chance of one in 2^64, unless somebody wants them to.
fn sum_of(hashes: &[KeyHash]) -> u64 {
    let step = |sum: u64, hash: &KeyHash| {
        (sum.rotate_left(23) ^ hash.high ^ hash.low.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    hashes.iter().fold(hashes.len() as u64, step)
}

/// The last answer to each client, those that came last at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Tokens(Vec<Answer>);

impl Tokens {
    /// The answer to a batch that was here before, or nothing if it is to be applied; an error if it is neither.
    pub(super) fn answer(&self, token: Token<'_>, hashes: &[KeyHash]) -> Result<Option<&Bits>, Failure> {
        let items = hashes.len();
        if items > MOST_ITEMS {
            let problem = format!("a batch with a TOKEN may have {MOST_ITEMS} items, not {items}; send smaller ones");
            return Err(Failure::new(problem));
        }
        if token.takes_no_items() && items > 0 {
            let problem = "a TOKEN with 0 registers a client, one with END ends it, and neither takes items";
            return Err(Failure::new(format!("{problem}; {REGISTER}")));
        }
        let answer = self.0.iter().find(|answer| *answer.client == *token.client);
        let (sequence, answer) = match (token.sequence, answer) {
            (None, answer) => return Ok(answer.is_none().then_some(&NOTHING)),
            (Some(0), None) => return Ok(None),
            (Some(sequence), None) => return Err(lost(token, sequence)),
            (Some(sequence), Some(answer)) => (sequence, answer),
        };
        let last = answer.sequence;
        let next = last.checked_add(1);
        if next == Some(sequence) {
            return Ok(None);
        }
        if sequence != last {
            let next = next.map_or("no number is left".into(), |next| format!("the next is {next}"));
            let problem =
                format!("TOKENORDER {last} batch {sequence} of client '{token}' came after {last}, and {next}");
            let remedy = if sequence == 0 { "; go on with it, or register another name" } else { "" };
            return Err(Failure::Error(problem + remedy));
        }
        if answer.bits.count != items {
            let problem = format!("TOKEN {token} {sequence} was sent with {} items, not {items}", answer.bits.count);
            return Err(Failure::new(format!("{problem}; {AGAIN}")));
        }
        if answer.sum != sum_of(hashes) {
            return Err(Failure::new(format!("TOKEN {token} {sequence} was sent with other items; {AGAIN}")));
        }
        Ok(Some(&answer.bits))
    }

    /// Forgets a client while its batch is applied: should that fail half-way, its next batch is refused and not answered
    /// as if nothing had happened.
    pub(super) fn begin(&mut self, token: Token<'_>) {
        self.0.retain(|answer| *answer.client != *token.client);
    }

    /// Keeps an answer, unless the client ends. One that registers pushes out the one that was silent for longest.
    pub(super) fn keep(&mut self, token: Token<'_>, hashes: &[KeyHash], bits: Bits) {
        self.begin(token);
        let Some(sequence) = token.sequence else { return };
        if self.0.len() >= MOST_CLIENTS {
            self.0.remove(0);
        }
        self.0.push(Answer { client: token.client.into(), sequence, sum: sum_of(hashes), bits });
    }

    /// Clients that are registered.
    pub(super) fn clients(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.0.iter().map(|answer| size_of::<Answer>() + answer.client.len() + answer.bits.bytes.len()).sum()
    }

    /// All of it as bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for Answer { client, sequence, sum, bits } in &self.0 {
            bytes.push(client.len() as u8);
            bytes.extend_from_slice(client);
            bytes.extend_from_slice(&sequence.to_le_bytes());
            bytes.extend_from_slice(&sum.to_le_bytes());
            bytes.extend_from_slice(&(bits.count as u32).to_le_bytes());
            bytes.extend_from_slice(&bits.bytes);
        }
        bytes
    }

    /// The tokens from bytes, which may be anybody's.
    pub(super) fn from_bytes(mut bytes: &[u8]) -> Result<Self, String> {
        let mut tokens = Tokens::default();
        while !bytes.is_empty() {
            let answer = read_answer(&mut bytes).ok_or("the tokens cannot be read")?;
            if tokens.0.len() == MOST_CLIENTS || tokens.0.iter().any(|known| known.client == answer.client) {
                return Err("the tokens are of too many clients, or of one twice".into());
            }
            tokens.0.push(answer);
        }
        Ok(tokens)
    }
}

/// What a client is told that is not in the table.
fn lost(token: Token<'_>, sequence: u64) -> Failure {
    let problem = format!(
        "client '{token}' is not registered at this filter, so nobody can tell whether its batch {sequence} was here before"
    );
    let cause =
        format!("it never was, or the filter was made anew or cleared, or {MOST_CLIENTS} other clients came since");
    Failure::Error(format!("TOKENLOST {problem}: {cause}; {REGISTER}"))
}

fn read_answer(bytes: &mut &[u8]) -> Option<Answer> {
    let mut take = |count: usize| {
        let (taken, rest) = bytes.split_at_checked(count)?;
        *bytes = rest;
        Some(taken)
    };
    let length = usize::from(take(1)?[0]);
    let client: Box<[u8]> = take(length).filter(|name| (1..=MOST_NAME_BYTES).contains(&name.len()))?.into();
    let sequence = u64::from_le_bytes(take(8)?.try_into().ok()?);
    let sum = u64::from_le_bytes(take(8)?.try_into().ok()?);
    let count = u32::from_le_bytes(take(4)?.try_into().ok()?) as usize;
    let bits = Bits { bytes: take(count.div_ceil(8)).filter(|_| count <= MOST_ITEMS)?.to_vec(), count };
    // Only a registration has no items; and bits behind the last would make two equal answers differ.
    let is_clean = (sequence == 0) == (count == 0) && bits == Bits::of(bits.iter().collect::<Vec<_>>().into_iter());
    is_clean.then_some(Answer { client, sequence, sum, bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(client: &str, sequence: u64) -> Token<'_> {
        Token { client: client.as_bytes(), sequence: Some(sequence) }
    }

    fn end(client: &str) -> Token<'_> {
        Token { client: client.as_bytes(), sequence: None }
    }

    fn bits(text: &str) -> Bits {
        Bits::of(text.bytes().map(|bit| bit == b'1').collect::<Vec<_>>().into_iter())
    }

    /// A batch of so many items.
    fn batch(items: usize) -> Vec<KeyHash> {
        (0..items as u128).map(KeyHash::from).collect()
    }

    fn refusal(tokens: &Tokens, token: Token<'_>, items: usize) -> String {
        match tokens.answer(token, &batch(items)) {
            Err(Failure::Error(problem)) => problem,
            other => panic!("{other:?}"),
        }
    }

    fn registered(tokens: &mut Tokens, client: &str) {
        assert_eq!(tokens.answer(token(client, 0), &batch(0)), Ok(None));
        tokens.keep(token(client, 0), &[], Bits::default());
    }

    #[test]
    fn a_batch_that_comes_again_gets_its_answer_and_no_other_does() {
        let mut tokens = Tokens::default();
        registered(&mut tokens, "a");
        assert_eq!(tokens.answer(token("a", 0), &batch(0)), Ok(Some(&Bits::default())), "registered again");
        assert_eq!(tokens.answer(token("a", 1), &batch(9)), Ok(None));
        tokens.keep(token("a", 1), &batch(9), bits("101100001"));
        assert_eq!(tokens.answer(token("a", 1), &batch(9)), Ok(Some(&bits("101100001"))));
        let other: Vec<KeyHash> = (7..16u128).map(KeyHash::from).collect();
        let Err(Failure::Error(problem)) = tokens.answer(token("a", 1), &other) else { panic!("another batch") };
        assert!(problem.starts_with("ERR TOKEN a 1 was sent with other items"), "{problem}");
        assert!(refusal(&tokens, token("a", 1), 8).starts_with("ERR TOKEN a 1 was sent with 9 items, not 8"));
        assert!(refusal(&tokens, token("a", 0), 0).contains("the next is 2; go on with it"));
        let gap = refusal(&tokens, token("a", 3), 9);
        assert!(gap.starts_with("TOKENORDER 1 ") && gap.ends_with("came after 1, and the next is 2"), "{gap}");
        assert!(refusal(&tokens, token("a", 2), MOST_ITEMS + 1).contains("send smaller"));
        assert!(refusal(&tokens, token("b", 0), 1).contains("neither takes items"));
        tokens.keep(token("a", 2), &batch(1), bits("0"));
        assert_eq!(tokens.answer(token("a", 2), &batch(1)), Ok(Some(&bits("0"))));
        assert!(refusal(&tokens, token("a", 1), 9).contains("came after 2"), "an older one");
        tokens.keep(token("a", u64::MAX), &batch(1), bits("0"));
        assert!(refusal(&tokens, token("a", 7), 1).contains("no number is left"));
    }

    #[test]
    fn a_client_that_is_not_registered_is_told_so_and_never_answered() {
        let mut tokens = Tokens::default();
        for sequence in [1, 2, u64::MAX] {
            assert!(refusal(&tokens, token("a", sequence), 1).starts_with("TOKENLOST "));
        }
        registered(&mut tokens, "a");
        tokens.begin(token("a", 1));
        assert!(refusal(&tokens, token("a", 1), 1).starts_with("TOKENLOST "), "a batch that failed half-way");
    }

    #[test]
    fn the_client_that_was_silent_for_longest_gives_way() {
        let mut tokens = Tokens::default();
        let names: Vec<String> = (0..=MOST_CLIENTS).map(|client| format!("client {client}")).collect();
        names[..MOST_CLIENTS].iter().for_each(|name| registered(&mut tokens, name));
        tokens.keep(token(&names[0], 1), &batch(1), bits("1"));
        registered(&mut tokens, &names[MOST_CLIENTS]);
        assert_eq!(tokens.clients(), MOST_CLIENTS);
        for name in &names {
            let is_lost = *name == names[1];
            let next = if *name == names[0] { 2 } else { 1 };
            assert_eq!(tokens.answer(token(name, next), &batch(1)).is_err(), is_lost, "{name}");
        }
    }

    #[test]
    fn a_client_that_ends_leaves_its_place() {
        let mut tokens = Tokens::default();
        assert_eq!(tokens.answer(end("a"), &batch(0)), Ok(Some(&Bits::default())), "it is not there");
        registered(&mut tokens, "a");
        assert!(refusal(&tokens, end("a"), 1).contains("neither takes items"));
        assert_eq!(tokens.answer(end("a"), &batch(0)), Ok(None));
        tokens.keep(end("a"), &[], Bits::default());
        assert_eq!(tokens.clients(), 0);
        assert!(refusal(&tokens, token("a", 1), 1).starts_with("TOKENLOST "));
    }

    #[test]
    fn bytes_and_back_and_damage_is_refused() {
        let mut tokens = Tokens::default();
        tokens.keep(token("one", 1), &batch(1), bits("1"));
        tokens.keep(token("another", u64::MAX), &batch(10), bits("0110011010"));
        tokens.keep(token("third", 0), &[], Bits::default());
        let bytes = tokens.to_bytes();
        assert_eq!(Tokens::from_bytes(&bytes), Ok(tokens));
        let whole = [0, 1 + 3 + 16 + 4 + 1, bytes.len() - (1 + 5 + 16 + 4), bytes.len()];
        for end in (0..bytes.len()).filter(|end| !whole.contains(end)) {
            assert!(Tokens::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
        assert!(Tokens::from_bytes(&[bytes.clone(), bytes.clone()].concat()).is_err(), "twice the same");
        let mut dirty = bytes.clone();
        dirty[whole[2] - 1] |= 1;
        assert!(Tokens::from_bytes(&dirty).is_err(), "a bit behind the last");
        let mut without_items = bytes.clone();
        without_items[whole[2] + 1 + 5] = 1;
        assert!(Tokens::from_bytes(&without_items).is_err(), "a batch of nothing");
        // Whatever comes is read or refused.
        for place in 0..bytes.len() {
            for value in [0, 1, 127, 255] {
                let mut changed = bytes.clone();
                changed[place] = value;
                let _ = Tokens::from_bytes(&changed);
            }
        }
    }

    #[test]
    fn words_of_a_token_are_checked() {
        assert!(Token::read(b"worker-3", b"18446744073709551615").is_ok());
        assert_eq!(Token::read(b"w", b"end").map(|token| token.takes_no_items()), Ok(true));
        for (client, sequence) in [("", "1"), ("w", "-1"), ("w", "1.5"), ("w", "x"), ("w", "18446744073709551616")] {
            assert!(Token::read(client.as_bytes(), sequence.as_bytes()).is_err(), "{client} {sequence}");
        }
        assert!(Token::read(&[b'w'; 65], b"1").is_err());
    }

    #[test]
    fn bits_are_counted_as_getbit_does() {
        assert_eq!(bits("1000000001").bytes(), [0b1000_0000, 0b0100_0000]);
        let text = "1101001110101";
        assert!(bits(text).iter().eq(text.bytes().map(|bit| bit == b'1')));
    }
}
