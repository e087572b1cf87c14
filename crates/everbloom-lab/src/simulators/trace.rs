//! Requests for objects at proxies, in order of time: read from a file, or generated.

use crate::bad;
use crate::datasets::zipf::Zipf;
use everbloom::kind::suggestion;
use everbloom::{Error, Result};
use everbloom_cells::key::Generator;
use std::collections::HashMap;
use std::io::BufRead;

/// More proxies than this are refused: which of them have an object is kept in one word.
pub const MOST_PROXIES: usize = 64;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// At which proxy.
    pub proxy: u16,
    /// For which object.
    pub object: u32,
}

/// Requests in order of time; proxies and objects are numbered from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The requests.
    pub requests: Vec<Request>,
    /// How many proxies there are.
    pub proxies: usize,
    /// How many different objects there are.
    pub objects: usize,
}

impl Trace {
    /// Reads lines of time, tab, proxy, tab, object, and, if there is one, tab and size. Requests of several proxies
    /// are put into the order of their times.
    pub fn read(mut source: impl BufRead) -> Result<Self> {
        let mut reading = Reading::default();
        let (mut line, mut number) = (Vec::new(), 0u64);
        while source.read_until(b'\n', &mut line)? > 0 {
            number += 1;
            reading.take(line.strip_suffix(b"\n").unwrap_or(&line)).map_err(|problem| Error::Corrupt {
                problem: format!("line {number} of the trace {problem}"),
                remedy: "write time, tab, proxy, tab, object, and tab and size if they are known",
            })?;
            line.clear();
        }
        reading.finish()
    }
}

/// A trace half read.
#[derive(Default)]
struct Reading {
    requests: Vec<(f64, Request)>,
    proxies: HashMap<Vec<u8>, u16>,
    objects: HashMap<Vec<u8>, u32>,
}

impl Reading {
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let fields: Vec<&[u8]> = line.strip_suffix(b"\r").unwrap_or(line).split(|byte| *byte == b'\t').collect();
        let (time, proxy, object) = match fields[..] {
            [time, proxy, object] => (time, proxy, object),
            // Caches count objects here, not bytes; but a size that is none is a bad line.
            [time, proxy, object, size] => number(size, "size").map(|_| (time, proxy, object))?,
            _ => return Err(format!("has {} fields instead of 3 or 4", fields.len())),
        };
        let time = number(time, "time")?;
        let proxies = self.proxies.len();
        let proxy = *self.proxies.entry(proxy.to_vec()).or_insert(proxies as u16);
        if usize::from(proxy) >= MOST_PROXIES {
            return Err(format!("names one proxy more than the {MOST_PROXIES} there may be"));
        }
        let objects = self.objects.len();
        if objects >= u32::MAX as usize {
            return Err("has an object more than can be numbered".into());
        }
        let object = *self.objects.entry(object.to_vec()).or_insert(objects as u32);
        self.requests.push((time, Request { proxy, object }));
        Ok(())
    }

    fn finish(mut self) -> Result<Trace> {
        if self.requests.is_empty() {
            return Err(bad("trace", "empty", "at least a request", "write time, tab, proxy, tab, object a line"));
        }
        self.requests.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Ok(Trace {
            requests: self.requests.into_iter().map(|(_, request)| request).collect(),
            proxies: self.proxies.len(),
            objects: self.objects.len(),
        })
    }
}

/// A finite number of 0 or above.
fn number(text: &[u8], what: &str) -> Result<f64, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<f64>().ok());
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("has '{}' where its {what} should be", String::from_utf8_lossy(text)))
}

/// A trace to be generated. All proxies draw from the same catalogue, in a random order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// The name, for tables and charts.
    pub name: &'static str,
    /// The exponent of the Zipf distribution of requests over the catalogue.
    pub exponent: f64,
    /// The share of requests that are for an object never asked for again.
    pub one_timers: f64,
    /// The share of the catalogue that has changed its popularity by the end.
    pub drift: f64,
    /// Objects in the catalogue, per slot of a cache.
    pub catalogue_per_slot: u64,
    /// Requests at each proxy, per slot of its cache.
    pub requests_per_slot: u64,
}

/// The generated traces. The exponents are those that studies of web proxies report; the paper's trace has 43 requests
/// a slot for training, as many for testing, and a third of its requests are for new objects.
pub const RECIPES: [Recipe; 7] = [
    Recipe { name: "zipf-0.75", exponent: 0.75, ..BASE },
    Recipe { name: "zipf-0.9", exponent: 0.9, ..BASE },
    Recipe { name: "zipf-1", exponent: 1.0, ..BASE },
    Recipe { name: "zipf-1.2", exponent: 1.2, ..BASE },
    Recipe { name: "one-timers", one_timers: 0.3, ..BASE },
    Recipe { name: "drift", drift: 0.1, ..BASE },
    Recipe { name: "settled", requests_per_slot: 266, ..BASE },
];

/// What the traces have in common unless said otherwise.
const BASE: Recipe =
    Recipe { name: "short", exponent: 0.9, one_timers: 0.1, drift: 0.0, catalogue_per_slot: 20, requests_per_slot: 40 };

impl Recipe {
    /// The recipe of this name.
    pub fn named(name: &str) -> Result<Self> {
        RECIPES.iter().find(|recipe| recipe.name == name).copied().ok_or_else(|| {
            let names = RECIPES.map(|recipe| recipe.name);
            bad("trace", name, "one of the generated ones", &suggestion(name, names, "take one of"))
        })
    }

    /// The trace for caches of so many slots.
    pub fn generate(&self, proxies: usize, slots: u64, seed: u64) -> Result<Trace> {
        let catalogue = self.catalogue_per_slot * slots;
        let zipf = Zipf::new(catalogue, self.exponent)?;
        let mut generator = Generator::seeded(seed);
        let mut ranks: Vec<u32> = (0..catalogue as u32).collect();
        let total = self.requests_per_slot * slots * proxies as u64;
        let mut trace = Trace { requests: Vec::with_capacity(total as usize), proxies, objects: catalogue as usize };
        // Two places are swapped at a time, so half as many swaps as objects that move.
        let swap = self.drift * catalogue as f64 / 2.0 / total as f64;
        for _ in 0..total {
            if generator.unit() < swap {
                let [one, other] = [0; 2].map(|_: u64| generator.below(catalogue) as usize);
                ranks.swap(one, other);
            }
            let object = if generator.unit() < self.one_timers {
                trace.objects += 1;
                trace.objects as u32 - 1
            } else {
                ranks[zipf.rank(&mut generator) as usize - 1]
            };
            trace.requests.push(Request { proxy: generator.below(proxies as u64) as u16, object });
        }
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_requests_come_in_order_of_time() {
        let text = b"3\tb\tx\n1\ta\ty\t100\r\n2.5\ta\tx";
        let trace = Trace::read(&text[..]).expect("a trace");
        assert_eq!((trace.proxies, trace.objects), (2, 2));
        let requests: Vec<_> = trace.requests.iter().map(|request| (request.proxy, request.object)).collect();
        assert_eq!(requests, [(1, 1), (1, 0), (0, 0)]);
    }

    #[test]
    fn bad_lines_are_named_by_their_number() {
        for (text, mention) in [
            ("1\ta\tx\n1\ta\n", "line 2 of the trace has 2 fields"),
            ("soon\ta\tx\n", "line 1 of the trace has 'soon' where its time"),
            ("1\ta\tx\n2\ta\tx\tbig\n", "line 2 of the trace has 'big' where its size"),
            ("1\ta\tx\n\n2\ta\tx\n", "line 2"),
            ("NaN\ta\tx\n", "line 1"),
            ("1\ta\tx\ty\tz\n", "5 fields"),
            ("", "trace is empty"),
        ] {
            let problem = Trace::read(text.as_bytes()).expect_err(mention).to_string();
            assert!(problem.contains(mention), "{problem}");
        }
        let many: String = (0..65).map(|proxy| format!("1\tp{proxy}\tx\n")).collect();
        assert!(Trace::read(many.as_bytes()).expect_err("65 proxies").to_string().contains("line 65"));
    }

    #[test]
    fn generated_traces_are_as_their_recipes_say() {
        for recipe in RECIPES {
            let trace = recipe.generate(4, 50, 1).expect(recipe.name);
            assert_eq!(trace.requests.len() as u64, recipe.requests_per_slot * 50 * 4);
            let share = (trace.objects as u64 - recipe.catalogue_per_slot * 50) as f64 / trace.requests.len() as f64;
            let sigma = (recipe.one_timers * (1.0 - recipe.one_timers) / trace.requests.len() as f64).sqrt();
            assert!((share - recipe.one_timers).abs() < 4.0 * sigma, "{}: {share}", recipe.name);
            assert_eq!(trace, recipe.generate(4, 50, 1).expect("again"));
        }
        assert!(Recipe::named("no-such").is_err());
    }
}
