//! Arrivals at lines and at cells anywhere, beside naive twins.

use super::*;
use everbloom_cells::simd::run_on_each;

/// Arrivals at lines, as in a batch; keeps verdicts and lines.
struct Batch<const D: u32, const K: usize> {
    parameters: Parameters,
}

impl<const D: u32, const K: usize> Kernel for Batch<D, K> {
    type Output = (Vec<Verdict>, Vec<Line>);

    #[inline(always)]
    fn run(self, ops: impl SimdOps) -> Self::Output {
        let mut generator = Generator::seeded(4);
        let hashes: Vec<_> = (0..4000).map(|_| Hashing::seeded(2).hash_u64(generator.below(500))).collect();
        let draws: Vec<_> = hashes.iter().map(|_| generator.bits()).collect();
        let (mut verdicts, mut lines) = (vec![Verdict::Distinct; hashes.len()], vec![Line([0; 8]); 5]);
        ObserveLines::<D, K> {
            parameters: &self.parameters,
            lines: &mut lines,
            hashes: &hashes,
            draws: &draws,
            verdicts: &mut verdicts,
        }
        .run(ops);
        (verdicts, lines)
    }
}

fn holds<const D: u32, const K: usize>() {
    for update in [Update::Always, Update::Distinct] {
        let parameters = Parameters {
            num_cells: 5 * cells_per_line(D),
            cell_max: (1 << D) - 1,
            num_hashes: K as u32,
            decrements: 9,
            decrement: Decrement::Run,
            layout: Layout::Blocked,
            update,
        };
        // With 0 for the number of hashes, every arrival is worked on step by step.
        let one_by_one = Batch::<D, 0> { parameters }.run(Plain);
        let (plain, wider) = run_on_each(|| Batch::<D, K> { parameters });
        assert!(plain == one_by_one, "plain: {D} bits, {K} hashes");
        for (name, outcome) in wider {
            assert!(outcome == one_by_one, "{name}: {D} bits, {K} hashes");
        }
        assert!(one_by_one.0.contains(&Verdict::Duplicate) && one_by_one.0.contains(&Verdict::Distinct));
    }
}

#[test]
fn a_line_is_visited_at_once_as_step_by_step() {
    holds::<1, 1>();
    holds::<2, 3>();
    holds::<3, 4>();
    holds::<3, 8>();
}

/// An arrival at cells anywhere, a cell at a time.
fn naive_spread(parameters: &Parameters, cells: &mut Counters, hash: KeyHash, draw: u64) -> Verdict {
    let Parameters { num_cells, num_hashes, decrements, .. } = *parameters;
    let probes = || hash.probes(num_cells).take(num_hashes as usize);
    let seen = probes().all(|position| cells.get(position) > 0);
    if seen && parameters.update == Update::Distinct {
        return Verdict::Duplicate;
    }
    let start = scale(draw, num_cells);
    match parameters.decrement {
        Decrement::Run => (0..u64::from(decrements)).for_each(|step| cells.lower((start + step) % num_cells)),
        Decrement::Independent => {
            Stable::independent_picks(draw, num_cells, decrements).for_each(|position| cells.lower(position));
        }
    }
    probes().for_each(|position| cells.set(position, parameters.cell_max as u16));
    Verdict::from_seen(seen)
}

#[test]
fn spread_cells_change_as_one_at_a_time() {
    for (cell_max, num_hashes, decrements) in [(1, 1, 5), (3, 4, 10), (3, 4, 40), (7, 3, 21), (7, 9, 90), (200, 2, 3)] {
        for decrement in [Decrement::Run, Decrement::Independent] {
            for update in [Update::Always, Update::Distinct] {
                let (num_cells, layout) = (1001, Layout::Spread);
                let parameters = Parameters { num_cells, cell_max, num_hashes, decrements, decrement, layout, update };
                let mut filter = Stable::new(parameters, Hashing::seeded(2)).expect("small");
                let (mut generator, mut keys) = (filter.generator.clone(), Generator::seeded(4));
                let mut cells = filter.cells.clone();
                for _ in 0..3000 {
                    let hash = Hashing::seeded(2).hash_u64(keys.below(150));
                    let expected = naive_spread(&parameters, &mut cells, hash, generator.bits());
                    assert_eq!(filter.observe_hash(hash, Importance::FULL), expected);
                }
                assert!(filter.cells == cells, "{parameters:?}");
            }
        }
    }
}
