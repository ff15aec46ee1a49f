//! Audit lines: one JSON object on one line for each effect and each decision of a person, in a versioned format. The fields
//! are explained in `docs/operate.md`.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use super::pass::{Effect, EffectResult};
use crate::model::api::{Decision, Run, RunCommand};
use crate::model::snapshot::CommitInfo;
use crate::model::{GroupKind, ObjectKey, Revision, SourceName, names};
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

/// A decision of a person that the agent acts on.
#[derive(Debug, Clone, Copy)]
pub struct Decided<'a> {
    /// When the agent has taken it in.
    pub at: Timestamp,
    /// The source.
    pub source: &'a SourceName,
    /// The namespace of its ReleaseSource.
    pub namespace: &'a str,
    /// The cluster's name: `home`.
    pub cluster: &'a str,
    /// What was decided.
    pub action: DecisionAction,
    /// Who, why and about what exactly, where the decision says it.
    pub decision: Option<&'a Decision>,
    /// More, in words.
    pub details: &'a [String],
}

/// What a person can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionAction {
    /// To let a set of deletions happen.
    ApprovePrune,
    /// To follow a branch that was rewound.
    ApproveRewind,
    /// That a cluster's record is this source's.
    ApproveIdentity,
    /// To leave a source alone.
    Suspend,
    /// To end that.
    Resume,
    /// To delete the ReleaseSource.
    DeleteSource,
}

/// Something that happened to a Run.
#[derive(Debug, Clone, Copy)]
pub struct RunNews<'a> {
    /// When.
    pub at: Timestamp,
    /// The source.
    pub source: &'a SourceName,
    /// The namespace of the Run.
    pub namespace: &'a str,
    /// The cluster's name: `home`.
    pub cluster: &'a str,
    /// The Run.
    pub run: &'a Run,
    /// What happened.
    pub action: RunAction,
    /// What a person has said, where that is what happened.
    pub command: Option<&'a RunCommand>,
}

/// What can happen to a Run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAction {
    /// It was begun.
    Start,
    /// A person has said something about it.
    Command,
    /// It has ended.
    End,
    /// It is deleted, since it is old.
    Trim,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunLine<'a> {
    schema: &'static str,
    time: Timestamp,
    source: &'a str,
    cluster: &'a str,
    revision: &'a str,
    author: &'a str,
    action: String,
    object: ObjectKey,
    migration: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<&'a str>,
    digest: &'a str,
    why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Who<'a>>,
    result: &'a str,
    steps: Vec<String>,
    active_milliseconds: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DecisionLine<'a> {
    schema: &'static str,
    time: Timestamp,
    source: &'a str,
    cluster: &'a str,
    action: &'static str,
    object: ObjectKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    why: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Who<'a>>,
    result: &'static str,
}

#[derive(Serialize)]
struct Who<'a> {
    by: &'a str,
    reason: &'a str,
    at: Timestamp,
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
    /// Left out for a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    why: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'a [String],
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
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

    /// Writes the line of one decision, before anything is done in its name. An agent that is killed in between writes it again.
    ///
    /// # Errors
    ///
    /// When the stream cannot be written.
    pub fn decided(&self, decided: &Decided<'_>) -> io::Result<()> {
        self.write(&DecisionLine::of(decided))
    }

    /// Writes the line of something that happened to a Run.
    ///
    /// # Errors
    ///
    /// When the stream cannot be written.
    pub fn run(&self, news: &RunNews<'_>) -> io::Result<()> {
        let spec = &news.run.spec;
        let status = news.run.status.clone().unwrap_or_default();
        let name = news.run.metadata.name.clone().unwrap_or_default();
        let verb = match (news.action, news.command) {
            (RunAction::Command, Some(command)) => command.verb.as_str(),
            (RunAction::Start | RunAction::Command, _) => "start",
            (RunAction::End, _) => "end",
            (RunAction::Trim, _) => "trim",
        };
        let steps = status.steps.iter().map(|step| {
            let item = step.item.as_ref().map(|item| format!("[{item}]"));
            format!("{}{}: {:?}", step.id, item.unwrap_or_default(), step.state)
        });
        self.write(&RunLine {
            schema: SCHEMA,
            time: news.at,
            source: news.source.as_str(),
            cluster: news.cluster,
            revision: &spec.revision,
            author: &spec.author,
            action: format!("run-{verb}"),
            object: ObjectKey::new(
                GroupKind::new(names::GROUP, "Run"),
                Some(news.namespace),
                name,
            ),
            migration: &spec.migration,
            component: spec.component.as_deref(),
            digest: &spec.definition_digest,
            why: &status.message,
            decision: news.command.map(|command| Who {
                by: &command.by,
                reason: &command.reason,
                at: command.at,
            }),
            result: status.phase.as_str(),
            steps: steps.collect(),
            active_milliseconds: status.active_milliseconds,
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

impl DecisionAction {
    fn as_str(self) -> &'static str {
        match self {
            Self::ApprovePrune => "approve-prune",
            Self::ApproveRewind => "approve-rewind",
            Self::ApproveIdentity => "approve-identity",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::DeleteSource => "delete-source",
        }
    }
}

impl<'a> DecisionLine<'a> {
    fn of(decided: &Decided<'a>) -> Self {
        let kind = GroupKind::new(names::GROUP, "ReleaseSource");
        let name = decided.source.as_str();
        Self {
            schema: SCHEMA,
            time: decided.at,
            source: name,
            cluster: decided.cluster,
            action: decided.action.as_str(),
            object: ObjectKey::new(kind, Some(decided.namespace), name),
            digest: decided.decision.map(|decision| decision.digest.as_str()),
            why: "decided",
            details: decided.details,
            decision: decided.decision.map(|decision| Who {
                by: &decision.by,
                reason: &decision.reason,
                at: decision.at,
            }),
            result: "accepted",
        }
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
            digest: effect
                .digest
                .as_deref()
                .filter(|_| !effect.key.kind.is_secret()),
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
