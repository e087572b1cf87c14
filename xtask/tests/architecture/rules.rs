//! What the core does not do, and where unsafe code lives.

use crate::paths::{each_token, is_ident, is_punct, named_paths};
use crate::sources::{
    Offence, Source, cli, crate_sources, lab, libraries, only_known, python, redis, redis_client, root,
};
use proc_macro2::TokenTree;
use quote::ToTokens;
use std::fs;

/// Files, sockets, clocks and surroundings.
const OUTSIDE: &[&[&str]] =
    &[&["std", "fs"], &["std", "net"], &["std", "time"], &["std", "env"], &["std", "process"], &["std", "os"]];

/// What the core may use of `std::io`: the reader and the writer are the caller's.
const OF_IO: &[&str] = &["Read", "Write", "Error", "ErrorKind", "Result"];

const PRINTING: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];
const RANDOMNESS: &[&str] = &["thread_rng", "getrandom", "OsRng"];

/// Functions of floats that differ between platforms. Square roots are exact everywhere.
const UNPORTABLE: &[&str] = &[
    "ln", "ln_1p", "log", "log2", "log10", "exp", "exp2", "exp_m1", "powf", "powi", "cbrt", "hypot", "sin", "cos",
    "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2",
];

const UNSAFE: &[&str] = &[
    "crates/everbloom-cells/src/simd/",
    "crates/everbloom-cli/src/mapped.rs",
    "crates/everbloom-cli/src/descriptors.rs",
    "crates/everbloom-redis/src/server/",
    "crates/everbloom-py/src/mapped.rs",
    "crates/everbloom-py/src/filter/guarded.rs",
];

/// The words of a file that `wrong` finds fault with, given what stands before and after.
fn words(source: &Source, wrong: impl Fn(&str, &[TokenTree]) -> Option<String>) -> Vec<Offence> {
    let mut found = Vec::new();
    each_token(source.tree.to_token_stream(), &mut |token, next| {
        if let TokenTree::Ident(word) = token
            && let Some(what) = wrong(&word.to_string(), next)
        {
            found.push(source.offence(word.span(), what));
        }
    });
    found
}

#[test]
fn the_core_does_no_io_reads_no_clock_and_prints_nothing() {
    let mut found = Vec::new();
    for source in libraries() {
        for named in named_paths(&source.tree, &source.module) {
            let of_io = named.path.iter().skip_while(|name| *name == "std").collect::<Vec<_>>();
            let io = matches!(of_io[..], [io, name, ..] if io == "io" && !OF_IO.contains(&name.as_str()));
            if io || OUTSIDE.iter().any(|path| named.is_below(path)) {
                found.push(source.offence(named.span, format!("uses {}", named.path.join("::"))));
            }
        }
        found.extend(words(&source, |word, next| {
            let prints = PRINTING.contains(&word) && is_punct(next.first(), '!');
            (prints || RANDOMNESS.contains(&word)).then(|| format!("uses {word}"))
        }));
    }
    only_known(found, &[], "the core works on what the caller passes in:");
}

#[test]
fn logarithms_and_powers_of_the_core_are_portable() {
    let mut found = Vec::new();
    for source in libraries() {
        each_token(source.tree.to_token_stream(), &mut |token, next| {
            let dot = is_punct(Some(token), '.') && matches!(next.get(1), Some(TokenTree::Group(_)));
            let path = is_ident(Some(token), "f64") || is_ident(Some(token), "f32");
            let name = if path { next.get(2) } else { next.first() };
            if let Some(TokenTree::Ident(name)) = name.filter(|_| dot || path)
                && UNPORTABLE.contains(&name.to_string().as_str())
            {
                found.push(source.offence(name.span(), format!("calls {name} of the platform")));
            }
        });
    }
    only_known(found, &[], "verdicts are the same on every machine: take it from libm:");
}

#[test]
fn unsafe_has_six_addresses() {
    let sources = [libraries(), cli(), lab(), redis(), redis_client(), python(), crate_sources("xtask/src/main.rs")]
        .into_iter()
        .flatten();
    let outside = sources.filter(|source| !UNSAFE.iter().any(|place| source.file.starts_with(place)));
    let found = outside.flat_map(|source| words(&source, |word, _| (word == "unsafe").then(|| "unsafe".to_string())));
    only_known(
        found.collect(),
        &[],
        "unsafe code lives in simd, the two mapped.rs, descriptors.rs, guarded.rs and the module's server/ alone:",
    );
}

#[test]
fn every_paper_that_the_code_cites_is_listed() {
    // A citation is an escaped bracket with a year: \\[Deng & Rafiei 2006\\].
    let papers = fs::read_to_string(root().join("PAPERS.md")).expect("PAPERS.md");
    let mut cited = 0;
    for source in libraries() {
        let text = fs::read_to_string(root().join(&source.file)).expect("a source file");
        for part in text.split("\\[").skip(1) {
            let key = part.split("\\]").next().unwrap_or_default();
            let year = key.rsplit(' ').next().unwrap_or_default();
            if key.len() < 60 && year.len() == 4 && year.parse::<u16>().is_ok() {
                cited += 1;
                assert!(papers.contains(&format!("[{key}]")), "{} cites [{key}]: add it to PAPERS.md", source.file);
            }
        }
    }
    assert!(cited > 5, "only {cited} citations found: the scan is broken");
}
