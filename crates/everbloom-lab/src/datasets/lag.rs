//! Log-distributed lag: repeats come soon, or much later, and every order of magnitude of distance
//! is equally likely. What caches, logs and version histories look like.

use super::{Arrival, Arrivals, Request};
use everbloom::Result;
use everbloom_cells::key::Generator;
use libm::{exp, log};

const DEFAULT_SHARE: f64 = 0.49;

struct LogLag {
    generator: Generator,
    new_share: f64,
    history: Vec<u32>,
    next_key: u32,
}

impl LogLag {
    fn draw(&mut self) -> u64 {
        let here = self.history.len();
        let key = if here == 0 || self.generator.unit() < self.new_share {
            self.next_key += 1;
            self.next_key - 1
        } else {
            // exp of a uniform number below ln(here + 1) is at least 1 and less than here + 1.
            let lag = exp(self.generator.unit() * log(here as f64 + 1.0)) as usize;
            self.history[here - lag.clamp(1, here)]
        };
        self.history.push(key);
        u64::from(key)
    }
}

pub(super) fn open(request: &Request) -> Result<Arrivals> {
    request.without_exponent()?;
    request.remembered()?;
    let mut stream = LogLag {
        generator: Generator::seeded(request.seed),
        new_share: request.distinct.unwrap_or(DEFAULT_SHARE),
        history: Vec::new(),
        next_key: 0,
    };
    Ok(Box::new((0..request.items()).map(move |_| Arrival { key: stream.draw(), importance: 1 })))
}
