//! How often a migration runs, how long, and what a failure means.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::limits;

/// How often, how long, and what a failure means. Times are active time: waiting for a person, a pause, and the time while no
/// agent was there do not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policy {
    /// What decides whether it runs.
    pub run: RunPolicy,
    /// Time for the whole run.
    pub timeout: Span,
    /// Time for one attempt of one step.
    pub attempt_timeout: Span,
    /// How a step that failed is tried again, where the step does not say.
    pub retry: Retry,
    /// What a failure means for the deploy. Without it: `BlockDeploy` for a global pre migration, else `BlockComponent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<FailurePolicy>,
    /// A guard that finds nothing to do and takes longer than this is reported as slow.
    pub skip_budget: Span,
    /// How long what runs may take to end once somebody cancels.
    pub cancel_grace: Span,
    /// The key that makes an effect that cannot be observed happen once; demanded by `OncePerCluster` and `OncePerHop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            run: RunPolicy::default(),
            timeout: Span::seconds(10 * 60),
            attempt_timeout: Span::seconds(2 * 60),
            retry: Retry::default(),
            on_failure: None,
            skip_budget: Span(limits::GUARD_SLOW),
            cancel_grace: Span::seconds(30),
            idempotency_key: None,
        }
    }
}

/// What decides whether a migration runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunPolicy {
    /// The state of the cluster; the record is evidence and nothing more.
    #[default]
    WhenNeeded,
    /// The record, for effects that cannot be observed: once in the life of the cluster. A lost record means that a person decides.
    OncePerCluster,
    /// The record: once for each step from one version to another.
    OncePerHop,
    /// Each deploy, whatever the state is.
    Always,
}

impl RunPolicy {
    /// Returns whether the record decides, and not the state of the cluster.
    pub fn is_once(self) -> bool {
        matches!(self, Self::OncePerCluster | Self::OncePerHop)
    }
}

/// What a failure means for the deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The component is not applied, or not committed; others go on.
    BlockComponent,
    /// Nothing more is applied.
    BlockDeploy,
    /// It is reported, and the deploy goes on.
    Warn,
}

/// How a step that failed is tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retry {
    /// Attempts in all; for a wait, it has no meaning.
    pub max_attempts: u32,
    /// The delay after the first failure; for a wait, between looks.
    pub interval: Span,
    /// What each delay is multiplied by to give the next.
    pub factor: f64,
    /// The longest delay.
    pub max_interval: Span,
    /// How much of a delay is left to chance, from 0 to 1.
    pub jitter: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            interval: Span::seconds(10),
            factor: 2.0,
            max_interval: Span::seconds(120),
            jitter: 0.2,
        }
    }
}

/// What is done about a step of which nobody knows whether it took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnUnknown {
    /// It is tried again: sending it twice is the same as once.
    Retry,
    /// The run fails.
    Fail,
    /// The run waits until a person has looked: `fairway run resolve`.
    Manual,
}

/// A length of time, written as Kubernetes does: `500ms`, `30s`, `10m`, `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Span(pub Duration);

impl Span {
    /// Makes one of whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse(&text)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is no length of time; write 500ms, 30s, 10m or 1h30m"))
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.0.as_millis();
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, size) in UNITS {
            let count = rest / size;
            rest %= size;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
            "description": "A length of time: 500ms, 30s, 10m, 1h30m.",
        })
    }
}

/// Milliseconds in each unit, the largest first.
const UNITS: [(&str, u128); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: u128 = 0;
    let mut last = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: u128 = rest[..digits].parse().ok()?;
        let end = rest[digits..]
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len() - digits);
        let unit = &rest[digits..digits + end];
        let position = UNITS.iter().position(|(name, _)| *name == unit)?;
        if last.is_some_and(|last| position <= last) {
            return None;
        }
        last = Some(position);
        total = total.checked_add(count.checked_mul(UNITS[position].1)?)?;
        rest = &rest[digits + end..];
    }
    last?;
    Some(Duration::from_millis(u64::try_from(total).ok()?))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("500ms", 500)]
    #[case("30s", 30_000)]
    #[case("1h30m", 5_400_000)]
    #[case("1m500ms", 60_500)]
    fn a_span_is_read_and_written_alike(#[case] text: &str, #[case] milliseconds: u64) {
        let span = Span::try_from(text.to_owned()).unwrap();
        assert_eq!(span.0, Duration::from_millis(milliseconds));
        assert_eq!(span.to_string(), text);
    }

    #[rstest]
    #[case("")]
    #[case("10")]
    #[case("m")]
    #[case("10m1h")]
    #[case("1d")]
    #[case("-1s")]
    #[case("99999999999999999999999999999999999999999h")]
    fn what_is_no_span_is_refused(#[case] text: &str) {
        assert!(Span::try_from(text.to_owned()).is_err(), "{text}");
    }
}
