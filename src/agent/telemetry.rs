//! Logs: JSON lines in a pod, lines for people on a terminal, both on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// What is logged when nothing else was asked for. kube's client logs each failed request as an error of its own; ours says
/// what it was for. At `warn` it would also log whole answers that it cannot read.
const ALWAYS: [&str; 2] = ["kube_client=error", "hyper_util=warn"];

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Human,
    /// One JSON object a line
    Json,
}

/// Logging that could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter cannot be read.
    #[error("failed to read the log filter `{filter}`")]
    Filter {
        /// The filter as it was given.
        filter: String,
        /// What is wrong with it.
        #[source]
        source: ParseError,
    },
    /// Logging was set up before in this process.
    #[error("failed to set up logging")]
    Twice(#[from] TryInitError),
}

/// Sets up logging for the whole process, by a filter such as `info` or `info,fairway::plan=debug`. Without a format, it is for
/// people on a terminal and JSON elsewhere.
///
/// # Errors
///
/// When the filter cannot be read, or logging is set up already.
pub fn initialize(filter: &str, format: Option<LogFormat>) -> Result<(), TelemetryError> {
    let registry = tracing_subscriber::registry().with(parse(filter)?);
    let layer = fmt::layer().with_writer(io::stderr);
    let format = format.unwrap_or(if io::stderr().is_terminal() {
        LogFormat::Human
    } else {
        LogFormat::Json
    });
    match format {
        LogFormat::Human => registry.with(layer.with_target(false)).try_init()?,
        LogFormat::Json => {
            let layer = layer
                .json()
                .flatten_event(true)
                .with_current_span(true)
                .with_span_list(false);
            registry.with(layer).try_init()?;
        }
    }
    Ok(())
}

/// Reads a filter; what it says about a target wins over what always holds.
fn parse(filter: &str) -> Result<EnvFilter, TelemetryError> {
    let always = ALWAYS.join(",");
    EnvFilter::builder()
        .parse(format!("{always},{filter}"))
        .map_err(|source| TelemetryError::Filter {
            filter: filter.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("info", "info")]
    #[case("info,fairway::plan=debug", "fairway::plan=debug")]
    #[case("kube_client=trace", "kube_client=trace")]
    fn what_was_asked_for_is_in_the_filter(#[case] filter: &str, #[case] wanted: &str) {
        let parsed = parse(filter).unwrap().to_string();
        assert!(
            parsed.split(',').any(|directive| directive == wanted),
            "{parsed}"
        );
    }

    #[test]
    fn the_clients_of_others_stay_quiet() {
        let parsed = parse("debug").unwrap().to_string();
        assert!(parsed.contains("kube_client=error"), "{parsed}");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_named() {
        let error = parse("info,=x=").unwrap_err();
        assert!(error.to_string().contains("`info,=x=`"));
    }
}
