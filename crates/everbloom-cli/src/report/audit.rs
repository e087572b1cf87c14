//! What an audit measured, in words and for programs.

use super::words::{self, Things};
use super::{counted, percent, thousands};
use everbloom_forecast::{AuditReport, Breach, Measured};
use serde::Serialize;

/// A rate and the interval in which it is with a probability of 95 %.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Interval {
    rate: f64,
    low: f64,
    high: f64,
    /// Arrivals of which it is a rate, about.
    of: f64,
}

impl From<Measured> for Interval {
    fn from(measured: Measured) -> Self {
        let Measured { rate, low, high, of, .. } = measured;
        Interval { rate, low, high, of }
    }
}

impl Interval {
    /// `1.2 % (1 to 1.4 %)`, or the rate alone where it is exact.
    fn words(&self) -> String {
        if self.low == self.high {
            return percent(self.rate);
        }
        let low = percent(self.low);
        format!("{} ({} to {})", percent(self.rate), low.trim_end_matches(" %"), percent(self.high))
    }
}

/// The document of an audit.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Audited {
    arrivals: u64,
    followed_keys: u64,
    /// One key in so many is followed.
    one_in: u64,
    /// Arrivals of the hottest keys, which were counted.
    covered_arrivals: u64,
    estimated_keys: f64,
    measured_fpr: Option<Interval>,
    measured_fnr: Option<Interval>,
    last: Last,
    by_lag: Vec<Lag>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_importance: Vec<Class>,
}

#[derive(Debug, Clone, Serialize)]
struct Last {
    from: u64,
    measured_fpr: Option<Interval>,
    measured_fnr: Option<Interval>,
}

#[derive(Debug, Clone, Serialize)]
struct Lag {
    from: u64,
    below: u64,
    measured_fnr: Interval,
}

#[derive(Debug, Clone, Serialize)]
struct Class {
    from: f64,
    below: f64,
    measured_fpr: Option<Interval>,
    measured_fnr: Option<Interval>,
}

impl Audited {
    pub(crate) fn of(report: &AuditReport) -> Self {
        let interval = |measured: Option<Measured>| measured.map(Interval::from);
        Audited {
            arrivals: report.arrivals,
            followed_keys: report.followed_keys,
            one_in: report.one_in,
            covered_arrivals: report.covered_arrivals,
            estimated_keys: report.estimated_keys,
            measured_fpr: interval(report.measured_fpr),
            measured_fnr: interval(report.measured_fnr),
            last: Last {
                from: report.last.from,
                measured_fpr: interval(report.last.measured_fpr),
                measured_fnr: interval(report.last.measured_fnr),
            },
            by_lag: (report.by_lag.iter())
                .map(|lag| Lag { from: lag.from, below: lag.below, measured_fnr: lag.measured_fnr.into() })
                .collect(),
            by_importance: (report.by_importance.iter())
                .map(|class| Class {
                    from: class.from,
                    below: class.below,
                    measured_fpr: interval(class.measured_fpr),
                    measured_fnr: interval(class.measured_fnr),
                })
                .collect(),
        }
    }

    /// A sentence or two for people; nothing of nothing.
    pub(crate) fn summary(&self) -> String {
        if self.arrivals == 0 {
            return String::new();
        }
        let last = self.arrivals.saturating_sub(self.last.from.saturating_sub(1));
        let share = percent((last as f64 / self.arrivals.max(1) as f64 * 100.0).round() / 100.0);
        let rates = [
            self.words(self.measured_fpr, " of new lines were taken for repeats", "there was no new line"),
            self.words(self.measured_fnr, " of repeats for new", "there was no repeat"),
        ];
        let late = [
            self.words(self.last.measured_fpr, "", "none was new"),
            self.words(self.last.measured_fnr, "", "none was a repeat"),
        ];
        let (rates, late) = (rates.join(", "), late.join(" and "));
        format!(" Measured on {}: {rates}; in the last {share} of the lines {late}.", self.sample())
    }

    /// A rate, or that there is none; of which only those keys can tell that are followed.
    fn words(&self, rate: Option<Interval>, of: &str, none: &str) -> String {
        match (rate, self.one_in) {
            (Some(rate), _) => format!("{}{of}", rate.words()),
            (None, 1) => none.into(),
            (None, _) => format!("{none} among these"),
        }
    }

    /// Which keys tell.
    fn sample(&self) -> String {
        match self.one_in {
            1 => format!("all {}", counted(self.followed_keys, "key")),
            many => format!("{}, 1 in {}, with 95 % intervals", counted(self.followed_keys, "key"), thousands(many)),
        }
    }

    /// Rows of a table.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let row = |rate: Option<Interval>, none: &str| self.words(rate, "", none);
        let mut rows = vec![
            ("audit", format!("{}, {}", counted(self.arrivals, "line"), self.sample())),
            ("measured fpr", row(self.measured_fpr, "no new keys")),
            ("measured fnr", row(self.measured_fnr, "no repeats")),
            ("since line", thousands(self.last.from)),
            ("  measured fpr", row(self.last.measured_fpr, "no new keys")),
            ("  measured fnr", row(self.last.measured_fnr, "no repeats")),
        ];
        for lag in self.by_lag.iter().filter(|lag| lag.measured_fnr.high > 0.0) {
            let lags = format!("lags {} to {}", thousands(lag.from), thousands(lag.below - 1));
            rows.push(("  fnr by lag", format!("{}: {lags}", lag.measured_fnr.words())));
        }
        for class in &self.by_importance {
            let (fpr, fnr) = (row(class.measured_fpr, "no new keys"), row(class.measured_fnr, "no repeats"));
            let of = format!("{} to {} of the largest", percent(class.from), percent(class.below));
            rows.push(("  by importance", format!("{of}: fpr {fpr}, fnr {fnr}")));
        }
        rows
    }
}

/// A promise that is broken, as the audit shows.
pub(crate) fn breach(breach: &Breach, things: Things) -> String {
    let measured = Interval::from(breach.measured).words();
    let (rated, mistaken) = match breach.is_fpr {
        true => (things.rated, things.mistaken),
        false => ("repeats", "taken for new"),
    };
    let part = if breach.is_last { " in the last part of the stream" } else { "" };
    format!(
        "the promise is broken, as the audit shows: {measured} of {rated} were {mistaken}{part}, instead of at most {}",
        words::at_most(breach.promised)
    )
}
