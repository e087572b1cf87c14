//! The core above the filters, the command line and the module for servers iterate the registry: they name no kind and
//! none of its parameters.
//!
//! A text that is a kind's name, or a spec of it, counts wherever it stands. Parameters have names that are also words
//! for options and JSON fields, so they count only where a spec is asked or written: `.get("window")`,
//! `.with("window", 5)`, `words.contains(&"window")`, `word == "window"`.

use crate::paths::{each_token, is_punct};
use crate::sources::{Source, cli, core, forecast, only_known, python, redis, redis_client};
use everbloom_all::KINDS;
use proc_macro2::{Delimiter, Literal, TokenTree};
use quote::ToTokens;

/// What a spec is asked or written with.
const SPEC_METHODS: &[&str] =
    &["get", "with", "without", "number", "required", "value", "choice", "contains", "plan", "renamed"];

/// What a parameter's name is called where it is compared.
const COMPARED: &[&str] = &["word", "name", "parameter"];

/// Names that may stand where they stand, and why: stated defaults, and words that are no filter there.
const STATED: &[(&str, &str, &str)] = &[
    ("crates/everbloom-cli/src/commands/compare/matched.rs", "names 'stable'", "benefit is counted against it"),
    ("crates/everbloom-cli/src/commands/dedup/mod.rs", "names 'exact'", "an option, not a filter"),
    ("crates/everbloom-cli/src/commands/tune/mod.rs", "names 'popularity'", "an option, not a filter"),
];

#[test]
fn only_the_registry_knows_the_filters_names() {
    let above = core().into_iter().filter(|source| source.room() != "filters");
    let mut found = Vec::new();
    for source in above.chain(forecast()).chain(cli()).chain(redis()).chain(redis_client()).chain(python()) {
        for (literal, text) in kind_names(&source).into_iter().chain(parameter_names(&source)) {
            found.push(source.offence(literal.span(), format!("names '{text}'")));
        }
    }
    let stated: Vec<_> = STATED.iter().map(|(file, what, _)| (*file, *what)).collect();
    only_known(found, &stated, "ask the registry what a kind can do, do not name it:");
}

fn kind_names(source: &Source) -> Vec<(Literal, String)> {
    let mut found = Vec::new();
    each_token(source.tree.to_token_stream(), &mut |token, _| {
        let Some((literal, text)) = text(Some(token)) else { return };
        let (kind, rest) = text.split_once(':').unwrap_or((&text, "word"));
        if KINDS.iter().any(|known| known.name == kind) && rest.starts_with(char::is_alphanumeric) {
            found.push((literal, text));
        }
    });
    found
}

fn parameter_names(source: &Source) -> Vec<(Literal, String)> {
    let is_parameter = |name: &str| {
        name == "shards" || KINDS.iter().any(|kind| kind.parameters.iter().any(|parameter| parameter.name == name))
    };
    let mut found = Vec::new();
    each_token(source.tree.to_token_stream(), &mut |token, next| {
        let candidate = match token {
            TokenTree::Punct(dot) if dot.as_char() == '.' => asked(next),
            TokenTree::Ident(word) if COMPARED.contains(&word.to_string().as_str()) => compared(next),
            _ => None,
        };
        found.extend(candidate.filter(|(_, text)| is_parameter(text)));
    });
    found
}

/// The text that a method of a spec is called with, given what follows the dot.
fn asked(next: &[TokenTree]) -> Option<(Literal, String)> {
    let Some(TokenTree::Ident(method)) = next.first() else { return None };
    if !SPEC_METHODS.contains(&method.to_string().as_str()) {
        return None;
    }
    // A turbofish may stand between: `.number::<u64>("window")`.
    let call = next[1..].iter().take(8).find_map(|token| match token {
        TokenTree::Group(group) => Some(group),
        _ => None,
    })?;
    let arguments: Vec<TokenTree> = call.stream().into_iter().collect();
    let first = if is_punct(arguments.first(), '&') { 1 } else { 0 };
    text(arguments.get(first).filter(|_| call.delimiter() == Delimiter::Parenthesis))
}

/// The text after `==` or `!=`.
fn compared(next: &[TokenTree]) -> Option<(Literal, String)> {
    let compares = is_punct(next.first(), '=') || is_punct(next.first(), '!');
    text(next.get(2).filter(|_| compares && is_punct(next.get(1), '=')))
}

fn text(token: Option<&TokenTree>) -> Option<(Literal, String)> {
    let Some(TokenTree::Literal(literal)) = token else { return None };
    let text = syn::parse_str::<syn::LitStr>(&literal.to_string()).ok()?;
    Some((literal.clone(), text.value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_seen_and_other_words_are_not() {
        let code = r#"fn f() {
            spec.get("window"); spec.number::<u64>("num_hashes")?; kind.parameters.contains(&"lanes"); word != "shards";
            Spec::new("bloom"); Spec::parse("stable:cell_max=3"); matches!(kind, "ranked" | "other");
            json("window"); line("bloom: a filter"); "lanes"; options.insert("memory_bits", 1);
        }"#;
        let source = Source { file: String::new(), module: Vec::new(), tree: syn::parse_file(code).expect("Rust") };
        let texts = |found: Vec<(Literal, String)>| found.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(kind_names(&source)), ["bloom", "stable:cell_max=3", "ranked"]);
        assert_eq!(texts(parameter_names(&source)), ["window", "num_hashes", "lanes", "shards"]);
    }
}
