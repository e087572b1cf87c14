//! Keys that were hashed once, to be asked of many filters.

use crate::batch::{self, Act, CHUNK, Keys, Part};
use crate::errors::raised;
use everbloom::{Error, Hashing, KeyHash};
use pyo3::prelude::*;

/// Keys that were hashed once, to be given to any filter with the same seed or secret.
///
/// >>> import everbloom
/// >>> days = [everbloom.Filter("bloom", expect=1000) for _ in range(7)]
/// >>> hashes = days[0].hashes(["a", "b", "c"])
/// >>> days[3].update(hashes)
/// >>> [bool(day.contains_many(hashes).any()) for day in days]
/// [False, False, False, True, False, False, False]
#[pyclass(frozen, module = "everbloom", name = "Hashes")]
pub(crate) struct Hashes {
    hashing: Hashing,
    hashes: Vec<KeyHash>,
    /// Which rows have a key, where not all have.
    present: Option<Vec<bool>>,
}

impl Hashes {
    pub(crate) fn new(batch: &Bound<'_, PyAny>, hashing: &Hashing) -> PyResult<Self> {
        let (mut hashes, mut rows, mut all) = (Vec::new(), Vec::new(), true);
        batch::for_each(batch, hashing, &mut |py, part| {
            py.detach(|| part.keys.hash(hashing, &mut hashes));
            all &= part.present.is_none();
            part.append(&vec![true; part.keys.len()], false, &mut rows);
            Ok(())
        })?;
        Ok(Hashes { hashing: *hashing, hashes, present: (!all).then_some(rows) })
    }

    /// Hands the hashes on, if they are made as this filter makes its own.
    pub(crate) fn for_each(&self, py: Python<'_>, hashing: &Hashing, act: &mut Act<'_>) -> PyResult<()> {
        if *hashing != self.hashing {
            let name = |hashing: &Hashing| match hashing.seed() {
                Some(seed) => format!("{} with seed {seed}", hashing.name()),
                None => format!("{} with its own secret", hashing.name()),
            };
            return Err(raised(
                py,
                Error::Mismatch {
                    what: "how they hash",
                    left: name(hashing),
                    right: name(&self.hashing),
                    remedy: "call hashes() of a filter with the same seed or secret",
                },
            ));
        }
        let Some(present) = &self.present else {
            for hashes in self.hashes.chunks(CHUNK) {
                act(py, Keys::Hashes(hashes).into())?;
                py.check_signals()?;
            }
            return Ok(());
        };
        let mut start = 0;
        for present in present.chunks(CHUNK) {
            let end = start + present.iter().filter(|row| **row).count();
            act(py, Part { keys: Keys::Hashes(&self.hashes[start..end]), present: Some(present) })?;
            start = end;
            py.check_signals()?;
        }
        Ok(())
    }
}

#[pymethods]
impl Hashes {
    fn __len__(&self) -> usize {
        self.present.as_ref().map_or(self.hashes.len(), Vec::len)
    }

    fn __repr__(&self) -> String {
        format!("Hashes(of {} keys)", self.__len__())
    }

    fn __sizeof__(&self) -> usize {
        size_of::<Self>() + self.hashes.len() * size_of::<KeyHash>() + self.present.as_ref().map_or(0, Vec::len)
    }
}
