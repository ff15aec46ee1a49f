//! `job`: runs one container to its end as a Kubernetes Job.
//!
//! The Job is created, never applied, under a name that follows from run, step and element and from how many Jobs came before
//! it: who is killed between its creation and the record finds it again. It has no time to live until its result is in the
//! record; then one that succeeded is deleted, and one that failed is kept for a while for its logs. Exit 0 is done, 75 try
//! later, 78 never, everything else a failure that counts. A Job that has vanished before its result was recorded is unknown.

mod manifest;
mod result;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use self::manifest::{LAUNCH, RECORDED, RUN, STEP};
use self::result::Ending;
use super::change::{Changes, Fields};
use super::help::{Ended, Seen, done, failed};
use super::{StepContext, StepOutcome, StepResult};
use crate::model::api::StepRecord;
use crate::model::limits;
use crate::model::migration::{JobStep, PatchType, Propagation};
use crate::model::names;
use crate::runs::effects::{Deletion, EffectError, Effects, ObjectPatch, Removed, ResourceKind};

/// In a step's progress: the Job that runs.
const JOB: &str = "job";
/// In a step's progress: how it ended, until it is tidied away.
const ENDED: &str = "ended";

pub(super) async fn attempt<E: Effects>(context: &StepContext<'_, E>, step: &JobStep) -> Ended {
    let progress = &context.record.progress;
    let job = progress.get(JOB).and_then(Seen::of);
    match (job, progress.get(ENDED)) {
        (Some(job), Some(ended)) => settle(context, &job, &Ending::read(ended)).await,
        (Some(job), None) => look(context, &job).await,
        (None, _) => start(context, step).await,
    }
}

/// Suspends the Job of a step: its pod is asked to stop, and the Job can go on. There may be none.
pub(super) async fn stop<E: Effects>(effects: &E, record: &StepRecord) -> Result<(), EffectError> {
    if record.progress.contains_key(ENDED) {
        return Ok(());
    }
    let Some(job) = record.progress.get(JOB).and_then(Seen::of) else {
        return Ok(());
    };
    match effects.patch(&suspension(&job, true)).await {
        Err(EffectError::NotFound(_) | EffectError::Conflict(_)) => Ok(()),
        asked => asked.map(drop),
    }
}

fn suspension(job: &Seen, suspended: bool) -> ObjectPatch {
    let stopped = if suspended {
        json!("true")
    } else {
        Value::Null
    };
    ObjectPatch {
        kind: job.kind.clone(),
        namespace: job.namespace.clone(),
        name: job.name.clone(),
        subresource: None,
        form: PatchType::Merge,
        body: json!({
            "metadata": {"annotations": {names::ANNOTATION_STOPPED: stopped}},
            "spec": {"suspend": suspended},
        }),
        uid: job.uid.clone(),
        resource_version: None,
    }
}

fn kind() -> ResourceKind {
    ResourceKind {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
    }
}

/// Takes up a Job that an earlier attempt has created, or creates one.
async fn start<E: Effects>(context: &StepContext<'_, E>, step: &JobStep) -> Ended {
    let namespace = context.text(&step.namespace)?;
    let (kind, selector) = (kind(), manifest::selector(context));
    let mut next: Option<String> = None;
    let mut launch = 1;
    loop {
        let page = (limits::PAGE_SIZE_WHOLE, next.as_deref());
        let listing = context
            .effects
            .list(&kind, Some(&namespace), Some(&selector), page);
        let listing = listing.await.map_err(failed)?;
        for job in listing.objects.iter().filter(|job| is_ours(context, job)) {
            if is_open(job) {
                return Ok(running(context, job));
            }
            let number = job["metadata"]["annotations"][LAUNCH].as_str();
            launch = launch.max(number.and_then(|text| text.parse().ok()).unwrap_or(0) + 1);
        }
        match listing.next {
            Some(token) => next = Some(token),
            None => break,
        }
    }
    let launched = context
        .record
        .progress
        .get("launches")
        .and_then(Value::as_u64);
    let launch = launch.max(launched.unwrap_or(0) + 1);
    create(context, &manifest::job(context, step, &namespace, launch)?).await
}

async fn create<E: Effects>(context: &StepContext<'_, E>, manifest: &Value) -> Ended {
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = manifest["metadata"]["namespace"].as_str();
    let why = match context.effects.create(manifest).await {
        Ok(job) => return Ok(running(context, &job)),
        Err(EffectError::Exists(message) | EffectError::Lost(message)) => message,
        Err(error) => return Err(failed(error)),
    };
    match context.effects.get(&kind(), namespace, name).await {
        Ok(Some(job)) if is_ours(context, &job) && is_open(&job) => Ok(running(context, &job)),
        Ok(Some(_)) => Err(StepResult::retry(format!(
            "there is a Job {name} that is not of this step; delete it or rename it"
        ))),
        _ => Err(StepResult::retry(why)),
    }
}

fn is_ours<E>(context: &StepContext<'_, E>, job: &Value) -> bool {
    let annotations = &job["metadata"]["annotations"];
    annotations[RUN] == context.run && annotations[STEP] == context.idempotency_key
}

/// Returns whether a Job's result is still to be recorded.
fn is_open(job: &Value) -> bool {
    job["metadata"]["annotations"].get(RECORDED).is_none()
        && job["metadata"].get("deletionTimestamp").is_none()
}

fn running<E>(context: &StepContext<'_, E>, job: &Value) -> StepResult {
    let Some(seen) = Seen::of(job) else {
        return StepResult::retry("the Job has no identity");
    };
    waiting(context, &seen, format!("{seen} runs"))
}

fn waiting<E>(context: &StepContext<'_, E>, job: &Seen, message: String) -> StepResult {
    // A Job that has taken long may take longer.
    let active = Duration::from_millis(context.record.attempt_milliseconds);
    StepResult::Wait {
        message,
        after: (active / 10).clamp(limits::STEP_LOOK_INTERVAL, limits::JOB_LOOK_INTERVAL_MAX),
        progress: BTreeMap::from([(JOB.to_owned(), kept(job))]),
    }
}

fn kept(job: &Seen) -> Value {
    json!({
        "apiVersion": job.kind.api_version, "kind": job.kind.kind,
        "metadata": {"namespace": job.namespace, "name": job.name, "uid": job.uid},
    })
}

/// Looks how the Job is.
async fn look<E: Effects>(context: &StepContext<'_, E>, job: &Seen) -> Ended {
    let live = context
        .effects
        .get(&job.kind, job.namespace.as_deref(), &job.name);
    let live = live.await.map_err(failed)?;
    let live = live.filter(|live| live["metadata"]["uid"] == job.uid.as_str());
    let Some(live) = live else {
        return Ok(StepResult::Unknown {
            message: format!("{job} vanished before its result was recorded"),
        });
    };
    let Some(condition) = result::condition(&live) else {
        // We have asked it to stop when the run was cancelled; what somebody else has suspended stays so.
        if live["metadata"]["annotations"][names::ANNOTATION_STOPPED] == "true" {
            let resumed = context.effects.patch(&suspension(job, false)).await;
            resumed.map_err(failed)?;
            return Ok(waiting(context, job, format!("{job} goes on")));
        }
        let why = result::waiting_reason(context, job).await;
        let message = match why {
            Some(why) => format!("{job} waits: {why}"),
            None => format!("{job} runs"),
        };
        return Ok(waiting(context, job, message));
    };
    let ending = result::ending(context, job, &condition).await?;
    // The record first; only then may the Job go.
    Ok(StepResult::Wait {
        message: format!("{job} has ended"),
        after: Duration::ZERO,
        progress: BTreeMap::from([
            (JOB.to_owned(), kept(job)),
            (ENDED.to_owned(), ending.keep()),
            ("launches".to_owned(), launch_of(&live).into()),
        ]),
    })
}

fn launch_of(job: &Value) -> u64 {
    let number = job["metadata"]["annotations"][LAUNCH].as_str();
    number.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Tidies a Job away whose result is recorded, and says what came of it.
async fn settle<E: Effects>(context: &StepContext<'_, E>, job: &Seen, ending: &Ending) -> Ended {
    let tidied = if ending.succeeded {
        remove(context, job, Propagation::Background)
            .await
            .map(drop)
    } else {
        keep_for_a_while(context, job).await
    };
    match tidied {
        Err(EffectError::Transient {
            message,
            retry_after,
        }) => {
            return Err(StepResult::again(message, retry_after));
        }
        Err(error @ EffectError::ClaimLost(_)) => return Err(failed(error)),
        // What stays behind does not change how it ended.
        _ => {}
    }
    let launches = context.record.progress.get("launches").cloned();
    let next = BTreeMap::from([("launches".to_owned(), launches.unwrap_or_else(|| 1.into()))]);
    let message = format!("{job} {}", ending.words());
    Ok(match ending.exit {
        _ if ending.succeeded => {
            let mut changes = Changes::default();
            changes.add("ran", job, &Fields::new());
            let outcome = StepOutcome {
                result: ending.result.clone(),
                effect: changes.record(),
                changed: true,
                ..StepOutcome::default()
            };
            done("job", &job.to_string(), "it succeeded", outcome)
        }
        Some(result::TRY_LATER) => {
            StepResult::again(message, Some(context.interval())).with_progress(next)
        }
        Some(result::NEVER) => StepResult::fail(message),
        _ => StepResult::retry(message).with_progress(next),
    })
}

async fn remove<E: Effects>(
    context: &StepContext<'_, E>,
    job: &Seen,
    propagation: Propagation,
) -> Result<Removed, EffectError> {
    let deletion = Deletion {
        kind: job.kind.clone(),
        namespace: job.namespace.clone(),
        name: job.name.clone(),
        uid: job.uid.clone(),
        resource_version: None,
        propagation,
    };
    context.effects.delete(&deletion).await
}

/// Lets Kubernetes delete the Job when its time has come, and marks it as one that nobody takes up any more.
async fn keep_for_a_while<E: Effects>(
    context: &StepContext<'_, E>,
    job: &Seen,
) -> Result<(), EffectError> {
    let patch = ObjectPatch {
        kind: job.kind.clone(),
        namespace: job.namespace.clone(),
        name: job.name.clone(),
        subresource: None,
        form: PatchType::Merge,
        body: json!({
            "metadata": {"annotations": {RECORDED: "true"}},
            "spec": {"ttlSecondsAfterFinished": limits::JOB_KEPT.as_secs()},
        }),
        uid: job.uid.clone(),
        resource_version: None,
    };
    context.effects.patch(&patch).await.map(drop)
}

/// A value that a label can have: the text where it fits, else its beginning with a digest of all of it.
fn label_value(text: &str) -> String {
    const LONGEST: usize = 63;
    let fits = text.len() <= LONGEST
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
        && text
            .bytes()
            .last()
            .is_some_and(|b| b.is_ascii_alphanumeric());
    if fits {
        return text.to_owned();
    }
    let digest = short_digest(text);
    let start: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(LONGEST - digest.len() - 1)
        .collect();
    let start = start.trim_matches('-');
    format!("{start}{}{digest}", if start.is_empty() { "" } else { "-" })
}

/// Ten hexadecimal digits: two of a thousand names are the same once in a billion.
fn short_digest(text: &str) -> String {
    let digest = crate::model::Digest::of_parts([text]);
    let hash = digest.as_str().split_once(':').map_or("", |(_, hash)| hash);
    hash[..10].to_owned()
}

/// The labels that all Jobs of a step share.
fn labels<E>(context: &StepContext<'_, E>) -> [(&'static str, String); 3] {
    [
        (names::LABEL_MIGRATION, label_value(&context.spec.migration)),
        (names::LABEL_RUN, label_value(context.run)),
        (names::LABEL_STEP, label_value(context.idempotency_key)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_valid_and_tells_long_texts_apart() {
        assert_eq!(label_value("grow"), "grow");
        let long = "a.".repeat(100);
        let (one, other) = (label_value(&long), label_value(&format!("{long}x")));
        assert!(one.len() <= 63 && other.len() <= 63 && one != other);
        let odd = label_value("run/step/default/ns.name");
        assert!(
            odd.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'),
            "{odd}"
        );
        assert!(!label_value("///").starts_with('-'));
    }
}
