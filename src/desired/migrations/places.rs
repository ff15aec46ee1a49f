//! Where something stands in a definition that is known by its document alone.

use crate::desired::yaml::{Part, PointerPart, locate, parse};
use crate::model::Place;

/// Returns the place of a value in the document that stands at a place of a file; the document's, where there is no such value.
pub fn place_in(bytes: &[u8], document: &Place, pointer: &[PointerPart]) -> Place {
    parse(bytes)
        .documents
        .into_iter()
        .find(|it| it.line == document.line)
        .and_then(|it| locate(bytes, it.index, pointer, Part::Value))
        .map_or_else(
            || document.clone(),
            |(line, column)| Place::new(&document.file, line, column),
        )
}
