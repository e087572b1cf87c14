//! What an audit does and does not do.

use super::streams::{NAMES, SORTS, filter, keys, rate, run};
use everbloom::codec::encoded_bytes;
use everbloom::{AnyFilter, Goal, Hashing, Importances, KeyHash, TimeWindow, Verdict, View};
use everbloom_all::KINDS;
use everbloom_cells::key::Generator;
use everbloom_forecast::audit::Audit;
use everbloom_forecast::{Auditing, Audits};

fn hashes(keys: &[u64]) -> Vec<KeyHash> {
    keys.iter().map(|key| Hashing::default().hash_u64(*key)).collect()
}

#[test]
fn no_more_than_a_share_of_the_arrivals_is_followed_however_often_a_few_keys_come() {
    // Keys that fit by far, and come for ever.
    let keys = keys("uniform", 1000, 5);
    let hashes = hashes(&keys);
    let mut audit = Audit::new(64 << 10, 3).expect("enough memory");
    for _ in 0..400 {
        audit.observe(&hashes, Importances::default(), &vec![Verdict::Duplicate; hashes.len()]);
    }
    let report = audit.report();
    // The first 8,192 are followed, and 400,000 are 48 times as many.
    assert_eq!(report.one_in, 64, "{report:?}");
}

/// Hashes with the verdicts of a small filter.
fn judged(keys: &[u64], kind: &str) -> (Vec<KeyHash>, Vec<Verdict>) {
    let (hashes, mut verdicts) = (hashes(keys), vec![Verdict::Distinct; keys.len()]);
    let mut filter = filter(kind, keys.len() as u64, 0);
    filter.observe_hashes(&hashes, Importances::default(), &mut verdicts).expect("no importances");
    (hashes, verdicts)
}

fn audited(hashes: &[KeyHash], verdicts: &[Verdict], memory: u64, seed: u64) -> Audit {
    let mut audit = Audit::new(memory, seed).expect("enough memory");
    audit.observe(hashes, Importances::default(), verdicts);
    audit
}

#[test]
fn an_audited_filter_answers_as_it_would_alone_whatever_its_kind() {
    let goal = Goal::new().memory_bits(16_384).expected_items(600).fpr(0.1);
    for kind in KINDS {
        let Ok(plan) = goal.plan_among(KINDS, kind.name) else { continue };
        let mut alone = plan.build().expect("fits");
        let mut audited = plan.build().expect("fits").audited("4KiB", 9).expect("enough memory");
        for key in keys("zipf 1.0", 5000, 3) {
            assert_eq!(audited.insert(key), alone.insert(key), "{}", kind.name);
        }
        audited.insert_batch(&[1u64, 2, 3]);
        alone.insert_batch(&[1u64, 2, 3]);
        assert_eq!(audited.clone().without_audit().to_bytes(), alone.to_bytes(), "{}", kind.name);
        // The audit comes along, and who does not want it can leave it.
        let bytes = audited.to_bytes();
        assert_eq!(bytes.len() as u64, encoded_bytes(&*audited), "{}", kind.name);
        let copy = KINDS.from_bytes(&bytes).expect("whole");
        assert_eq!((copy.audit_report(), copy.to_bytes()), (audited.audit_report(), bytes.clone()), "{}", kind.name);
        let limit = 1 << 20;
        let packed = KINDS.decoder().limit(limit).decode(&audited.to_compressed_bytes()).map(AnyFilter::from);
        assert_eq!(packed.expect("whole").to_bytes(), bytes, "{}", kind.name);
        assert_eq!(copy.without_audit().to_bytes(), alone.to_bytes(), "{}", kind.name);
        assert_eq!(audited.memory_bits(), alone.memory_bits() + (4 << 13), "{}", kind.name);
        assert!(alone.audited("4KiB", 9).is_err(), "{}: what came before is not known", kind.name);
        assert!(audited.audited("4KiB", 9).is_err(), "{}: it is audited already", kind.name);
    }
}

#[test]
fn with_room_for_all_keys_the_rates_are_exact() {
    for sort in SORTS {
        let run = run(
            &mut filter("stable", 20_000, 5),
            &keys(sort, 20_000, 5),
            Audit::new(4 << 20, 1).expect("enough"),
            true,
        );
        let report = run.audit.report();
        assert_eq!(report.one_in, 1);
        let close = |found: Option<everbloom_forecast::Measured>, truth: Option<f64>| match (found, truth) {
            (Some(found), Some(truth)) => {
                [found.rate, found.low, found.high].iter().all(|end| (end - truth).abs() < 1e-9)
            }
            (found, truth) => found.is_none() && truth.is_none(),
        };
        assert!(close(report.measured_fpr, rate(run.all.new)), "{sort}");
        assert!(close(report.measured_fnr, rate(run.all.repeats)), "{sort}");
        assert!(close(report.last.measured_fpr, rate(run.last.new)), "{sort}");
        assert!(close(report.last.measured_fnr, rate(run.last.repeats)), "{sort}");
        assert_eq!(report.by_lag.len(), run.by_lag.len(), "{sort}");
        for lag in &report.by_lag {
            assert!(close(Some(lag.measured_fnr), rate(run.by_lag[&lag.from.ilog2()].repeats)), "{sort}");
        }
        for class in &report.by_importance {
            let truth = run.by_importance[&((class.from * 8.0) as u32)];
            assert!(
                close(class.measured_fpr, rate(truth.new)) && close(class.measured_fnr, rate(truth.repeats)),
                "{sort}"
            );
        }
        assert!((20_000 / 2..=20_000 * 71 / 100 + 1).contains(&report.last.from), "{sort}: {}", report.last.from);
    }
}

#[test]
fn batches_of_every_size_and_a_copy_on_the_way_come_to_the_same() {
    let keys = keys("zipf 1.0", 60_000, 2);
    let (hashes, verdicts) = judged(&keys, "ranked");
    let whole = audited(&hashes, &verdicts, 16 << 10, 4).to_bytes();
    for size in [1, 7, 1000] {
        let mut audit = Audit::new(16 << 10, 4).expect("enough memory");
        for (index, (hashes, verdicts)) in hashes.chunks(size).zip(verdicts.chunks(size)).enumerate() {
            audit.observe(hashes, Importances::default(), verdicts);
            if index % 977 == 0 {
                audit = Audit::from_bytes(&audit.to_bytes()).expect("its own bytes");
            }
        }
        assert_eq!(audit.to_bytes(), whole, "batches of {size}");
    }
}

#[test]
fn memory_stays_within_what_was_given_on_a_stream_without_end() {
    let memory = 64 << 10;
    for sort in ["all distinct", "uniform", "zipf 0.8"] {
        let keys = keys(sort, 400_000, 1);
        let (hashes, verdicts) = (hashes(&keys), vec![Verdict::Distinct; keys.len()]);
        let mut audit = Audit::new(memory, 3).expect("enough memory");
        let used = allocation_counter::measure(|| {
            for (hashes, verdicts) in hashes.chunks(4096).zip(verdicts.chunks(4096)) {
                audit.observe(hashes, Importances::default(), verdicts);
            }
        });
        let report = audit.report();
        assert!(report.one_in >= 16, "{sort}: {}", report.one_in);
        assert!(used.bytes_current <= memory as i64, "{sort}: {used:?}");
        // While a table grows, the old one is there, too: half as large.
        assert!(used.bytes_max as f64 <= 1.5 * memory as f64, "{sort}: {used:?}");
        // One key in `one_in` is followed: the number of keys is known within four standard deviations.
        let distinct = keys.iter().collect::<std::collections::HashSet<_>>().len() as f64;
        let sigma = (distinct * (report.one_in - 1) as f64).sqrt();
        assert!(
            (report.estimated_keys - distinct).abs() < 4.0 * sigma,
            "{sort}: {} of {distinct}",
            report.estimated_keys
        );
    }
}

#[test]
fn audit_seeds_follow_different_keys() {
    // Everything is new, and called so where the known seed looks; nowhere else.
    let hashes = hashes(&keys("all distinct", 200_000, 1));
    let known = audited(&hashes, &vec![Verdict::Distinct; hashes.len()], 16 << 10, 1);
    let verdicts: Vec<_> = hashes.iter().map(|hash| Verdict::from_seen(!known.follows(*hash))).collect();
    let truth = verdicts.iter().filter(|verdict| !verdict.is_distinct()).count() as f64 / verdicts.len() as f64;
    let fooled = audited(&hashes, &verdicts, 16 << 10, 1).report().measured_fpr.expect("new keys");
    assert!(fooled.high < 0.05 && truth > 0.9, "{fooled:?} of {truth}");
    let mut held = 0;
    for seed in 2..22 {
        let found = audited(&hashes, &verdicts, 16 << 10, seed).report().measured_fpr.expect("new keys");
        held += u32::from((found.low..=found.high).contains(&truth));
        assert!(found.low > 0.9, "{found:?} of {truth}");
    }
    // 95 % of 20, less four standard deviations.
    assert!(held >= 15, "{held} of 20");
}

#[test]
fn shards_are_audited_as_one() {
    let keys = keys("zipf 0.8", 100_000, 8);
    for (memory, is_exact) in [(8 << 20, true), (48 << 10, false)] {
        let (mut shards, mut truth) = (Vec::new(), (0, 0));
        for shard in 0..3 {
            let part: Vec<u64> = keys.iter().copied().filter(|key| key % 3 == shard).collect();
            let run = run(&mut filter("stable", 30_000, shard), &part, Audit::new(memory, 77).expect("enough"), false);
            truth = (truth.0 + run.all.repeats.0, truth.1 + run.all.repeats.1);
            shards.push(run.audit);
        }
        let mut whole = shards.remove(0);
        shards.iter().for_each(|shard| whole.merge(shard).expect("one seed"));
        let (report, truth) = (whole.report(), rate(truth).expect("repeats"));
        let fnr = report.measured_fnr.expect("repeats");
        assert_eq!((report.arrivals, report.one_in == 1), (100_000, is_exact));
        match is_exact {
            true => assert!((fnr.rate - truth).abs() < 1e-9, "{fnr:?} of {truth}"),
            // Twice the interval: four standard deviations.
            false => assert!((fnr.rate - truth).abs() < 2.0 * (fnr.high - fnr.low) / 2.0, "{fnr:?} of {truth}"),
        }
        assert_eq!(Audit::from_bytes(&whole.to_bytes()).expect("its own bytes").report(), report);
    }
    let other = Audit::new(1 << 16, 1).expect("enough memory");
    let error = Audit::new(1 << 16, 2).expect("enough memory").merge(&other).expect_err("other keys").to_string();
    assert!(error.contains("one seed"), "{error}");
}

#[test]
fn a_promise_that_is_kept_is_never_called_broken_and_one_that_is_not_is() {
    for kind in NAMES {
        for seed in 0..10 {
            let goal = Goal::new().hashing(Hashing::seeded(seed)).fpr(0.02);
            let plan = match kind {
                "bloom" => goal.clone().expected_items(60_000).plan_among(KINDS, kind),
                "age_partitioned" => goal.clone().plan_among(KINDS, "age_partitioned:window=5000"),
                _ => goal.clone().memory_bits(40_000).plan_among(KINDS, kind),
            };
            let mut kept = plan.and_then(|plan| plan.build()).expect("plans");
            let sort = SORTS[seed as usize % SORTS.len()];
            let run = run(&mut kept, &keys(sort, 60_000, seed), Audit::new(32 << 10, seed).expect("enough"), false);
            // What is too old for a window is said to be missed here, where nothing is said of the window.
            assert_eq!(run.audit.breach(&kept.promise()), None, "{kind}, {sort}, {seed}");
        }
    }
    let mut full = Goal::new()
        .expected_items(1000)
        .fpr(0.01)
        .plan_among(KINDS, "bloom")
        .and_then(|plan| plan.build())
        .expect("plans");
    let run = run(&mut full, &keys("uniform", 60_000, 1), Audit::new(32 << 10, 1).expect("enough"), false);
    let breach = run.audit.breach(&full.promise()).expect("twelve times as many keys");
    assert!(breach.is_fpr && breach.measured.low > 0.01, "{breach:?}");
}

#[test]
fn a_window_is_audited_by_what_it_promises() {
    let window = 2000u64;
    let build = || Goal::new().window(window).fpr(0.02).build_among(KINDS).expect("plans");
    for sort in ["uniform", "zipf 1.0", "phases", "one hot key"] {
        let mut filter = build();
        let horizon = everbloom_forecast::audit::horizon(&mut *filter).expect("a window");
        let audit = Audit::new(1 << 20, 6).expect("enough memory").with_horizon(horizon);
        let run = run(&mut filter, &keys(sort, 60_000, 4), audit, false);
        let report = run.audit.report();
        assert_eq!(report.measured_fnr.map(|fnr| fnr.rate), Some(0.0), "{sort}: none within the window is missed");
        let fpr = report.measured_fpr.expect("keys are new again");
        assert!(fpr.of > run.all.new.0 as f64, "{sort}: {fpr:?}");
        assert_eq!(run.audit.breach(&filter.promise()), None, "{sort}");
    }
}

/// Half of the keys come again when the window is just over and most of their bits are still there.
#[test]
fn audit_counts_no_error_for_half_forgotten_windows() {
    let mut filter = Goal::new().window(2000).fpr(0.02).build_among(KINDS).expect("plans");
    let horizon = everbloom_forecast::audit::horizon(&mut *filter).expect("a window");
    let audit = Audit::new(1 << 20, 6).expect("enough memory").with_horizon(horizon);
    let keys: Vec<u64> = (0..60_000).map(|at| if at % 2 == 0 { 1_000_000 + at } else { at / 2 % 1_090 }).collect();
    let run = run(&mut filter, &keys, audit, false);
    let dropped = run.all.repeats.0 - run.all.repeats.1;
    assert!(dropped as f64 > 0.05 * 30_000.0, "{dropped} of the old ones were taken for known");
    assert_eq!(run.audit.breach(&filter.promise()), None, "{:?}", run.audit.report());
}

#[test]
fn a_window_of_fewer_arrivals_than_generations_is_not_called_broken() {
    for window in 1..40 {
        let mut filter = Goal::new().window(window).fpr(0.001).build_among(KINDS).expect("plans");
        for lag in [window, window + 1, 2 * window, 3 * window, 60] {
            let horizon = everbloom_forecast::audit::horizon(&mut *filter).expect("a window");
            let audit = Audit::new(1 << 20, 6).expect("enough memory").with_horizon(horizon);
            let keys: Vec<u64> = (0..4 * lag).map(|at| at % lag).collect();
            filter.clear();
            let run = run(&mut filter, &keys, audit, false);
            assert_eq!(run.audit.breach(&filter.promise()), None, "window {window}, lag {lag}");
        }
    }
}

#[test]
fn bytes_that_lie_are_refused_or_harmless() {
    let keys = keys("zipf 1.0", 20_000, 2);
    let (hashes, verdicts) = judged(&keys, "ranked");
    let audit = audited(&hashes, &verdicts, 8 << 10, 4);
    let bytes = audit.to_bytes();
    for length in (0..bytes.len()).step_by(3) {
        assert!(Audit::from_bytes(&bytes[..length]).is_err(), "cut at {length}");
    }
    let mut generator = Generator::seeded(1);
    for round in 0..3000 {
        let mut lie = bytes.clone();
        for _ in 0..=round % 3 {
            let at = generator.below(lie.len() as u64) as usize;
            lie[at] = generator.bits() as u8;
        }
        let Ok(mut audit) = Audit::from_bytes(&lie) else { continue };
        audit.observe(&hashes[..100], Importances::default(), &verdicts[..100]);
        let report = audit.report();
        for rate in [report.measured_fpr, report.measured_fnr].into_iter().flatten() {
            assert!(rate.low <= rate.rate && rate.rate <= rate.high && rate.high <= 1.0, "{rate:?}");
        }
        let mut merged = audit.clone();
        let _ = merged.merge(&audit);
    }
}

#[test]
fn damaged_audit_in_a_file_is_refused() {
    let filter = Goal::new().filter("blocked").expected_items(500).fpr(0.01).build_among(KINDS).expect("plans");
    let mut audited = filter.audited("4KiB", 1).expect("enough memory");
    (0..500u64).for_each(|key| {
        audited.insert(key);
    });
    let bytes = audited.to_bytes();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        assert!(KINDS.from_bytes(&damaged).is_err(), "byte {at}");
    }
    (0..bytes.len()).for_each(|length| assert!(KINDS.from_bytes(&bytes[..length]).is_err(), "cut at {length}"));
    let mut room = vec![0; bytes.len() + 128];
    let start = room.as_ptr().align_offset(64);
    room[start..start + bytes.len()].copy_from_slice(&bytes);
    let view = View::open_among(KINDS, &room[start..start + bytes.len()], None).expect("whole");
    assert!(view.contains(&7u64) && view.verify().is_ok());
    assert!(View::open_among(KINDS, &room[start..start + bytes.len() - 64], None).is_err());
    assert!(View::open_among(KINDS, &room[start..start + bytes.len() + 64], None).is_err());
    let plain = audited.without_audit();
    assert_eq!((plain.audit_report(), plain.breach()), (None, None));
}

#[test]
fn a_window_that_its_caller_turns_is_audited_by_its_turns() {
    let second = 1_000_000;
    for memory in ["1MiB", "8KiB"] {
        let goal = Goal::new().expected_items(2000).fpr(0.02);
        let mut recent = TimeWindow::new("1000s", &goal).and_then(|recent| recent.audited(memory, 3)).expect("plans");
        let mut last = std::collections::HashMap::new();
        let (mut missed, mut old) = (0, 0);
        for (at, key) in (0i64..).zip(keys("zipf 0.8", 40_000, 4)) {
            let (is_new, before) = (recent.insert(key, at * second), last.insert(key, at));
            missed += u32::from(is_new && before.is_some_and(|before| at - before <= 1000));
            old += u32::from(before.is_none_or(|before| at - before > 2000));
        }
        let report = recent.filter().audit_report().expect("it is audited");
        assert_eq!(
            (missed, report.measured_fnr.map(|fnr| fnr.rate)),
            (0, Some(0.0)),
            "none within the window is missed"
        );
        let fpr = report.measured_fpr.expect("keys are new again");
        assert!(fpr.low < 0.02 && (report.one_in > 1 || fpr.of >= f64::from(old)), "{fpr:?}, {old} were new to it");
        assert_eq!(recent.filter().breach(), None);
    }
}

#[test]
fn an_audited_filter_refuses_what_its_audit_could_not_follow() {
    let build = |seed: u64| {
        let goal = Goal::new().filter("counting").expected_items(500).fpr(0.01);
        goal.build_among(KINDS).and_then(|filter| filter.audited("4KiB", seed)).expect("plans")
    };
    let (mut one, two, other) = (build(1), build(1), build(2));
    one.insert("key");
    let removed = one.remove("key").expect_err("the audit counts no insertions").to_string();
    assert_eq!(removed, "audited filters cannot remove; build it without an audit");
    let before = one.to_bytes();
    for refused in [one.merge(&other), one.merge(&two.clone().without_audit()), one.intersect(&two)] {
        let refused = refused.expect_err("audits that do not belong together").to_string();
        assert!(refused.contains("without their audits"), "{refused}");
    }
    assert_eq!(one.to_bytes(), before, "and nothing is changed");
    one.merge(&two).expect("one seed");
    // What is not audited takes in what is.
    let mut plain = two.without_audit();
    plain.merge(&one).expect("one spec");
    assert!(plain.contains("key") && plain.audit_report().is_none());
}

#[test]
fn an_audit_that_was_begun_when_one_arrival_in_32_was_drawn_goes_on_so() {
    let bytes = include_bytes!("begun-earlier.ebf");
    let mut filter = KINDS.from_bytes(bytes).expect("whole");
    let covered = |filter: &AnyFilter| filter.audit_report().expect("it is audited").covered_arrivals;
    let before = covered(&filter);
    assert_eq!((before, filter.arrivals()), (1152, 4000));
    assert!(filter.to_bytes() == bytes, "it is written as it was read");
    (0..20_000).for_each(|_| {
        filter.insert("hot");
    });
    // All of 20,000, but for those before the table knows the key: one in 32 of them is counted, each for 32.
    let (more, sigma) = (covered(&filter) - before, (20_000.0 * 31.0f64).sqrt());
    assert!(more % 32 == 0 && (more as f64 - 20_000.0).abs() < 4.0 * sigma, "{more}");
    let goal = Goal::new().filter(&filter.spec().to_string());
    let seed = filter.audit().expect("it is audited").seed();
    let newer = goal.build_among(KINDS).and_then(|newer| newer.audited("4KiB", seed)).expect("plans");
    let refused = filter.audit().expect("one").clone().merge(newer.audit().expect("one")).expect_err("another share");
    assert!(refused.to_string().contains("one in 32"), "{refused}");
}

#[test]
fn a_cleared_filter_is_audited_anew() {
    let new =
        || Goal::new().filter("stable").memory("1KiB").fpr(0.1).build_among(KINDS).and_then(|it| it.audited("4KiB", 5));
    let (mut used, mut fresh) = (new().expect("plans"), new().expect("plans"));
    keys("uniform", 20_000, 1).into_iter().for_each(|key| assert!(used.insert(key) || used.arrivals() > 1));
    used.clear();
    for key in keys("zipf 1.0", 20_000, 2) {
        used.insert(key);
        fresh.insert(key);
    }
    assert_eq!(used.audit_report(), fresh.audit_report());
}

#[test]
fn hot_keys_are_known_as_well_as_they_are_covered() {
    // Two arrivals in three are of one key, which is missed each tenth time; the others never.
    let (keys, mut hot) = (keys("one hot key", 400_000, 3), 0u64);
    let mut seen = std::collections::HashSet::new();
    let verdict = |key: &u64| {
        hot += u64::from(*key == 0);
        Verdict::from_seen(!(seen.insert(*key) || *key == 0 && hot % 10 == 0))
    };
    let verdicts: Vec<Verdict> = keys.iter().map(verdict).collect();
    let (mut held, truth) = (0, (hot / 10) as f64);
    for seed in 0..20 {
        let report = audited(&hashes(&keys), &verdicts, 16 << 10, seed).report();
        let fnr = report.measured_fnr.expect("repeats");
        let repeats = (keys.len() - seen.len()) as f64;
        held += u32::from((fnr.low..=fnr.high).contains(&(truth / repeats)));
        // Whether the key is in the sample or not: it is covered, and the interval says so.
        assert!(fnr.high - fnr.low < 0.03 && report.covered_arrivals > 200_000, "{report:?}");
    }
    // 95 % of 20, less four standard deviations.
    assert!(held >= 15, "{held} of 20");
}
