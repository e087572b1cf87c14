//! A plan for people: a sentence, the numbers, the repeats by lag, what else there is, and lines to paste.

use super::{Document, Row, chart};
use crate::report::paper::Paper;
use crate::report::{counted, percent, predicted, short_size, thousands, with_error};
use everbloom_forecast::Recommendation;

pub(super) fn render(document: &Document, answer: &Recommendation, paper: &Paper) -> String {
    let mut text = paper.wrap(&document.summary, 0);
    text.push('\n');
    text.push_str(&paper.columns(&rows(document)));
    if let Some(cost) = &document.cost {
        text.push_str(&cost.chart(document.best.memory_bits, paper.width()));
    }
    if document.best.predicted_fnr > 0.0 {
        text.push_str(&chart::by_lag(&document.fnr_by_lag, paper.width()));
    }
    if !document.runners_up.is_empty() {
        text.push_str("\ninstead\n");
    }
    for (row, candidate) in document.runners_up.iter().zip(&answer.runners_up) {
        let reason = format!("{} ({})", row.reason, candidate.forecast.method.name());
        text.push_str(&indented(2, &spaced(&row.filter), paper));
        // Most take what they may.
        let size = match row.memory_bits == document.best.memory_bits {
            true => String::new(),
            false => format!("{}; ", size(row)),
        };
        text.push_str(&indented(6, &format!("{size}{reason}"), paper));
    }
    document.commands.iter().for_each(|lines| text.push_str(&lines.text()));
    text
}

pub(super) fn rows(document: &Document) -> Vec<(&'static str, String)> {
    let best = &document.best;
    let promise = match (document.promise, document.promised_items) {
        (_, Some(_)) if document.promised_window.is_some() => {
            let lines = document.promised_window.map_or_else(String::new, |lines| counted(lines, "line"));
            format!("kept while no more than {lines} come in a window, evenly")
        }
        (_, Some(1)) => "kept until 1 distinct key has come".to_string(),
        (_, Some(items)) => format!("kept until {} distinct keys have come", thousands(items)),
        ("always", _) => "kept at every moment".to_string(),
        _ => "not promised, since its parameters were given".to_string(),
    };
    let stream = &document.stream;
    // What a set has inside does not come back, so that there is nothing to forecast.
    let is_set = stream.assumed && best.predicted_fnr == 0.0;
    let on_stream = match is_set {
        true => String::new(),
        false => format!("; about {} on this stream", with_bound(best)),
    };
    let mut rows = vec![("take", spaced(&best.filter)), ("because", best.reason.clone()), ("memory", size(best))];
    if let Some(cost) = &document.cost {
        rows.push(("cost", cost.line()));
    }
    rows.push(("false positives", format!("{} at most, {promise}{on_stream}", predicted(best.predicted_fpr))));
    if is_set {
        rows.push(("false negatives", "none: it never forgets".into()));
    } else {
        let missed = with_error(best.predicted_fnr, best.predicted_fnr_error);
        let late = percent(document.late_fnr);
        rows.push((
            "false negatives",
            format!("{missed}, {late} late (in the last tenth of the lines), by {}", best.method),
        ));
        let assumed = if stream.assumed { "assumed: " } else { "" };
        let counts = (counted(stream.arrivals, "line"), thousands(stream.distinct));
        rows.push(("stream", format!("{assumed}{}, {} distinct, {}", counts.0, counts.1, stream.repeats)));
    }
    if !document.fnr_by_importance.is_empty() {
        rows.push(("by importance", format!("wfp {}, wfn {}", percent(document.wfp), percent(document.wfn))));
    }
    if !is_set {
        let settled = document.stable_after.map_or("not before the stream ends".to_string(), |after| {
            format!("after {} lines", thousands(after as u64))
        });
        rows.push(("settled", format!("{settled}; {} of the cells are zero then", percent(document.zeros))));
    }
    if let (Some(fnr), Some(kind)) = (document.limit_fnr.filter(|fnr| *fnr > 0.0), document.limit_kind) {
        rows.push((
            "limit",
            format!("no filter of this memory misses fewer than {} at this rate ({kind})", percent(fnr)),
        ));
    }
    rows.extend(document.notes.iter().map(|note| ("note", note.clone())));
    rows
}

/// The rate on the stream, which is no higher than what is promised.
fn with_bound(row: &Row) -> String {
    match row.stream_fpr_error {
        Some(error) => with_error(row.stream_fpr, Some(error)),
        None => predicted(row.stream_fpr),
    }
}

/// What Bloom-filter calculators answer: bits, bytes, hashes.
fn size(row: &Row) -> String {
    let bits = row.memory_bits;
    let hashes = row.filter.split("num_hashes=").nth(1).and_then(|rest| rest.split(',').next());
    let hashes = hashes
        .map_or_else(String::new, |hashes| format!(", {hashes} {}", if hashes == "1" { "hash" } else { "hashes" }));
    let (size, bytes) = (short_size(bits), thousands(bits.div_ceil(8)));
    match bits < 8 << 10 {
        true => format!("{bytes} bytes ({} bits{hashes})", thousands(bits)),
        false => format!("{size} ({} bits, {bytes} bytes{hashes})", thousands(bits)),
    }
}

/// A spec that can be broken into lines.
fn spaced(spec: &str) -> String {
    spec.replacen(':', ": ", 1).replace(',', ", ")
}

fn indented(indent: usize, text: &str, paper: &Paper) -> String {
    let space = " ".repeat(indent);
    format!("{space}{}", paper.narrower(indent).wrap(text, 0).trim_end().replace('\n', &format!("\n{space}  "))) + "\n"
}
