//! The words behind a command's name, and errors in such words.

use crate::server::{Call, Failure};
use everbloom::Error;
use everbloom::kind::{rate_text, suggestion};

/// The options of a command, word by word.
pub(super) struct Words<'c, 'a> {
    call: &'c Call<'a>,
    next: usize,
    known: &'static [&'static str],
    /// Which of the known were there.
    seen: u32,
}

impl<'c, 'a> Words<'c, 'a> {
    /// The words from one on, of which these are options.
    pub(super) fn from(call: &'c Call<'a>, next: usize, known: &'static [&'static str]) -> Self {
        Words { call, next, known, seen: 0 }
    }

    /// The next option; an error if there is no such, or it was there before.
    pub(super) fn option(&mut self) -> Result<Option<&'static str>, Failure> {
        if self.next >= self.call.len() {
            return Ok(None);
        }
        let word = self.call.word(self.next);
        self.next += 1;
        let Some(place) = self.known.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(word)) else {
            let given = String::from_utf8_lossy(word);
            let given: String = given.chars().take(80).collect();
            let remedy = suggestion(&given, self.known.iter().copied(), "the options are");
            return Err(Failure::new(format!("there is no option '{given}'; {remedy}")));
        };
        if self.seen & 1 << place != 0 {
            return Err(Failure::new(format!("{} is given twice; say it once", self.known[place])));
        }
        self.seen |= 1 << place;
        Ok(Some(self.known[place]))
    }

    /// The value of an option.
    pub(super) fn value(&mut self, option: &str) -> Result<&'a [u8], Failure> {
        if self.next >= self.call.len() {
            return Err(Failure::new(format!("{option} has no value; give one after it")));
        }
        self.next += 1;
        Ok(self.call.word(self.next - 1))
    }

    /// The value of an option, as text.
    pub(super) fn text(&mut self, option: &str) -> Result<&'a str, Failure> {
        text(self.value(option)?, option)
    }

    /// The value of an option, as a number.
    pub(super) fn number<T: std::str::FromStr>(&mut self, option: &str) -> Result<T, Failure> {
        number(self.value(option)?, option)
    }

    /// Whether the next word is this one; if so, it is taken.
    pub(super) fn takes(&mut self, word: &str) -> bool {
        let is = self.next < self.call.len() && self.call.word(self.next).eq_ignore_ascii_case(word.as_bytes());
        self.next += usize::from(is);
        is
    }

    /// The next word, if it begins with a digit: a value that may be left out.
    pub(super) fn digits(&mut self, option: &str) -> Result<Option<&'a str>, Failure> {
        let is_number =
            self.next < self.call.len() && self.call.word(self.next).first().is_some_and(u8::is_ascii_digit);
        if is_number { self.text(option).map(Some) } else { Ok(None) }
    }

    /// The place of the next word.
    pub(super) fn place(&self) -> usize {
        self.next
    }
}

/// A word as text.
pub(super) fn text<'w>(word: &'w [u8], what: &str) -> Result<&'w str, Failure> {
    std::str::from_utf8(word).map_err(|_| Failure::new(format!("{what} is no text; write it in UTF-8")))
}

/// A word as a number.
pub(super) fn number<T: std::str::FromStr>(word: &[u8], what: &str) -> Result<T, Failure> {
    let parsed = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        let given: String = String::from_utf8_lossy(word).chars().take(80).collect();
        let needed = match std::any::type_name::<T>() {
            "f64" => "a number",
            _ => "a whole number, not negative and below 2^64",
        };
        Failure::new(format!("{what} is '{given}', but must be {needed}"))
    })
}

/// What to say where there is no filter.
pub(super) fn not_found() -> Failure {
    Failure::new("not found; reserve it with EB.RESERVE")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::new(in_redis_words(error))
    }
}

/// The library's sentence, with the options of commands where it names what they give.
fn in_redis_words(error: Error) -> String {
    match error {
        Error::Parameter { name, given, needed, remedy } => {
            let option = match name {
                "memory" => "MEMORY",
                "fpr" => "FPR",
                "expected_items" => "EXPECT",
                "importance" | "importance_max" => "IMPORTANCE",
                "window" => "WINDOW",
                "time" => "EVERY",
                "audit" => "AUDIT",
                name => name,
            };
            let remedy = remedy.replace("mend the record", "send another");
            // A server's units, which are not the library's.
            let needed = match name {
                "memory" if needed.starts_with("a size") => "a size such as 64mb (times 1024), 64MiB, or bytes".into(),
                _ => needed,
            };
            match given.as_str() {
                "not given" if needed.contains("expected_items") => {
                    format!("{option} or EXPECT is missing; {remedy}")
                }
                "not given" if needed.contains("memory") => format!("{option} or MEMORY is missing; {remedy}"),
                "not given" => format!("{option} is missing; {remedy}"),
                _ => {
                    let rate = given.parse().ok().filter(|_| name == "fpr");
                    format!("{option} is {}, but must be {needed}; {remedy}", rate.map_or(given, rate_text))
                }
            }
        }
        Error::Mismatch { what: "their audits", .. } => {
            "the filters' audits do not follow the same keys; reserve one with AUDIT and COPY it while it is empty, or none".into()
        }
        Error::Mismatch { what, left, right, .. } => {
            format!("the filters differ in {what} ({left} and {right}); reserve both with the same spec and SEED")
        }
        Error::SecretKey { needed, .. } => {
            format!("the filter was built with {needed}, which no server has; build it without one")
        }
        Error::Scheme { needed, .. } => {
            format!("the filter was built with scheme {needed}, which no server has; load a filter of another kind")
        }
        Error::Spec { spec, problem, remedy } => {
            let options =
                [("the expected number of keys", "EXPECT"), ("a target rate", "FPR"), ("the memory", "MEMORY")];
            let remedy = options.iter().fold(remedy, |remedy, (words, option)| remedy.replace(words, option));
            format!("filter spec '{spec}': {problem}; {remedy}")
        }
        Error::Corrupt { problem, remedy } if remedy.contains("everbloom build") => {
            format!("{problem}; send what EB.DUMP gave, or a file of `everbloom build`")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::Goal;
    use everbloom_all::KINDS;

    fn said(error: Error) -> String {
        in_redis_words(error)
    }

    #[test]
    fn errors_name_options_of_commands() {
        let missing = Goal::new().fpr(0.01).plan_among(KINDS, "ranked").expect_err("nothing to plan with");
        assert!(said(missing.clone()).starts_with("MEMORY is missing; "), "{}", said(missing));
        let rate = Goal::new().expected_items(10).fpr(2.0).plan_among(KINDS, "bloom").expect_err("no rate");
        assert!(said(rate.clone()).starts_with("FPR is "), "{}", said(rate));
        let little = Goal::new().plan_among(KINDS, "bloom").expect_err("too little is known");
        assert!(said(little.clone()).ends_with("give EXPECT and FPR, or MEMORY and one of them"), "{}", said(little));
        let size = crate::settings::size("1m").named("memory").get().expect_err("no unit of a server's");
        assert_eq!(
            said(size),
            "MEMORY is '1m', but must be a size such as 64mb (times 1024), 64MiB, or bytes; try 1MiB"
        );
        let kind = Goal::new().plan_among(KINDS, "blom").expect_err("no kind");
        assert!(said(kind).contains("did you mean 'bloom'?"));
    }

    #[test]
    fn numbers_say_what_they_must_be() {
        assert_eq!(number::<u64>(b"12", "SEED"), Ok(12));
        let Err(Failure::Error(problem)) = number::<u64>(b"-1", "SEED") else { panic!("no number") };
        assert_eq!(problem, "ERR SEED is '-1', but must be a whole number, not negative and below 2^64");
        let Err(Failure::Error(problem)) = number::<f64>(b"x", "IMPORTANCE") else { panic!("no number") };
        assert_eq!(problem, "ERR IMPORTANCE is 'x', but must be a number");
    }
}
