//! Files that are followed as they grow, as `tail -F` does: by name, through every rotation.

use super::place::{Mark, Place};
use crate::{fault, platform};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How often followed files are looked at.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);
/// A file that lost its name is let go when nothing has come for so long. Whoever writes to it takes the new one when they
/// are told to, which may be a while after the renaming.
const QUIET: Duration = Duration::from_secs(10);

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
    /// Its name belongs to another file.
    Renamed,
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

    /// What makes it the same file by any name, if there is one.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        let data = self.place.file.as_ref().and_then(|file| platform::data_of(file).ok())?;
        Some(platform::identity(&data))
    }

    /// This file by the name of another input.
    pub(super) fn named(mut self, input: usize) -> Self {
        self.place.input = input;
        self
    }

    /// What became of the file of this name.
    pub(super) fn look(&mut self, path: &Path) -> News {
        let Some(file) = &self.place.file else {
            let opened = fault::point("open")
                .and_then(|()| File::open(path))
                .ok()
                .filter(|file| file.metadata().is_ok_and(|data| data.is_file()));
            return opened.map_or(News::Nothing, |file| News::Created(Arc::new(file)));
        };
        match platform::data_of(file) {
            Ok(data) if has_lost_its_name(path, &data) => News::Renamed,
            Ok(data) => self.look_at(&data),
            Err(_) => News::Nothing,
        }
    }

    /// What became of the file itself.
    fn look_at(&mut self, data: &Metadata) -> News {
        let Some(file) = &self.place.file else { return News::Nothing };
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
            std::cmp::Ordering::Equal => News::Nothing,
        }
    }
}

/// Whether there is another file of its name. As long as there is none, it may still grow under it.
fn has_lost_its_name(path: &Path, data: &Metadata) -> bool {
    let named = platform::stat(path).ok().flatten();
    named.is_some_and(|named| named.is_file() && platform::identity(&named) != platform::identity(data))
}

/// A file that lost its name, to which somebody may still write.
#[derive(Debug)]
pub(super) struct Renamed {
    followed: Followed,
    /// When something came last.
    grown: Instant,
    looked: Option<Instant>,
}

impl Renamed {
    /// One that is to be looked at as soon as possible, before the file that has its name.
    pub(super) fn just_now(followed: Followed) -> Self {
        Renamed { followed, grown: Instant::now(), looked: None }
    }

    /// One of which all was read that has come.
    pub(super) fn again(followed: Followed) -> Self {
        let now = Instant::now();
        Renamed { followed, grown: now, looked: Some(now) }
    }

    pub(super) fn followed(&self) -> &Followed {
        &self.followed
    }

    pub(super) fn into_followed(self) -> Followed {
        self.followed
    }

    /// Whether it has not been looked at for a while. Those that have their names come in between.
    pub(super) fn is_due(&self) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() >= INTERVAL)
    }

    /// Where to go on reading, if there is more, or a last time, because there has been nothing for long; and whether it is
    /// the last time.
    pub(super) fn look(&mut self) -> Option<(Place, bool)> {
        self.looked = Some(Instant::now());
        let data = self.followed.place.file.as_ref().and_then(|file| platform::data_of(file).ok());
        match data.map_or(News::Nothing, |data| self.followed.look_at(&data)) {
            News::Grown(place) | News::Emptied(place) => Some((place, false)),
            _ if self.grown.elapsed() >= QUIET => Some((self.followed.place.clone(), true)),
            _ => None,
        }
    }
}
