//! Results on disk: whole files only, in a directory that is ours.
//!
//! ```text
//! DIR/everbloom-lab.json              says that the directory is ours
//! DIR/NAME/cells/SCALE/CELL.json      what a finished cell measured
//! DIR/NAME/result.json                tables, charts and verdicts of a finished experiment
//! DIR/NAME/TABLE.csv, CHART.svg
//! ```
//!
//! Every file is written beside its place and renamed, so that an interrupted run leaves whole cells
//! and nothing else that counts; a cell that cannot be read is run again.

use super::table::Row;
use everbloom::{Error, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The name of the marker.
const MARKER: &str = "everbloom-lab.json";
const FORMAT: &str = "everbloom lab results";
/// The layout of the directory.
const VERSION: u32 = 1;
/// How files are called before they are whole.
const PART: &str = "part";

#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: String,
    version: u32,
}

/// A finished cell.
#[derive(Debug, Serialize, Deserialize)]
struct Finished {
    experiment: String,
    revision: u32,
    cell: String,
    seed: u64,
    seconds: f64,
    rows: Vec<Row>,
}

/// Where a cell is kept.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) experiment: &'static str,
    pub(super) revision: u32,
    pub(super) scale: &'static str,
    pub(super) cell: &'a str,
    pub(super) seed: u64,
}

/// What is there of a cell.
pub(super) enum Found {
    Nothing,
    Damaged,
    Rows(Vec<Row>),
}

/// A directory of results.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The directory, made if it is not there; refused if it holds anything that is not ours.
    pub fn create(root: &Path) -> Result<Self> {
        let store = Store { root: root.to_path_buf() };
        if fs::metadata(root).is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(foreign(root, "is not a directory; name a new or empty one"));
        }
        fs::create_dir_all(root).map_err(|error| failed(root, &error))?;
        if !store.marked()? {
            let mut entries = fs::read_dir(root).map_err(|error| failed(root, &error))?;
            if entries.next().is_some() {
                return Err(foreign(root, "holds files that the lab did not write; name a new or empty directory"));
            }
            store.write_json(Path::new(MARKER), &Marker { format: FORMAT.into(), version: VERSION })?;
        }
        Ok(store)
    }

    /// The directory, which must be ours.
    pub fn open(root: &Path) -> Result<Self> {
        let store = Store { root: root.to_path_buf() };
        let metadata = fs::metadata(root).map_err(|error| failed(root, &error))?;
        if !metadata.is_dir() {
            return Err(foreign(root, "is not a directory; name the one given to `lab run --out`"));
        }
        if !store.marked()? {
            return Err(foreign(root, "holds no results of the lab; name the directory given to `lab run --out`"));
        }
        Ok(store)
    }

    /// Whether the marker is there and says that we can read the rest.
    fn marked(&self) -> Result<bool> {
        let path = self.root.join(MARKER);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(&path, &error)),
        };
        match serde_json::from_slice::<Marker>(&text) {
            Ok(marker) if marker.format == FORMAT && marker.version <= VERSION => Ok(true),
            Ok(marker) if marker.format == FORMAT => {
                Err(foreign(&path, "was written by a later version of everbloom; upgrade, or name a new directory"))
            }
            _ => Err(foreign(&path, "is not the lab's marker; name a new or empty directory")),
        }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where an experiment keeps its results.
    pub fn folder(&self, experiment: &str) -> PathBuf {
        self.root.join(experiment)
    }

    fn cell_path(place: &Place<'_>) -> PathBuf {
        let name = format!("{}.seed-{}.json", slug(place.cell), place.seed);
        [place.experiment, "cells", place.scale, &name].iter().collect()
    }

    /// What is there of a cell.
    pub(super) fn load(&self, place: &Place<'_>) -> Result<Found> {
        let path = self.root.join(Self::cell_path(place));
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(failed(&path, &error)),
        };
        Ok(match serde_json::from_slice::<Finished>(&text) {
            Ok(found) if !belongs(&found, place) => Found::Nothing,
            Ok(found) => Found::Rows(found.rows),
            Err(_) => Found::Damaged,
        })
    }

    /// Keeps what a cell measured.
    pub(super) fn save(&self, place: &Place<'_>, rows: &[Row], seconds: f64) -> Result<()> {
        let finished = Finished {
            experiment: place.experiment.into(),
            revision: place.revision,
            cell: place.cell.into(),
            seed: place.seed,
            seconds,
            rows: rows.to_vec(),
        };
        self.write_json(&Self::cell_path(place), &finished)
    }

    /// Writes a JSON document.
    pub fn write_json(&self, path: &Path, document: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(document).map_err(|error| Error::io(error.to_string()))?;
        text.push(b'\n');
        self.write(path, &text)
    }

    /// Writes a file below the directory: all of it, or nothing.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        write_whole(&self.root.join(path), bytes)
    }

    /// Reads a JSON document of ours; `None` if it is not there.
    pub fn read_json<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>> {
        let path = self.root.join(path);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, &error)),
        };
        let document = serde_json::from_slice(&text);
        document.map(Some).map_err(|_| foreign(&path, "is damaged; run the experiment again, finished cells are kept"))
    }

    /// Reads a text file of ours; `None` if it is not there.
    pub fn read_text(&self, path: &Path) -> Result<Option<String>> {
        let path = self.root.join(path);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, &error)),
        }
    }
}

fn belongs(found: &Finished, place: &Place<'_>) -> bool {
    (found.experiment.as_str(), found.revision, found.cell.as_str(), found.seed)
        == (place.experiment, place.revision, place.cell, place.seed)
}

/// Writes a file, making its folders: all of it, or nothing.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(".");
    aside.push(PART);
    let aside = PathBuf::from(aside);
    let written = File::create(&aside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&aside, path));
    written.map_err(|error| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&aside);
        failed(path, &error)
    })
}

/// A file name for any text: letters and digits, the rest as dashes.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() || "_.".contains(letter) => slug.push(letter),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_matches(['-', '.']).to_string()
}

fn foreign(path: &Path, problem: &str) -> Error {
    Error::io(format!("{}: {problem}", path.display()))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    let remedy = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "; make room and run again: what is finished is kept"
        }
        _ => "",
    };
    Error::io(format!("{}: {words}{remedy}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cell: &str) -> Place<'_> {
        Place { experiment: "e", revision: 1, scale: "quick", cell, seed: 3 }
    }

    #[test]
    fn finished_cells_are_found_again_and_damaged_or_older_ones_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::create(folder.path()).expect("a store");
        let rows = vec![Row::new("t").label("x", 1.0).value("y", 0.1)];
        assert!(matches!(store.load(&place("a b")).expect("read"), Found::Nothing));
        store.save(&place("a b"), &rows, 1.0).expect("saved");
        assert!(matches!(store.load(&place("a b")).expect("read"), Found::Rows(found) if found == rows));
        let newer = Place { revision: 2, ..place("a b") };
        assert!(matches!(store.load(&newer).expect("read"), Found::Nothing));
        assert!(matches!(store.load(&place("a-b")).expect("read"), Found::Nothing), "another cell of that file name");
        let path = folder.path().join(Store::cell_path(&place("a b")));
        let text = fs::read(&path).expect("a file");
        fs::write(&path, &text[..text.len() / 2]).expect("cut");
        assert!(matches!(store.load(&place("a b")).expect("read"), Found::Damaged));
    }

    #[test]
    fn foreign_directories_are_refused_and_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("precious"), "x").expect("written");
        assert!(Store::create(folder.path()).is_err());
        assert!(Store::open(folder.path()).is_err());
        assert!(Store::create(&folder.path().join("precious")).is_err());
        assert!(Store::open(&folder.path().join("nowhere")).is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        let ours = folder.path().join("ours");
        Store::create(&ours).expect("made");
        Store::create(&ours).expect("known again");
        fs::write(ours.join(MARKER), "{\"format\": \"everb").expect("cut");
        assert!(Store::open(&ours).is_err());
        fs::write(ours.join(MARKER), format!("{{\"format\": \"{FORMAT}\", \"version\": 99}}")).expect("newer");
        assert!(Store::open(&ours).is_err());
    }

    #[test]
    fn a_full_device_is_named_with_what_to_do() {
        if !Path::new("/dev/full").exists() {
            return;
        }
        let error = std::io::Error::from(ErrorKind::StorageFull);
        assert!(failed(Path::new("x"), &error).to_string().contains("make room"));
    }

    #[test]
    fn slugs_are_file_names() {
        assert_eq!(slug("n=65,536 k=4: SBF/../x"), "n-65-536-k-4-SBF-..-x");
        assert_eq!(slug("../.."), "");
    }
}
