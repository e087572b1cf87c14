//! Two systems that ship filters to each other, simulated request by request with real bits.
//!
//! - [`caching`]: proxies that tell each other what they have cached.
//! - [`keyword`]: nodes that intersect lists of documents.
//! - [`trace`]: what is requested, recorded or generated.

pub mod caching;
pub mod keyword;
pub mod summary;
pub mod trace;

use everbloom::Result;
use everbloom_tune::querylog::popularity::{Allocation, Share};

/// How the number of hashes of a key is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// One number of hashes for all.
    Standard,
    /// The real-number optimum, key by key, rounded.
    Rounding,
    /// The paper's own integer solution, its dynamic programme, over keys of nearly the same score together.
    Programme,
    /// The knapsack that the programme approximates, solved greedily with its whole load: every bit half set.
    HalfFill,
    /// By classes, solved with a free fill: held out in [`caching`], by the length of documents in [`keyword`].
    Ours,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Scheme; 5] =
        [Scheme::Standard, Scheme::Rounding, Scheme::Programme, Scheme::HalfFill, Scheme::Ours];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Standard => "standard",
            Scheme::Rounding => "rounding",
            Scheme::Programme => "paper",
            Scheme::HalfFill => "greedy at half fill",
            Scheme::Ours => "ours",
        }
    }

    /// Whether the scheme can be worked out for filters of so many bits a key: the programme's tables grow with
    /// 2^k_max, and beyond 12 hashes it would take minutes.
    pub fn fits(self, bits_per_key: f64) -> bool {
        self != Scheme::Programme || bits_per_key <= 8.0
    }
}

/// The programme's ε: a 3-approximation, as in Figure 1.
const EPSILON: f64 = 1.0;
/// The programme's tables double with each hash, and beyond this it would take minutes; the paper has 10.
const MOST_HASHES: u8 = 12;
/// Keys of neighbouring scores are one to the programme while they have no more than this share of members and of misses.
const GROUP_SHARE: f64 = 1.0 / 400.0;

/// The paper's dynamic programme, with keys of nearly the same score taken together: a number of hashes for every class.
pub(crate) fn programme(problem: &Allocation) -> Result<Vec<u8>> {
    let classes = problem.classes();
    let score = |class: &Share| if class.members > 0.0 { class.misses / class.members } else { f64::INFINITY };
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by(|&one, &other| score(&classes[one]).total_cmp(&score(&classes[other])));
    let (mut groups, mut group_of) = (Vec::<Share>::new(), vec![0; classes.len()]);
    for &place in &order {
        let class = &classes[place];
        let joins = groups.last().is_some_and(|group: &Share| {
            let small = group.members + class.members <= GROUP_SHARE && group.misses + class.misses <= GROUP_SHARE;
            // Keys that are never members, or never asked for, stay among themselves.
            let alike = (group.members > 0.0) == (class.members > 0.0) && (group.misses > 0.0) == (class.misses > 0.0);
            alike && (small || class.members == 0.0 || class.misses == 0.0)
        });
        if !joins {
            groups.push(Share::new(0.0, 0.0));
        }
        group_of[place] = groups.len() - 1;
        if let Some(group) = groups.last_mut() {
            group.members += class.members;
            group.misses += class.misses;
        }
    }
    let (fewest, most) = problem.hashes().into_inner();
    let range = fewest..=most.min(MOST_HASHES).max(fewest);
    let solved = Allocation::new(groups, problem.bits_per_key(), range)?.dynamic_programme(EPSILON)?;
    // A group for every class, and a number for every group.
    Ok(group_of.into_iter().map(|group| solved.hashes[group]).collect())
}
