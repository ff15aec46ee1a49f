//! Audit lines: one JSON object on one line for each effect and each decision that is acted on, in a versioned format.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use super::pass::{Effect, EffectResult};
use super::text::bounded;
use crate::model::api::{Decision, DecisionKind};
use crate::model::limits::{DECISION_BY_MAX, DECISION_REASON_MAX};
use crate::model::snapshot::CommitInfo;
use crate::model::{ObjectKey, Revision, SourceName};
use crate::plan::Why;

/// The format of a line. A field may be added; what is there keeps its name and meaning within the version.
const SCHEMA: &str = "fairway.dev/audit/v1";

/// Writes audit lines.
pub struct AuditLog {
    writer: Mutex<Box<dyn Write + Send>>,
}

/// Where effects come from: the same for a whole pass.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The source.
    pub source: &'a SourceName,
    /// The cluster's name: `home`.
    pub cluster: &'a str,
    /// The revision that is applied.
    pub revision: &'a Revision,
    /// Who made it.
    pub commit: &'a CommitInfo,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    schema: &'static str,
    time: Timestamp,
    source: &'a str,
    cluster: &'a str,
    revision: String,
    author: &'a str,
    action: &'static str,
    object: &'a ObjectKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    why: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'a [String],
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DecisionLine<'a> {
    schema: &'static str,
    time: Timestamp,
    source: &'a str,
    cluster: &'a str,
    action: &'static str,
    kind: DecisionKind,
    subject: String,
    by: String,
    reason: String,
    decided: Timestamp,
}

impl AuditLog {
    /// Makes a log that writes to a stream.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Mutex::new(Box::new(writer)),
        }
    }

    /// Writes the line of one effect, and flushes: an agent that is killed has told what it did. What was in step already is no
    /// effect.
    ///
    /// # Errors
    ///
    /// When the stream cannot be written; lines may then be missing.
    pub fn record(&self, origin: &Origin<'_>, effect: &Effect) -> io::Result<()> {
        if effect.result == EffectResult::Unchanged {
            return Ok(());
        }
        self.write(&Line::of(origin, effect))
    }
}

impl AuditLog {
    /// Writes the line of a person's decision that is acted on now, before anything is done in its name.
    ///
    /// # Errors
    ///
    /// When the stream cannot be written; the line may then be missing.
    pub fn decided(
        &self,
        source: &SourceName,
        cluster: &str,
        decision: &Decision,
        time: Timestamp,
    ) -> io::Result<()> {
        self.write(&DecisionLine {
            schema: SCHEMA,
            time,
            source: source.as_str(),
            cluster,
            action: "decide",
            kind: decision.kind,
            subject: bounded(&decision.digest, DECISION_BY_MAX),
            by: bounded(&decision.by, DECISION_BY_MAX),
            reason: bounded(&decision.reason, DECISION_REASON_MAX),
            decided: decision.at,
        })
    }

    fn write(&self, line: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(line)?;
        line.push(b'\n');
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(&line)?;
        writer.flush()
    }
}

impl<'a> Line<'a> {
    fn of(origin: &Origin<'a>, effect: &'a Effect) -> Self {
        let (why, details) = match &effect.why {
            Why::Missing => ("missing", &[][..]),
            Why::Changed => ("changed", &[][..]),
            Why::Drifted(fields) => ("drifted", fields.as_slice()),
            Why::Adopted => ("adopted", &[][..]),
            Why::Unclear(reason) => ("unclear", std::slice::from_ref(reason)),
            Why::Removed => ("removed", &[][..]),
        };
        Self {
            schema: SCHEMA,
            time: effect.at,
            source: origin.source.as_str(),
            cluster: origin.cluster,
            revision: origin.revision.to_string(),
            author: &origin.commit.author,
            action: effect.kind.as_str(),
            object: &effect.key,
            digest: effect.digest.as_deref(),
            why,
            details,
            result: effect.result.as_str(),
            error: match &effect.result {
                EffectResult::Failed(error) => Some(error),
                EffectResult::Changed | EffectResult::Unchanged => None,
            },
        }
    }
}
