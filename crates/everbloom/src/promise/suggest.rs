//! What was probably meant by a name that does not exist.

/// The candidate that a mistyped name probably stands for, if one is near enough: the same but for case and dashes, a part
/// of exactly one, or a few letters away.
///
/// ```
/// use everbloom::kind::did_you_mean;
///
/// let names = ["bloom", "blocked", "num_hashes"];
/// assert_eq!(did_you_mean("Bloom", names), Some("bloom"));
/// assert_eq!(did_you_mean("blom", names), Some("bloom"));
/// assert_eq!(did_you_mean("hashes", names), Some("num_hashes"));
/// assert_eq!(did_you_mean("cuckoo", names), None);
/// ```
pub fn did_you_mean<'c>(given: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|letter| !matches!(letter, '-' | '_' | ' ' | '.'));
        letters.flat_map(char::to_lowercase).take(MOST_LETTERS).collect()
    };
    let wanted = plain(given);
    let named: Vec<(&str, String)> = candidates.into_iter().map(|name| (name, plain(name))).collect();
    if let Some((name, _)) = named.iter().find(|(_, name)| *name == wanted && !name.is_empty()) {
        return Some(name);
    }
    let letters = wanted.chars().count();
    // One letter is near to anything.
    if letters < 2 {
        return None;
    }
    // A third of the letters: with more, it is another word.
    let most = letters.max(3) / 3;
    let distances = named.iter().map(|(name, plain)| (strsim::osa_distance(&wanted, plain), *name));
    let near = distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance);
    let mut holding = named.iter().filter(|(_, name)| letters >= 3 && name.contains(&wanted));
    near.map(|(_, name)| name).or_else(|| holding.next().filter(|_| holding.next().is_none()).map(|(name, _)| *name))
}

/// Longer names are not mistyped ones, and comparing them would take long.
const MOST_LETTERS: usize = 64;

/// A remedy for a name that does not exist: what was probably meant, or else all there are.
pub fn suggestion<'c>(given: &str, candidates: impl IntoIterator<Item = &'c str> + Clone, all: &str) -> String {
    match did_you_mean(given, candidates.clone()) {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("{all} {}", candidates.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_found_and_what_is_not_is_not() {
        let names = ["bloom", "blocked", "age_partitioned", "num_hashes", "num_cells", "cell_max"];
        for (given, meant) in [
            ("BLOOM", Some("bloom")),
            ("bolom", Some("bloom")),
            ("blocks", Some("blocked")),
            ("age-partitioned", Some("age_partitioned")),
            ("AgePartitioned", Some("age_partitioned")),
            ("partitioned", Some("age_partitioned")),
            ("num_hash", Some("num_hashes")),
            ("nuhm_cells", Some("num_cells")),
            ("max", Some("cell_max")),
            ("num", None),
            ("x", None),
            ("", None),
            ("_", None),
        ] {
            assert_eq!(did_you_mean(given, names), meant, "{given}");
        }
        assert_eq!(did_you_mean(&"bloom".repeat(100_000), names), None);
    }

    #[test]
    fn a_remedy_is_one_name_or_all() {
        assert_eq!(suggestion("yess", ["yes", "no"], "take one of"), "did you mean 'yes'?");
        assert_eq!(suggestion("perhaps", ["yes", "no"], "take one of"), "take one of yes, no");
    }
}
