//! Values of a JSON line, by pointer.

use super::Fault;
use serde_json::Value;

/// The document of a line.
pub(crate) fn parse(line: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(line).map_err(|_| Fault::Json)
}

/// The bytes that stand for the value at `pointer`: a string's own, anything else's JSON text.
pub(crate) fn text_at(document: &Value, pointer: &str) -> Result<Vec<u8>, Fault> {
    match document.pointer(pointer) {
        None => Err(Fault::MissingPointer(pointer.to_string())),
        Some(Value::String(text)) => Ok(text.clone().into_bytes()),
        Some(value) => Ok(value.to_string().into_bytes()),
    }
}
