//! The inputs, from a seed.

use memchr::{memchr, memmem};
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::{Path, PathBuf};

/// An input that can be generated.
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// The options with which `dedup` finds the keys, if those are within records.
    pub(super) options: Option<&'static [&'static str]>,
    /// The key of a line, found by hand.
    pub(super) key: fn(&[u8]) -> &[u8],
    lines: u64,
    write: fn(u64, &mut dyn Write) -> Result<()>,
}

fn whole(line: &[u8]) -> &[u8] {
    line
}

/// All of them.
pub(super) const INPUTS: &[Input] = &[
    lines("urls", "10 M URLs, 70 % repeats", 10_000_000, urls),
    lines("distinct", "10 M distinct URLs", 10_000_000, distinct),
    lines("zipf", "50 M short Zipf lines", 50_000_000, zipf),
    Input {
        options: Some(&["--json", "--key", "/user/id"]),
        key: |line| behind(line, b"\"user\":{\"id\":", 1),
        ..lines("json", "1 M events of 300,000 users", 1_000_000, events)
    },
    Input {
        options: Some(&["--csv", "--key", "4"]),
        key: |line| behind(line, b",", 3),
        ..lines("csv", "1 M rows of 300,000 users, two fields quoted", 1_000_000, rows)
    },
];

const fn lines(
    name: &'static str,
    summary: &'static str,
    lines: u64,
    write: fn(u64, &mut dyn Write) -> Result<()>,
) -> Input {
    Input { name, summary, options: None, key: whole, lines, write }
}

/// What stands behind the nth `mark`, up to a comma.
fn behind<'l>(line: &'l [u8], mark: &[u8], nth: usize) -> &'l [u8] {
    let place = memmem::find_iter(line, mark).nth(nth - 1).map_or(line.len(), |at| at + mark.len());
    let rest = &line[place..];
    &rest[..memchr(b',', rest).unwrap_or(rest.len())]
}

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

/// What services write: a line of about 290 bytes an event.
fn events(lines: u64, out: &mut dyn Write) -> Result<()> {
    let mut random = Random(5);
    (0..lines).try_for_each(|line| {
        let Event { seconds, level, service, request, user, item, tenths } = Event::draw(line, &mut random);
        writeln!(
            out,
            "{{\"time\":\"2026-11-17T{:02}:{:02}:{:02}.{:03}Z\",\"level\":\"{level}\",\"service\":\"{service}\",\
             \"request_id\":\"{request:016x}\",\"user\":{{\"id\":{user},\"name\":\"user-{user}\",\"plan\":\"pro\"}},\
             \"method\":\"GET\",\"path\":\"/api/v1/items/{item}/detail\",\"status\":200,\"duration_ms\":{}.{},\
             \"tags\":[\"web\",\"eu-1\"],\"message\":\"request done\"}}",
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60,
            line % 1000,
            tenths / 10,
            tenths % 10,
        )
    })
}

/// The log as a spreadsheet would have it.
fn rows(lines: u64, out: &mut dyn Write) -> Result<()> {
    let mut random = Random(5);
    (0..lines).try_for_each(|line| {
        let Event { seconds, level, service, request, user, item, tenths } = Event::draw(line, &mut random);
        writeln!(
            out,
            "{seconds},{level},{service},{user},\"user-{user}, pro\",{request:016x},GET,/api/v1/items/{item}/detail,200,\
             {tenths},\"request done, nothing else to say\",eu-1"
        )
    })
}

struct Event {
    seconds: u64,
    level: &'static str,
    service: &'static str,
    request: u64,
    user: u64,
    item: u64,
    tenths: u64,
}

impl Event {
    fn draw(line: u64, random: &mut Random) -> Self {
        Event {
            seconds: line / 50,
            level: ["info", "info", "warning", "error"][random.next() as usize % 4],
            service: ["checkout", "search", "cart", "login"][random.next() as usize % 4],
            request: random.next(),
            user: random.next() % 300_000,
            item: random.next() % 100_000,
            tenths: random.next() % 20_000,
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }
}

/// 64 bits that look random (the end of SplitMix64).
pub(crate) fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
