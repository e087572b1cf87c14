//! The format: frozen, and closed to whatever is not a filter.

#[path = "../common/mod.rs"]
#[allow(unreachable_pub, dead_code)] // shared by several test binaries, each of which uses its part
mod common;
#[path = "../common/document.rs"]
#[allow(unreachable_pub, dead_code)]
mod document;

mod compressed;
mod damage;
mod golden;
mod lies;
mod secret;
mod view;
