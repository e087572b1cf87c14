//! Files that are dropped onto a page: to disk as they come, and only so far.

use super::Refusal;
use crate::failure::Failure;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use std::future::poll_fn;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use tokio::sync::Semaphore;

/// The longest file.
pub(crate) const MOST_BYTES: u64 = 256 << 20;

/// A file that was sent, for as long as this lives.
pub(crate) struct Received {
    folder: tempfile::TempDir,
    pub(crate) name: String,
}

impl Received {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// What is wrong with the file, by the name that its owner knows.
    pub(crate) fn refusal(&self, failure: Failure) -> Refusal {
        let mut refusal = Refusal::from(failure);
        refusal.problem = refusal.problem.replace(&format!("{}/", self.folder.path().display()), "");
        refusal
    }
}

/// Files that come at a time.
static FREE: Semaphore = Semaphore::const_new(3);

/// Takes in what a request sends, in a folder of its own within this one.
pub(crate) async fn receive(request: Request, name: &str, within: &Path) -> Result<Received, Refusal> {
    let busy =
        |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "other files are on their way; send it again in a moment");
    let _permit = FREE.try_acquire().map_err(busy)?;
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > MOST_BYTES) {
        return Err(too_long());
    }
    let fail = |error: std::io::Error| Refusal {
        status: StatusCode::INSUFFICIENT_STORAGE,
        ..Failure::io("the file that was sent", &error).into()
    };
    let folder = tempfile::tempdir_in(within).map_err(fail)?;
    let received = Received { folder, name: plain(name) };
    let mut file = std::fs::File::create(received.path()).map_err(fail)?;
    let (mut body, mut bytes): (Body, u64) = (request.into_body(), 0);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let ended = |_| Refusal::new(StatusCode::BAD_REQUEST, "the file ended too early; send it again");
        let Ok(part) = frame.map_err(ended)?.into_data() else { continue };
        bytes += part.len() as u64;
        if bytes > MOST_BYTES {
            return Err(too_long());
        }
        file.write_all(&part).map_err(fail)?;
    }
    Ok(received)
}

fn too_long() -> Refusal {
    let problem =
        "the file is longer than 256 MiB; give a part of it, or its name on the command line: everbloom explore FILE";
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, problem)
}

/// The last part of a name, with nothing in it that a file system or a terminal could take for something else.
fn plain(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let letters = last.chars().filter(|letter| !letter.is_control()).take(60).collect::<String>();
    if matches!(letters.as_str(), "" | "." | "..") { "file".into() } else { letters }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_folder() {
        assert_eq!(plain("../../etc/passwd"), "passwd");
        assert_eq!(plain("a\\b\nc.txt"), "bc.txt");
        assert_eq!((plain(""), plain(".."), plain("x/")), ("file".into(), "file".into(), "file".into()));
        assert!(plain(&"ü".repeat(1000)).len() <= 240);
    }
}
