//! Text that others wrote (files of a repository, answers of a server), made fit for a terminal.

use std::borrow::Cow;

/// Replaces each character that a terminal would act on by one that it shows, so that columns stay what they are.
/// Tabs are drawn as blanks later.
pub(super) fn harmless(line: &str) -> String {
    line.chars()
        .map(|character| {
            if character != '\t' && acts_on_terminal(character) {
                char::REPLACEMENT_CHARACTER
            } else {
                character
            }
        })
        .collect()
}

/// Escapes each character of a message that a terminal would act on, but for line ends.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text
        .chars()
        .any(|found| found != '\n' && acts_on_terminal(found))
    {
        let escaped = text.chars().fold(String::new(), |mut escaped, found| {
            if found != '\n' && acts_on_terminal(found) {
                escaped.extend(found.escape_unicode());
            } else {
                escaped.push(found);
            }
            escaped
        });
        Cow::Owned(escaped)
    } else {
        Cow::Borrowed(text)
    }
}

/// Control characters, and those that turn the direction of writing (a file could look different from what it says).
pub(super) fn acts_on_terminal(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
