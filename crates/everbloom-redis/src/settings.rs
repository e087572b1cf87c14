//! What can be configured: `CONFIG SET everbloom.NAME`, or `NAME value` behind the module's path when it is loaded.

use crate::server::{Choice, Flag, Fraction, Loading, Number};
use everbloom::kind::suggestion;
use everbloom::{Rate, Size};

/// The version that `MODULE LIST` shows: 0.1.0 is 100.
pub(crate) const MODULE_VERSION: i32 = 100;

/// The most bytes that a filter of an ordinary client may take. As much as one string of the protocol, in which a filter
/// moves from one server to another.
pub(crate) static MAX_FILTER_BYTES: Number = Number::new(c"max-filter-bytes", 512 << 20, (1 << 10, i64::MAX), true);

/// The rate that `EB.RESERVE` plans for where none is given.
pub(crate) static DEFAULT_FPR: Fraction = Fraction::new(c"default-fpr", 0.001, rate);

/// Whether each filter hashes with a seed of its own.
pub(crate) static RANDOM_SEED: Flag = Flag::new(c"random-seed", true);

/// Whether `BF.*` is offered: if nobody else does, always, or never.
pub(crate) static BF_COMMANDS: Choice = Choice::new(c"bf-commands", &[c"auto", c"yes", c"no"], 0);
/// [`BF_COMMANDS`] at `yes`.
pub(crate) const BF_YES: usize = 1;
/// [`BF_COMMANDS`] at `no`.
pub(crate) const BF_NO: usize = 2;

/// What `BF.ADD` creates a filter with.
pub(crate) static BF_ERROR_RATE: Fraction = Fraction::new(c"bf-error-rate", 0.01, rate);
/// The same: keys of the first stage.
pub(crate) static BF_INITIAL_SIZE: Number = Number::new(c"bf-initial-size", 100, (1, 1 << 30), false);
/// The same: how much larger every further stage is.
pub(crate) static BF_EXPANSION_FACTOR: Number = Number::new(c"bf-expansion-factor", 2, (0, 32_768), false);

static NUMBERS: [&Number; 3] = [&MAX_FILTER_BYTES, &BF_INITIAL_SIZE, &BF_EXPANSION_FACTOR];
static FLAGS: [&Flag; 1] = [&RANDOM_SEED];
static CHOICES: [&Choice; 1] = [&BF_COMMANDS];
static FRACTIONS: [&Fraction; 2] = [&DEFAULT_FPR, &BF_ERROR_RATE];

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
    let numbers = [&NUMBERS[..], &[&crate::fault::FAULT]].concat();
    #[cfg(not(debug_assertions))]
    let numbers = NUMBERS;
    match loading.settings(&numbers, &FLAGS, &CHOICES, &FRACTIONS) {
        true => Ok(()),
        false => Err("the server refused a setting; its log has the reason".into()),
    }
}

/// The setting of this name gets this value.
fn take(name: &str, value: &[u8]) -> Result<(), String> {
    let is = |known: &std::ffi::CStr| known.to_bytes().eq_ignore_ascii_case(name.as_bytes());
    let wrong = |needed: &str| format!("{name} is '{}', but must be {needed}", text(value));
    if let Some(setting) = NUMBERS.into_iter().find(|setting| is(setting.name)) {
        let (least, most) = setting.range;
        let read = if setting.is_memory { memory(value) } else { text(value).parse().ok() };
        let value = read.filter(|value| (least..=most).contains(value));
        let needed = if setting.is_memory { "a size such as 512mb" } else { "a number" };
        setting.set(value.ok_or_else(|| wrong(&format!("{needed}, from {least} to {most}")))?);
    } else if let Some(setting) = FLAGS.into_iter().find(|setting| is(setting.name)) {
        setting.set(match value.to_ascii_lowercase().as_slice() {
            b"yes" => true,
            b"no" => false,
            _ => return Err(wrong("yes or no")),
        });
    } else if let Some(setting) = CHOICES.into_iter().find(|setting| is(setting.name)) {
        let place = setting.words.iter().position(|word| word.to_bytes().eq_ignore_ascii_case(value));
        let words: Vec<_> = setting.words.iter().map(|word| word.to_string_lossy()).collect();
        setting.set(place.ok_or_else(|| wrong(&format!("one of {}", words.join(", "))))?);
    } else if let Some(setting) = FRACTIONS.into_iter().find(|setting| is(setting.name)) {
        setting.set((setting.read)(value).map_err(|problem| format!("{name}: {problem}"))?);
    } else {
        let names = names().map(|name| name.to_str().unwrap_or_default());
        return Err(format!("there is no setting '{name}'; {}", suggestion(name, names, "there are")));
    }
    Ok(())
}

fn names() -> impl Iterator<Item = &'static std::ffi::CStr> + Clone {
    let numbers = NUMBERS.into_iter().map(|setting| setting.name);
    let rest = FLAGS.into_iter().map(|setting| setting.name).chain(CHOICES.into_iter().map(|setting| setting.name));
    numbers.chain(rest).chain(FRACTIONS.into_iter().map(|setting| setting.name))
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
