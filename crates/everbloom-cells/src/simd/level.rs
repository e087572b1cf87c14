//! Which instructions kernels use: the newest that the machine has, or fewer if somebody asks for fewer.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A set of instructions that kernels are compiled for. All of them give the same outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// What every machine has.
    Portable,
    /// 256-bit registers and what came with them: Intel since 2013, AMD since 2015.
    Avx2,
    /// 512-bit registers: Intel's servers since 2017, AMD since 2022.
    Avx512,
}

impl InstructionSet {
    /// All of them, from the oldest on.
    pub const ALL: [InstructionSet; 3] = [InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512];

    /// Its name, as tables and `EVERBLOOM_ISA` have it.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Portable => "portable",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Avx512 => "avx512",
        }
    }

    /// The newest that this machine has.
    #[inline]
    pub fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            match (avx2, avx512) {
                (false, _) => {}
                (true, false) => return InstructionSet::Avx2,
                (true, true) => return InstructionSet::Avx512,
            }
        }
        InstructionSet::Portable
    }

    /// Lets all kernels of this process use no more than this from now on, and says what they use: the machine may have
    /// less. For benches and tests.
    pub fn limit(self) -> Self {
        let used = self.min(Self::detected());
        USED.store(used.bit(), Relaxed);
        used
    }

    /// What kernels use. Detected once: a single key would feel six questions each time. It feels three comparisons, too, so
    /// each set is a bit of its own and the newest, which most machines have, is asked for first.
    #[inline(always)]
    pub fn used() -> Self {
        let bits = USED.load(Relaxed);
        if bits & Self::Avx512.bit() != 0 {
            return InstructionSet::Avx512;
        }
        if bits & Self::Avx2.bit() != 0 {
            return InstructionSet::Avx2;
        }
        if bits & Self::Portable.bit() != 0 {
            return InstructionSet::Portable;
        }
        Self::first_used()
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    #[cold]
    #[inline(never)]
    fn first_used() -> Self {
        InstructionSet::Avx512.limit()
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What kernels use, as its bit; none if nobody has asked yet. Only [`InstructionSet::limit`] writes it, and never more
/// than was detected.
static USED: AtomicU8 = AtomicU8::new(0);
