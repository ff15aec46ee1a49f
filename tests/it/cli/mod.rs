//! The command as it is typed: output, exit codes, generated pages.

mod explain;
mod generate;
mod lifecycle;
mod overview;
mod secret;
mod validate;

use assert_cmd::Command;

/// The built command, with nothing of the surroundings that changes what it prints.
fn fairway(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
    command.args(arguments).env_clear().env("COLUMNS", "100");
    command
}

/// Runs the command and writes down what it did.
fn transcript(arguments: &[&str]) -> String {
    let output = fairway(arguments).output().expect("the command starts");
    format!(
        "$ fairway {}\n{}[stderr]\n{}[exit code {}]\n",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status.code().expect("an exit code"),
    )
}
