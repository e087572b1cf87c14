//! Who may import whom, and the picture of who does.

use crate::files::same_or_bless;
use crate::paths::{Named, named_paths};
use crate::sources::{
    LIBRARIES, Offence, Source, cli, core, lab, library, only_known, python, redis, redis_client, root,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use syn::Item;

/// The rooms of the core, in the order a key travels: each may import those before it.
const ROOMS: &[&str] = &["promise", "format", "sizing", "filter", "filters", "codec", "planning", "front"];

/// What the core calls the crate below it, which each of its rooms may import.
const CELLS: &[&str] = &["cells", "key", "simd", "everbloom_cells"];

/// Macros stand at the root of a crate, wherever they are written.
const MACROS: &[&str] = &["one_of", "shows_base", "typed_filter"];

/// What a macro for other crates names by the path that these have.
const NAMED_AS_OUTSIDE: &[(&str, &str)] = &[
    ("crates/everbloom/src/filter/base.rs", "room `filter` imports `kind`"),
    ("crates/everbloom/src/filter/parameter.rs", "room `filter` imports `kind`"),
    ("crates/everbloom/src/front/typed.rs", "room `front` imports `kind`"),
];

/// Modules at the root that belong to the front page and may import everything.
const FRONT_PAGE: &[&str] = &["", "kind"];

fn place(room: &str) -> Option<usize> {
    ROOMS.iter().position(|name| *name == room)
}

/// What a module's file brings into its own scope: name → the module it is from.
fn re_exports(source: &Source) -> BTreeMap<String, String> {
    let uses = source.tree.items.iter().filter(|item| matches!(item, Item::Use(_))).cloned().collect();
    let named = named_paths(&syn::File { items: uses, attrs: Vec::new(), shebang: None }, &source.module);
    let inside = named.into_iter().map(|named| named.path).map(|path| match path[0].as_str() {
        "crate" => path[1..].to_vec(),
        _ => path,
    });
    inside.filter(|path| path.len() > 1).map(|path| (path[path.len() - 1].clone(), path[0].clone())).collect()
}

fn module<'s>(sources: &'s [Source], path: &[&str]) -> &'s Source {
    sources.iter().find(|source| source.module == path).unwrap_or_else(|| panic!("no module {path:?}"))
}

/// The modules right below one.
fn children<'s>(sources: &'s [Source], path: &[&str]) -> BTreeSet<&'s str> {
    let below = sources.iter().filter(|source| source.module.len() > path.len());
    let below = below.filter(|source| source.module.iter().zip(path).all(|(name, part)| name == part));
    below.map(|source| source.module[path.len()].as_str()).collect()
}

/// The names of rooms that a file uses, and where: what the front page re-exports counts for the room it is from.
fn used_rooms(source: &Source, front: &BTreeMap<String, String>) -> Vec<(String, Named)> {
    let inside = named_paths(&source.tree, &source.module).into_iter().filter(|named| named.is_below(&["crate"]));
    inside
        .filter(|named| named.path.len() > 1)
        .map(|named| (front.get(&named.path[1]).unwrap_or(&named.path[1]).clone(), named))
        .filter(|(room, _)| room != source.room() && !CELLS.iter().chain(MACROS).any(|free| free == room))
        .collect()
}

#[test]
fn rooms_import_only_rooms_before_them() {
    let sources = core();
    let front = re_exports(module(&sources, &[]));
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !FRONT_PAGE.contains(&source.room())) {
        let room = source.room();
        if place(room).is_none() && source.module.len() == 1 {
            found.push(Offence { file: source.file.clone(), line: 1, what: format!("`{room}` is no room") });
        }
        let own = place(room).unwrap_or(ROOMS.len());
        let upwards = used_rooms(source, &front).into_iter().filter(|(used, _)| place(used).is_none_or(|at| at > own));
        found
            .extend(upwards.map(|(used, named)| source.offence(named.span, format!("room `{room}` imports `{used}`"))));
    }
    only_known(found, NAMED_AS_OUTSIDE, "what two rooms share belongs below both (the order is in ARCHITECTURE.md):");
}

#[test]
fn filters_do_not_import_each_other() {
    let sources = core();
    let kinds = children(&sources, &["filters"]);
    assert!(kinds.len() > 5, "only {kinds:?}: the scan is broken");
    let registry = re_exports(module(&sources, &["filters"]));
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.room() == "filters" && source.module.len() > 1) {
        let own = source.module[1].as_str();
        for named in named_paths(&source.tree, &source.module) {
            let Some(name) = named.path.get(2).filter(|_| named.is_below(&["crate", "filters"])) else { continue };
            let used = registry.get(name).unwrap_or(name).as_str();
            let what = match kinds.contains(used) {
                _ if used == own => continue,
                true => format!("filter `{own}` imports `{used}`"),
                false => format!("filter `{own}` asks the registry for `{used}`"),
            };
            found.push(source.offence(named.span, what));
        }
    }
    only_known(found, &[], "what two filters share belongs in a room below them:");
}

const PICTURE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- imports: begin -->\n";
const END: &str = "<!-- imports: end -->";

#[test]
fn the_picture_of_imports_is_what_the_sources_say() {
    let text = fs::read_to_string(root().join(PICTURE)).expect("ARCHITECTURE.md");
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the picture begins");
    let (_, after) = rest.split_once(END).expect("the mark where the picture ends");
    same_or_bless(PICTURE, &format!("{before}{BEGIN}```text\n{}```\n{END}{after}", picture()));
}

/// The order, and a line for each room and crate: its name and what it imports.
fn picture() -> String {
    let sources = core();
    let front = re_exports(module(&sources, &[]));
    let mut used: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for source in &sources {
        used.entry(source.room()).or_default().extend(used_rooms(source, &front).into_iter().map(|(room, _)| room));
    }
    let mut lines = format!(
        "cells → everbloom ({}) → forecast → papers → all → lab, client → cli, redis, python\n\n",
        ROOMS.join(" → ")
    );
    for room in ROOMS.iter().filter(|room| used.contains_key(*room)) {
        let own = place(room);
        let arrow = |other: &&str| if place(other) > own { format!("↑{other}") } else { other.to_string() };
        let imported: Vec<String> = ROOMS.iter().filter(|other| used[*room].contains(**other)).map(arrow).collect();
        lines += &line(room, &imported);
    }
    let own = LIBRARIES.map(|(name, folder)| (name, short(folder), library(folder)));
    let others = [
        ("everbloom_lab", "lab", lab()),
        ("everbloom_redis_client", "client", redis_client()),
        ("everbloom_cli", "cli", cli()),
        ("everbloom_redis", "redis", redis()),
        ("everbloom_py", "python", python()),
    ];
    let crates: Vec<_> = own.into_iter().chain(others).collect();
    lines.push('\n');
    for (crate_name, name, sources) in &crates {
        let named: Vec<Named> = sources.iter().flat_map(|source| named_paths(&source.tree, &source.module)).collect();
        let imported =
            crates.iter().filter(|(path, ..)| path != crate_name && named.iter().any(|named| named.is_below(&[path])));
        lines += &line(name, &imported.map(|(_, name, _)| name.to_string()).collect::<Vec<_>>());
    }
    lines
}

/// `forecast` for `everbloom-forecast`.
fn short(folder: &'static str) -> &'static str {
    folder.strip_prefix("everbloom-").unwrap_or(folder)
}

fn line(room: &str, imported: &[String]) -> String {
    let imported = if imported.is_empty() { "nothing".to_string() } else { imported.join(" ") };
    format!("{room:<9} imports  {imported}\n")
}
