//! The modules of a crate by path, and what a name in them means.

use crate::sources::{Source, attributes, field};
use std::collections::BTreeMap;
use syn::{Ident, Item, UseTree, Visibility};

/// A module's path below `crate`.
pub(crate) type ModulePath = Vec<String>;

/// An item: the module it is defined in, and its place there.
pub(crate) type ItemId = (ModulePath, usize);

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    Module(ModulePath),
    Item(ItemId),
}

/// One leaf of a `use`: the path, and the name it gets; `None` for all names below the path.
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    pub(crate) name: Option<String>,
}

/// Longer chains of re-exports go in circles.
const MOST_STEPS: usize = 16;

pub(crate) struct House {
    modules: BTreeMap<ModulePath, Vec<Item>>,
}

impl House {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        let mut house = House { modules: BTreeMap::new() };
        for source in sources {
            house.add(source.module, source.tree.items);
        }
        house
    }

    fn add(&mut self, module: ModulePath, items: Vec<Item>) {
        for item in &items {
            if let Item::Mod(inline) = item
                && let Some((_, inner)) = &inline.content
            {
                self.add([&module[..], &[inline.ident.to_string()]].concat(), inner.clone());
            }
        }
        self.modules.insert(module, items);
    }

    pub(crate) fn items(&self, module: &[String]) -> &[Item] {
        self.modules.get(module).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn item(&self, id: &ItemId) -> &Item {
        &self.modules[&id.0][id.1]
    }

    /// Every item of the crate with the module it stands in.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&ModulePath, &Item)> {
        self.modules.iter().flat_map(|(module, items)| items.iter().map(move |item| (module, item)))
    }

    /// What a path means in a module; nothing if it leads out of the crate.
    pub(crate) fn resolve(&self, module: &[String], path: &[String]) -> Vec<Meaning> {
        self.resolve_within(module, path, MOST_STEPS)
    }

    fn resolve_within(&self, module: &[String], path: &[String], steps: usize) -> Vec<Meaning> {
        let Some((first, rest)) = path.split_first() else { return vec![Meaning::Module(module.to_vec())] };
        let Some(steps) = steps.checked_sub(1) else { return Vec::new() };
        let start = match first.as_str() {
            "crate" => vec![Meaning::Module(Vec::new())],
            "self" => vec![Meaning::Module(module.to_vec())],
            "super" => vec![Meaning::Module(module[..module.len().saturating_sub(1)].to_vec())],
            name => self.lookup(module, name, steps),
        };
        if rest.is_empty() {
            return start;
        }
        let modules = start.into_iter().filter_map(|meaning| match meaning {
            Meaning::Module(module) => Some(module),
            Meaning::Item(_) => None,
        });
        modules.flat_map(|module| self.resolve_within(&module, rest, steps)).collect()
    }

    /// What a single name means in a module: its own items, what it imports, and what it imports with all names.
    fn lookup(&self, module: &[String], name: &str, steps: usize) -> Vec<Meaning> {
        let mut found = Vec::new();
        for (index, item) in self.items(module).iter().enumerate() {
            match item {
                Item::Mod(inner) if inner.ident == name => {
                    found.push(Meaning::Module([module, &[name.to_string()]].concat()));
                }
                Item::Use(item) => {
                    for import in imports(&item.tree) {
                        // `use self::name` and the like would ask for themselves.
                        if import.name.as_deref() == Some(name) && import.path != [name] {
                            found.extend(self.resolve_within(module, &import.path, steps));
                        }
                    }
                }
                item if ident(item).is_some_and(|ident| ident == name) => {
                    found.push(Meaning::Item((module.to_vec(), index)));
                }
                _ => {}
            }
        }
        if found.is_empty() { self.lookup_in_globs(module, name, steps) } else { found }
    }

    fn lookup_in_globs(&self, module: &[String], name: &str, steps: usize) -> Vec<Meaning> {
        let Some(steps) = steps.checked_sub(1) else { return Vec::new() };
        let uses = self.items(module).iter().filter_map(|item| match item {
            Item::Use(item) => Some(imports(&item.tree)),
            _ => None,
        });
        let globs = uses.flatten().filter(|import| import.name.is_none() && !import.path.is_empty());
        globs
            .flat_map(|glob| self.resolve_within(module, &[&glob.path[..], &[name.to_string()]].concat(), steps))
            .collect()
    }
}

/// The leaves of a `use`.
pub(crate) fn imports(tree: &UseTree) -> Vec<Import> {
    fn walk(tree: &UseTree, before: &[String], found: &mut Vec<Import>) {
        let with = |ident: &Ident| match ident {
            this if this == "self" => before.to_vec(),
            other => [before, &[other.to_string()]].concat(),
        };
        match tree {
            UseTree::Path(path) if path.ident == "self" && before.is_empty() => {
                walk(&path.tree, &["self".to_string()], found);
            }
            UseTree::Path(path) => walk(&path.tree, &with(&path.ident), found),
            UseTree::Name(name) => {
                let path = with(&name.ident);
                found.push(Import { name: path.last().cloned(), path });
            }
            UseTree::Rename(rename) => {
                found.push(Import { path: with(&rename.ident), name: Some(rename.rename.to_string()) });
            }
            UseTree::Glob(_) => found.push(Import { path: before.to_vec(), name: None }),
            UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, before, found)),
        }
    }
    let mut found = Vec::new();
    walk(tree, &[], &mut found);
    found
}

/// The name that an item gives to what it defines.
pub(crate) fn ident(item: &Item) -> Option<&Ident> {
    match item {
        Item::Fn(item) => Some(&item.sig.ident),
        item => field!(item, ident of Const Enum Static Struct Trait Type Union),
    }
}

/// Whether other crates see the item, if they see its module.
pub(crate) fn is_public(item: &Item) -> bool {
    let visibility = field!(item, vis of Const Enum Fn Mod Static Struct Trait Type Union Use);
    matches!(visibility, Some(Visibility::Public(_))) && !is_hidden(attributes(item))
}

/// Whether `#[doc(hidden)]` is among the attributes.
pub(crate) fn is_hidden(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc") && attribute.parse_args::<Ident>().is_ok_and(|word| word == "hidden")
    })
}
