use super::super::trace::{Recipe, Request, Trace};
use super::events::Events;
use super::*;

const PROXIES: usize = 10;

fn requests(objects: &[u32]) -> Trace {
    let mut requests: Vec<Request> = objects.iter().map(|&object| Request { proxy: 0, object }).collect();
    requests.push(Request { proxy: 1, object: 0 });
    Trace { requests, proxies: 2, objects: 10 }
}

fn evicted(policy: Policy, objects: &[u32]) -> Vec<u32> {
    let events = Events::new(&requests(objects), Setting::new(policy, 2)).expect("events");
    events.misses.iter().filter_map(|miss| miss.evicted).collect()
}

#[test]
fn caches_lose_what_their_policy_says() {
    // 1 is asked for twice and 2 later: LRU loses 1, LFU loses 2, and then 3, which has come once as 2 had.
    assert_eq!(evicted(Policy::Lru, &[1, 1, 2, 3, 4]), [1, 2]);
    assert_eq!(evicted(Policy::Lfu, &[1, 1, 2, 3, 4]), [2, 3]);
    // Of objects asked for as often, the one not asked for longest goes.
    assert_eq!(evicted(Policy::Lfu, &[1, 2, 2, 1, 3]), [2]);
}

fn study(name: &str, policy: Policy, slots: usize) -> Study {
    let trace = Recipe::named(name).expect("a recipe").generate(PROXIES, slots as u64, 3).expect("a trace");
    Study::new(&trace, Setting::new(policy, slots)).expect("a study")
}

#[test]
fn summaries_are_sent_after_a_hundredth_has_changed_and_never_deny_what_they_hold() {
    let study = study("zipf-1", Policy::Lru, 200);
    for proxy in 0..PROXIES as u16 {
        let changes = study.events.misses.iter().filter(|miss| miss.request.proxy == proxy);
        let mut since = 0;
        for miss in changes.filter(|miss| miss.evicted.is_some()) {
            since += 1;
            assert!(since <= 2, "{since} of 200 objects changed without a word");
            since *= usize::from(!miss.broadcasts);
        }
    }
    let outcome = study.test(Scheme::Standard, 8.0, 5).expect("an outcome");
    assert_eq!(outcome.false_negatives, 0);
    assert!(outcome.stale_hits > 0 && outcome.broadcast_bytes > 0);
    // 1,600 bits and 6 hashes; lookups share summaries, so the fill's own spread is allowed for: 4 % of it.
    assert!((outcome.measured_fpr() / 0.0216 - 1.0).abs() < 0.1, "{}", outcome.measured_fpr());
}

#[test]
fn our_scheme_cuts_false_hits_by_three_on_lfu_and_by_twenty_where_caches_have_settled() {
    for (name, least) in [("zipf-0.9", 3.0), ("settled", 20.0)] {
        let study = study(name, Policy::Lfu, 200);
        let [standard, ours] =
            [Scheme::Standard, Scheme::Ours].map(|scheme| study.test(scheme, 8.0, 5).expect("an outcome"));
        let reduction = standard.false_hits as f64 / ours.false_hits as f64;
        assert!(reduction >= least, "{name}: {reduction}");
        assert_eq!((ours.false_negatives, ours.broadcast_bytes), (0, standard.broadcast_bytes));
    }
}

#[test]
fn our_scheme_is_not_worse_on_lru() {
    let study = study("zipf-0.75", Policy::Lru, 200);
    let [standard, ours] =
        [Scheme::Standard, Scheme::Ours].map(|scheme| study.test(scheme, 8.0, 5).expect("an outcome"));
    // False hits come in runs, the same object at the same summaries; the spread over those counts.
    let sigma = ((standard.false_hits + ours.false_hits) as f64 * 4.0).sqrt();
    assert!((ours.false_hits as f64) < standard.false_hits as f64 + 4.0 * sigma);
}

#[test]
fn traces_too_short_to_learn_from_are_run_all_the_same() {
    for count in [1u32, 2, 5] {
        let trace = requests(&(0..count).collect::<Vec<_>>());
        let study = Study::new(&trace, Setting::new(Policy::Lfu, 3)).expect("a study");
        for scheme in Scheme::ALL {
            assert_eq!(study.test(scheme, 8.0, 1).expect("an outcome").false_negatives, 0);
        }
    }
    assert!(Study::new(&requests(&[1]), Setting::new(Policy::Lru, 0)).is_err());
    let alone = Trace { requests: vec![Request { proxy: 0, object: 0 }], proxies: 1, objects: 1 };
    assert!(Study::new(&alone, Setting::new(Policy::Lru, 3)).is_err());
}
