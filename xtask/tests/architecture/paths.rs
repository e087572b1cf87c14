//! The paths that code names, in imports, expressions, types and the inside of macros alike.
//!
//! Paths are read off the tokens: `crate::{a::{b, c}, d}` names `crate::a::b`, `crate::a::c` and `crate::d`, in a
//! `use` as well as in a macro's body. `self` and `super` are resolved against the module they stand in. Comments and
//! documentation are no code, and `pub(in path)` imports nothing.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;

/// A path as the code names it, from `crate` or from another crate, and where.
pub(crate) struct Named {
    pub(crate) path: Vec<String>,
    pub(crate) span: Span,
}

impl Named {
    /// Whether the path is `start` or lies below it.
    pub(crate) fn is_below(&self, start: &[&str]) -> bool {
        self.path.len() >= start.len() && self.path.iter().zip(start).all(|(name, start)| name == start)
    }
}

/// Every path of two names or more in a file of this module. Paths that start at a local name stay as they are.
pub(crate) fn named_paths(tree: &syn::File, module: &[String]) -> Vec<Named> {
    let mut walk = Walk { module: module.to_vec(), found: Vec::new() };
    walk.tokens(&tree.to_token_stream().into_iter().collect::<Vec<_>>());
    walk.found
}

/// Calls `see` with every token, those inside groups included, and the tokens that follow it at its level.
pub(crate) fn each_token(stream: TokenStream, see: &mut impl FnMut(&TokenTree, &[TokenTree])) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        see(token, &tokens[index + 1..]);
        if let TokenTree::Group(group) = token {
            each_token(group.stream(), see);
        }
    }
}

pub(crate) fn is_ident(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == name)
}

pub(crate) fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn is_double_colon(tokens: &[TokenTree]) -> bool {
    is_punct(tokens.first(), ':') && is_punct(tokens.get(1), ':')
}

struct Walk {
    module: Vec<String>,
    found: Vec<Named>,
}

impl Walk {
    fn tokens(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while at < tokens.len() {
            at += match &tokens[at] {
                TokenTree::Ident(word) if word == "pub" => 1 + self.scope(tokens.get(at + 1)),
                TokenTree::Ident(word) if word == "mod" => self.inline_module(&tokens[at..]),
                TokenTree::Ident(_) => self.path(Vec::new(), &tokens[at..]),
                TokenTree::Group(group) => {
                    self.group(group);
                    1
                }
                _ => 1,
            };
        }
    }

    fn group(&mut self, group: &Group) {
        self.tokens(&group.stream().into_iter().collect::<Vec<_>>());
    }

    /// `(crate)` or `(in path)` after `pub` is no import; a tuple field's type is.
    fn scope(&self, token: Option<&TokenTree>) -> usize {
        let Some(TokenTree::Group(group)) = token else { return 0 };
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        let scopes = ["crate", "self", "super"].iter().any(|word| is_ident(inner.first(), word)) && inner.len() == 1;
        usize::from(group.delimiter() == Delimiter::Parenthesis && (scopes || is_ident(inner.first(), "in")))
    }

    fn inline_module(&mut self, tokens: &[TokenTree]) -> usize {
        let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) = (tokens.get(1), tokens.get(2)) else {
            return 1;
        };
        self.module.push(name.to_string());
        self.group(body);
        self.module.pop();
        3
    }

    /// Reads a path, or a tree of them, that goes on from `before`; answers how many tokens it took.
    fn path(&mut self, before: Vec<String>, tokens: &[TokenTree]) -> usize {
        let (mut path, mut at) = (before, 0);
        let mut span = tokens[0].span();
        while let Some(TokenTree::Ident(name)) = tokens.get(at) {
            path.push(name.to_string());
            span = name.span();
            at += 1;
            if !is_double_colon(&tokens[at..]) {
                break;
            }
            match tokens.get(at + 2) {
                Some(TokenTree::Ident(_)) => at += 2,
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    self.branches(&path, group);
                    return at + 3;
                }
                Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                    path.push("*".into());
                    at += 3;
                    break;
                }
                // Generic arguments: what they name is read as tokens of their own.
                _ => break,
            }
        }
        self.note(path, span);
        at
    }

    fn branches(&mut self, path: &[String], group: &Group) {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        for branch in tokens.split(|token| is_punct(Some(token), ',')).filter(|branch| !branch.is_empty()) {
            if is_punct(branch.first(), '*') {
                self.note([path, &["*".to_string()]].concat(), branch[0].span());
            } else {
                self.path(path.to_vec(), branch);
            }
        }
    }

    fn note(&mut self, path: Vec<String>, span: Span) {
        if path.len() > 1 {
            self.found.push(Named { path: self.resolved(&path), span });
        }
    }

    /// The path from the crate's root, if it starts at `crate`, `self` or `super`; a `self` in its end means the rest.
    fn resolved(&self, path: &[String]) -> Vec<String> {
        let path = if path.last().is_some_and(|last| last == "self") { &path[..path.len() - 1] } else { path };
        let ups = path.iter().take_while(|name| *name == "super" || *name == "self");
        let (steps, height) = (ups.clone().count(), ups.filter(|name| *name == "super").count());
        if steps == 0 {
            return path.to_vec();
        }
        let base = &self.module[..self.module.len().saturating_sub(height)];
        [&["crate".to_string()], base, &path[steps..]].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<String> {
        let module = ["cells".to_string(), "bits".to_string()];
        let tree = syn::parse_file(code).expect("Rust");
        named_paths(&tree, &module).iter().map(|named| named.path.join("::")).collect()
    }

    #[test]
    fn groups_are_spread_out() {
        let code = "use crate::{a::{b, c as d, self}, e::*, f};";
        assert_eq!(paths(code), ["crate::a::b", "crate::a::c", "crate::a", "crate::e::*", "crate::f"]);
    }

    #[test]
    fn super_is_resolved_and_inline_modules_count() {
        assert_eq!(
            paths("use super::super::key::Key; use super::buffer;"),
            ["crate::key::Key", "crate::cells::buffer"]
        );
        assert_eq!(paths("mod inner { use super::super::super::{key, self as top}; }"), ["crate::key", "crate"]);
        assert_eq!(paths("use self::own::Thing;"), ["crate::cells::bits::own::Thing"]);
    }

    #[test]
    fn expressions_types_attributes_and_macros_are_read() {
        let code = "#[error(\"{}\", crate::a::b())] fn f(x: Vec<crate::c::D<crate::e::F>>) { g!(h => $crate::i::j(super::k::l)) }";
        assert_eq!(paths(code), ["crate::a::b", "crate::c::D", "crate::e::F", "crate::i::j", "crate::cells::k::l"]);
    }

    #[test]
    fn scopes_and_documentation_are_no_imports() {
        assert!(
            paths("/// [`crate::a::B`]\npub(in crate::c) fn d() {}\npub(in super::super) struct E(pub(crate) u8);")
                .is_empty()
        );
        assert_eq!(paths("struct E(pub (crate::a::B, u8));"), ["crate::a::B"]);
    }
}
