//! One member of each kind, given bytes and giving what they unpack to.

use super::Packing;
use super::lz4::Lz4;
use bzip2::Status as Bzip2Status;
use flate2::{Decompress, FlushDecompress, Status as GzipStatus};
use lzma_rust2::{Action, Status as XzStatus, XzStream};
use std::fmt::Display;
use std::io;
use zstd::stream::raw::Operation as _;

/// The largest dictionary of an xz file that is unpacked: `xz -9` has 64 MiB.
const XZ_MIB: u32 = 128;
/// What an xz decoder needs beside its dictionary.
const XZ_OVERHEAD_KIB: u32 = 1 << 10;

#[expect(clippy::large_enum_variant, reason = "there is one at a time, in a box of its own")]
pub(super) enum Decoder {
    Gzip(Decompress),
    Zstd(zstd::stream::raw::Decoder<'static>),
    Bzip2(bzip2::Decompress),
    Xz(XzStream),
    Lz4(Lz4),
}

/// What a step came to. Neither consumed nor produced, and not over: it needs more input.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) consumed: usize,
    pub(super) produced: usize,
    /// Whether the member is at its end, and all of it has been given.
    pub(super) is_over: bool,
}

impl Decoder {
    pub(super) fn new(packing: Packing) -> io::Result<Self> {
        match packing {
            // 15 is the largest window that deflate knows.
            Packing::Gzip => Ok(Decoder::Gzip(Decompress::new_gzip(15))),
            Packing::Zstd => Ok(Decoder::Zstd(zstd::stream::raw::Decoder::new()?)),
            Packing::Bzip2 => Ok(Decoder::Bzip2(bzip2::Decompress::new(false))),
            Packing::Xz => Ok(Decoder::Xz(XzStream::new_mem_limit(false, (XZ_MIB << 10) + XZ_OVERHEAD_KIB))),
            Packing::Lz4 => Ok(Decoder::Lz4(Lz4::new())),
            Packing::Skippable => Err(io::Error::other("a skippable frame has nothing to unpack")),
            Packing::LegacyLz4 => Err(io::Error::other(
                "is in the legacy format of lz4, which has no end; unpack it with lz4 -dc and read the result",
            )),
        }
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> io::Result<Done> {
        match self {
            Decoder::Gzip(decoder) => {
                let before = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(input, output, FlushDecompress::None);
                let status = status.map_err(|error| damaged("gzip", &error))?;
                let (consumed, produced) = (decoder.total_in() - before.0, decoder.total_out() - before.1);
                Ok(Done::new(consumed, produced, status == GzipStatus::StreamEnd))
            }
            Decoder::Zstd(decoder) => {
                let status = decoder.run_on_buffers(input, output).map_err(|error| zstd_problem(&error))?;
                let went = status.bytes_read + status.bytes_written > 0;
                Ok(Done::new(status.bytes_read as u64, status.bytes_written as u64, went && status.remaining == 0))
            }
            Decoder::Bzip2(decoder) => {
                let before = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(input, output).map_err(|error| damaged("bzip2", &error))?;
                if status == Bzip2Status::MemNeeded {
                    return Err(io::Error::other("there is not enough memory to unpack bzip2 data"));
                }
                let (consumed, produced) = (decoder.total_in() - before.0, decoder.total_out() - before.1);
                Ok(Done::new(consumed, produced, status == Bzip2Status::StreamEnd))
            }
            Decoder::Xz(decoder) => match decoder.process(input, output, Action::Run) {
                Ok(done) => Ok(Done {
                    consumed: done.bytes_consumed,
                    produced: done.bytes_produced,
                    is_over: done.status == XzStatus::StreamEnd,
                }),
                Err(error) => Err(xz_problem(&error, decoder.memory_usage())),
            },
            Decoder::Lz4(decoder) => decoder.step(input, output),
        }
    }
}

impl Done {
    fn new(consumed: u64, produced: u64, is_over: bool) -> Self {
        Done { consumed: consumed as usize, produced: produced as usize, is_over }
    }
}

pub(super) fn damaged(name: &str, error: &dyn Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the {name} data is damaged: {error}; fetch it again"))
}

fn zstd_problem(error: &io::Error) -> io::Error {
    if error.to_string().contains("too much memory") {
        return io::Error::other(
            "needs a window of more than 128 MiB; unpack it with zstd -dc --long=31 and read the result",
        );
    }
    damaged("zstd", error)
}

fn xz_problem(error: &io::Error, needed_kib: Option<u32>) -> io::Error {
    match needed_kib.map(|kib| kib.div_ceil(1 << 10)) {
        Some(mib) if mib > XZ_MIB => io::Error::other(format!(
            "needs {mib} MiB to unpack, and dictionaries of at most {XZ_MIB} MiB are read; unpack it with xz -dc and read the result"
        )),
        _ => damaged("xz", error),
    }
}
