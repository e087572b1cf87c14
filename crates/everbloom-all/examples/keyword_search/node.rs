//! A node: the lists of some words, and the three steps by which two nodes intersect theirs.

use crate::library;
use crate::processes::{Connection, Result, serve};
use everbloom::{AnyFilter, Goal};
use everbloom_all::KINDS;
use std::collections::HashMap;
use std::f64::consts::LN_2;

/// How a node tells another one what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// The documents themselves.
    List,
    /// A Bloom filter of 8 bits a document.
    EightBits,
    /// A compressed filter of the best rate, or the list if that is shorter.
    Best,
}

/// All of them.
pub(crate) const METHODS: [Method; 3] = [Method::List, Method::EightBits, Method::Best];

/// What another process wants: to search, to know how long a list is, or step 2 with a list or with a filter.
const SEARCH: u8 = 0;
const LENGTH: u8 = 1;
const WITH_LIST: u8 = 2;
const WITH_FILTER: u8 = 3;

/// A filter may not take more memory than this, whoever sends it.
const UNPACKED_BYTES: u64 = 64 << 20;

struct Node {
    number: usize,
    nodes: usize,
    lists: HashMap<&'static str, Vec<u32>>,
}

pub(crate) fn run(number: usize, nodes: usize) -> Result<()> {
    let own = library::WORDS.iter().map(|(word, _)| *word).filter(|word| library::node_of(word, nodes) == number);
    let node = Node { number, nodes, lists: own.map(|word| (word, library::list(word))).collect() };
    serve(move |message| node.answer(message))
}

impl Node {
    fn answer(&self, message: &[u8]) -> Result<Vec<u8>> {
        let (what, with) = message.split_first().ok_or("an empty message")?;
        if *what == SEARCH {
            return self.search(&Search::from_bytes(with)?);
        }
        // A word, and after a line's end what the other node has.
        let end = with.iter().position(|byte| *byte == b'\n').ok_or("no word")?;
        let (word, sent) = (std::str::from_utf8(&with[..end])?, &with[end + 1..]);
        match *what {
            LENGTH => Ok((self.list(word)?.len() as u32).to_le_bytes().to_vec()),
            WITH_LIST => Ok(packed(&common(&unpacked(sent)?, self.list(word)?))),
            WITH_FILTER => {
                let filter: AnyFilter = KINDS.decoder().limit(UNPACKED_BYTES).decode(sent)?.into();
                // Step 2: of our documents, those that the filter knows.
                let candidates: Vec<u32> =
                    self.list(word)?.iter().copied().filter(|document| filter.contains(*document)).collect();
                Ok(packed(&candidates))
            }
            other => Err(format!("there is no message {other}").into()),
        }
    }

    fn list(&self, word: &str) -> Result<&[u32]> {
        Ok(self.lists.get(word).ok_or_else(|| format!("the list of '{word}' is not here"))?)
    }

    /// Begins with our own word, whose list is the shortest, and goes on with what is left.
    fn search(&self, search: &Search) -> Result<Vec<u8>> {
        let (first, others) = search.words.split_first().ok_or("no words")?;
        let mut found = self.list(first)?.to_vec();
        let mut bytes = 0;
        for word in others {
            let node = library::node_of(word, self.nodes);
            if node == self.number {
                found = common(&found, self.list(word)?);
                continue;
            }
            let mut other = Connection::to(search.ports[node])?;
            let sent = self.step_1(search.method, &found, word, &mut other, &mut bytes)?;
            bytes += sent.len() as u64;
            let candidates = other.ask(&sent)?;
            bytes += candidates.len() as u64;
            // Step 3: false positives go.
            found = common(&unpacked(&candidates)?, &found);
        }
        Ok([&bytes.to_le_bytes()[..], &packed(&found)].concat())
    }

    /// What to send of the documents that we have.
    fn step_1(
        &self,
        method: Method,
        own: &[u32],
        word: &str,
        other: &mut Connection,
        bytes: &mut u64,
    ) -> Result<Vec<u8>> {
        let message = |what: u8, content: &[u8]| [&[what], word.as_bytes(), b"\n", content].concat();
        let as_list = message(WITH_LIST, &packed(own));
        if method == Method::List || own.is_empty() {
            return Ok(as_list);
        }
        let goal = Goal::new().filter("bloom").expected_items(own.len() as u64);
        let mut filter = match method {
            Method::EightBits => goal.memory_bits((8 * own.len() as u64).max(512)).build()?,
            _ => {
                let asked = message(LENGTH, b"");
                let length = other.ask(&asked)?;
                *bytes += (asked.len() + length.len()) as u64;
                let length = f64::from(unpacked(&length)?[0]).max(1.0);
                // Where the sum of filter and false positives is least.
                let rate = own.len() as f64 / (32.0 * LN_2 * LN_2 * length);
                goal.fpr(rate.clamp(1e-6, 0.5)).compressed().build()?
            }
        };
        filter.extend(own.iter().copied());
        let filter = match method {
            Method::EightBits => filter.to_bytes(),
            _ => filter.to_compressed_bytes(),
        };
        let as_filter = message(WITH_FILTER, &filter);
        Ok(if method == Method::Best && as_list.len() <= as_filter.len() { as_list } else { as_filter })
    }
}

/// What two lists have in common; the second is in order.
fn common(one: &[u32], other: &[u32]) -> Vec<u32> {
    one.iter().copied().filter(|document| other.binary_search(document).is_ok()).collect()
}

/// Four bytes a document.
fn packed(documents: &[u32]) -> Vec<u8> {
    documents.iter().flat_map(|document| document.to_le_bytes()).collect()
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u32>> {
    match bytes.as_chunks() {
        (documents, []) => Ok(documents.iter().map(|document| u32::from_le_bytes(*document)).collect()),
        _ => Err("a list is not cut into fours".into()),
    }
}

/// What the user wants.
pub(crate) struct Search {
    pub(crate) method: Method,
    /// Where the nodes listen.
    pub(crate) ports: Vec<u16>,
    /// The word with the shortest list first.
    pub(crate) words: Vec<String>,
}

impl Search {
    /// The method, the ports and the words, a line each.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let method = METHODS.iter().position(|method| *method == self.method).unwrap_or(0);
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        let text = format!("{method}\n{}\n{}", ports.join(" "), self.words.join(" "));
        [&[SEARCH], text.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let lines: Vec<&str> = std::str::from_utf8(bytes)?.lines().collect();
        let [method, ports, words] = lines[..] else { return Err("a search has three lines".into()) };
        Ok(Search {
            method: *METHODS.get(method.parse::<usize>()?).ok_or("no such method")?,
            ports: ports.split(' ').map(str::parse).collect::<std::result::Result<_, _>>()?,
            words: words.split(' ').map(str::to_string).collect(),
        })
    }
}

/// What was found, and the bytes that nodes sent each other for it.
pub(crate) struct Found {
    pub(crate) documents: Vec<u32>,
    pub(crate) bytes: u64,
}

pub(crate) fn answer_from(bytes: &[u8]) -> Result<Found> {
    let (count, documents) = bytes.split_first_chunk().ok_or("an answer without its bytes")?;
    Ok(Found { documents: unpacked(documents)?, bytes: u64::from_le_bytes(*count) })
}
