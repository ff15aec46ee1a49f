//! The `fairway` command.

use std::process::ExitCode;

use clap::Parser;
use fairway::cli::{self, Arguments};

fn main() -> ExitCode {
    // Fails only where a provider is installed already, which then is the one to use.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    cli::run(Arguments::parse())
}
