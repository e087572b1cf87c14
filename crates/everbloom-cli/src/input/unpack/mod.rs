//! Packed inputs, recognised by their first bytes and unpacked as their bytes come.
//!
//! Every decoder here is pushed: it is given what has arrived and gives all that this unpacks to. None reads by
//! itself, so none waits for bytes that a live pipe holds back while it still has something to deliver.
//!
//! ```text
//! input  =  any number of:  member | skippable frame | zeros (behind a member)
//! ```

mod decoder;
mod lz4;

use super::place::Member;
use decoder::Decoder;
use std::io;
use std::ops::RangeInclusive;

/// How something is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Lz4,
    /// A frame of zstd or lz4 that carries something else: pzstd's sizes, a seek table.
    Skippable,
    /// What `lz4 -l` writes: it has no end, so that a cut could not be told.
    LegacyLz4,
}

/// The first bytes of something packed, one of which may vary.
struct Magic {
    bytes: &'static [u8],
    varies: Option<(usize, RangeInclusive<u8>)>,
    packing: Packing,
}

const fn magic(bytes: &'static [u8], packing: Packing) -> Magic {
    Magic { bytes, varies: None, packing }
}

/// A bzip2 file is told from a text that begins with `BZh` by the digits of π, or of its root, that follow.
const MAGICS: [Magic; 8] = [
    magic(&[0x1f, 0x8b, 0x08], Packing::Gzip),
    magic(&[0x28, 0xb5, 0x2f, 0xfd], Packing::Zstd),
    magic(&[0xfd, b'7', b'z', b'X', b'Z', 0], Packing::Xz),
    magic(&[0x04, 0x22, 0x4d, 0x18], Packing::Lz4),
    magic(&[0x02, 0x21, 0x4c, 0x18], Packing::LegacyLz4),
    Magic { bytes: b"BZh91AY&SY", varies: Some((3, b'1'..=b'9')), packing: Packing::Bzip2 },
    Magic { bytes: b"BZh9\x17\x72\x45\x38\x50\x90", varies: Some((3, b'1'..=b'9')), packing: Packing::Bzip2 },
    Magic { bytes: &[0x50, 0x2a, 0x4d, 0x18], varies: Some((0, 0x50..=0x5f)), packing: Packing::Skippable },
];

/// What the first bytes of an input say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recognised {
    Packed(Packing),
    Plain,
    /// They are too few to tell.
    Unknown,
}

/// What the bytes at the start of an input say of it.
fn recognise(start: &[u8]) -> Recognised {
    let mut verdict = Recognised::Plain;
    for magic in &MAGICS {
        let fits = |(index, byte): (usize, &u8)| match &magic.varies {
            Some((at, range)) if *at == index => range.contains(byte),
            _ => magic.bytes[index] == *byte,
        };
        if start.iter().take(magic.bytes.len()).enumerate().all(fits) {
            if start.len() >= magic.bytes.len() {
                return Recognised::Packed(magic.packing);
            }
            verdict = Recognised::Unknown;
        }
    }
    verdict
}

/// What an unpacker has to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unpacked {
    /// So many bytes.
    Bytes(usize),
    /// Nothing without more input.
    Hungry,
    /// The end.
    End,
    /// The input is not packed: read on without us, after what [`Unpacker::stored`] has.
    Plain,
}

/// How much is read at a time.
const STORED_BYTES: usize = 64 << 10;
/// A skippable frame's magic and length.
const SKIPPABLE_HEADER: usize = 8;

/// Turns stored bytes into what they unpack to.
#[derive(Default)]
pub(super) struct Unpacker {
    stage: Stage,
    /// Whether a member has been read, so that what follows must be one, too.
    is_packed: bool,
    stored: Vec<u8>,
    used: usize,
    filled: usize,
    has_ended: bool,
    /// Whether the last call left nothing to give.
    is_hungry: bool,
    failure: Option<io::Error>,
    /// Stored bytes that are used and no longer here.
    gone: u64,
    /// Bytes given.
    given: u64,
    /// The end of the last whole member.
    member: Member,
}

#[derive(Default)]
enum Stage {
    /// In front of a member, or behind the last.
    #[default]
    Between,
    /// Within a skippable frame, with so many bytes to go.
    Skipping(u64),
    Member(Box<Decoder>),
}

impl Unpacker {
    pub(super) fn new() -> Self {
        Unpacker { stored: vec![0; STORED_BYTES], is_hungry: true, ..Unpacker::default() }
    }

    /// For an input that is known to be packed, behind its first members if there are any.
    pub(super) fn behind_member(is_packed: bool) -> Self {
        Unpacker { is_packed, ..Unpacker::new() }
    }

    /// The end of the last whole member, counted from where this began; nothing if the input is not packed.
    pub(super) fn member(&self) -> Option<Member> {
        self.is_packed.then_some(self.member)
    }

    /// What has been read and not been used.
    pub(super) fn stored(&self) -> &[u8] {
        &self.stored[self.used..self.filled]
    }

    /// Uses up stored bytes.
    pub(super) fn consume(&mut self, count: usize) {
        self.used += count;
    }

    /// Whether nothing is left to give without more input.
    pub(super) fn is_hungry(&self) -> bool {
        self.is_hungry
    }

    /// Takes what `read` reads; nothing read is the end of the input.
    pub(super) fn feed(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        self.stored.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.gone += self.used as u64;
        self.used = 0;
        let count = read(&mut self.stored[self.filled..])?;
        self.filled += count;
        self.has_ended |= count == 0;
        self.is_hungry = false;
        Ok(())
    }

    /// Unpacks as much as fits and as there is. A failure comes after what was unpacked before it.
    pub(super) fn unpack(&mut self, bytes: &mut [u8]) -> io::Result<Unpacked> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut count = 0;
        self.is_hungry = false;
        let ending = loop {
            match self.step(&mut bytes[count..]) {
                Ok(Step::Gave(more)) => {
                    count += more;
                    self.given += more as u64;
                }
                Ok(Step::Went) => {}
                Ok(Step::Stopped(ending)) => break ending,
                Err(failure) if count > 0 => {
                    self.failure = Some(failure);
                    return Ok(Unpacked::Bytes(count));
                }
                Err(failure) => return Err(failure),
            }
            if matches!(self.stage, Stage::Between) {
                self.member = Member { stored: self.gone + self.used as u64, offset: self.given };
            }
            if count == bytes.len() {
                return Ok(Unpacked::Bytes(count));
            }
        };
        self.is_hungry = ending == Unpacked::Hungry;
        Ok(if count > 0 { Unpacked::Bytes(count) } else { ending })
    }

    fn step(&mut self, bytes: &mut [u8]) -> io::Result<Step> {
        let input = &self.stored[self.used..self.filled];
        match &mut self.stage {
            Stage::Between => self.start_member(),
            Stage::Skipping(left) => {
                let skipped = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= skipped as u64;
                let is_over = *left == 0;
                self.used += skipped;
                match (is_over, skipped, self.has_ended) {
                    (true, ..) => self.stage = Stage::Between,
                    (false, 0, true) => return Err(cut_short()),
                    (false, 0, false) => return Ok(Step::Stopped(Unpacked::Hungry)),
                    _ => {}
                }
                Ok(Step::Went)
            }
            Stage::Member(decoder) => {
                let done = decoder.step(input, bytes)?;
                self.used += done.consumed;
                if done.is_over {
                    self.stage = Stage::Between;
                }
                match (done.consumed + done.produced, done.is_over, self.has_ended) {
                    (0, false, true) => Err(cut_short()),
                    (0, false, false) => Ok(Step::Stopped(Unpacked::Hungry)),
                    _ => Ok(Step::Gave(done.produced)),
                }
            }
        }
    }

    fn start_member(&mut self) -> io::Result<Step> {
        if self.is_packed {
            // As gzip does: what fills up a tape's last block is no data.
            self.used += self.stored().iter().take_while(|byte| **byte == 0).count();
        }
        let start = &self.stored[self.used..self.filled];
        let packing = match recognise(start) {
            Recognised::Packed(Packing::Skippable) if start.len() < SKIPPABLE_HEADER => {
                return if self.has_ended { Err(cut_short()) } else { Ok(Step::Stopped(Unpacked::Hungry)) };
            }
            Recognised::Packed(packing) => packing,
            Recognised::Unknown if !self.has_ended => return Ok(Step::Stopped(Unpacked::Hungry)),
            _ if !self.is_packed => return Ok(Step::Stopped(Unpacked::Plain)),
            _ if start.is_empty() => return Ok(Step::Stopped(Unpacked::End)),
            _ => {
                let problem = "the packed data is followed by bytes that are not packed; all before them was read";
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
        };
        self.is_packed = true;
        self.stage = match (packing, start) {
            (Packing::Skippable, [_, _, _, _, a, b, c, d, ..]) => {
                let length = u32::from_le_bytes([*a, *b, *c, *d]);
                self.used += SKIPPABLE_HEADER;
                Stage::Skipping(u64::from(length))
            }
            _ => Stage::Member(Box::new(Decoder::new(packing)?)),
        };
        Ok(Step::Went)
    }
}

/// What became of a step.
enum Step {
    /// So many bytes were unpacked.
    Gave(usize),
    /// It went on, with nothing to show.
    Went,
    Stopped(Unpacked),
}

fn cut_short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the packed data is cut short; fetch it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_packed_bytes_as_early_as_it_can_be() {
        assert_eq!(recognise(b""), Recognised::Unknown);
        assert_eq!(recognise(b"BZh9"), Recognised::Unknown);
        assert_eq!(recognise(b"BZh9\n"), Recognised::Plain);
        assert_eq!(recognise(b"BZh0"), Recognised::Plain);
        assert_eq!(recognise(b"BZh51AY&SY and more"), Recognised::Packed(Packing::Bzip2));
        assert_eq!(recognise(b"(a"), Recognised::Plain);
        assert_eq!(recognise(&[0x5f, 0x2a, 0x4d, 0x18]), Recognised::Packed(Packing::Skippable));
        assert_eq!(recognise(&[0x60, 0x2a, 0x4d, 0x18]), Recognised::Plain);
    }
}
