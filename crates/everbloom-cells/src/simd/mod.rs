//! Wide registers, prefetch and page advice: all the unsafe code of this crate, and its lowest module.
//!
//! It imports nothing from the crate and knows nothing but arrays of numbers. A loop that gains from newer
//! instructions is a [`Kernel`], written once over the [`SimdOps`] that it is given; [`run`] compiles it for plain
//! x86-64, AVX2 and AVX-512 and picks the best that the machine has, at run time, once per batch. Every operation
//! has plain code, the trait's default, which the tests hold the others to.
//!
//! | file | holds |
//! |---|---|
//! | `level` | which instructions kernels use: the newest, or fewer if asked for fewer |
//! | `ops` | [`Kernel`], [`SimdOps`] with the plain code of each operation, [`run`] |
//! | `x86` | the same operations on 256-bit and 512-bit registers |
//! | `bits` | the bits of a key that lie anywhere, one after another |
//! | `parity` | whether an odd number of bits are set, in eight words at once |
//! | `visit` | one arrival at a line of small counters |
//! | `prefetch` | asking for cache lines ahead of the work |
//! | `advice` | asking the operating system for large pages |
//! | `zeroed` | memory that is zero and not touched until it is used |

mod advice;
mod bits;
mod level;
mod ops;
mod parity;
mod prefetch;
mod visit;
#[cfg(target_arch = "x86_64")]
mod x86;
mod zeroed;

pub use advice::advise_huge_pages;
pub use bits::{all_set, all_set_here, set_all};
pub use level::InstructionSet;
pub use ops::{Kernel, PLACE_TURN, Plain, SimdOps, SlicePlaces, Slices, run, run_on_each};
pub use prefetch::prefetch;
pub use prefetch::{CACHED_BYTES, PREFETCH_DISTANCE, distance_for, pipelined, spread_distance_for};
pub use visit::{Visit, low_bits, nonzero_lanes};
pub use zeroed::Zeroed;
