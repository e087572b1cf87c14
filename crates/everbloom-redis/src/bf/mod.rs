//! `BF.*`: what RedisBloom answers.

use crate::server::Loading;

/// Registers the type and the commands; why not, if somebody else has them.
pub(crate) fn register(_loading: &Loading<'_>) -> Result<(), String> {
    Err("they are not built yet".into())
}
