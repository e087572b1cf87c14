//! The sources of a crate, parsed, with what only tests see taken out.

use proc_macro2::Span;
use quote::ToTokens as _;
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ImplItem, Item, Meta, Stmt, TraitItem};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_path_buf()
}

/// A file of a crate: its place in the repository, its module path below `crate`, and its code that ships.
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) module: Vec<String>,
    pub(crate) tree: syn::File,
}

impl Source {
    /// The module at the top: `cells` for all that lies below `cells/`; empty for the crate's root file.
    pub(crate) fn room(&self) -> &str {
        self.module.first().map_or("", String::as_str)
    }

    pub(crate) fn offence(&self, span: Span, what: String) -> Offence {
        Offence { file: self.file.clone(), line: span.start().line, what }
    }
}

/// A place where the code breaks a rule. Line 0 means that the first word is a name, not a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// Fails unless the offences are those in the list, each as (file, what). A line that is no longer needed fails, too.
pub(crate) fn only_known(mut found: Vec<Offence>, known: &[(&str, &str)], remedy: &str) {
    let is = |(file, what): &(&str, &str), offence: &Offence| offence.file == *file && offence.what == *what;
    let mended: Vec<String> = known
        .iter()
        .filter(|entry| !found.iter().any(|offence| is(entry, offence)))
        .map(|(file, what)| format!("mended, delete this line from the list: (\"{file}\", \"{what}\")"))
        .collect();
    found.retain(|offence| !known.iter().any(|entry| is(entry, offence)));
    found.sort();
    let new = found.iter().map(|Offence { file, line, what }| match line {
        0 => format!("{file} {what}"),
        line => format!("{file}:{line}: {what}"),
    });
    let lines: Vec<String> = new.chain(mended).collect();
    assert!(lines.is_empty(), "{remedy}\n{}", lines.join("\n"));
}

/// The files of a crate, found from its root file by their `mod` lines.
pub(crate) fn crate_sources(root_file: &str) -> Vec<Source> {
    let mut reader = Reader::default();
    reader.read(Path::new(root_file), Vec::new());
    let folder = Path::new(root_file).parent().expect("a folder of sources");
    let seen: Vec<&str> = reader.shipped.iter().map(|source| source.file.as_str()).collect();
    for file in rust_files(folder) {
        let is_test = reader.tests.iter().any(|test| file.starts_with(test));
        assert!(is_test || seen.contains(&file.as_str()), "{file} belongs to no module: a lost file?");
    }
    reader.shipped
}

/// The libraries, in the order in which they build on each other: name of the crate, and its folder.
pub(crate) const LIBRARIES: [(&str, &str); 7] = [
    ("everbloom_cells", "everbloom-cells"),
    ("everbloom", "everbloom"),
    ("everbloom_forecast", "everbloom-forecast"),
    ("everbloom_papers", "everbloom-papers"),
    ("everbloom_tune", "everbloom-tune"),
    ("everbloom_compat", "everbloom-compat"),
    ("everbloom_all", "everbloom-all"),
];

pub(crate) fn library(folder: &str) -> Vec<Source> {
    crate_sources(&format!("crates/{folder}/src/lib.rs"))
}

/// All of them.
pub(crate) fn libraries() -> Vec<Source> {
    LIBRARIES.iter().flat_map(|(_, folder)| library(folder)).collect()
}

/// The one that users depend on.
pub(crate) fn core() -> Vec<Source> {
    library("everbloom")
}

pub(crate) fn forecast() -> Vec<Source> {
    library("everbloom-forecast")
}

pub(crate) fn cli() -> Vec<Source> {
    crate_sources("crates/everbloom-cli/src/main.rs")
}

pub(crate) fn lab() -> Vec<Source> {
    crate_sources("crates/everbloom-lab/src/lib.rs")
}

pub(crate) fn redis() -> Vec<Source> {
    crate_sources("crates/everbloom-redis/src/lib.rs")
}

/// The client of servers.
pub(crate) fn redis_client() -> Vec<Source> {
    crate_sources("crates/everbloom-redis-client/src/lib.rs")
}

/// The Python package's.
pub(crate) fn python() -> Vec<Source> {
    crate_sources("crates/everbloom-py/src/lib.rs")
}

fn rust_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).expect("a folder of sources") {
        let path = folder.join(entry.expect("a readable entry").file_name());
        if root().join(&path).is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path.to_string_lossy().into_owned());
        }
    }
    found
}

#[derive(Default)]
struct Reader {
    shipped: Vec<Source>,
    /// Where the modules of tests lie, without `.rs`.
    tests: Vec<String>,
}

impl Reader {
    fn read(&mut self, file: &Path, module: Vec<String>) {
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut tree = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let is_root = module.is_empty() || file.file_name().is_some_and(|name| name == "mod.rs");
        let folder = if is_root { file.parent().expect("a folder").to_path_buf() } else { file.with_extension("") };
        self.follow(&tree.items, &folder, &module);
        WithoutTests.visit_file_mut(&mut tree);
        let file = file.to_string_lossy().into_owned();
        self.shipped.push(Source { file, module, tree });
    }

    /// Reads the files that `mod name;` lines ask for.
    fn follow(&mut self, items: &[Item], folder: &Path, module: &[String]) {
        for item in items {
            let Item::Mod(item) = item else { continue };
            let name = item.ident.to_string();
            let below = [module, std::slice::from_ref(&name)].concat();
            let place = folder.join(&name);
            match &item.content {
                _ if name == "tests" || is_test(&item.attrs) => self.tests.push(place.to_string_lossy().into_owned()),
                Some((_, items)) => self.follow(items, &place, &below),
                None => {
                    // A root module may name a file elsewhere: `#[path = "…"]`.
                    let named = item.attrs.iter().find(|attribute| attribute.path().is_ident("path"));
                    let text = |attribute: &Attribute| match &attribute.meta {
                        Meta::NameValue(meta) => syn::parse2::<syn::LitStr>(meta.value.to_token_stream()).ok(),
                        _ => None,
                    };
                    let named = named.and_then(text).map(|text| folder.join(text.value()));
                    let beside = named.unwrap_or_else(|| place.with_extension("rs"));
                    let file = if root().join(&beside).is_file() { beside } else { place.join("mod.rs") };
                    self.read(&file, below);
                }
            }
        }
    }
}

/// Whether `#[cfg(test)]`, `#[cfg(all(test, …))]`, `#[cfg(doctest)]` or `#[test]` keeps the code out of what ships.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    fn asks_for_test(condition: &Meta) -> bool {
        match condition {
            Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
            Meta::List(list) if list.path.is_ident("all") => list
                .parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated)
                .is_ok_and(|all| all.iter().any(asks_for_test)),
            _ => false,
        }
    }
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.parse_args::<Meta>().is_ok_and(|of| asks_for_test(&of)),
        meta => meta.path().is_ident("test"),
    })
}

/// A field that items of these kinds have.
macro_rules! field {
    ($item:expr, $field:ident of $($kind:ident)*) => {
        match $item {
            $(syn::Item::$kind(item) => Some(&item.$field),)*
            _ => None,
        }
    };
}
pub(crate) use field;

/// The attributes of an item of any kind.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    field!(item, attrs of Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static Struct Trait TraitAlias Type Union Use)
        .map_or(&[], Vec::as_slice)
}

/// Takes out the items and statements that only tests see.
struct WithoutTests;

fn ships(item: &Item) -> bool {
    !is_test(attributes(item)) && !matches!(item, Item::Mod(module) if module.ident == "tests")
}

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(ships);
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(ships);
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| match statement {
            Stmt::Item(item) => ships(item),
            Stmt::Local(local) => !is_test(&local.attrs),
            Stmt::Macro(call) => !is_test(&call.attrs),
            Stmt::Expr(..) => true,
        });
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| match item {
            ImplItem::Const(item) => !is_test(&item.attrs),
            ImplItem::Fn(item) => !is_test(&item.attrs),
            ImplItem::Type(item) => !is_test(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, block);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        item.items.retain(|item| !matches!(item, TraitItem::Fn(item) if is_test(&item.attrs)));
        visit_mut::visit_item_trait_mut(self, item);
    }
}
