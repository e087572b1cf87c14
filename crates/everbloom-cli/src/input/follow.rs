//! Files that are followed as they grow, as `tail -F` does: by name, through every rotation.

use super::place::{Mark, Place};
use crate::{fault, platform};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often followed files are looked at.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);

/// A file that has been read to its end.
#[derive(Debug)]
pub(super) struct Followed {
    place: Place,
    /// What tells whether it is still the same.
    mark: Option<Mark>,
    /// How much of it, as it is stored, has been looked at.
    seen: u64,
    modified: Option<SystemTime>,
}

/// What became of a followed file.
#[derive(Debug)]
pub(super) enum News {
    Nothing,
    /// More is to be read of it, from there on.
    Grown(Place),
    /// It was emptied or overwritten, and is to be read from its start.
    Emptied(Place),
    /// Its name belongs to another file: what is left of it comes first.
    Left(Place),
    /// There is a file of that name again.
    Created(Arc<File>),
}

impl Followed {
    /// A file of which `seen` bytes have been read, up to `place` in whole records.
    pub(super) fn new(place: Place, path: &Path, seen: u64) -> io::Result<Self> {
        let modified = place.file.as_ref().and_then(|file| file.metadata().ok()).and_then(|data| data.modified().ok());
        Ok(Followed { mark: Mark::of(&place, path, 0)?, place, seen, modified })
    }

    /// A name that has no file yet.
    pub(super) fn missing(input: usize) -> Self {
        Followed { place: Place::start_of(input), mark: None, seen: 0, modified: None }
    }

    pub(super) fn look(&mut self, path: &Path) -> News {
        let Some(file) = &self.place.file else {
            let opened = fault::point("open")
                .and_then(|()| File::open(path))
                .ok()
                .filter(|file| file.metadata().is_ok_and(|data| data.is_file()));
            return opened.map_or(News::Nothing, |file| News::Created(Arc::new(file)));
        };
        let Ok(data) = platform::data_of(file) else { return News::Nothing };
        let modified = data.modified().ok();
        let is_changed = data.len() != self.seen || modified != self.modified;
        let fits = || self.mark.as_ref().map_or(Ok(false), |mark| mark.fits(file));
        // What cannot be read now is looked at again.
        let Ok(is_same) = (if is_changed { fits() } else { Ok(true) }) else { return News::Nothing };
        self.modified = modified;
        if !is_same {
            let start = Place { file: Some(Arc::clone(file)), ..Place::start_of(self.place.input) };
            return News::Emptied(start);
        }
        match data.len().cmp(&self.seen) {
            std::cmp::Ordering::Greater => News::Grown(self.place.clone()),
            // Only of the record without an ending is there less.
            std::cmp::Ordering::Less => {
                self.seen = data.len();
                News::Nothing
            }
            std::cmp::Ordering::Equal if self.has_lost_its_name(path, &data) => News::Left(self.place.clone()),
            std::cmp::Ordering::Equal => News::Nothing,
        }
    }

    /// Whether there is another file of its name. As long as there is none, it may still grow.
    fn has_lost_its_name(&self, path: &Path, data: &Metadata) -> bool {
        let named = platform::stat(path).ok().flatten();
        named.is_some_and(|named| named.is_file() && platform::identity(&named) != platform::identity(data))
    }
}
