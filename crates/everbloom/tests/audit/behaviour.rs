//! What an audit does and does not do.
