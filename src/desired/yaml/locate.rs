//! Finds the line and column of a value, by replaying the parser's events.

use granit_parser::{Event, Parser, Span, StrInput};

use super::inside::advance;
use super::parse::text_of;
use super::split::{Segment, segments};

/// One step from a value to one inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PointerPart {
    /// The value of a key.
    Key(String),
    /// An item of a list, from zero.
    Index(usize),
}

impl From<&str> for PointerPart {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for PointerPart {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Which end of an entry is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The key, for instance because the field is unknown.
    Key,
    /// The value.
    Value,
}

/// Returns the line and column, both from one, of a value or its key in a document of a file.
///
/// Where the pointer leads to nothing (the field is missing, or comes from a merged alias), the nearest ancestor that
/// exists is taken. None when the file has no such document.
pub fn locate(
    bytes: &[u8],
    document: usize,
    pointer: &[PointerPart],
    what: Part,
) -> Option<(u32, u32)> {
    let segment = segments(text_of(bytes).ok()?).nth(document)?;
    let mut replay = Replay::new(&segment);
    replay.follow(pointer, what).map(|(found, _)| found)
}

/// Returns the line and column, both from one, of what stands so many bytes behind the start of a text in a document of a file.
///
/// None when the pointer leads to no text, or the text does not stand there as it is meant (it comes from an alias).
pub fn locate_inside(
    bytes: &[u8],
    document: usize,
    pointer: &[PointerPart],
    offset: usize,
) -> Option<(u32, u32)> {
    let segment = segments(text_of(bytes).ok()?).nth(document)?;
    let mut replay = Replay::new(&segment);
    let ((line, column), is_there) = replay.follow(pointer, Part::Value)?;
    let Some(Event::Scalar(text, style, ..)) = &replay.current else {
        return None;
    };
    let skipped = usize::try_from(line - segment.lines_before).ok()? - 1;
    let from_line: usize = segment
        .text
        .split_inclusive('\n')
        .take(skipped)
        .map(str::len)
        .sum();
    let rest = &segment.text[from_line..];
    let (from_column, _) = rest.char_indices().nth(usize::try_from(column).ok()? - 1)?;
    let source = &rest[from_column..];
    advance(source, (line, column), (text, *style), offset).filter(|_| is_there)
}

/// Returns where the content of a document starts.
pub(super) fn start_of(segment: &Segment<'_>) -> Option<(u32, u32)> {
    Replay::new(segment).root()
}

/// Where an entry of a mapping or list stands. For an item of a list, both are the item's.
struct Entry {
    key: (u32, u32),
    value: (u32, u32),
}

/// The events of one document; `current` is the event of the node that was last entered.
struct Replay<'a> {
    parser: Parser<'a, StrInput<'a>>,
    lines_before: u32,
    current: Option<Event<'a>>,
}

// === impl Replay ===

impl<'a> Replay<'a> {
    fn new(segment: &Segment<'a>) -> Self {
        let mut options = granit_parser::Options::default();
        options.set_emit_comments(false);
        Self {
            parser: Parser::new_from_str_with_options(segment.text, options),
            lines_before: segment.lines_before,
            current: None,
        }
    }

    /// Moves to the document's own node.
    fn root(&mut self) -> Option<(u32, u32)> {
        loop {
            let (event, span) = self.next()?;
            if is_node(&event) {
                self.current = Some(event);
                return Some(self.place(&span));
            }
        }
    }

    /// Follows a pointer as far as it leads; the second value says whether that is all the way.
    fn follow(&mut self, pointer: &[PointerPart], what: Part) -> Option<((u32, u32), bool)> {
        let mut found = self.root()?;
        for (number, part) in pointer.iter().enumerate() {
            let Some(entry) = self.enter(part) else {
                return Some((found, false));
            };
            let is_last = number + 1 == pointer.len();
            found = match (is_last, what) {
                (true, Part::Key) => entry.key,
                _ => entry.value,
            };
        }
        Some((found, true))
    }

    /// Moves from the current node to one of its entries; none when there is no such entry.
    fn enter(&mut self, part: &PointerPart) -> Option<Entry> {
        match (self.current.take()?, part) {
            (Event::MappingStart(..), PointerPart::Key(wanted)) => self.enter_mapping(wanted),
            (Event::SequenceStart(..), PointerPart::Index(wanted)) => self.enter_list(*wanted),
            _ => None,
        }
    }

    fn enter_mapping(&mut self, wanted: &str) -> Option<Entry> {
        loop {
            let (key, key_span) = self.next()?;
            let is_wanted = match &key {
                Event::MappingEnd => return None,
                Event::Scalar(text, ..) => text == wanted,
                _ => false,
            };
            self.skip_rest_of(&key)?;
            let (value, value_span) = self.next()?;
            if is_wanted {
                self.current = Some(value);
                return Some(Entry {
                    key: self.place(&key_span),
                    value: self.place(&value_span),
                });
            }
            self.skip_rest_of(&value)?;
        }
    }

    fn enter_list(&mut self, wanted: usize) -> Option<Entry> {
        for index in 0.. {
            let (item, span) = self.next()?;
            if matches!(item, Event::SequenceEnd) {
                return None;
            }
            if index == wanted {
                let place = self.place(&span);
                self.current = Some(item);
                return Some(Entry {
                    key: place,
                    value: place,
                });
            }
            self.skip_rest_of(&item)?;
        }
        None
    }

    /// Reads on to the end of the node that `start` began.
    fn skip_rest_of(&mut self, start: &Event<'_>) -> Option<()> {
        let mut open = depth_change(start);
        while open > 0 {
            let (event, _) = self.next()?;
            open += depth_change(&event);
        }
        Some(())
    }

    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        self.parser.next_event()?.ok()
    }

    fn place(&self, span: &Span) -> (u32, u32) {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let line = self.lines_before.saturating_add(count(span.start.line()));
        (line, count(span.start.col() + 1))
    }
}

fn is_node(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Scalar(..) | Event::Alias(_) | Event::MappingStart(..) | Event::SequenceStart(..)
    )
}

fn depth_change(event: &Event<'_>) -> i64 {
    match event {
        Event::MappingStart(..) | Event::SequenceStart(..) => 1,
        Event::MappingEnd | Event::SequenceEnd => -1,
        _ => 0,
    }
}
