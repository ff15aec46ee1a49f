//! Commands that can be pasted as they stand: they mean the same cluster and namespace as the one that prints them.

use super::find::Known;
use super::words::status_of;
use crate::cli::arguments::ClusterArguments;
use crate::cli::context::Context;
use crate::model::api::{Resolution, Run, RunPhase, RunVerb, StepState};

/// Begins every command: `fairway`, with what was said about the cluster.
pub(in crate::cli) struct Paste {
    program: String,
}

/// A command, and what it is for.
pub(super) struct Offer {
    pub(super) command: String,
    pub(super) purpose: &'static str,
}

impl Paste {
    pub(in crate::cli) fn of(context: &Context) -> Self {
        let ClusterArguments {
            kubeconfig,
            context: named,
            namespace,
        } = &context.cluster;
        let mut program = "fairway".to_owned();
        let kubeconfig = kubeconfig.as_ref().map(|path| path.display().to_string());
        for (flag, value) in [
            ("--kubeconfig", kubeconfig.as_ref()),
            ("--context", named.as_ref()),
            ("-n", namespace.as_ref()),
        ] {
            if let Some(value) = value {
                program = format!("{program} {flag} {}", quoted(value));
            }
        }
        Self { program }
    }

    /// Returns a command of the command line.
    pub(super) fn command(&self, rest: &str) -> String {
        format!("{} {rest}", self.program)
    }

    /// Returns the commands that are possible now for a run, the most useful first.
    pub(super) fn offers(&self, run: &Run, known: &Known) -> Vec<Offer> {
        let phase = phase_of(run);
        let name = known.short_name(run);
        let offers = verbs(run).flat_map(move |verb| {
            let of = |rest: &str| self.command(&format!("run {verb} {name}{rest} --reason '…'"));
            let one = |rest: &str, purpose| vec![(of(rest), purpose)];
            let commands = match verb {
                RunVerb::Pause => one("", "stop before the next step"),
                RunVerb::Resume => one("", "go on"),
                RunVerb::Cancel => one("", "start no step any more, and end"),
                RunVerb::Retry if phase.is_over() => {
                    one("", "try again, with a new budget of attempts")
                }
                RunVerb::Retry => one("", "try at once what waits after a failure"),
                RunVerb::Override => one(" --for 1h", "go on though the precondition is false"),
                RunVerb::Resolve => {
                    let step = unknown_step(run)
                        .map(|step| format!(" {step}"))
                        .unwrap_or_default();
                    let possible = status_of(run).resolutions().into_iter();
                    let said = |resolution: Resolution| match resolution {
                        Resolution::Done => (of(&format!("{step} done")), "it took effect"),
                        Resolution::Again => {
                            (of(&format!("{step} again")), "it did not: try it again")
                        }
                        Resolution::Fail => (of(&format!("{step} fail")), "give the run up"),
                        Resolution::Keep => (of(" keep"), "leave what is not taken back as it is"),
                    };
                    possible.map(said).collect()
                }
            };
            commands
                .into_iter()
                .map(|(command, purpose)| Offer { command, purpose })
        });
        offers.collect()
    }

    /// Returns the command that shows a run in full.
    pub(super) fn describe(&self, run: &Run, known: &Known) -> String {
        self.command(&format!("describe run {}", known.short_name(run)))
    }
}

/// Returns what a person can do about a run as it stands.
pub(super) fn verbs(run: &Run) -> impl Iterator<Item = &'static RunVerb> {
    status_of(run).verbs().iter()
}

/// Returns how far a run is; one that nobody has looked at yet is pending.
pub(super) fn phase_of(run: &Run) -> RunPhase {
    run.status
        .as_ref()
        .map(|status| status.phase)
        .unwrap_or_default()
}

/// Returns the step of which nobody knows whether it took effect; none where that is so of the run as a whole.
pub(super) fn unknown_step(run: &Run) -> Option<&str> {
    let status = run.status.as_ref()?;
    let mut steps = status.steps.iter().chain(&status.undone);
    let unknown = steps.find(|step| step.state == StepState::Unknown);
    unknown.map(|step| step.id.as_str())
}

/// Quotes a word for a shell where it needs to be.
fn quoted(word: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_blanks_or_quotes_is_quoted() {
        assert_eq!(quoted("fairway-system"), "fairway-system");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$HOME"), "'$HOME'");
    }
}
