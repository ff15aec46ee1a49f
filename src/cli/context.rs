//! What a command gets of the outside.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use super::arguments::{ClusterArguments, OutputFormat};
use super::failure::Failure;

/// Streams, and what was said on every command's behalf.
///
/// What is written may be styled: the streams drop colours where they are not wanted.
pub struct Context {
    /// Data, and nothing else.
    pub out: Box<dyn Write>,
    /// Everything that is not data.
    pub err: Box<dyn Write>,
    /// The form of the data.
    pub output: OutputFormat,
    /// Which cluster is meant.
    pub cluster: ClusterArguments,
    /// Whether a person watches stderr: progress may be animated.
    pub interactive: bool,
}

impl Context {
    /// Makes the context of this process.
    pub(super) fn of_process(
        output: OutputFormat,
        color: ColorChoice,
        cluster: ClusterArguments,
    ) -> Self {
        Self {
            out: Box::new(AutoStream::new(io::stdout(), color)),
            err: Box::new(AutoStream::new(io::stderr(), color)),
            output,
            cluster,
            interactive: io::stderr().is_terminal(),
        }
    }

    /// Writes a value to stdout as JSON or YAML. Text has no general form, so that asking for it here writes JSON.
    pub fn write_value<T: Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        let text = if self.output == OutputFormat::Yaml {
            serde_yaml::to_string(value).map_err(Failure::of)?
        } else {
            serde_json::to_string_pretty(value).map_err(Failure::of)? + "\n"
        };
        self.out.write_all(text.as_bytes())?;
        Ok(())
    }
}
