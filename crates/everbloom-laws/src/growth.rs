//! Filters that grow say beforehand what they take, and what is known at once is what a look at all cells says.

use crate::Set;
use crate::common::{arrivals, observe_all, small, variants};
use everbloom::KeyHash;

pub fn growth_is_foretold_to_the_bit_and_room_that_was_made_suffices<S: Set>() {
    let mut growing = 0;
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 3);
        for round in 0..60u64 {
            let keys: Vec<KeyHash> =
                (0..70 + 7 * round).map(|key| filter.hashing().hash_u64((round << 32) | (key / 2))).collect();
            let (before, foretold) = (filter.memory_bits(), filter.growth_bits(&keys));
            filter.make_room(&keys).unwrap_or_else(|error| panic!("{spec}: {error}"));
            let with_room = filter.memory_bits();
            assert_eq!(with_room - before, foretold, "{spec}, round {round}");
            assert_eq!(filter.growth_bits(&keys), 0, "{spec}, round {round}: room was made");
            filter.insert_hashes(&keys);
            assert_eq!(filter.memory_bits(), with_room, "{spec}, round {round}: it grew although it had room");
            growing += u64::from(foretold > 0);
        }
    }
    assert!(S::CAN_EVERYTHING <= (growing > 20), "{growing} growths");
}

pub fn what_is_known_at_once_is_what_a_look_at_all_cells_says<S: Set>() {
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 3);
        for round in 0..3 {
            observe_all(&mut *filter, &arrivals(700, 500, round));
            let status = filter.status();
            assert_eq!((filter.arrivals(), filter.refused()), (status.arrivals, status.refused), "{spec}");
        }
        assert!(filter.arrivals() > 0, "{spec}");
    }
}

pub fn copies_that_may_be_refused_are_copies<S: Set>() {
    for spec in variants::<S>() {
        let mut filter = small::<S>(&spec, 3);
        observe_all(&mut *filter, &arrivals(700, 500, 1));
        let mut copy = filter.try_clone_boxed().expect("memory");
        assert_eq!(everbloom::codec::encode(&*copy), everbloom::codec::encode(&*filter), "{spec}");
        let stream = arrivals(700, 900, 2);
        assert_eq!(observe_all(&mut *copy, &stream), observe_all(&mut *filter, &stream), "{spec}");
    }
}
