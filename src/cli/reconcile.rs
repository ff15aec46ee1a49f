//! `fairway reconcile` and `fairway wait`: asking for a pass, and waiting for a revision.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use clap::Args;

use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::progress::with_progress;
use super::resources::{Home, is_ready, parse_duration, readiness};
use crate::model::SourceName;
use crate::model::api::{CatalogMode, ConditionStatus, ConditionType, ReleaseSource, find};

/// Arguments of `fairway reconcile`.
#[derive(Debug, Args)]
pub struct ReconcileArguments {
    /// The ReleaseSource
    source: SourceName,
    /// How long to wait for the pass
    #[arg(long, value_parser = parse_duration, default_value = "2m")]
    timeout: Duration,
    /// Say nothing when all is well
    #[arg(long, short)]
    quiet: bool,
}

/// Arguments of `fairway wait`.
#[derive(Debug, Args)]
pub struct WaitArguments {
    /// The ReleaseSource
    source: SourceName,
    /// The commit that must be applied in full, at least seven digits; otherwise that the source is ready
    #[arg(long, value_name = "SHA", value_parser = parse_commit)]
    revision: Option<String>,
    /// How many runtimes must be in step as well: a number, or a share of all such as 95%
    #[arg(long, value_name = "COUNT|PERCENT", value_parser = parse_share)]
    runtimes: Option<Share>,
    /// How long to wait
    #[arg(long, value_parser = parse_duration, default_value = "5m")]
    timeout: Duration,
    /// Say nothing when all is well
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn reconcile(
    arguments: &ReconcileArguments,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let source = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let source = home.source(&arguments.source).await?;
        if source.spec.suspend {
            return Err(Failure::Misuse(readiness(&source)));
        }
        let requested_at = home.request_pass(&arguments.source).await?;
        let handled = move |source: Option<&ReleaseSource>| {
            source
                .and_then(|source| source.status.as_ref())
                .is_some_and(|status| {
                    status.last_handled_reconcile_at.as_ref() == Some(&requested_at)
                })
        };
        home.await_source(&arguments.source, handled, ("the pass", arguments.timeout))
            .await
    })?;
    conclude(&source, arguments.quiet, context)
}

pub(super) fn wait(arguments: &WaitArguments, context: &mut Context) -> Result<Exit, Failure> {
    let mut what = match &arguments.revision {
        Some(revision) => format!("applying {revision} in full"),
        None => "becoming ready".to_owned(),
    };
    if let Some(share) = arguments.runtimes {
        what = format!("{what} on home and {share} of its runtimes");
    }
    let wanted = Wanted {
        revision: arguments.revision.clone(),
        runtimes: arguments.runtimes,
    };
    let (decided, timeout) = (wanted.clone(), arguments.timeout);
    let waiting = async {
        let home = Home::connect(context).await?;
        let source = home.source(&arguments.source).await?;
        if wanted.runtimes.is_some() && source.spec.runtimes.catalog == CatalogMode::Off {
            return Err(Failure::Misuse(format!(
                "{} follows no runtimes; spec.runtimes.catalog: Sync or Observe would have it do so",
                arguments.source
            )));
        }
        let decided = move |source: Option<&ReleaseSource>| {
            source.is_some_and(|source| decided.is_reached(source) || decided.is_stuck(source))
        };
        home.await_source(&arguments.source, decided, (&what, timeout))
            .await
    };
    let source = {
        let runtime = runtime()?;
        with_progress(
            context,
            &format!("waiting for {}: {what}", arguments.source),
            || runtime.block_on(waiting),
        )?
    };
    let reached = wanted.is_reached(&source);
    if !(arguments.quiet && reached) {
        writeln!(context.err, "{}", readiness(&source))?;
    }
    Ok(if reached { Exit::Ok } else { Exit::Found })
}

/// What `fairway wait` waits for.
#[derive(Debug, Clone)]
struct Wanted {
    revision: Option<String>,
    runtimes: Option<Share>,
}

impl Wanted {
    /// Returns whether it is so.
    fn is_reached(&self, source: &ReleaseSource) -> bool {
        self.is_at_home(source) && self.runtimes.is_none_or(|share| share.is_reached(source))
    }

    fn is_at_home(&self, source: &ReleaseSource) -> bool {
        let status = source.status.as_ref();
        match (&self.revision, self.runtimes) {
            (None, None) => is_ready(source),
            (Some(revision), None) => has_applied(source, revision),
            // What is said of runtimes is said of the revision that was read last.
            (revision, Some(_)) => {
                let read = status.and_then(|status| status.last_attempted_revision.as_deref());
                let same =
                    status.and_then(|status| status.last_applied_revision.as_deref()) == read;
                let is_it = |read| revision.as_deref().is_none_or(|wanted| is_of(read, wanted));
                same && read.is_some_and(is_it)
            }
        }
    }

    /// Returns whether waiting is of no use: the agent has looked at this spec, goes on by itself no more, and, where a revision
    /// is waited for, it is this one that it is stuck with, or it cannot read any other. A runtime where something is held says
    /// nothing about the others.
    fn is_stuck(&self, source: &ReleaseSource) -> bool {
        if source.spec.suspend {
            return true;
        }
        let Some(status) = &source.status else {
            return false;
        };
        let is = |kind, wanted| {
            find(&status.conditions, kind).is_some_and(|found| found.status == wanted)
        };
        let seen = status.observed_generation >= source.metadata.generation;
        let for_runtimes = self.runtimes.is_some() && self.is_at_home(source);
        if !seen || for_runtimes || !is(ConditionType::Stalled, ConditionStatus::True) {
            return false;
        }
        match (&self.revision, &status.last_attempted_revision) {
            (None, _) => true,
            (Some(_), _) if is(ConditionType::Fetched, ConditionStatus::False) => true,
            (Some(revision), Some(attempted)) => is_of(attempted, revision),
            (Some(_), None) => false,
        }
    }
}

/// How many runtimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Count(i64),
    /// Of all there are, rounded up.
    Percent(i64),
}

impl Share {
    fn is_reached(self, source: &ReleaseSource) -> bool {
        let Some(status) = &source.status else {
            return false;
        };
        let counts = status.runtimes.clone().unwrap_or_default();
        // As long as it is not known which runtimes there are, there seem to be none.
        let known = find(&status.conditions, ConditionType::CatalogSynced)
            .is_some_and(|found| counts.total > 0 || found.status == ConditionStatus::True);
        known && counts.synced >= self.of(counts.total)
    }

    fn of(self, total: i64) -> i64 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (total * percent + 99) / 100,
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent} %"),
        }
    }
}

fn parse_share(text: &str) -> Result<Share, String> {
    let number = |text: &str, max| {
        text.parse()
            .ok()
            .filter(|number| (0..=max).contains(number))
    };
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent, 100).map(Share::Percent),
        None => number(text, 1_000_000).map(Share::Count),
    };
    share.ok_or_else(|| "a number of runtimes, or a share such as 95%".to_owned())
}

fn conclude(source: &ReleaseSource, quiet: bool, context: &mut Context) -> Result<Exit, Failure> {
    let ready = is_ready(source);
    if !(quiet && ready) {
        writeln!(context.err, "{}", readiness(source))?;
    }
    Ok(if ready { Exit::Ok } else { Exit::Found })
}

fn has_applied(source: &ReleaseSource, commit: &str) -> bool {
    source
        .status
        .as_ref()
        .and_then(|status| status.last_applied_revision.as_deref())
        .is_some_and(|revision| is_of(revision, commit))
}

/// Returns whether a revision, written `main@sha1:…`, is of a commit that is given by its first digits.
fn is_of(revision: &str, commit: &str) -> bool {
    revision
        .rsplit_once(':')
        .is_some_and(|(_, hash)| hash.starts_with(commit))
}

fn parse_commit(text: &str) -> Result<String, String> {
    let digits = text.bytes().all(|b| b.is_ascii_hexdigit());
    if digits && (7..=64).contains(&text.len()) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a commit has 7 to 40 hexadecimal digits".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn source(
        applied: &str,
        attempted: &str,
        synced: i64,
        total: i64,
        known: &str,
    ) -> ReleaseSource {
        let condition = json!({
            "type": "CatalogSynced", "status": known, "reason": "Behind", "message": "…",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        serde_json::from_value(json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "ReleaseSource", "metadata": {"name": "modules"},
            "spec": {"url": "https://git.example.com/m.git", "ref": {"branch": "main"}},
            "status": {
                "lastAppliedRevision": format!("main@sha1:{applied}"),
                "lastAttemptedRevision": format!("main@sha1:{attempted}"),
                "runtimes": {"total": total, "synced": synced, "behind": 0, "unreachable": 0},
                "conditions": [condition],
            },
        }))
        .unwrap()
    }

    #[rstest]
    #[case("95%", 19, 20, true)]
    #[case("95%", 18, 20, false)]
    // A share is rounded up: 95 % of two are two.
    #[case("95%", 1, 2, false)]
    #[case("0%", 0, 2, true)]
    #[case("2", 2, 9, true)]
    #[case("3", 2, 2, false)]
    fn a_share_of_the_runtimes_is_waited_for(
        #[case] share: &str,
        #[case] synced: i64,
        #[case] total: i64,
        #[case] reached: bool,
    ) {
        let wanted = Wanted {
            revision: Some("aaaaaaa".to_owned()),
            runtimes: Some(parse_share(share).unwrap()),
        };
        let of = |applied, attempted| {
            wanted.is_reached(&source(applied, attempted, synced, total, "False"))
        };
        assert_eq!(of("aaaaaaa1", "aaaaaaa1"), reached);
        assert!(
            !of("aaaaaaa1", "bbbbbbb2"),
            "the counts are about another one"
        );
        assert!(!of("bbbbbbb2", "bbbbbbb2"));
    }

    #[test]
    fn no_runtimes_count_only_once_that_is_known() {
        let wanted = Wanted {
            revision: None,
            runtimes: Some(Share::Percent(95)),
        };
        assert!(!wanted.is_reached(&source("aaaaaaa1", "aaaaaaa1", 0, 0, "Unknown")));
        assert!(wanted.is_reached(&source("aaaaaaa1", "aaaaaaa1", 0, 0, "True")));
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for text in ["", "%", "101%", "-1", "many"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
