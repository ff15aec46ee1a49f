//! The one door through which YAML and JSON come in.
//!
//! What comes in is a file's bytes; what goes out is [`ParsedFile`]: the documents that could be read, as JSON objects, and
//! a [`Problem`] with line and column for each that could not. A document that cannot be read does not hide the others.
//!
//! The values are those that kubectl would send for the same file (YAML 1.1 booleans and octals, merge keys, integral
//! floats as integers), with two differences on purpose: a key that stands twice is an error instead of the last one
//! winning, and a document after an explicit end (`...`) is read instead of dropped.
//!
//! Values carry no positions. A finding that is made later names its place by document and pointer, and [`locate()`] finds
//! the line and column by replaying the parser's events, which only a file with a finding has to pay for.

mod inside;
mod locate;
mod parse;
mod problem;
mod split;
#[cfg(test)]
mod tests;
mod value;

pub use locate::{Part, PointerPart, locate, locate_inside};
pub use parse::{Document, ParsedFile, parse};
pub use problem::Problem;
