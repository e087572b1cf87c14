//! Merging and removing, for the kinds that can.

use crate::common::{Keys, binomial_error, build, small, small_goal, variants};
use everbloom::internal::codec::encode;
use everbloom::internal::{Combine, FilterExt};
use everbloom::{AnyFilter, Error, Filter, Goal, Hashing, Key};

fn mergeable() -> Vec<String> {
    let specs: Vec<_> = variants().into_iter().filter(|spec| small(spec, 0).as_merge().is_some()).collect();
    assert!(!specs.is_empty(), "no kind can merge any more");
    specs
}

fn with_keys(spec: &str, keys: impl IntoIterator<Item = u64>) -> AnyFilter {
    let mut filter = small(spec, 4);
    for key in keys {
        filter.insert(&key);
    }
    filter
}

fn merge(left: &mut AnyFilter, right: &dyn Filter, how: Combine) -> Result<(), Error> {
    left.as_merge().expect("it merges").merge(right, how)
}

fn answers(filter: &dyn Filter) -> Vec<bool> {
    (0..5000u64).map(|key| filter.contains(&key)).collect()
}

#[test]
fn a_union_is_what_inserting_both_gives() {
    for spec in mergeable() {
        let mut union = with_keys(&spec, 0..300);
        merge(&mut union, &*with_keys(&spec, 200..500), Combine::Union).expect("alike");
        let both = with_keys(&spec, (0..300).chain(200..500));
        assert_eq!(answers(&*union), answers(&*both), "{spec}");
        assert_eq!(encode(&*union), encode(&*both), "{spec}");
    }
}

#[test]
fn union_is_commutative() {
    for spec in mergeable() {
        let (mut one, mut other) = (with_keys(&spec, 0..300), with_keys(&spec, 200..700));
        let (first, second) = (with_keys(&spec, 0..300), with_keys(&spec, 200..700));
        merge(&mut one, &*second, Combine::Union).expect("alike");
        merge(&mut other, &*first, Combine::Union).expect("alike");
        assert_eq!(encode(&*one), encode(&*other), "{spec}");
    }
}

#[test]
fn union_is_idempotent_in_its_answers() {
    for spec in mergeable() {
        let mut filter = with_keys(&spec, 0..300);
        let before = answers(&*filter);
        merge(&mut filter, &*with_keys(&spec, 0..300), Combine::Union).expect("alike");
        assert_eq!(answers(&*filter), before, "{spec}");
    }
}

#[test]
fn an_intersection_keeps_what_both_hold_or_is_refused() {
    for spec in mergeable() {
        let mut filter = with_keys(&spec, 0..300);
        let before = encode(&*filter);
        match merge(&mut filter, &*with_keys(&spec, 200..500), Combine::Intersection) {
            Ok(()) => {
                assert!((200..300u64).all(|key| filter.contains(&key)), "{spec}");
                let (left, right) = (with_keys(&spec, 0..300), with_keys(&spec, 200..500));
                let at_most = |key: &u64| !filter.contains(key) || (left.contains(key) && right.contains(key));
                assert!((0..5000u64).all(|key| at_most(&key)), "{spec}: more than either");
            }
            Err(error) => {
                assert!(matches!(error, Error::Unsupported { .. }), "{spec}: {error}");
                assert_eq!(encode(&*filter), before, "{spec}");
            }
        }
    }
}

#[test]
fn unlike_filters_are_refused_and_the_left_one_stays_as_it_was() {
    for spec in mergeable() {
        let mut left = with_keys(&spec, 0..300);
        let before = encode(&*left);
        let larger = build(&spec, &Goal::new().memory_bits(1 << 20).expected_items(8000).fpr(0.01));
        let others: Vec<AnyFilter> = variants()
            .iter()
            .map(|other| small(other, 4))
            .filter(|other| other.spec() != left.spec())
            .chain([small(&spec, 5), larger])
            .collect();
        for other in others {
            for how in [Combine::Union, Combine::Intersection] {
                let error = merge(&mut left, &*other, how).expect_err("unlike filters");
                assert!(matches!(error, Error::Mismatch { .. }), "{spec}: {error}");
                assert_eq!(encode(&*left), before, "{spec} was changed by a refused {how:?}");
            }
        }
        let secret = small_goal(4).hashing(Hashing::keyed(everbloom::SecretKey::new([9; 16])));
        let error = merge(&mut left, &*build(&spec, &secret), Combine::Union).expect_err("other hashing");
        assert!(!error.to_string().contains("09, 09") && !error.to_string().contains("9, 9"), "{error}");
        assert_eq!(encode(&*left), before, "{spec}");
    }
}

fn removable() -> Vec<String> {
    let specs: Vec<_> = variants().into_iter().filter(|spec| small(spec, 0).as_removal().is_some()).collect();
    assert!(!specs.is_empty(), "no kind can remove any more");
    specs
}

fn remove(filter: &mut AnyFilter, key: u64) -> bool {
    let hash = key.hash_with(filter.hashing());
    filter.as_removal().expect("it removes").remove_hash(hash)
}

#[test]
fn what_was_not_removed_stays_and_what_was_removed_goes() {
    for spec in removable() {
        let mut filter = with_keys(&spec, 0..800);
        assert!((0..400).all(|key| remove(&mut filter, key)), "{spec}: an inserted key can be removed");
        assert!((400..800u64).all(|key| filter.contains(&key)), "{spec}: removal took others along");
        let left = (0..400u64).filter(|key| filter.contains(key)).count() as f64 / 400.0;
        let rate = filter.status().estimated_fpr;
        assert!(left <= rate + 4.0 * binomial_error(rate, 400.0), "{spec}: {left} still found, {rate} expected");
    }
}

#[test]
fn removing_all_leaves_nothing() {
    for spec in removable() {
        let mut filter = small(&spec, 4);
        let fresh = encode(&*filter);
        for key in 0..500u64 {
            filter.insert(&key);
        }
        assert!((0..500).rev().all(|key| remove(&mut filter, key)), "{spec}");
        assert_eq!(encode(&*filter), fresh, "{spec}");
    }
}

#[test]
fn removing_what_is_not_there_changes_nothing() {
    for spec in removable() {
        let mut filter = with_keys(&spec, 0..300);
        let absent: Vec<u64> = (1000..3000).filter(|key| !filter.contains(key)).collect();
        let before = encode(&*filter);
        assert!(absent.len() > 1000 && absent.iter().all(|key| !remove(&mut filter, *key)), "{spec}");
        assert_eq!(encode(&*filter), before, "{spec}");
    }
}

#[test]
fn no_key_inside_is_lost_however_full_the_filter() {
    // Forty times the planned keys: counters stick. Removing half may not take the other half along.
    for spec in removable() {
        let mut filter = small(&spec, 4);
        let key = |index| Keys::SharedPrefix.key(index);
        for index in 0..32_000 {
            filter.insert(&key(index));
        }
        for index in 0..16_000 {
            let hash = key(index).hash_with(filter.hashing());
            filter.as_removal().expect("it removes").remove_hash(hash);
        }
        assert!((16_000..32_000).all(|index| filter.contains(&key(index))), "{spec}");
    }
}
