//! `fairway explain`: what a diagnostic means and what to do about it.

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::arguments::OutputFormat;
use super::context::Context;
use super::failure::{Exit, Failure};
use crate::model::Code;

/// The arguments of `fairway explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// The code, as it stands in brackets after a diagnostic
    #[arg(value_parser = PossibleValuesParser::new(Code::ALL.iter().map(|code| code.as_str())))]
    #[arg(hide_possible_values = true, required_unless_present = "list")]
    code: Option<String>,

    /// List every code with its first sentence
    #[arg(long, conflicts_with = "code")]
    list: bool,
}

#[derive(Serialize)]
struct Explanation {
    code: Code,
    explanation: String,
}

pub(super) fn run(arguments: &ExplainArguments, context: &mut Context) -> Result<Exit, Failure> {
    let code = arguments.code.as_deref().map(|text| {
        text.parse::<Code>()
            .expect("the argument takes no other values than the codes")
    });
    match (code, context.output) {
        (Some(code), OutputFormat::Text) => {
            write!(context.out, "{code}\n\n{}", text_of(code))?;
        }
        (Some(code), _) => context.write_value(&explanation_of(code))?,
        (None, OutputFormat::Text) => list(&mut context.out)?,
        (None, _) => {
            let all: Vec<_> = Code::ALL.iter().copied().map(explanation_of).collect();
            context.write_value(&all)?;
        }
    }
    Ok(Exit::Ok)
}

fn list(out: &mut dyn Write) -> Result<(), Failure> {
    let width = Code::ALL
        .iter()
        .map(|code| code.as_str().len())
        .max()
        .unwrap_or_default();
    for code in Code::ALL {
        let text = text_of(*code);
        let summary = text.lines().next().unwrap_or_default();
        writeln!(out, "{:width$}  {summary}", code.as_str())?;
    }
    Ok(())
}

fn explanation_of(code: Code) -> Explanation {
    Explanation {
        code,
        explanation: text_of(code),
    }
}

/// Returns a code's explanation without the blank that each line of a doc comment starts with.
pub(super) fn text_of(code: Code) -> String {
    code.explanation()
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .flat_map(|line| [line, "\n"])
        .collect()
}
