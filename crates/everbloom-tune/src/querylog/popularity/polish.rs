//! Small moves that improve a solution where single classes weigh much.
//!
//! Following the order of scores is nearly optimal when every class is a small part of the load. A class that holds
//! a third of the members is not: whether it gets one hash more changes the fill for all. So the heaviest classes
//! are moved by one or two hashes, alone and in pairs, as long as that helps.

use super::{Allocation, MAX_HASHES, Solution, powers};

/// How many of the heaviest classes are moved.
const MOVED: usize = 40;

/// Among more classes than that, those with less of the members are not worth it: a hash of theirs changes the fill
/// by a part in ten thousand.
const HEAVY: f64 = 1e-3;

/// Passes end by themselves; this only bounds them.
const MOST_MOVES: usize = 1000;

/// A class and by how many hashes it moves.
type Move = (usize, i8);

pub(super) fn polished(problem: &Allocation, solution: Solution) -> Solution {
    let heavy = heaviest(problem);
    if heavy.is_empty() {
        return solution;
    }
    let mut state = State::new(problem, &solution);
    let mut hashes = solution.hashes.clone();
    for _ in 0..MOST_MOVES {
        match best_moves(&state, &hashes, &heavy) {
            Some(moves) => moves.into_iter().flatten().for_each(|step| state.apply(step, &mut hashes)),
            None => break,
        }
    }
    let moved = problem.scored(hashes);
    if moved.fpr < solution.fpr { moved } else { solution }
}

/// The classes with the most members that can be moved with an effect.
fn heaviest(problem: &Allocation) -> Vec<usize> {
    let classes = problem.classes();
    let least = if classes.len() > MOVED { HEAVY } else { f64::MIN_POSITIVE };
    let mut heavy: Vec<usize> = (0..classes.len()).filter(|&class| classes[class].members >= least).collect();
    heavy.sort_by(|&one, &other| classes[other].members.total_cmp(&classes[one].members));
    heavy.truncate(MOVED);
    heavy
}

/// The load, and the negative queries at each number of hashes: enough to score any change.
struct State<'a> {
    problem: &'a Allocation,
    load: f64,
    misses: [f64; MAX_HASHES as usize + 1],
    fpr: f64,
}

impl<'a> State<'a> {
    fn new(problem: &'a Allocation, solution: &Solution) -> Self {
        let mut misses = [0.0; MAX_HASHES as usize + 1];
        for (class, &count) in problem.classes().iter().zip(&solution.hashes) {
            misses[usize::from(count)] += class.misses;
        }
        State { problem, load: solution.load, misses, fpr: solution.fpr }
    }

    /// The rate after some moves.
    fn after(&self, moves: [Option<Move>; 2], hashes: &[u8]) -> f64 {
        let (mut load, mut change) = (self.load, 0.0);
        for (class, by) in moves.into_iter().flatten() {
            load += self.problem.classes()[class].members * f64::from(by);
        }
        let rates = powers(self.problem.fill(load));
        for (class, by) in moves.into_iter().flatten() {
            let count = usize::from(hashes[class]);
            change +=
                self.problem.classes()[class].misses * (rates[count.wrapping_add_signed(by.into())] - rates[count]);
        }
        change + self.misses.iter().zip(&rates).map(|(misses, rate)| misses * rate).sum::<f64>()
    }

    fn may(&self, (class, by): Move, hashes: &[u8]) -> bool {
        hashes[class].checked_add_signed(by).is_some_and(|count| self.problem.hashes().contains(&count))
    }

    fn apply(&mut self, (class, by): Move, hashes: &mut [u8]) {
        let shares = self.problem.classes()[class];
        self.fpr = self.after([Some((class, by)), None], hashes);
        self.misses[usize::from(hashes[class])] -= shares.misses;
        hashes[class] = hashes[class].saturating_add_signed(by);
        self.misses[usize::from(hashes[class])] += shares.misses;
        self.load += shares.members * f64::from(by);
    }
}

/// The single or double move that lowers the rate most, if any lowers it by more than rounding.
fn best_moves(state: &State<'_>, hashes: &[u8], heavy: &[usize]) -> Option<[Option<Move>; 2]> {
    let all = heavy.iter().flat_map(|&class| [-2, -1, 1, 2].map(|by| (class, by)));
    let possible: Vec<Move> = all.filter(|&step| state.may(step, hashes)).collect();
    let mut best = (state.fpr * (1.0 - 1e-9), None);
    let mut consider = |moves| {
        let fpr = state.after(moves, hashes);
        if fpr < best.0 {
            best = (fpr, Some(moves));
        }
    };
    for (position, &one) in possible.iter().enumerate() {
        consider([Some(one), None]);
        possible[position + 1..].iter().filter(|other| other.0 != one.0).for_each(|&other| {
            consider([Some(one), Some(other)]);
        });
    }
    best.1
}
