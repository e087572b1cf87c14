//! What kinds can do: what they say, merging, removing, counting, windows.

use crate::Set;
use crate::common::{Keys, arrivals, binomial_error, build, observe_all, small, small_goal, variants};
use everbloom::codec::encode;
use everbloom::kind::{Combine, Kinds};
use everbloom::{AnyFilter, Error, Filter, FilterExt, Goal, Hashing, Importance, Key};

fn mergeable<S: Set>() -> Vec<String> {
    let specs: Vec<_> = variants::<S>().into_iter().filter(|spec| small::<S>(spec, 0).as_merge().is_some()).collect();
    assert!(S::CAN_EVERYTHING <= !specs.is_empty(), "no kind can merge any more");
    specs
}

fn with_keys<S: Set>(spec: &str, keys: impl IntoIterator<Item = u64>) -> AnyFilter {
    let mut filter = small::<S>(spec, 4);
    for key in keys {
        filter.insert(key);
    }
    filter
}

fn merge(left: &mut AnyFilter, right: &dyn Filter, how: Combine) -> Result<(), Error> {
    left.as_merge().expect("it merges").merge(right, how)
}

fn answers(filter: &dyn Filter) -> Vec<bool> {
    (0..5000u64).map(|key| filter.contains(key)).collect()
}

pub fn a_union_is_what_inserting_both_gives<S: Set>() {
    for spec in mergeable::<S>() {
        let mut union = with_keys::<S>(&spec, 0..300);
        merge(&mut union, &*with_keys::<S>(&spec, 200..500), Combine::Union).expect("alike");
        let both = with_keys::<S>(&spec, (0..300).chain(200..500));
        assert_eq!(answers(&*union), answers(&*both), "{spec}");
        assert_eq!(encode(&*union), encode(&*both), "{spec}");
    }
}

pub fn union_is_commutative<S: Set>() {
    for spec in mergeable::<S>() {
        let (mut one, mut other) = (with_keys::<S>(&spec, 0..300), with_keys::<S>(&spec, 200..700));
        let (first, second) = (with_keys::<S>(&spec, 0..300), with_keys::<S>(&spec, 200..700));
        merge(&mut one, &*second, Combine::Union).expect("alike");
        merge(&mut other, &*first, Combine::Union).expect("alike");
        assert_eq!(encode(&*one), encode(&*other), "{spec}");
    }
}

pub fn union_is_idempotent_in_its_answers<S: Set>() {
    for spec in mergeable::<S>() {
        let mut filter = with_keys::<S>(&spec, 0..300);
        let before = answers(&*filter);
        merge(&mut filter, &*with_keys::<S>(&spec, 0..300), Combine::Union).expect("alike");
        assert_eq!(answers(&*filter), before, "{spec}");
    }
}

pub fn an_intersection_keeps_what_both_hold_or_is_refused<S: Set>() {
    for spec in mergeable::<S>() {
        let mut filter = with_keys::<S>(&spec, 0..300);
        let before = encode(&*filter);
        match merge(&mut filter, &*with_keys::<S>(&spec, 200..500), Combine::Intersection) {
            Ok(()) => {
                assert!((200..300u64).all(|key| filter.contains(key)), "{spec}");
                let (left, right) = (with_keys::<S>(&spec, 0..300), with_keys::<S>(&spec, 200..500));
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

pub fn unlike_filters_are_refused_and_the_left_one_stays_as_it_was<S: Set>() {
    for spec in mergeable::<S>() {
        let mut left = with_keys::<S>(&spec, 0..300);
        let before = encode(&*left);
        let larger = build::<S>(&spec, &Goal::new().memory_bits(1 << 20).expected_items(8000).fpr(0.01));
        let others: Vec<AnyFilter> = variants::<S>()
            .iter()
            .map(|other| small::<S>(other, 4))
            .filter(|other| other.spec() != left.spec())
            .chain([small::<S>(&spec, 5), larger])
            .collect();
        for other in others {
            for how in [Combine::Union, Combine::Intersection] {
                let error = merge(&mut left, &*other, how).expect_err("unlike filters");
                assert!(matches!(error, Error::Mismatch { .. }), "{spec}: {error}");
                assert_eq!(encode(&*left), before, "{spec} was changed by a refused {how:?}");
            }
        }
        let secret = small_goal(4).hashing(Hashing::keyed(everbloom::SecretKey::new([9; 16])));
        let error = merge(&mut left, &*build::<S>(&spec, &secret), Combine::Union).expect_err("other hashing");
        assert!(!error.to_string().contains("09, 09") && !error.to_string().contains("9, 9"), "{error}");
        assert_eq!(encode(&*left), before, "{spec}");
    }
}

fn removable<S: Set>() -> Vec<String> {
    let specs: Vec<_> = variants::<S>().into_iter().filter(|spec| small::<S>(spec, 0).as_removal().is_some()).collect();
    assert!(S::CAN_EVERYTHING <= !specs.is_empty(), "no kind can remove any more");
    specs
}

fn remove(filter: &mut AnyFilter, key: u64) -> bool {
    let hash = key.hash_with(filter.hashing());
    filter.as_removal().expect("it removes").remove_hash(hash)
}

pub fn what_was_not_removed_stays_and_what_was_removed_goes<S: Set>() {
    for spec in removable::<S>() {
        let mut filter = with_keys::<S>(&spec, 0..800);
        assert!((0..400).all(|key| remove(&mut filter, key)), "{spec}: an inserted key can be removed");
        assert!((400..800u64).all(|key| filter.contains(key)), "{spec}: removal took others along");
        let left = (0..400u64).filter(|key| filter.contains(key)).count() as f64 / 400.0;
        let rate = filter.status().estimated_fpr;
        assert!(left <= rate + 4.0 * binomial_error(rate, 400.0), "{spec}: {left} still found, {rate} expected");
    }
}

pub fn removing_all_leaves_nothing<S: Set>() {
    for spec in removable::<S>() {
        let mut filter = small::<S>(&spec, 4);
        let fresh = encode(&*filter);
        for key in 0..500u64 {
            filter.insert(key);
        }
        assert!((0..500).rev().all(|key| remove(&mut filter, key)), "{spec}");
        assert_eq!(encode(&*filter), fresh, "{spec}");
    }
}

pub fn removing_what_is_not_there_changes_nothing<S: Set>() {
    for spec in removable::<S>() {
        let mut filter = with_keys::<S>(&spec, 0..300);
        let absent: Vec<u64> = (1000..3000).filter(|key| !filter.contains(key)).collect();
        let before = encode(&*filter);
        assert!(absent.len() > 1000 && absent.iter().all(|key| !remove(&mut filter, *key)), "{spec}");
        assert_eq!(encode(&*filter), before, "{spec}");
    }
}

pub fn no_key_inside_is_lost_however_full_the_filter<S: Set>() {
    // Forty times the planned keys: counters stick. Removing half may not take the other half along.
    for spec in removable::<S>() {
        let mut filter = small::<S>(&spec, 4);
        let key = |index| Keys::SharedPrefix.key(index);
        for index in 0..32_000 {
            filter.insert(key(index));
        }
        for index in 0..16_000 {
            let hash = key(index).hash_with(filter.hashing());
            filter.as_removal().expect("it removes").remove_hash(hash);
        }
        assert!((16_000..32_000).all(|index| filter.contains(key(index))), "{spec}");
    }
}

fn kind_of<S: Set>(spec: &str) -> &'static everbloom::kind::Kind {
    S::KINDS.iter().find(|kind| spec.split(':').next() == Some(kind.name)).expect("a kind")
}

pub fn kinds_can_do_what_they_say_in_shards_too<S: Set>() {
    for spec in variants::<S>() {
        let (can, mut filter) = (kind_of::<S>(&spec).can, small::<S>(&spec, 1));
        assert_eq!(filter.as_removal().is_some(), can.remove, "{spec} removes");
        assert_eq!(filter.as_multiplicity().is_some(), can.count, "{spec} counts");
        assert_eq!(filter.as_merge().is_some(), can.merge, "{spec} merges");
        assert_eq!(filter.as_windowed().is_some(), can.advance, "{spec} advances");
        let window = filter.as_windowed().map_or(0, |windowed| windowed.window());
        assert_eq!(window > 0, can.window.is_some(), "{spec} has a window of {window}");
        let (before, asked) = (filter.memory_bits(), [filter.hashing().hash_u64(1)]);
        assert!(can.grow || filter.growth_bits(&asked) == 0, "{spec} says that it grows");
        (0..20_000u64).for_each(|key| {
            filter.insert(key);
        });
        assert_eq!(filter.memory_bits() > before, can.grow, "{spec} grows");
        assert_eq!(filter.info().refused, 0, "{spec}");
        let remembers_all = (0..20_000u64).all(|key| filter.contains(key));
        assert!(remembers_all || kind_of::<S>(&spec).forgets(filter.spec()), "{spec} forgets");
    }
}

pub fn abilities_that_a_kind_lacks_are_errors_that_name_kinds_which_have_them<S: Set>() {
    for kind in S::KINDS {
        let mut filter = small::<S>(kind.name, 1);
        let other = filter.clone();
        let attempts = [
            (kind.can.remove, filter.remove("key").map(|_| ())),
            (kind.can.count, filter.count("key").map(|_| ())),
            (kind.can.merge, filter.merge(&other)),
            (kind.can.advance, filter.advance()),
        ];
        for (able, attempt) in attempts {
            match attempt {
                Ok(()) => assert!(able, "{}", kind.name),
                Err(error) => {
                    assert!(!able && matches!(error, Error::Unsupported { .. }), "{}: {error}", kind.name);
                    let message = error.to_string();
                    let (_, able) = message.split_once("these can: ").expect("a remedy");
                    assert!(
                        able.split(", ")
                            .all(|name| S::KINDS.iter().chain(Kinds::default()).any(|kind| kind.name == name)),
                        "{message}"
                    );
                }
            }
        }
    }
}

pub fn importance_counts_where_a_kind_says_so_and_nowhere_else<S: Set>() {
    let stream = arrivals(20_000, 6000, 3);
    let alike: Vec<_> = stream.iter().map(|(key, _)| (*key, Importance::FULL)).collect();
    for kind in S::KINDS {
        let goal = Goal::new().memory_bits(16_384).fpr(0.05).with_importance();
        let (mut weighed, mut plain) = (build::<S>(kind.name, &goal), build::<S>(kind.name, &goal));
        let differs = observe_all(&mut *weighed, &stream) != observe_all(&mut *plain, &alike);
        assert_eq!(differs, kind.can.weigh_importance, "{}", kind.name);
    }
}

pub fn shards_count_and_advance_as_one_filter_does<S: Set>() {
    for kind in S::KINDS.iter().filter(|kind| kind.can.shard && (kind.can.count || kind.can.window.is_some())) {
        let mut filter = small::<S>(&format!("{}:shards=4", kind.name), 1);
        (0..3).for_each(|_| {
            filter.insert("key");
        });
        if kind.can.count {
            assert_eq!(filter.count("key").expect("it counts"), 3, "{}", kind.name);
        }
        if kind.can.window.is_some() {
            let generations = filter.as_windowed().expect("a window").generations();
            assert!(filter.contains("key"), "{}", kind.name);
            // A key lives for its generations, and for the one that was under way.
            (0..64.max(generations)).for_each(|_| filter.advance().expect("a window"));
            assert!(!filter.contains("key"), "{}", kind.name);
        }
    }
}
