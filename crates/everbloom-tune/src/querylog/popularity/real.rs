//! The optimum over real numbers of hashes, and what rounding makes of it (\[Zhong et al. 2008\], section 3).

use super::{Allocation, Share, Solution};
use libm::{exp2, log2, round};
use std::f64::consts::LN_2;

/// The best real numbers of hashes, negative ones too: what no whole numbers can reach (the paper's "optimal+").
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RealOptimum {
    /// The rate of false positives, at half fill.
    pub fpr: f64,
    /// The divergence of the negative queries from the members, in bits: the gain over a standard filter.
    pub divergence: f64,
    /// The number of hashes of a class is this plus log2(misses / members).
    pub offset: f64,
}

impl Allocation {
    /// Eqs. 14 and 15: k_i = (m/n)·ln 2 + D + log2(q′_i / p_i), rate 2^−((m/n)·ln 2 + D), with the Kullback–Leibler
    /// divergence D = Σ p·log2(p / q′).
    ///
    /// Members that are never asked for would make D infinite and the rate 0, by ever more negative numbers of hashes.
    /// Here they have no hashes, which is the most that a filter can gain from them; with S the share of the other
    /// members the optimum is k_i = ((m/n)·ln 2 + D)/S + log2(q′_i / p_i), rate S·2^−(((m/n)·ln 2 + D)/S). S is 1 in
    /// the paper.
    pub fn real_optimum(&self) -> RealOptimum {
        let asked = || self.classes().iter().filter(|class| class.members > 0.0 && class.misses > 0.0);
        let share: f64 = asked().map(|class| class.members).sum();
        let divergence: f64 = asked().map(|class| class.members * -log2(class.misses / class.members)).sum();
        // No member is ever asked for: no hashes, no false positives.
        if share <= 0.0 {
            return RealOptimum { fpr: 0.0, divergence: 0.0, offset: 0.0 };
        }
        let offset = (self.bits_per_key() * LN_2 + divergence) / share;
        RealOptimum { fpr: share * exp2(-offset), divergence, offset }
    }

    /// The real optimum rounded to the nearest whole numbers in the range.
    pub fn rounding(&self) -> Solution {
        let offset = self.real_optimum().offset;
        let (least, most) = (f64::from(self.min_hashes), f64::from(self.max_hashes));
        let rounded = |class: &Share| match (class.members > 0.0, class.misses > 0.0) {
            (false, _) => self.max_hashes,
            (true, false) => self.min_hashes,
            (true, true) => round(offset + log2(class.misses / class.members)).clamp(least, most) as u8,
        };
        self.scored(self.classes().iter().map(rounded).collect())
    }
}
