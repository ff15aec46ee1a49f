//! A place in git: the file, line and column that a message points at.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A file of the repository with a position in it.
///
/// Lines and columns count from one, columns in characters, as rustc and editors count them. A place with line 0 names the
/// whole file (a folder that is missing a file, a blob that is too large to be read).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Path inside the repository, with `/` between its parts.
    pub file: String,
    /// Line, from one; zero means the file as a whole.
    pub line: u32,
    /// Column in characters, from one; zero means the line as a whole.
    pub column: u32,
}

impl Place {
    /// Makes a place inside a file.
    pub fn new(file: impl Into<String>, line: u32, column: u32) -> Self {
        Self {
            file: file.into(),
            line,
            column,
        }
    }

    /// Makes a place that means the whole file.
    pub fn whole_file(file: impl Into<String>) -> Self {
        Self::new(file, 0, 0)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => f.write_str(&self.file),
            (line, 0) => write!(f, "{}:{line}", self.file),
            (line, column) => write!(f, "{}:{line}:{column}", self.file),
        }
    }
}
