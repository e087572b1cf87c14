//! The three inputs, from a seed.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::{Path, PathBuf};

/// An input that can be generated.
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    lines: u64,
    write: fn(u64, &mut dyn Write) -> Result<()>,
}

/// All of them.
pub(super) const INPUTS: &[Input] = &[
    Input { name: "urls", summary: "10 M URLs, 70 % repeats", lines: 10_000_000, write: urls },
    Input { name: "distinct", summary: "10 M distinct URLs", lines: 10_000_000, write: distinct },
    Input { name: "zipf", summary: "50 M short Zipf lines", lines: 50_000_000, write: zipf },
];

impl Input {
    /// The input as a file, written unless it is there.
    pub(super) fn make(&self, folder: &Path, scale: f64) -> Result<PathBuf> {
        let lines = (self.lines as f64 * scale) as u64;
        let path = folder.join(format!("{}-{lines}.txt", self.name));
        if !path.exists() {
            let part = path.with_extension("part");
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
            (self.write)(lines, &mut out)?;
            out.flush()?;
            std::fs::rename(&part, &path)?;
        }
        Ok(path)
    }
}

fn url(key: u64, out: &mut dyn Write) -> Result<()> {
    let noise = mixed(key);
    writeln!(out, "https://www.site-{}.example/{:08x}/page-{key}.html", noise % 9973, noise >> 32)
}

/// Three lines of ten are new, the others one of those before.
fn urls(lines: u64, out: &mut dyn Write) -> Result<()> {
    let mut random = Random(1);
    let mut keys = 0;
    for _ in 0..lines {
        if keys == 0 || random.next() % 10 < 3 {
            keys += 1;
            url(keys, out)?;
        } else {
            url(1 + random.next() % keys, out)?;
        }
    }
    Ok(())
}

fn distinct(lines: u64, out: &mut dyn Write) -> Result<()> {
    (0..lines).try_for_each(|key| url(key, out))
}

/// Keys whose frequency falls as one over their rank: rank = universe^u for a uniform u.
fn zipf(lines: u64, out: &mut dyn Write) -> Result<()> {
    let mut random = Random(3);
    let universe = (lines as f64 / 5.0).max(2.0);
    for _ in 0..lines {
        let uniform = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        writeln!(out, "{}", universe.powf(uniform) as u64)?;
    }
    Ok(())
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }
}

fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
