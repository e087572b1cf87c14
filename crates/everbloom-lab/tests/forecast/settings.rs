//! A filter, a memory and a stream, and how far the forecast is from what happens.

use everbloom::{Goal, Hashing, Importance, ImportanceMix, Importances, Plan};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use everbloom_forecast::stream::Sample;
use everbloom_forecast::{Forecast, Stream, forecast};
use everbloom_lab::datasets::{self, Request};
use everbloom_lab::evaluate::{self, Batch, Source};
use everbloom_lab::metrics::Tally;
use std::fmt;

/// Seeds for which a setting is measured: hot keys that share a word move a single one by several per cent.
const ROUNDS: u64 = 3;

/// The streams of the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Uniform {
        distinct: f64,
    },
    Zipf {
        distinct: f64,
        exponent: f64,
    },
    /// Told by a sample: the same kind of stream with another seed.
    LogLag {
        distinct: f64,
    },
    Linear,
    Exponential70,
}

#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) spec: String,
    pub(crate) kind: Kind,
    pub(crate) arrivals: u64,
    pub(crate) bits_per_arrival: f64,
    pub(crate) target_fpr: f64,
    pub(crate) seed: u64,
}

/// Planned, or by hand as the papers do; the size of the second is a share of the memory.
const SPECS: &str = "bloom blocked counting spectral scalable stable stable:update=always \
    stable:update=always,layout=spread,decrement=independent stable:update=distinct,cell_max=1,layout=spread \
    reservoir reservoir:num_filters=3 ranked ranked:insert=middle,hit=front ranked:lanes=6,insert=tail,hit=front \
    ranked:lanes=1 ranked:lanes=6,insert=front ibf1 ibf2 ibf3 ibf4 ibf5 ibf6 age_partitioned aging";

/// Settings drawn from a seed: every spec in turn, everything else at random.
pub(crate) fn draw(count: usize, seed: u64, arrivals: u64) -> Vec<Setting> {
    let mut generator = Generator::seeded(seed);
    let specs = (0..count).zip(SPECS.split_whitespace().cycle());
    specs.map(|(index, spec)| draw_one(spec, seed + index as u64, arrivals, &mut generator)).collect()
}

fn draw_one(spec: &str, seed: u64, arrivals: u64, generator: &mut Generator) -> Setting {
    let unit = |generator: &mut Generator| generator.unit();
    let kind = match generator.below(5) {
        0 => Kind::Uniform { distinct: 0.2 + 0.6 * unit(generator) },
        1 => Kind::Zipf { distinct: 0.1 + 0.3 * unit(generator), exponent: 0.6 + 0.5 * unit(generator) },
        2 => Kind::LogLag { distinct: 0.2 + 0.5 * unit(generator) },
        3 => Kind::Linear,
        _ => Kind::Exponential70,
    };
    let bits_per_arrival = libm::exp2(4.0 * unit(generator) - 2.0);
    let target_fpr = [0.1, 0.03, 0.01][generator.below(3) as usize];
    Setting { spec: spec.to_string(), kind, arrivals, bits_per_arrival, target_fpr, seed }
}

impl Setting {
    fn request(&self, seed: u64) -> (&'static str, Request) {
        let request = Request { items: Some(self.arrivals), seed, ..Default::default() };
        match self.kind {
            Kind::Uniform { distinct } => ("uniform", Request { distinct: Some(distinct), ..request }),
            Kind::Zipf { distinct, exponent } => {
                ("zipf", Request { distinct: Some(distinct), exponent: Some(exponent), ..request })
            }
            Kind::LogLag { distinct } => ("log_lag", Request { distinct: Some(distinct), ..request }),
            Kind::Linear => ("linear", request),
            Kind::Exponential70 => ("exponential_70", request),
        }
    }

    /// The stream as it is told to the forecast.
    pub(crate) fn stream(&self) -> Stream {
        let of = |share: f64| (self.arrivals as f64 * share).round() as u64;
        let stream = match self.kind {
            Kind::Uniform { distinct } => Stream::uniform(self.arrivals, of(distinct)),
            Kind::Zipf { distinct, exponent } => Stream::zipf(self.arrivals, of(distinct), exponent),
            Kind::LogLag { .. } => self.learned(),
            Kind::Linear => Stream::uniform(self.arrivals, of(distinct_of_draws(0.756)))
                .map(|stream| stream.with_importance(linear_mix())),
            Kind::Exponential70 => Stream::uniform(self.arrivals, of(distinct_of_draws(0.3125)))
                .map(|stream| stream.with_importance(exponential_mix())),
        };
        stream.expect("a stream")
    }

    fn learned(&self) -> everbloom::Result<Stream> {
        let (name, request) = self.request(self.seed + 1_000_000);
        let mut source = datasets::open(name, &request).expect("a set");
        let (mut sample, mut batch) = (Sample::default(), Batch::default());
        loop {
            batch.clear();
            source.fill(&Hashing::default(), &mut batch).expect("arrivals");
            if batch.hashes.is_empty() {
                return sample.finish();
            }
            sample.observe(&batch.hashes, Importances::default());
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        let memory_bits = (self.arrivals as f64 * self.bits_per_arrival) as u64;
        let goal = Goal::new()
            .fpr(self.target_fpr)
            .importance_mix(linear_mix())
            .memory_bits(memory_bits)
            .hashing(Hashing::seeded(self.seed));
        goal.plan_among(KINDS, &self.spec).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// The stream as it comes.
    pub(crate) fn source(&self) -> datasets::Set {
        let (name, request) = self.request(self.seed);
        datasets::open(name, &request).expect("a set")
    }

    /// What happens, over several seeds of stream and filter.
    pub(crate) fn measure(&self, plan: &Plan) -> Tally {
        let mut total = Tally::default();
        for round in 0..ROUNDS {
            let again = Setting { seed: self.seed + 1000 * round, ..self.clone() };
            let mut source = again.source();
            let mut plan = plan.clone();
            plan.hashing = Hashing::seeded(again.seed);
            let outcome = evaluate::run(&mut source, plan.hashing, vec![plan.build().expect("a filter")]);
            total.add(&outcome.expect("a run").reports[0].total);
        }
        total
    }

    pub(crate) fn judge(&self) -> Judgement {
        let plan = self.plan();
        let forecast =
            forecast::forecast(&plan, &self.stream()).unwrap_or_else(|error| panic!("{}: {error}", plan.spec));
        Judgement { setting: self.clone(), measured: self.measure(&plan), forecast, plan }
    }
}

/// The share of distinct arrivals among draws from so many keys per draw.
fn distinct_of_draws(keys_per_item: f64) -> f64 {
    keys_per_item * (1.0 - (-1.0 / keys_per_item).exp())
}

pub(crate) fn linear_mix() -> ImportanceMix {
    ImportanceMix::of((1..=50).map(|value| Importance::new(value, 50).expect("in range")))
}

/// Log-uniform in 1..50, as the thesis's exponential sets are.
fn exponential_mix() -> ImportanceMix {
    let value = |index: u32| ((f64::from(index) + 0.5) / 1000.0 * 51f64.ln()).exp().floor().clamp(1.0, 50.0) as u32;
    ImportanceMix::of((0..1000).map(|index| Importance::new(value(index), 50).expect("in range")))
}

pub(crate) struct Judgement {
    setting: Setting,
    plan: Plan,
    measured: Tally,
    pub(crate) forecast: Forecast,
}

/// 5 % of the measured rate, or 0.3 points.
pub(crate) fn near(predicted: f64, measured: f64) -> bool {
    (predicted - measured).abs() <= (0.05 * measured).max(0.003)
}

impl Judgement {
    pub(crate) fn rates(&self) -> (f64, f64) {
        (self.measured.fpr().unwrap_or(0.0), self.measured.fnr().unwrap_or(0.0))
    }

    pub(crate) fn within(&self) -> bool {
        let (fpr, fnr) = self.rates();
        near(self.forecast.predicted_fpr, fpr) && near(self.forecast.predicted_fnr, fnr)
    }

    /// By how many standard deviations of both counts there were more false positives than forecast.
    pub(crate) fn optimism(&self) -> f64 {
        let (predicted, distinct) = (self.forecast.predicted_fpr, self.measured.distinct as f64);
        let sigma = (predicted * (1.0 - predicted) / distinct).sqrt().max(1.0 / distinct);
        (self.rates().0 - predicted) / sigma.hypot(self.forecast.standard_error)
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fpr, fnr) = self.rates();
        write!(
            f,
            "{} {:11} fpr {:7.3} forecast {:7.3} ({:+.1}σ)  fnr {:7.3} forecast {:7.3}  {} on {:?}, {:.2} bits an arrival",
            if self.within() { "ok " } else { "OUT" },
            self.forecast.method.name(),
            100.0 * fpr,
            100.0 * self.forecast.predicted_fpr,
            self.optimism(),
            100.0 * fnr,
            100.0 * self.forecast.predicted_fnr,
            self.plan.spec,
            self.setting.kind,
            self.setting.bits_per_arrival,
        )
    }
}
