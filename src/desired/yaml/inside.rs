//! Finds a part of a text that stands in YAML, for instance one name of an expression in a block scalar.
//!
//! What stands in the file and what it means differ in blanks (indentation, folded lines) and in escapes only. So the characters
//! that are no blanks are counted in both; where they are not the same after all, nothing is claimed.

use granit_parser::ScalarStyle;

/// One character of a text as it stands in the file.
#[derive(PartialEq, Eq)]
enum Sign {
    Blank,
    Same(char),
    /// Written by its number or its name.
    Escaped,
    End,
}

/// A way through the text of a file.
struct Cursor<'a> {
    rest: std::str::Chars<'a>,
    /// Line and column, both from one.
    place: (u32, u32),
    style: ScalarStyle,
}

/// Returns the line and column of what stands so many bytes behind the start of a text. `source` is the document from the text's start,
/// which is at `start`; `value` is what the text means.
pub(super) fn advance(
    source: &str,
    start: (u32, u32),
    (value, style): (&str, ScalarStyle),
    offset: usize,
) -> Option<(u32, u32)> {
    let before = value.get(..offset)?;
    let mut cursor = Cursor {
        rest: source.chars(),
        place: start,
        style,
    };
    if matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted) {
        cursor.step()?;
    }
    let mut behind = cursor.place;
    for wanted in before.chars().filter(|it| !is_blank(*it)) {
        let (_, sign) = cursor.next();
        if !matches!(sign, Sign::Escaped) && sign != Sign::Same(wanted) {
            return None;
        }
        behind = cursor.place;
    }
    // Behind the last character there is nothing but the end of the text.
    if value[offset..].chars().all(is_blank) {
        return Some(behind);
    }
    let (place, sign) = cursor.next();
    (sign != Sign::End).then_some(place)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

impl Cursor<'_> {
    fn step(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        let (line, column) = self.place;
        self.place = match character {
            '\n' => (line.saturating_add(1), 1),
            _ => (line, column.saturating_add(1)),
        };
        Some(character)
    }

    /// Returns the next character that is no blank, and where it stands.
    fn next(&mut self) -> ((u32, u32), Sign) {
        loop {
            let place = self.place;
            match self.sign() {
                Sign::Blank => {}
                sign => return (place, sign),
            }
        }
    }

    fn sign(&mut self) -> Sign {
        let Some(character) = self.step() else {
            return Sign::End;
        };
        match (self.style, character) {
            (_, blank) if is_blank(blank) => Sign::Blank,
            (ScalarStyle::SingleQuoted, '\'') => match self.step() {
                Some('\'') => Sign::Same('\''),
                _ => Sign::End,
            },
            (ScalarStyle::DoubleQuoted, '"') => Sign::End,
            (ScalarStyle::DoubleQuoted, '\\') => self.escape(),
            (_, other) => Sign::Same(other),
        }
    }

    fn escape(&mut self) -> Sign {
        let digits = match self.step() {
            None => return Sign::End,
            Some(blank) if is_blank(blank) => return Sign::Blank,
            Some('n' | 't' | 'r') => return Sign::Blank,
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some(_) => 0,
        };
        for _ in 0..digits {
            self.step();
        }
        Sign::Escaped
    }
}
