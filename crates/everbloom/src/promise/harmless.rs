//! Messages that may quote anything.

/// The most letters of a message: what came from an input may be of any length.
const MOST_LETTERS: usize = 2000;

/// A message that does nothing to a terminal or a protocol, and ends: one line, control characters written out.
pub fn harmless(text: &str) -> String {
    let mut said = String::with_capacity(text.len().min(MOST_LETTERS));
    for letter in text.chars().take(MOST_LETTERS) {
        match letter.is_control() {
            true => said.extend(letter.escape_default()),
            false => said.push(letter),
        }
    }
    if text.chars().nth(MOST_LETTERS).is_some() {
        said.push('…');
    }
    said
}
