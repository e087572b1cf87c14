//! A plan for people.

use super::{Document, Row, chart};
use crate::report::{percent, size, thousands};
use everbloom::{Recommendation, Spec, filters};

/// What Bloom-filter calculators answer: bits, hashes, bytes.
pub(super) fn one_line(document: &Document, answer: &Recommendation) -> String {
    let line = |row: &Row| {
        let hashes = row.filter.split("num_hashes=").nth(1).map_or("8 hashes in one cache line".to_string(), |rest| {
            format!("{} hashes", rest.split(',').next().unwrap_or_default())
        });
        let bits = row.memory_bits;
        format!("{} bits, {hashes}, {} bytes", thousands(bits), thousands(bits.div_ceil(8)))
    };
    let kind = |row: &Row| row.filter.split(':').next().unwrap_or_default().to_string();
    let items = document.promised_items.map_or(String::new(), |items| format!(" for {} keys", thousands(items)));
    let mut text = format!(
        "{}: {}, keeps {}{items}",
        kind(&document.best),
        line(&document.best),
        percent(answer.best.plan.promise.predicted_fpr),
    );
    if let Some(other) =
        answer.runners_up.iter().position(|other| is_set(&other.plan.spec)).map(|at| &document.runners_up[at])
    {
        text.push_str(&format!("; {}: {}", kind(other), line(other)));
    }
    text.push('\n');
    text
}

/// Whether a filter never forgets.
fn is_set(spec: &Spec) -> bool {
    filters::kind(spec).is_ok_and(|kind| !kind.forgets(spec))
}

/// A rate, with its ± where it was counted.
fn with_error(rate: f64, error: Option<f64>) -> String {
    error.map_or_else(|| percent(rate), |error| format!("{} ± {}", percent(rate), percent(error)))
}

pub(super) fn render(document: &Document, answer: &Recommendation) -> String {
    let best = &document.best;
    let promise = match (document.promise, document.promised_items) {
        (_, Some(items)) => format!("kept until {} distinct keys have come", thousands(items)),
        ("always", _) => "kept at every moment".to_string(),
        _ => "not promised, since its parameters were given".to_string(),
    };
    let stream = &document.stream;
    let assumed = if stream.assumed { "assumed: " } else { "" };
    let mut rows = vec![
        ("take", best.filter.clone()),
        ("because", best.reason.clone()),
        ("memory", size(best.memory_bits)),
        (
            "false positives",
            format!(
                "{} at most, {promise}; about {} on this stream",
                percent(best.predicted_fpr),
                with_error(best.stream_fpr, best.stream_fpr_error)
            ),
        ),
        (
            "false negatives",
            format!(
                "{}, {} late in the stream, by {}",
                with_error(best.predicted_fnr, best.predicted_fnr_error),
                percent(document.late_fnr),
                best.method
            ),
        ),
        (
            "stream",
            format!(
                "{assumed}{} arrivals, {} distinct, {}",
                thousands(stream.arrivals),
                thousands(stream.distinct),
                stream.repeats
            ),
        ),
    ];
    if !document.fnr_by_importance.is_empty() {
        rows.push(("by importance", format!("wfp {}, wfn {}", percent(document.wfp), percent(document.wfn))));
    }
    let settled = document.stable_after.map_or("not before the stream ends".to_string(), |after| {
        format!("after {} arrivals", thousands(after as u64))
    });
    rows.push(("settled", format!("{settled}; {} of the cells are zero then", percent(document.zeros))));
    if let (Some(fnr), Some(kind)) = (document.limit_fnr, document.limit_kind) {
        rows.push(("limit", format!("no filter of this memory misses fewer than {} ({kind})", percent(fnr))));
    }
    rows.extend(document.notes.iter().map(|note| ("note", note.clone())));
    rows.push(("use", document.command.clone()));
    let mut text = crate::report::columns(&rows);
    if best.predicted_fnr > 0.0 {
        text.push_str(&chart::by_lag(&document.fnr_by_lag));
    }
    if !document.runners_up.is_empty() {
        text.push_str("\ninstead\n");
    }
    for (row, candidate) in document.runners_up.iter().zip(&answer.runners_up) {
        text.push_str(&format!("  {}\n      {} ({})\n", row.filter, row.reason, candidate.forecast.method.name()));
    }
    text
}
