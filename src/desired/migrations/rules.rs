//! Rules that one definition must keep by itself, beside those of its steps and tests.

use serde_json::Value;

use super::expressions::Names;
use super::lookups::check_lookup;
use super::steps::is_zero;
use crate::desired::custom::what;
use crate::desired::finding::{Finding, Pointer, pointer};
use crate::model::limits;
use crate::model::migration::{Binding, Lifecycle, MigrationSpec, Policy, Retry, Scope};
use crate::model::{Code, ModuleVersion};

/// The lines of a lifecycle.
const LIFECYCLE_LINES: &str = "lifecycle:\n  introducedIn: 1.2.0   # the first version that needs it\n  removeIn: 1.5.0       # the first version that nobody reaches without it\n  # or, in place of both, for what must stay for ever: never: WHY";

/// Checks what can be said before the definition is read: that a lifecycle is a mapping.
pub(super) fn check_form(spec: &Value) -> Option<Finding> {
    let lifecycle = spec.get("lifecycle")?;
    if lifecycle.is_null() || lifecycle.is_object() {
        return None;
    }
    let message = format!(
        "this is {}, and should say from when to when the migration is needed",
        what(lifecycle)
    );
    let at = pointer!["spec", "lifecycle"];
    Some(Finding::error(Code::MigrationLifecycle, at, message).help(LIFECYCLE_LINES))
}

/// Checks what can be said before the definition is read: that there is a lifecycle.
pub(super) fn check_presence(spec: &Value) -> Option<Finding> {
    if spec.get("lifecycle").is_some_and(|it| !it.is_null()) {
        return None;
    }
    let message = "this migration does not say when it goes";
    Some(
        Finding::error(Code::MigrationLifecycle, pointer!["spec"], message)
            .at_key()
            .help(LIFECYCLE_LINES),
    )
}

/// Checks everything that is not a step or a test.
pub(super) fn check_definition(spec: &MigrationSpec) -> Vec<Finding> {
    let mut found = Vec::new();
    if spec.owner.trim().is_empty() {
        let message = "nobody owns this migration";
        found.push(
            Finding::error(Code::SchemaViolation, pointer!["spec", "owner"], message)
                .help("owner: TEAM"),
        );
    }
    found.extend(check_lifecycle(&spec.lifecycle));
    found.extend(check_binding(&spec.bind));
    if spec.lookups.len() > limits::LOOKUPS_MAX {
        let message = format!(
            "{} lookups, more than {}",
            spec.lookups.len(),
            limits::LOOKUPS_MAX
        );
        found.push(
            Finding::error(Code::MigrationLookup, pointer!["spec", "lookups"], message)
                .at_key()
                .help("look up a list in place of several objects, or split the migration"),
        );
    }
    for (name, lookup) in &spec.lookups {
        found.extend(check_lookup(
            lookup,
            &pointer!["spec", "lookups", name.as_str()],
        ));
    }
    found.extend(check_guard(spec));
    found.extend(check_policy(spec));
    found
}

fn check_lifecycle(lifecycle: &Lifecycle) -> Vec<Finding> {
    let wrong = |field: &str, message: String| {
        let mut at = pointer!["spec", "lifecycle"];
        if !field.is_empty() {
            at.push(field.into());
        }
        Finding::error(Code::MigrationLifecycle, at, message)
    };
    let mut found = Vec::new();
    match (&lifecycle.remove_in, &lifecycle.never) {
        (None, None) => {
            let finding = wrong("", "this migration does not say when it goes".to_owned()).at_key();
            found.push(finding.help(match &lifecycle.introduced_in {
                Some(first) => format!(
                    "removeIn: {}   # the first version that nobody reaches without it; for what must stay: never: WHY",
                    later(first)
                ),
                None => LIFECYCLE_LINES.to_owned(),
            }));
        }
        (Some(_), Some(_)) => found.push(
            wrong(
                "never",
                "`removeIn` says when it goes, and `never` that it does not".to_owned(),
            )
            .at_key()
            .help("remove one of them"),
        ),
        (Some(_), None) if lifecycle.introduced_in.is_none() => found.push(
            wrong(
                "",
                "`removeIn` without `introducedIn`: nobody knows which versions need it".to_owned(),
            )
            .at_key()
            .help(format!(
                "introducedIn: {}",
                lifecycle
                    .remove_in
                    .as_deref()
                    .map_or_else(String::new, earlier)
            )),
        ),
        _ => {}
    }
    let version = |text: &Option<String>| ModuleVersion::parse(text.as_deref()?).ok();
    if let (Some(first), Some(last)) = (
        version(&lifecycle.introduced_in),
        version(&lifecycle.remove_in),
    ) && first
        .partial_cmp(&last)
        .is_none_or(std::cmp::Ordering::is_ge)
    {
        let message = format!("it would go in {last}, and comes in {first} only");
        found.push(wrong("removeIn", message).help(format!(
            "removeIn: {}   # above introducedIn",
            later(&first.to_string())
        )));
    }
    found
}

/// Returns a version that a migration of another one could go in.
fn later(version: &str) -> String {
    let core = ModuleVersion::parse(version).map_or((1, 2, 0), |it| it.core());
    format!("{}.{}.0", core.0, core.1.saturating_add(3))
}

/// Returns a version that a migration which goes in another one could come in.
fn earlier(version: &str) -> String {
    match ModuleVersion::parse(version).map_or((1, 5, 0), |it| it.core()) {
        (major, minor @ 1.., _) => format!("{major}.{}.0", minor.saturating_sub(3)),
        (major @ 1.., ..) => format!("{}.0.0", major - 1),
        _ => "0.0.0".to_owned(),
    }
}

fn check_binding(bind: &Binding) -> Vec<Finding> {
    let mut found = Vec::new();
    if bind.scope == Some(Scope::Global) && !bind.components.is_empty() {
        let message = "a global migration belongs to no component";
        found.push(
            Finding::error(
                Code::MigrationBinding,
                pointer!["spec", "bind", "components"],
                message,
            )
            .at_key()
            .help("remove `components`, or write scope: component"),
        );
    }
    if bind.on.is_empty() {
        let message = "it would never run";
        found.push(
            Finding::error(
                Code::MigrationBinding,
                pointer!["spec", "bind", "on"],
                message,
            )
            .at_key()
            .help("on: [install, upgrade]"),
        );
    }
    found
}

fn check_guard(spec: &MigrationSpec) -> Vec<Finding> {
    let names = Names::of_guard(spec);
    let guard = &spec.guard;
    let mut found = names.check_condition(&guard.needed, &pointer!["spec", "guard", "needed"]);
    for (index, requirement) in guard.requires.iter().enumerate() {
        let at = pointer!["spec", "guard", "requires", index, "cel"];
        found.extend(names.check_condition(&requirement.cel, &at));
    }
    if let Some(done) = &guard.done_when {
        let names = names.after_steps(spec.steps.iter());
        found.extend(names.check_condition(done, &pointer!["spec", "guard", "doneWhen"]));
    }
    found
}

fn check_policy(spec: &MigrationSpec) -> Vec<Finding> {
    let policy: &Policy = &spec.policy;
    let mut found = Vec::new();
    let wrong = |field: &str, message: &str| {
        Finding::error(
            Code::MigrationStep,
            pointer!["spec", "policy", field],
            message,
        )
    };
    if policy.run.is_once() && policy.idempotency_key.is_none() {
        let message =
            "the record alone decides here, so that a repetition must be known by its key";
        found.push(wrong("run", message).help(
            "idempotencyKey: NAME   # what the other side takes for one and the same request",
        ));
    }
    if let Some(key) = &policy.idempotency_key {
        let at = pointer!["spec", "policy", "idempotencyKey"];
        found.extend(Names::of_guard(spec).check_template(&Value::from(key.as_str()), &at));
    }
    if is_zero(policy.timeout) {
        found.push(wrong("timeout", "no time at all is too little"));
    }
    if is_zero(policy.attempt_timeout) {
        found.push(wrong("attemptTimeout", "no time at all is too little"));
    } else if policy.attempt_timeout > policy.timeout
        && policy.attempt_timeout != Policy::default().attempt_timeout
    {
        let message = format!(
            "one attempt may take {}, and the whole run only {}",
            policy.attempt_timeout, policy.timeout
        );
        found.push(wrong("attemptTimeout", &message).help(format!(
            "timeout: {}",
            crate::model::migration::Span(
                policy.attempt_timeout.0 * policy.retry.max_attempts.max(1)
            )
        )));
    }
    found.extend(check_retry(
        &policy.retry,
        &pointer!["spec", "policy", "retry"],
    ));
    found
}

/// Checks how something is tried again.
pub(super) fn check_retry(retry: &Retry, at: &Pointer) -> Vec<Finding> {
    let wrong = |field: &str, message: String| {
        let mut at = at.clone();
        at.push(field.into());
        Finding::error(Code::MigrationStep, at, message)
    };
    let mut found = Vec::new();
    if !(1..=limits::RETRY_ATTEMPTS_MAX).contains(&retry.max_attempts) {
        found.push(
            wrong(
                "maxAttempts",
                format!(
                    "{} attempts; 1 to {} are possible",
                    retry.max_attempts,
                    limits::RETRY_ATTEMPTS_MAX
                ),
            )
            .help(
                "to look again and again, write a `wait`, whose `attemptTimeout` is its patience",
            ),
        );
    }
    if !(1.0..=100.0).contains(&retry.factor) {
        found.push(wrong("factor", "a factor from 1 to 100".to_owned()));
    }
    if !(0.0..=1.0).contains(&retry.jitter) {
        found.push(wrong("jitter", "a share from 0 to 1".to_owned()));
    }
    if is_zero(retry.interval) {
        found.push(wrong("interval", "no delay at all is a storm".to_owned()).help("interval: 1s"));
    }
    if retry.interval > retry.max_interval {
        found.push(wrong(
            "interval",
            format!("{} is above maxInterval", retry.interval),
        ));
    }
    found
}
