//! Schemes as files.

use crate::failure::{Failure, Result};
use crate::{filter_file, output};
use everbloom::{Error, Filter};
use everbloom_all::KINDS;
use everbloom_tune::Scheme;
use everbloom_tune::scheme::Recipe;
use std::path::Path;
use std::sync::Arc;

/// Reads the scheme in a file.
pub(crate) fn load(path: &Path) -> Result<Arc<Scheme>> {
    let (mut file, length) = filter_file::open(path)?;
    Scheme::decode_from(&mut file, length, None).map(Arc::new).map_err(|error| Failure::at(path, error))
}

/// Saves a scheme, replacing the file only once all is written.
pub(crate) fn save(path: &Path, scheme: &Scheme) -> Result<()> {
    output::replace(path, |out| out.write_all(&scheme.encode()))
}

/// Refuses a filter that was built with another scheme, or with none, where this one says what to build.
pub(crate) fn check(filter: &dyn Filter, scheme: &Scheme) -> Result<()> {
    let (spec, id) = (filter.spec(), scheme.id().to_string());
    let parameter = KINDS.of(spec)?.can.follow_scheme;
    match parameter.and_then(|parameter| spec.get(parameter)) {
        Some(own) if own == id => Ok(()),
        None if *scheme.recipe() == Recipe::Standard => Ok(()),
        None => Err(Failure::new(format!(
            "the filter was built without a scheme, but scheme {id} was given; leave --scheme out"
        ))),
        Some(own) => Err(Failure::from(Error::Scheme {
            needed: own.to_string(),
            given: format!("not {id}"),
            remedy: "give the scheme file that it was built with, as --scheme",
        })),
    }
}
