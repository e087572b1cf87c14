//! What can be configured: `CONFIG SET everbloom.NAME`, or `NAME value` behind the module's path when it is loaded.

use crate::server::{Loading, Setting, Sort};
use everbloom::kind::suggestion;
use everbloom::{Rate, Size};

/// The version that `MODULE LIST` shows: 0.1.0 is 100.
pub(crate) const MODULE_VERSION: i32 = 100;

/// The most bytes that a filter of an ordinary client may take. As much as one string of the protocol, in which a filter
/// moves from one server to another.
pub(crate) static MAX_FILTER_BYTES: Setting =
    Setting::new(c"max-filter-bytes", 512 << 20, Sort::Memory(1 << 10, i64::MAX));

/// The rate that `EB.RESERVE` plans for where none is given.
pub(crate) static DEFAULT_FPR: Setting = Setting::fraction(c"default-fpr", 0.001, rate);

/// Whether each filter hashes with a seed of its own.
pub(crate) static RANDOM_SEED: Setting = Setting::new(c"random-seed", 1, Sort::Flag);

/// Whether `BF.*` is offered: if nobody else does, always, or never.
pub(crate) static BF_COMMANDS: Setting = Setting::new(c"bf-commands", 0, Sort::Choice(&[c"auto", c"yes", c"no"]));
/// [`BF_COMMANDS`] at `yes`.
pub(crate) const BF_YES: i64 = 1;
/// [`BF_COMMANDS`] at `no`.
pub(crate) const BF_NO: i64 = 2;

/// What `BF.ADD` creates a filter with.
pub(crate) static BF_ERROR_RATE: Setting = Setting::fraction(c"bf-error-rate", 0.01, rate);
/// Keys of the first stage of a filter that `BF.ADD` creates.
pub(crate) static BF_INITIAL_SIZE: Setting = Setting::new(c"bf-initial-size", 100, Sort::Number(1, 1 << 30));
/// How much larger every further stage of it is.
pub(crate) static BF_EXPANSION_FACTOR: Setting = Setting::new(c"bf-expansion-factor", 2, Sort::Number(0, 32_768));

static SETTINGS: [&Setting; 7] = [
    &MAX_FILTER_BYTES,
    &BF_INITIAL_SIZE,
    &BF_EXPANSION_FACTOR,
    &RANDOM_SEED,
    &BF_COMMANDS,
    &DEFAULT_FPR,
    &BF_ERROR_RATE,
];

/// Takes the module's arguments over as defaults, and registers everything.
pub(crate) fn register(loading: &Loading<'_>) -> Result<(), String> {
    let arguments: Vec<&[u8]> = loading.arguments().collect();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("the module's argument '{}' has no value", text(pair[0])));
        };
        take(text(name).trim_start_matches("--"), value)?;
    }
    #[cfg(debug_assertions)]
    let settings = [&SETTINGS[..], &[&crate::fault::FAULT]].concat();
    #[cfg(not(debug_assertions))]
    let settings = SETTINGS;
    match loading.settings(&settings) {
        true => Ok(()),
        false => Err("the server refused a setting; its log has the reason".into()),
    }
}

/// The setting of this name gets this value.
fn take(name: &str, value: &[u8]) -> Result<(), String> {
    let is_it = |setting: &&Setting| setting.name.to_bytes().eq_ignore_ascii_case(name.as_bytes());
    let Some(setting) = SETTINGS.into_iter().find(is_it) else {
        let names = SETTINGS.into_iter().map(|setting| setting.name.to_str().unwrap_or_default());
        return Err(format!("there is no setting '{name}'; {}", suggestion(name, names, "there are")));
    };
    let wrong = |needed: &str| format!("{name} is '{}', but must be {needed}", text(value));
    let within = |value: Option<i64>, what: &str, least: i64, most: i64| {
        let value = value.filter(|value| (least..=most).contains(value));
        value.ok_or_else(|| wrong(&format!("{what}, from {least} to {most}")))
    };
    setting.set(match setting.sort {
        Sort::Number(least, most) => within(text(value).parse().ok(), "a number", least, most)?,
        Sort::Memory(least, most) => within(memory(value), "a size such as 512mb", least, most)?,
        Sort::Flag => match value.to_ascii_lowercase().as_slice() {
            b"yes" => 1,
            b"no" => 0,
            _ => return Err(wrong("yes or no")),
        },
        Sort::Choice(words) => {
            let place = words.iter().position(|word| word.to_bytes().eq_ignore_ascii_case(value));
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            place.ok_or_else(|| wrong(&format!("one of {}", words.join(", "))))? as i64
        }
        Sort::Fraction(read) => {
            setting.set_fraction(read(value).map_err(|problem| format!("{name}: {problem}"))?);
            return Ok(());
        }
    });
    Ok(())
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn rate(value: &[u8]) -> Result<f64, String> {
    Rate::from(&*text(value)).get().map_err(|error| error.to_string())
}

/// A size in bits: as in a server's configuration file, `64mb` for 64 times 1024 times 1024 bytes in whichever case, or as
/// the library reads it.
pub(crate) fn size(value: &str) -> Size {
    let lower = value.trim().to_ascii_lowercase();
    let units = [("kb", 10), ("mb", 20), ("gb", 30), ("tb", 40)];
    let found = units.into_iter().find_map(|(unit, shift)| Some((lower.strip_suffix(unit)?, shift)));
    match found.and_then(|(number, shift)| Some((number.trim_end().parse::<u64>().ok()?, shift))) {
        Some((number, shift)) => Size::from(number.saturating_mul(1 << shift)),
        None => Size::from(value),
    }
}

/// An amount of memory in bytes.
fn memory(value: &[u8]) -> Option<i64> {
    size(&text(value)).get().ok().and_then(|bits| i64::try_from(bits / 8).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_server_or_of_the_library() {
        for (written, bytes) in
            [("64mb", 64 << 20), ("64MB", 64 << 20), ("1gb", 1 << 30), ("64MiB", 64 << 20), ("1000", 1000)]
        {
            assert_eq!(size(written).get(), Ok(bytes * 8), "{written}");
        }
        for wrong in ["64m", "mb", "-1mb", "64 apples", "", "99999999999999999999mb", "99999999tb"] {
            assert!(size(wrong).get().is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_refused_with_what_would_work() {
        let problem = |name: &str, value: &str| take(name, value.as_bytes()).expect_err("refused");
        assert_eq!(
            problem("max-filter-byte", "1gb"),
            "there is no setting 'max-filter-byte'; did you mean 'max-filter-bytes'?"
        );
        assert!(problem("max-filter-bytes", "much").contains("a size such as 512mb"));
        assert!(problem("bf-commands", "perhaps").contains("auto, yes, no"));
        assert!(problem("random-seed", "1").contains("yes or no"));
        assert!(problem("default-fpr", "2").contains("below 1"));
        assert!(problem("bf-expansion-factor", "40000").contains("32768"));
    }
}
