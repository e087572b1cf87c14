//! Commands that change nothing.

use super::adding::{packed, takes_hashes};
use super::reserve::holds_text;
use super::stored::Stored;
use super::tokens::{Bits, MOST_CLIENTS};
use super::words::not_found;
use crate::report::{COUNTERS, count};
use crate::server::{Call, Failure, Reading};
use everbloom::codec::{self, VERSION as FORMAT};
use everbloom::kind::standing;
use everbloom::{Filter, KeyHash};
use everbloom_forecast::{AuditReport, Audits};

/// `EB.EXISTS key item`
pub(super) fn exists(call: &mut Call<'_>) -> Result<(), Failure> {
    count(&COUNTERS.checks, 1);
    let found = match call.read::<Stored>(1)? {
        Some(stored) => stored.filter.contains_hash(stored.hashing().hash(call.word(2))),
        None => false,
    };
    call.reply_bool(found);
    Ok(())
}

/// `EB.MEXISTS key item…`
pub(super) fn mexists(call: &mut Call<'_>) -> Result<(), Failure> {
    let items = call.words_from(2);
    count(&COUNTERS.checks, items.len() as u64);
    let mut found = vec![false; items.len()];
    if let Some(stored) = call.read::<Stored>(1)? {
        let hashing = stored.hashing();
        let hashes: Vec<KeyHash> = items.map(|item| hashing.hash(item)).collect();
        look_up(&*stored.filter, &hashes, &mut found);
    }
    call.reply_array(found.len());
    found.iter().for_each(|found| call.reply_bool(*found));
    Ok(())
}

/// `EB.EXISTSHASHES key blob`
pub(super) fn exists_hashes(call: &mut Call<'_>) -> Result<(), Failure> {
    let blob = packed(call.word(2))?;
    count(&COUNTERS.checks, blob.len() as u64);
    let mut found = vec![false; blob.len()];
    if let Some(stored) = call.read::<Stored>(1)? {
        takes_hashes(&stored)?;
        let hashes: Vec<KeyHash> = blob.iter().map(|hash| u128::from_be_bytes(*hash).into()).collect();
        look_up(&*stored.filter, &hashes, &mut found);
    }
    call.reply_bulk(Bits::of(found.into_iter()).bytes());
    Ok(())
}

fn look_up(filter: &dyn Filter, hashes: &[KeyHash], found: &mut [bool]) {
    if hashes.len() <= filter.prefetch_distance() {
        filter.prefetch_hashes(hashes);
    }
    filter.contains_hashes(hashes, found);
}

fn found<'c>(call: &'c Call<'_>) -> Result<Reading<'c, Stored>, Failure> {
    call.read::<Stored>(1)?.ok_or_else(not_found)
}

/// `EB.COUNT key item…`
pub(super) fn counts(call: &mut Call<'_>) -> Result<(), Failure> {
    let stored = found(call)?;
    let counts = call.words_from(2).map(|item| stored.filter.count(item)).collect::<everbloom::Result<Vec<_>>>()?;
    call.reply_array(counts.len());
    counts.into_iter().for_each(|count| call.reply_number(count));
    Ok(())
}

/// What a field of a map holds.
enum Field {
    Text(String),
    Number(u64),
    Fraction(f64),
    Nothing,
}

fn reply_fields(call: &Call<'_>, fields: Vec<(&str, Field)>) {
    call.reply_map(fields.len());
    for (name, field) in fields {
        call.reply_bulk(name.as_bytes());
        match field {
            Field::Text(text) => call.reply_bulk(text.as_bytes()),
            Field::Number(number) => call.reply_number(number),
            Field::Fraction(number) => call.reply_double(number),
            Field::Nothing => call.reply_null(),
        }
    }
}

/// `EB.INFO key`
pub(super) fn info(call: &mut Call<'_>) -> Result<(), Failure> {
    let stored = found(call)?;
    let (filter, promise) = (&*stored.filter, stored.filter.promise());
    let scale = stored.importance.map(|scale| if scale.is_logarithmic { "log" } else { "linear" });
    let mut fields = vec![
        ("spec", Field::Text(filter.spec().to_string())),
        ("kind", Field::Text(filter.spec().kind().into())),
        ("memory_bytes", Field::Number(filter.memory_bits().div_ceil(8))),
        ("encoded_bytes", Field::Number(codec::encoded_bytes(filter))),
        ("hash", Field::Text(filter.hashing().name().into())),
        // As text: a seed is often above 2^63, which replies cannot count.
        ("seed", filter.hashing().seed().map_or(Field::Nothing, |seed| Field::Text(seed.to_string()))),
        ("predicted_fpr", Field::Fraction(promise.fpr_bound)),
        ("predicted_fnr", promise.predicted_fnr.map_or(Field::Nothing, Field::Fraction)),
        ("promise", Field::Text(holds_text(promise.holds))),
        ("importance_max", stored.importance.map_or(Field::Nothing, |scale| Field::Fraction(scale.max))),
        ("importance_scale", scale.map_or(Field::Nothing, |scale| Field::Text(scale.into()))),
        ("observed", Field::Number(stored.counts.observed)),
        ("distinct", Field::Number(stored.counts.distinct)),
        ("format", Field::Number(FORMAT.into())),
        ("token_clients", Field::Number(stored.tokens.clients() as u64)),
        ("token_clients_most", Field::Number(MOST_CLIENTS as u64)),
    ];
    if let Some(audit) = filter.audit() {
        fields.push(("audit_bytes", Field::Number(audit.memory_bits() / 8)));
    }
    if let Some(turns) = stored.turns {
        fields.extend([("every_ms", Field::Number(turns.every)), ("generation", Field::Number(turns.generation))]);
    }
    reply_fields(call, fields);
    Ok(())
}

/// What an audit found.
fn audited(report: &AuditReport) -> Vec<(&'static str, Field)> {
    let mut fields =
        vec![("audit_keys", Field::Number(report.followed_keys)), ("audit_one_in", Field::Number(report.one_in))];
    let rates = [
        (["measured_fpr", "measured_fpr_low", "measured_fpr_high"], report.measured_fpr),
        (["measured_fnr", "measured_fnr_low", "measured_fnr_high"], report.measured_fnr),
        (["recent_fpr", "recent_fpr_low", "recent_fpr_high"], report.last.measured_fpr),
        (["recent_fnr", "recent_fnr_low", "recent_fnr_high"], report.last.measured_fnr),
    ];
    for (names, measured) in rates {
        let values = measured.map(|measured| [measured.rate, measured.low, measured.high]);
        let field = |at: usize| values.map_or(Field::Nothing, |values| Field::Fraction(values[at]));
        fields.extend(names.into_iter().enumerate().map(|(at, name)| (name, field(at))));
    }
    fields
}

/// `EB.STATUS key`
pub(super) fn status(call: &mut Call<'_>) -> Result<(), Failure> {
    let stored = found(call)?;
    let status = stored.filter.status();
    let mut fields = vec![
        ("fill", Field::Fraction(status.fill)),
        ("estimated_fpr", Field::Fraction(status.estimated_fpr)),
        ("estimated_items", status.estimated_items.map_or(Field::Nothing, Field::Fraction)),
        ("arrivals", Field::Number(status.arrivals)),
        ("refused", Field::Number(status.refused)),
        ("full_counters", Field::Number(status.full_counters)),
        ("standing", Field::Text(standing(&*stored.filter, &status).name().into())),
    ];
    if let Some(report) = stored.filter.audit_report() {
        fields.extend(audited(&report));
    }
    reply_fields(call, fields);
    Ok(())
}

/// `EB.DUMP key [COMPRESSED]`
pub(super) fn dump(call: &mut Call<'_>) -> Result<(), Failure> {
    let is_compressed = match call.len() {
        2 => false,
        3 if call.word(2).eq_ignore_ascii_case(b"COMPRESSED") => true,
        _ => return Err(Failure::new("EB.DUMP has one option, COMPRESSED; write EB.DUMP key [COMPRESSED]")),
    };
    let stored = found(call)?;
    call.reply_bulk(
        &stored.file(is_compressed).ok_or_else(|| Failure::new("there is no memory for a copy; free some"))?,
    );
    Ok(())
}
