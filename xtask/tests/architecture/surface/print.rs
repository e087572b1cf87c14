//! Declarations as one line each, spaced as a reader would.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, Pat, Signature};

/// A signature without its name: `<T: Key>(&self, key: T) -> bool`. How a function binds its arguments is its own affair.
pub(crate) fn signature(signature: &Signature) -> String {
    let mut shown = signature.clone();
    shown.inputs.pop_punct();
    shown.generics.params.pop_punct();
    for input in &mut shown.inputs {
        match input {
            FnArg::Receiver(receiver) if receiver.reference.is_none() => receiver.mutability = None,
            FnArg::Typed(argument) => {
                if let Pat::Ident(name) = &mut *argument.pat {
                    name.mutability = None;
                }
            }
            FnArg::Receiver(_) => {}
        }
    }
    let (generics, bounds) = (&shown.generics, &shown.generics.where_clause);
    let inputs = shown.inputs.to_token_stream();
    let output = &shown.output;
    let parameters = TokenTree::Group(proc_macro2::Group::new(Delimiter::Parenthesis, inputs));
    // A name to hang the rest on, so that the spacing is that of a call.
    let whole = quote::quote!(name #generics #parameters #output #bounds);
    one_line(whole).trim_start_matches("name").to_string()
}

/// Tokens in one line.
pub(crate) fn one_line(tokens: TokenStream) -> String {
    let mut words = Vec::new();
    flatten(tokens, &mut words);
    let mut line = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 && spaced(&words[index - 1], word) {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The tokens as words; signs that belong together are one.
fn flatten(tokens: TokenStream, words: &mut Vec<String>) {
    let mut joined = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                words.push(open.to_string());
                flatten(group.stream(), words);
                words.push(close.to_string());
                joined = false;
            }
            TokenTree::Punct(sign) => {
                let both = words.last().map(|last| format!("{last}{sign}")).unwrap_or_default();
                match words.last_mut() {
                    Some(last) if joined && ["::", "->", "=>", "..", "..="].contains(&both.as_str()) => *last = both,
                    _ => words.push(sign.to_string()),
                }
                joined = sign.spacing() == Spacing::Joint;
            }
            TokenTree::Ident(name) => {
                match words.last_mut() {
                    Some(last) if joined && last == "'" => last.push_str(&name.to_string()),
                    _ => words.push(name.to_string()),
                }
                joined = false;
            }
            TokenTree::Literal(literal) => words.push(literal.to_string()),
        }
    }
}

fn spaced(before: &str, after: &str) -> bool {
    let is_word = |text: &str| text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    match (before, after) {
        ("(" | "[" | "<" | "&" | "::" | "." | "!" | "?" | "#" | "*" | "", _) => false,
        (_, ")" | "]" | ">" | "," | ";" | ":" | "::" | "." | "") => false,
        ("mut" | "dyn" | "where", "(" | "<") | ("impl", "(") => true,
        (_, "(" | "<") => !is_word(before) && before != ">",
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_read_as_they_are_written() {
        for text in [
            "<'a, T: Key + ?Sized>(&'a mut self, keys: &[T], at: [u8; 4]) -> Result<Vec<Option<T>>>",
            "(self, then: impl Fn(&str) -> bool) -> (u64, &'static str)",
            "<K, const N: usize>(&self) -> <K as Key>::Bytes where K: Key",
            "()",
        ] {
            let parsed: Signature = syn::parse_str(&format!("fn named{text}")).expect("a signature");
            assert_eq!(signature(&parsed), text);
        }
        let parsed: Signature = syn::parse_str("fn named(mut self, mut a: u8,)").expect("a signature");
        assert_eq!(signature(&parsed), "(self, a: u8)");
    }
}
