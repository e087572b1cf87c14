//! What the module's tests share: servers on loopback, a client, chance that is the same in every run.

#![allow(dead_code, unused_imports, unused_macros, unreachable_pub)] // shared by several test programs, each of which uses its part

mod cluster;
mod cutter;
mod link;
mod pass;
mod payload;
mod proxy;
mod server;
mod twin;
mod wire;

pub use cluster::{Cluster, wait};
pub use cutter::Cutter;
pub use link::Link;
pub use pass::pass_through;
pub use payload::{Field, Payload, crc64, sign};
pub use server::{Maker, Server, Start, free_port, on_every_server, servers};
pub use twin::{IMPORTANCE, Twin, bits, kinds, packed, reserve, small_spec};
pub use wire::{Reply, Wire};

/// The words of a command, of whatever they are made: texts, bytes, numbers as texts.
macro_rules! words {
    ($($word:expr),* $(,)?) => { &[$(AsRef::<[u8]>::as_ref(&$word)),*] };
}
pub(crate) use words;

/// How often a test does what it does `few` times by default; `cargo xtask soak redis` says more.
pub fn times(few: u64) -> u64 {
    few * soak().0
}

/// The hundredth of a count, and all of it in a soak of 100.
pub fn share(full: u64) -> u64 {
    (full * soak().0).div_ceil(100)
}

/// Whether this is a soak, which may take long and look at the clock.
pub fn is_soak() -> bool {
    std::env::var_os("EVERBLOOM_SOAK").is_some()
}

/// The seed that chance begins with.
pub fn seed() -> u64 {
    soak().1
}

fn soak() -> (u64, u64) {
    let text = std::env::var("EVERBLOOM_SOAK").unwrap_or_default();
    let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
    (numbers.next().flatten().unwrap_or(1), numbers.next().flatten().unwrap_or(0))
}

/// Numbers that look random, the same for the same seed (SplitMix64).
#[derive(Clone)]
pub struct Chance(pub u64);

impl Chance {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize].clone()
    }
}
