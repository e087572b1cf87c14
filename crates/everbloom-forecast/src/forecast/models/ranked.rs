//! The occupancy and lane model: a key's way through its word.
//!
//! Where arrivals are independent draws, a key that came λ of the time is in one of the lanes, out, or not
//! seen yet. It moves one lane down when a new key goes in at its lane or above, or when a key from below
//! comes back and moves to the front; it goes to the front when it comes back itself, and falls off the last
//! lane. The rates of all this are those of an average word, which the keys of all classes make up together:
//!
//! > down from lane i: inserted·[rank ≤ i] + Σ_{j>i} hits_j / occupied_i
//!
//! Followed step by step from the first arrival, one class of keys at a time, each step solved for its end, so
//! that keys which come many times within a step do no harm.
//!
//! The model takes all words for alike; the fewer lanes they have, the less that is so. Compared with simulations at
//! 0.5 to 4 bits a key, uniform and Zipf: within 2.6 % of the FNR with five lanes (5.3 %, or 0.2 points, on a Zipf stream
//! with 4 bits), within 4 % with seven; 7 % too high at worst in longer trials (37.5
//! for 35.0 %, uniform, 76 % distinct, six lanes); with two lanes up to 16 % too low, and a third too low
//! where there is hardly a key for each lane. So both are simulated.

use crate::stream::integrate::{ALL_ALIKE, Integral, miss_over_time};
use crate::stream::{Method, RateBand};
use crate::{Forecast, Stream};
use everbloom::filters::ranked::{Gate, Hit, Insert, Parameters};
use everbloom::{Plan, Result};
use libm::exp;

/// Steps, as arrivals at a word at first and as a share of the arrivals so far later on.
const FIRST_STEP: f64 = 0.05;
const LATER_STEP: f64 = 0.01;

/// With fewer keys for each lane, so much varies from word to word that the model is too far off.
const LEAST_LOAD: f64 = 2.0;

/// With fewer lanes the model is too far off.
const FEWEST_LANES: u32 = 4;

const MOST_LANES: usize = 64;

type Lanes = [f64; MOST_LANES];

pub(super) fn forecast(plan: &Plan, stream: &Stream) -> Result<Option<Forecast>> {
    let parameters = Parameters::from_spec(&plan.spec)?;
    let footprint = stream.footprint();
    let simple = parameters.gate == Gate::Off
        && parameters.hit == Hit::Front
        && parameters.insert != Insert::Importance
        && parameters.lanes >= FEWEST_LANES
        && stream.distinct() as f64 >= LEAST_LOAD * parameters.capacity() as f64;
    let Some(classes) = footprint.classes().filter(|_| simple) else { return Ok(None) };
    let arrivals = stream.arrivals() as f64;
    let model = Model::followed(&parameters, classes, arrivals);
    let integral =
        Integral { state: &|time| model.state_at(time), fnr: &|lag, _| model.missed_after(lag), levels: ALL_ALIKE };
    let mut forecast = integral.forecast(stream, plan.promise, Method::Chain);
    let (all, late) = (model.missed(0.0), model.missed(0.9 * arrivals));
    forecast.weighted_fnr *= if forecast.predicted_fnr > 0.0 { all / forecast.predicted_fnr } else { 0.0 };
    forecast.by_importance.iter_mut().for_each(|row| row.predicted_fnr = all);
    (forecast.predicted_fnr, forecast.late_fnr, forecast.promise.predicted_fnr) = (all, late, Some(all));
    let steps = model.steps.iter().map(|step| (step.time, step.repeats, step.missed));
    miss_over_time(&mut forecast.over_time, arrivals, steps);
    Ok(Some(forecast))
}

/// Where the keys of a class are, as shares of them.
#[derive(Clone, Copy)]
struct Keys {
    class: RateBand,
    lanes: Lanes,
    out: f64,
    unseen: f64,
}

/// What an average word sees at one arrival.
#[derive(Clone, Copy)]
struct Word {
    /// The rate at which a key moves down from a lane.
    down: Lanes,
    /// Where a key goes in.
    into: Lanes,
    /// The rate at which a lane is taken for another key's and moves to the front.
    mistaken: f64,
    fpr: f64,
    occupied: f64,
}

struct Step {
    time: f64,
    fpr: f64,
    zeros: f64,
    repeats: f64,
    missed: f64,
}

struct Model {
    lanes: usize,
    steps: Vec<Step>,
    keys: Vec<Keys>,
    word: Word,
}

impl Model {
    fn followed(parameters: &Parameters, classes: &[RateBand], arrivals: f64) -> Self {
        let (lanes, words) = (parameters.lanes as usize, parameters.num_words as f64);
        let rank = match parameters.insert {
            Insert::Front => 0,
            Insert::Rank1 => 1,
            Insert::Tail => lanes - 1,
            _ => lanes / 2,
        };
        let rates = parameters.rates();
        let mut keys: Vec<Keys> = classes
            .iter()
            .map(|class| Keys { class: *class, lanes: [0.0; MOST_LANES], out: 0.0, unseen: 1.0 })
            .collect();
        let mut steps = vec![Step { time: 0.0, fpr: 0.0, zeros: 1.0, repeats: 0.0, missed: 0.0 }];
        let mut word = Word::of(&keys, words, rank, &rates);
        let mut time = 0.0;
        while time < arrivals {
            let width = (FIRST_STEP * words).max(LATER_STEP * time).max(1.0).min(arrivals - time);
            let (mut repeats, mut missed) = (0.0, 0.0);
            for class in &mut keys {
                let before = (class.unseen, class.out);
                class.advance(&word, width, lanes);
                let weight = class.class.keys * class.class.rate * width;
                repeats += weight * (1.0 - 0.5 * (before.0 + class.unseen));
                missed += weight * 0.5 * (before.1 + class.out) * (1.0 - word.fpr);
            }
            time += width;
            word = Word::of(&keys, words, rank, &rates);
            steps.push(Step { time, fpr: word.fpr, zeros: 1.0 - word.occupied, repeats, missed });
        }
        Model { lanes, steps, keys, word }
    }

    fn state_at(&self, time: f64) -> (f64, f64) {
        let after = self.steps.partition_point(|step| step.time <= time).clamp(1, self.steps.len() - 1);
        let (one, other) = (&self.steps[after - 1], &self.steps[after]);
        let share = ((time - one.time) / (other.time - one.time)).clamp(0.0, 1.0);
        (one.fpr + share * (other.fpr - one.fpr), one.zeros + share * (other.zeros - one.zeros))
    }

    fn missed(&self, after: f64) -> f64 {
        let late = self.steps.iter().filter(|step| step.time > after);
        let (repeats, missed) = late.fold((0.0, 0.0), |sum, step| (sum.0 + step.repeats, sum.1 + step.missed));
        if repeats > 0.0 { missed / repeats } else { 0.0 }
    }

    /// The rate of false negatives at a lag, at the end of the stream: a key that was found moved to the front then,
    /// one that was not went in at the rank. Classes count by how often their keys come back after such a lag.
    fn missed_after(&self, lag: f64) -> f64 {
        let mut front = [0.0; MOST_LANES];
        front[0] = 1.0;
        let (from_front, from_rank) = (self.fallen(front, lag), self.fallen(self.word.into, lag));
        let (mut sum, mut mass) = (0.0, 0.0);
        for keys in &self.keys {
            let weight = keys.class.keys * keys.class.rate * keys.class.rate * exp(-keys.class.rate * lag);
            let there: f64 = keys.lanes[..self.lanes].iter().sum::<f64>() / (1.0 - keys.unseen).max(1e-12);
            sum += weight * (there * from_front + (1.0 - there) * from_rank);
            mass += weight;
        }
        if mass > 0.0 { sum / mass * (1.0 - self.word.fpr) } else { from_rank * (1.0 - self.word.fpr) }
    }

    /// The share of keys that has fallen off after so many arrivals, from where it was.
    fn fallen(&self, mut lanes: Lanes, lag: f64) -> f64 {
        let steps = 48;
        for _ in 0..steps {
            let (width, mut above) = (lag / f64::from(steps), 0.0);
            for lane in 0..self.lanes {
                let there = (lanes[lane] + above) / (1.0 + width * self.word.down[lane]);
                above = width * self.word.down[lane] * there;
                lanes[lane] = there;
            }
        }
        1.0 - lanes[..self.lanes].iter().sum::<f64>()
    }
}

impl Word {
    /// `rates` are those of words with 0, 1, … keys.
    fn of(keys: &[Keys], words: f64, rank: usize, rates: &[f64]) -> Self {
        let lanes = rates.len() - 1;
        let (mut occupied, mut hits, mut missing) = ([0.0; MOST_LANES], [0.0; MOST_LANES], 0.0);
        for keys in keys {
            let (count, traffic) = (keys.class.keys / words, keys.class.keys * keys.class.rate / words);
            for lane in 0..lanes {
                occupied[lane] += count * keys.lanes[lane];
                hits[lane] += traffic * keys.lanes[lane];
            }
            missing += traffic * (keys.unseen + keys.out);
        }
        occupied.iter_mut().for_each(|share| *share = share.min(1.0));
        let total: f64 = occupied[..lanes].iter().sum();
        // Lane i is in use where a word has more than i keys, and adds to the rate what that key more does.
        let fpr: f64 = (0..lanes).map(|lane| occupied[lane] * (rates[lane + 1] - rates[lane])).sum();
        let mistaken = missing * fpr / total.max(1e-12);
        let (mut down, mut into, mut below) = ([0.0; MOST_LANES], [0.0; MOST_LANES], 0.0);
        for lane in (0..lanes).rev() {
            let inserted = if rank <= lane { missing * (1.0 - fpr) } else { 0.0 };
            down[lane] = inserted + below / occupied[lane].max(1e-9);
            below += hits[lane] + mistaken * occupied[lane];
            let before = if lane == 0 { 1.0 } else { occupied[lane - 1] };
            into[lane] = match lane.cmp(&rank) {
                std::cmp::Ordering::Less => (before - occupied[lane]).max(0.0),
                std::cmp::Ordering::Equal => before,
                std::cmp::Ordering::Greater => 0.0,
            };
        }
        let sum: f64 = into[..lanes].iter().sum();
        into.iter_mut().for_each(|share| *share /= sum.max(1e-12));
        Word { down, into, mistaken, fpr, occupied: total / lanes as f64 }
    }
}

impl Keys {
    /// One step, solved for its end: each lane is a + b·(all lanes) + c·(out), and these two are solved for.
    fn advance(&mut self, word: &Word, width: f64, lanes: usize) {
        let own = width * self.class.rate;
        let unseen = self.unseen * self.class.absent(width);
        let new = self.unseen - unseen;
        let (to_front, back) = (own + width * word.mistaken, own * (1.0 - word.fpr));
        let (mut a, mut b, mut c) = ([0.0; MOST_LANES], [0.0; MOST_LANES], [0.0; MOST_LANES]);
        let (mut above, mut sums) = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0));
        for lane in 0..lanes {
            let leave = 1.0 + width * word.down[lane] + to_front;
            a[lane] = (self.lanes[lane] + above.0 + word.into[lane] * new * (1.0 - word.fpr)) / leave;
            b[lane] = (above.1 + if lane == 0 { to_front } else { 0.0 }) / leave;
            c[lane] = (above.2 + word.into[lane] * back) / leave;
            let down = width * word.down[lane];
            above = (down * a[lane], down * b[lane], down * c[lane]);
            sums = (sums.0 + a[lane], sums.1 + b[lane], sums.2 + c[lane]);
        }
        // all = sums.0 + sums.1·all + sums.2·out;  (1 + back)·out = out before + new mistaken + above at the last lane
        let given = self.out + new * word.fpr + above.0;
        let (one, two) = (1.0 - sums.1, 1.0 + back - above.2);
        let all = (sums.0 * two + sums.2 * given) / (one * two - sums.2 * above.1);
        let out = (given + above.1 * all) / two;
        for lane in 0..lanes {
            self.lanes[lane] = a[lane] + b[lane] * all + c[lane] * out;
        }
        (self.out, self.unseen) = (out, unseen);
    }
}
