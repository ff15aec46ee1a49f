//! The reference pages that are made from the code.

mod definitions;

use std::fmt::Write as _;

use clap::CommandFactory;

use super::arguments::Arguments;
use super::explain;
use crate::expression::GROUPS;
use crate::model::{Code, limits};

pub(super) use definitions::definitions;

const NOTICE: &str = "<!-- Made by `make generate`; do not edit. -->\n";

/// Returns the page of all diagnostics, in Markdown.
pub(super) fn diagnostics() -> String {
    let mut page = format!(
        "# Diagnostics\n\n{NOTICE}\n\
         What `fairway validate` and the agent say about a repository. The codes are stable; `fairway explain CODE` prints\n\
         the same text.\n"
    );
    for code in Code::ALL {
        let _ = write!(page, "\n## {code}\n\n{}", explain::text_of(*code));
    }
    page
}

/// Returns the page of the language of guards, in Markdown.
pub(super) fn expressions() -> String {
    let mut page = format!("# Expressions\n\n{NOTICE}\n{EXPRESSIONS}");
    for group in GROUPS {
        let _ = write!(
            page,
            "\n### {}\n\n| call | gives | true |\n| --- | --- | --- |\n",
            group.title
        );
        for function in group.functions {
            let _ = writeln!(
                page,
                "| {} | {} | `{}` |",
                function.usage.replace('|', "\\|"),
                function.about,
                function.example.replace('|', "\\|")
            );
        }
    }
    let _ = write!(
        page,
        "\n## Limits\n\n\
         - {} bytes for one expression, {} parts inside of each other, {} loops inside of each other.\n\
         - {} units of work for one evaluation: one for each part that is evaluated and for every sixteen bytes that are\n  \
           compared or built, {} for a pattern that is compiled. What needs more is unknown.\n\
         - {} bytes for everything that one expression may look at, written as JSON.\n",
        limits::EXPRESSION_SIZE_MAX,
        limits::EXPRESSION_DEPTH_MAX,
        limits::EXPRESSION_LOOPS_MAX,
        limits::EXPRESSION_COST_MAX,
        limits::EXPRESSION_PATTERN_COST,
        limits::BINDINGS_SIZE_MAX,
    );
    page
}

/// What the page of expressions says before its tables.
const EXPRESSIONS: &str = include_str!("pages/expressions.md");

/// Returns the page of all commands, in Markdown.
pub(super) fn command_line() -> String {
    let mut root = Arguments::command();
    root.build();
    let mut page = format!("# Command line\n\n{NOTICE}\n");
    describe(&mut page, &root, "fairway", 2);
    page
}

/// Describes a command and those below it.
fn describe(page: &mut String, command: &clap::Command, path: &str, level: usize) {
    let text = |styled: Option<&clap::builder::StyledStr>| {
        styled.map(ToString::to_string).unwrap_or_default()
    };
    let heading = "#".repeat(level);
    let about = text(command.get_long_about().or(command.get_about()));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let _ = write!(
        page,
        "{heading} {path}\n\n{about}\n\n```text\n{usage}\n```\n\n"
    );

    let is_root = level == 2;
    let mut arguments = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && (is_root || !argument.is_global_set()))
        .filter(|argument| !matches!(argument.get_id().as_str(), "help" | "version"))
        .peekable();
    if arguments.peek().is_some() {
        page.push_str("| argument | meaning |\n| --- | --- |\n");
        for argument in arguments {
            let help = text(argument.get_long_help().or(argument.get_help()));
            let short = argument.get_short().map(|short| format!("-{short}, "));
            let name = format!("{}{argument}", short.unwrap_or_default()).replace('|', "\\|");
            let values: Vec<_> = argument
                .get_possible_values()
                .iter()
                .filter(|_| {
                    !argument.is_hide_possible_values_set() && argument.get_action().takes_values()
                })
                .map(|value| format!("`{}`", value.get_name()))
                .collect();
            let values = if values.is_empty() {
                String::new()
            } else {
                format!(": {}", values.join(", "))
            };
            let _ = writeln!(page, "| `{name}` | {}{values} |", help.replace('\n', " "));
        }
        page.push('\n');
    }
    let after = text(command.get_after_long_help().or(command.get_after_help()));
    if !after.is_empty() {
        let _ = write!(page, "```text\n{after}\n```\n\n");
    }
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        describe(page, below, &format!("{path} {}", below.get_name()), 3);
    }
}
