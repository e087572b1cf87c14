//! What users of the core can name: a listing to compare, and what must stay open for more.
//!
//! The listing starts at `lib.rs` and follows `pub mod` and `pub use` to the definitions; what is `#[doc(hidden)]` is no
//! part of it. Each item stands under its shortest path, with its other paths below it. What macros write is not seen.

mod house;
mod print;

use crate::files::same_or_bless;
use crate::sources::{LIBRARIES, Offence, Source, library, only_known};
use house::{House, ItemId, Meaning, ModulePath, ident, imports, is_hidden, is_public};
use print::{one_line, signature};
use quote::ToTokens;
use std::collections::{BTreeMap, VecDeque};
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem, Type, Visibility};

const LISTING: &str = "xtask/tests/golden/public-surface.txt";

/// Longer paths go in circles.
const DEEPEST: usize = 6;

/// What a reader of the crate reaches, and the names it has there, the shortest first.
struct Surface {
    house: House,
    items: Vec<(ItemId, Vec<String>)>,
    /// What is re-exported from other crates: name here, path there.
    foreign: Vec<(String, String)>,
}

impl Surface {
    fn new(house: House, name: &str) -> Self {
        let mut surface = Surface { house, items: Vec::new(), foreign: Vec::new() };
        let mut waiting = VecDeque::from([(name.to_string(), ModulePath::new())]);
        let mut seen = Vec::new();
        while let Some(next) = waiting.pop_front() {
            if next.0.split("::").count() <= DEEPEST && !seen.contains(&next) {
                seen.push(next.clone());
                let (path, module) = next;
                surface.enter(&path, &module, &mut waiting);
            }
        }
        for (_, names) in &mut surface.items {
            names.sort_by_key(|name| (name.split("::").count(), name.clone()));
            names.dedup();
        }
        surface.items.sort_by(|one, other| one.1[0].cmp(&other.1[0]).then(one.0.cmp(&other.0)));
        surface
    }

    /// Notes what a module shows under a path; modules below wait their turn.
    fn enter(&mut self, path: &str, module: &ModulePath, waiting: &mut VecDeque<(String, ModulePath)>) {
        let items = self.house.items(module).to_vec();
        for (index, item) in items.iter().enumerate().filter(|(_, item)| is_public(item)) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    waiting.push_back((format!("{path}::{name}"), [&module[..], &[name]].concat()));
                }
                Item::Use(item) => self.follow(path, module, item, waiting),
                item => {
                    let name = ident(item).map(ToString::to_string).unwrap_or_default();
                    self.reach((module.clone(), index), format!("{path}::{name}"));
                }
            }
        }
    }

    fn follow(
        &mut self,
        path: &str,
        module: &ModulePath,
        item: &syn::ItemUse,
        waiting: &mut VecDeque<(String, ModulePath)>,
    ) {
        for import in imports(&item.tree) {
            let shown = import.name.as_ref().map_or(path.to_string(), |name| format!("{path}::{name}"));
            let meanings = self.house.resolve(module, &import.path);
            if meanings.is_empty() {
                self.foreign.push((shown.clone(), import.path.join("::")));
            }
            for meaning in meanings {
                match meaning {
                    Meaning::Module(target) => waiting.push_back((shown.clone(), target)),
                    Meaning::Item(id) if is_public(self.house.item(&id)) => self.reach(id, shown.clone()),
                    Meaning::Item(_) => {}
                }
            }
        }
    }

    fn reach(&mut self, id: ItemId, name: String) {
        match self.items.iter_mut().find(|(known, _)| *known == id) {
            Some((_, names)) => names.push(name),
            None => self.items.push((id, vec![name])),
        }
    }

    /// The shortest name of a type or trait that a path in a module means, if users reach it.
    fn name_of(&self, module: &ModulePath, path: &syn::Path) -> Option<&str> {
        let path: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let meanings = self.house.resolve(module, &path);
        let reached = self.items.iter().find(|(id, _)| meanings.contains(&Meaning::Item(id.clone())));
        reached.map(|(_, names)| names[0].as_str())
    }

    /// What impl blocks add to each name.
    fn impls(&self) -> BTreeMap<String, Vec<String>> {
        let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (module, item) in self.house.all() {
            let Item::Impl(block) = item else { continue };
            let own = match &*block.self_ty {
                Type::Path(path) => self.name_of(module, &path.path),
                _ => None,
            };
            let of = block.trait_.as_ref().and_then(|(_, path, _)| self.name_of(module, path));
            match (&block.trait_, own.or(of)) {
                (None, Some(name)) => lines.entry(name.to_string()).or_default().extend(methods(name, block)),
                (Some(_), Some(name)) => lines.entry(name.to_string()).or_default().push(header(block)),
                (_, None) => {}
            }
        }
        lines.values_mut().for_each(|lines| lines.sort());
        lines
    }

    fn listing(&self) -> String {
        let impls = self.impls();
        let mut text = String::new();
        for (id, names) in &self.items {
            let name = &names[0];
            let mut lines = declared(name, self.house.item(id));
            lines.extend(impls.get(name).into_iter().flatten().cloned());
            lines.extend(names[1..].iter().map(|other| format!("also {other}")));
            text += &format!("\n{}\n", lines.join("\n  "));
        }
        for (name, path) in &self.foreign {
            text += &format!("\n{name} is {path}\n");
        }
        text
    }
}

/// The lines of an item itself: what it is, then its public parts.
fn declared(name: &str, item: &Item) -> Vec<String> {
    let shown = |keyword: &str, generics: &syn::Generics, attributes: &[Attribute]| {
        let bounds = &generics.where_clause;
        let mark = if is_non_exhaustive(attributes) { "#[non_exhaustive] " } else { "" };
        format!("{mark}{keyword} {name}{}", one_line(quote::quote!(#generics #bounds)))
    };
    match item {
        Item::Struct(item) => {
            let mut lines = vec![shown("struct", &item.generics, &item.attrs)];
            lines.extend(derived(&item.attrs));
            lines.extend(fields(name, &item.fields));
            lines
        }
        Item::Enum(item) => {
            let mut lines = vec![shown("enum", &item.generics, &item.attrs)];
            lines.extend(derived(&item.attrs));
            let variants = item.variants.iter().filter(|variant| !is_hidden(&variant.attrs));
            lines.extend(variants.map(|variant| {
                let (ident, fields) = (&variant.ident, without_attributes(&variant.fields));
                format!("{name}::{}", one_line(quote::quote!(#ident #fields)))
            }));
            lines
        }
        Item::Trait(item) => {
            let above = item.supertraits.to_token_stream();
            let above = if above.is_empty() { String::new() } else { format!(": {}", one_line(above)) };
            let mut lines = vec![shown("trait", &item.generics, &item.attrs) + &above];
            lines.extend(item.items.iter().filter_map(|item| trait_item(name, item)));
            lines
        }
        Item::Fn(item) => vec![function(name, &item.sig)],
        Item::Const(item) => vec![format!("const {name}: {}", one_line(item.ty.to_token_stream()))],
        Item::Static(item) => vec![format!("static {name}: {}", one_line(item.ty.to_token_stream()))],
        Item::Type(item) => {
            vec![shown("type", &item.generics, &item.attrs) + " = " + &one_line(item.ty.to_token_stream())]
        }
        _ => vec![format!("? {name}")],
    }
}

fn function(name: &str, sig: &syn::Signature) -> String {
    let before = [sig.constness.map(|_| "const "), sig.unsafety.map(|_| "unsafe "), sig.asyncness.map(|_| "async ")];
    format!("{}fn {name}{}", before.into_iter().flatten().collect::<String>(), signature(sig))
}

fn derived(attributes: &[Attribute]) -> Option<String> {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let lists = derives.filter_map(|attribute| attribute.meta.require_list().ok());
    let lists: Vec<String> = lists.map(|list| one_line(list.tokens.clone())).collect();
    (!lists.is_empty()).then(|| format!("derives {}", lists.join(", ")))
}

fn fields(name: &str, fields: &Fields) -> Vec<String> {
    let public = fields.iter().enumerate().filter(|(_, field)| matches!(field.vis, Visibility::Public(_)));
    let public = public.filter(|(_, field)| !is_hidden(&field.attrs));
    public
        .map(|(index, field)| {
            let field_name = field.ident.as_ref().map_or(index.to_string(), ToString::to_string);
            format!("{name}.{field_name}: {}", one_line(field.ty.to_token_stream()))
        })
        .collect()
}

fn without_attributes(fields: &Fields) -> Fields {
    let mut fields = fields.clone();
    fields.iter_mut().for_each(|field| field.attrs.clear());
    match &mut fields {
        Fields::Named(named) => drop(named.named.pop_punct()),
        Fields::Unnamed(unnamed) => drop(unnamed.unnamed.pop_punct()),
        Fields::Unit => {}
    }
    fields
}

fn trait_item(name: &str, item: &TraitItem) -> Option<String> {
    match item {
        TraitItem::Fn(item) if !is_hidden(&item.attrs) => {
            let provided = if item.default.is_some() { " { … }" } else { "" };
            Some(function(&format!("{name}::{}", item.sig.ident), &item.sig) + provided)
        }
        TraitItem::Const(item) if !is_hidden(&item.attrs) => {
            Some(format!("const {name}::{}: {}", item.ident, one_line(item.ty.to_token_stream())))
        }
        TraitItem::Type(item) if !is_hidden(&item.attrs) => Some(format!("type {name}::{}", item.ident)),
        _ => None,
    }
}

fn methods(name: &str, block: &ItemImpl) -> Vec<String> {
    let is_shown = |visibility: &Visibility, attributes: &[Attribute]| {
        matches!(visibility, Visibility::Public(_)) && !is_hidden(attributes)
    };
    let shown = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(item) if is_shown(&item.vis, &item.attrs) => {
            Some(function(&format!("{name}::{}", item.sig.ident), &item.sig))
        }
        ImplItem::Const(item) if is_shown(&item.vis, &item.attrs) => {
            Some(format!("const {name}::{}: {}", item.ident, one_line(item.ty.to_token_stream())))
        }
        _ => None,
    });
    shown.collect()
}

/// `impl<T> Trait for Type`.
fn header(block: &ItemImpl) -> String {
    let (generics, own) = (&block.generics, &block.self_ty);
    let bounds = &generics.where_clause;
    let of = block.trait_.as_ref().map(|(_, path, _)| path);
    one_line(quote::quote!(impl #generics #of for #own #bounds))
}

fn is_non_exhaustive(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"))
}

/// What users can name of each library but the cells, which promise nothing.
fn surfaces() -> impl Iterator<Item = (Surface, Vec<Source>)> {
    LIBRARIES[1..].iter().map(|(name, folder)| (Surface::new(House::new(library(folder)), name), library(folder)))
}

#[test]
fn the_public_surface_is_as_listed() {
    let text: String = surfaces().map(|(surface, sources)| surface.listing() + &made_by_macros(&sources)).collect();
    let head = "What users can name, written by xtask/tests/architecture (EVERBLOOM_BLESS=1 writes it anew).\n";
    same_or_bless(LISTING, &format!("{head}{text}"));
}

/// What macros make, which no parser sees: the public functions in their rules, and the calls of macros that make items.
fn made_by_macros(sources: &[Source]) -> String {
    let mut text = String::from("\nWhat macros make:\n");
    for source in sources {
        for item in &source.tree.items {
            let Item::Macro(item) = item else { continue };
            let tokens = one_line(item.mac.tokens.to_token_stream());
            match &item.ident {
                Some(name) => {
                    for part in tokens.split("pub fn ").skip(1) {
                        text += &format!("\n{name}! fn {}", part.split('{').next().unwrap_or_default().trim());
                    }
                }
                None => text += &format!("\n{}! {tokens}", one_line(item.mac.path.to_token_stream())),
            }
        }
    }
    text + "\n"
}

/// Types that are finished, and why.
const FINISHED: &[(&str, &str)] = &[
    ("everbloom::Holds", "always, until so many keys, or not at all"),
    ("everbloom::Importances", "one importance for all keys or one for each; callers make it"),
    ("everbloom::Status", "what a filter says of itself; authors of kinds make it"),
    ("everbloom::Window", "arrivals or time, which callers match"),
    ("everbloom_papers::ibf::Reinsertion", "what the thesis sets by hand"),
    ("everbloom_papers::ibf::Sizes", "the four numbers of the thesis, set by hand"),
    ("everbloom_compat::redisbloom::ChunkError", "the three answers that RedisBloom has"),
    ("everbloom_compat::redisbloom::Header", "the fields of a format that is another's, and does not change"),
    ("everbloom_compat::redisbloom::Refusal", "the answers that RedisBloom has"),
    ("everbloom_compat::redisbloom::StageHeader", "as its header"),
];

/// Rooms for authors of kinds and for programs that serve any, which may change in a minor version before 1.0.
const MAY_CHANGE: &[&str] = &[
    "everbloom::kind::",
    "everbloom::sizing::",
    "everbloom::planning::",
    "everbloom_forecast::stream::",
    "everbloom_forecast::audit::",
    "everbloom_forecast::forecast::",
    "everbloom_tune::ribbon::",
    "everbloom_tune::scheme::",
    "everbloom_tune::querylog::popularity::",
    "everbloom_tune::querylog::stacking::",
];

const CLOSED: &str = "is not #[non_exhaustive]";

#[test]
fn public_types_can_grow() {
    let mut found = Vec::new();
    let surfaces: Vec<_> = surfaces().map(|(surface, _)| surface).collect();
    let items = surfaces.iter().flat_map(|surface| surface.items.iter().map(move |item| (surface, item)));
    for (surface, (id, names)) in
        items.filter(|(_, (_, names))| !MAY_CHANGE.iter().any(|room| names[0].starts_with(room)))
    {
        let is_closed = match surface.house.item(id) {
            Item::Enum(item) => !is_non_exhaustive(&item.attrs),
            Item::Struct(item) => {
                let public = item.fields.iter().all(|field| matches!(field.vis, Visibility::Public(_)));
                public && !item.fields.is_empty() && !is_non_exhaustive(&item.attrs)
            }
            _ => false,
        };
        if is_closed {
            found.push(Offence { file: names[0].clone(), line: 0, what: CLOSED.into() });
        }
    }
    let finished: Vec<_> = FINISHED.iter().map(|(name, _)| (*name, CLOSED)).collect();
    only_known(found, &finished, "enums, and structs whose fields are all public:");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Source;

    fn listing(files: &[(&[&str], &str)]) -> String {
        let sources = files.iter().map(|(module, code)| Source {
            file: String::new(),
            module: module.iter().map(ToString::to_string).collect(),
            tree: syn::parse_file(code).expect("Rust"),
        });
        let text = Surface::new(House::new(sources.collect()), "lib").listing();
        text.trim_start().to_string()
    }

    #[test]
    fn re_exports_lead_to_definitions_and_hidden_modules_do_not_count() {
        let root = "mod room; pub use room::{Shown as Renamed, inner::*}; #[doc(hidden)] pub mod internal { pub use crate::room::Unseen; } pub use other::Thing;";
        let room = "pub struct Shown { pub field: u8, own: u8 } pub struct Unseen; impl Shown { pub fn get(&self) -> u8 { 0 } fn own() {} } mod elsewhere; pub mod inner { pub use super::elsewhere::free; }";
        let elsewhere = "use super::Shown; pub fn free(mut a: Vec<u8>) {} impl Shown { pub const ONE: u8 = 1; } impl Clone for Shown {}";
        let text = listing(&[(&[], root), (&["room"], room), (&["room", "elsewhere"], elsewhere)]);
        let expected = "struct lib::Renamed\n  lib::Renamed.field: u8\n  const lib::Renamed::ONE: u8\n  \
                        fn lib::Renamed::get(&self) -> u8\n  impl Clone for Shown\n\n\
                        fn lib::free(a: Vec<u8>)\n\nlib::Thing is other::Thing\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn enums_traits_and_second_names_are_listed() {
        let root = "pub mod a; pub use a::E;";
        let a = "#[non_exhaustive] #[derive(Debug, Clone)] pub enum E { One, Two(u8), Three { x: u8, }, } pub trait T: Send { const C: u8; fn must(&self); fn may(&self) {} } impl<X: Send> T for X {}";
        let text = listing(&[(&[], root), (&["a"], a)]);
        let expected = "#[non_exhaustive] enum lib::E\n  derives Debug, Clone\n  lib::E::One\n  lib::E::Two(u8)\n  \
                        lib::E::Three { x: u8 }\n  also lib::a::E\n\n\
                        trait lib::a::T: Send\n  const lib::a::T::C: u8\n  fn lib::a::T::must(&self)\n  \
                        fn lib::a::T::may(&self) { … }\n  impl<X: Send> T for X\n";
        assert_eq!(text, expected);
    }
}
