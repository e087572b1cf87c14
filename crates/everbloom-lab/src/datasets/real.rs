//! Streams that people have recorded, read from a folder that may not be there.

use crate::evaluate::{Batch, Source};
use crate::oracle::Oracle;
use everbloom::kind::suggestion;
use everbloom::{Error, Hashing, Importance, ImportanceScale, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Finds key and importance in a line.
type Parse = fn(&[u8]) -> Option<(&[u8], Importance)>;

/// A recorded stream.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// The file in the data folder.
    pub file: &'static str,
    /// What key and importance are.
    pub summary: &'static str,
    parse: Parse,
}

/// The recorded streams that readers exist for.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "history",
        file: "rust-history-paths.txt.zst",
        summary: "paths touched by a project's commits; the shallower, the more important",
        parse: path_and_depth,
    },
    Kind {
        name: "clients",
        file: "apache-access.log.zst",
        summary: "client addresses of a web server's log; bytes sent are the importance, on a log scale",
        parse: client_and_bytes,
    },
    Kind {
        name: "urls",
        file: "apache-access.log.zst",
        summary: "URLs of a web server's log; bytes sent are the importance, on a log scale",
        parse: url_and_bytes,
    },
];

/// Paths this deep or deeper have importance 1.
const DEEPEST: u32 = 16;

fn path_and_depth(line: &[u8]) -> Option<(&[u8], Importance)> {
    let depth = line.iter().filter(|&&byte| byte == b'/').count().min(DEEPEST as usize - 1) as u32;
    Some((line, Importance::new(DEEPEST - depth, DEEPEST).ok()?))
}

/// Bytes sent, in combined log format: the second word after the quoted request.
fn bytes_sent(line: &[u8]) -> Option<Importance> {
    let after_request = line.split(|&byte| byte == b'"').nth(2)?;
    let bytes = std::str::from_utf8(after_request).ok()?.split_whitespace().nth(1)?;
    let bytes: f64 = bytes.parse().unwrap_or(0.0);
    ImportanceScale::logarithmic(1e9).and_then(|scale| scale.of(bytes.min(1e9))).ok()
}

fn client_and_bytes(line: &[u8]) -> Option<(&[u8], Importance)> {
    Some((line.split(|&byte| byte == b' ').next()?, bytes_sent(line)?))
}

fn url_and_bytes(line: &[u8]) -> Option<(&[u8], Importance)> {
    let request = line.split(|&byte| byte == b'"').nth(1)?;
    Some((request.split(|&byte| byte == b' ').nth(1)?, bytes_sent(line)?))
}

/// A recorded stream, open.
pub struct Recording {
    lines: Box<dyn BufRead + Send>,
    parse: Parse,
    oracle: Oracle,
    line: Vec<u8>,
}

/// The folder of recordings that the environment names, if it does.
pub fn folder() -> Option<std::path::PathBuf> {
    std::env::var_os("EVERBLOOM_DATA").filter(|folder| !folder.is_empty()).map(std::path::PathBuf::from)
}

/// Opens the recording of this name in a folder; `None` if the folder does not have it.
pub fn open(folder: &Path, name: &str) -> Result<Option<Recording>> {
    let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let remedy = suggestion(name, KINDS.iter().map(|kind| kind.name), "take one of");
        crate::bad("recording", name, "a known one", &remedy)
    })?;
    let path = folder.join(kind.file);
    if !path.exists() {
        return Ok(None);
    }
    let lines = unpacked(&path).map_err(Error::from)?;
    Ok(Some(Recording { lines, parse: kind.parse, oracle: Oracle::default(), line: Vec::new() }))
}

/// The file's bytes, unpacked if its name ends in `.zst` or `.gz`.
fn unpacked(path: &Path) -> std::io::Result<Box<dyn BufRead + Send>> {
    let file = File::open(path)?;
    let reader: Box<dyn Read + Send> = match path.extension().and_then(|extension| extension.to_str()) {
        Some("zst") => Box::new(zstd::Decoder::new(file)?),
        Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(file)),
        _ => Box::new(file),
    };
    Ok(Box::new(BufReader::with_capacity(1 << 18, reader)))
}

impl Source for Recording {
    /// Lines that do not parse are left out.
    fn fill(&mut self, hashing: &Hashing, batch: &mut Batch) -> Result<()> {
        while batch.hashes.len() < Batch::SIZE {
            self.line.clear();
            if self.lines.read_until(b'\n', &mut self.line)? == 0 {
                break;
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            if let Some((key, importance)) = (self.parse)(line) {
                let hash = hashing.hash(key);
                batch.hashes.push(hash);
                batch.importances.push(importance);
                batch.truths.push(self.oracle.judge(hash));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_give_client_url_and_bytes() {
        let line = br#"83.1.2.3 - - [17/May/2015:10:05:03 +0000] "GET /a/b.png HTTP/1.1" 200 203023 "http://x/" "Moz""#;
        assert_eq!(client_and_bytes(line).expect("a client").0, b"83.1.2.3");
        let (url, importance) = url_and_bytes(line).expect("a URL");
        assert_eq!(url, b"/a/b.png");
        let expected = (203_024f64.ln() / 1e9f64.ln_1p() * f64::from(importance.max())).round();
        assert_eq!(f64::from(importance.value()), expected);
        assert_eq!(url_and_bytes(b"not a log line"), None);
    }

    #[test]
    fn shallow_paths_matter_more() {
        let importance = |path: &'static [u8]| path_and_depth(path).expect("a path").1.value();
        assert_eq!(importance(b"README"), 16);
        assert_eq!(importance(b"a/b/c"), 14);
        assert_eq!(importance(&[b'/'; 40]), 1);
    }

    #[test]
    fn a_folder_without_recordings_is_no_error() {
        assert!(open(Path::new("no/such/folder"), "history").expect("no error").is_none());
        assert!(open(Path::new("."), "nothing").is_err());
    }

    #[test]
    fn packed_files_are_read_as_they_are() {
        use std::io::Write as _;
        let folder = std::env::temp_dir().join(format!("everbloom-lab-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(b"a\nb\na").expect("packed");
        let files = [
            ("lines.gz", packed.finish().expect("packed")),
            ("lines.zst", zstd::encode_all(&b"a\nb\na"[..], 1).expect("packed")),
            ("lines.txt", b"a\nb\na".to_vec()),
        ];
        for (name, bytes) in files {
            let path = folder.join(name);
            std::fs::write(&path, bytes).expect("written");
            let mut text = String::new();
            unpacked(&path).expect(name).read_to_string(&mut text).expect(name);
            assert_eq!(text, "a\nb\na", "{name}");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
