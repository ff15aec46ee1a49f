//! The statuses of ReleaseSource and Target after a pass, as pure functions of the status before it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::history::remember;
use super::pass::PassReport;
use super::runtimes::RuntimesReport;
use super::text::{bounded, bounded_lines, counted, short, some_of};
use super::verdict::{Next, Verdict, failed, hold_words, holds, invalid, is_under_way};
use crate::model::api::ConditionReason as Reason;
use crate::model::api::ConditionStatus::{False, True, Unknown};
use crate::model::api::ConditionType as Type;
use crate::model::api::{
    Claim, Condition, ConditionStatus, CreatedJob, HeldItem, PendingPrune, ReleaseSourceStatus,
    TargetStatus, set, unset,
};
use crate::model::limits::{
    CONDITION_MESSAGE_MAX, HOLD_MESSAGE_MAX, HOLDS_LISTED_MAX, MESSAGE_PART_MAX,
    PENDING_REASONS_MAX, PENDING_SAMPLE_MAX,
};
use crate::model::{Hold, HoldReason, Severity};
use crate::plan::{Action, Jobs, Kept, Plan};

/// Returns the status of a source that is suspended: the spec was seen, and nothing is under way. Everything else stays, since
/// it still says how things stood.
pub fn source_suspended(before: &ReleaseSourceStatus, generation: i64) -> ReleaseSourceStatus {
    let mut status = before.clone();
    status.observed_generation = Some(generation);
    unset(&mut status.conditions, Type::Reconciling);
    status
}

/// Returns the status of a source after a pass.
pub fn source_status(before: &ReleaseSourceStatus, report: &PassReport<'_>) -> ReleaseSourceStatus {
    let verdict = Verdict::of(report);
    let mut status = before.clone();
    status.observed_generation = Some(report.generation);
    // A pass that ended early is tried again; who asked for it goes on waiting.
    if let Some(requested_at) = report.requested_at
        && report.is_finished()
    {
        status.last_handled_reconcile_at = Some(bounded(requested_at, 256));
    }
    if let Some(revision) = report.revision {
        status.last_attempted_revision = Some(revision.to_string());
        if report.is_applied_in_full() {
            status.last_applied_revision = Some(revision.to_string());
            status.revision = Some(short(revision));
        }
        if report.fetched.is_ok() && report.failed.is_none() {
            remember(&mut status.history, revision, verdict.reason, report);
        }
    }
    hold(&mut status, report);
    status.runtimes = report.runtimes.map(RuntimesReport::status);
    let mut writer = Writer::new(
        &mut status.conditions,
        Some(report.generation),
        report.ended,
    );
    writer.fetched(report);
    writer.results(report);
    writer.runtimes(report);
    writer.verdict(&verdict);
    status
}

/// Returns the status of a target after a pass. The cluster's uid, the kinds and the approval stay as they were: who applies
/// and who approves writes them, before anything is done.
pub fn target_status(before: &TargetStatus, report: &PassReport<'_>) -> TargetStatus {
    // How runtimes stand is said by their own Targets and by the source; this one is about one cluster.
    let verdict = Verdict::of(&PassReport {
        runtimes: None,
        ..*report
    });
    let mut status = before.clone();
    status.source = Some(report.source.to_string());
    if let Some(revision) = report.revision
        && report.is_applied_in_full()
        && status.revision.as_deref() != Some(revision.to_string().as_str())
    {
        status.revision = Some(revision.to_string());
        status.short_revision = Some(short(revision));
        status.since = Some(Time(report.ended));
    }
    if let Some(objects) = report.objects_in_step() {
        status.objects = i64::try_from(objects).ok();
    }
    if let Some(plan) = report.plan {
        status.jobs = created_jobs(&plan.jobs);
        status.claims = report.claims.to_vec();
        status.pending_prune = pending_prune(before.pending_prune.as_ref(), report);
    }
    let mut writer = Writer::new(&mut status.conditions, None, report.ended);
    writer.results(report);
    writer.verdict(&verdict);
    status
}

/// Returns Jobs in their stored form.
pub fn created_jobs(jobs: &Jobs) -> Vec<CreatedJob> {
    let stored = jobs.iter().map(|(key, record)| CreatedJob {
        namespace: key.namespace.clone().unwrap_or_default(),
        name: key.name.clone(),
        digest: record.digest.to_string(),
        uid: record.uid.clone(),
    });
    stored.collect()
}

fn pending_prune(before: Option<&PendingPrune>, report: &PassReport<'_>) -> Option<PendingPrune> {
    let pending = report.plan?.pending.as_ref()?;
    let since = before
        .filter(|before| before.digest == pending.digest)
        .map_or(Time(report.ended), |before| before.since.clone());
    let reasons = pending.reasons.iter().take(PENDING_REASONS_MAX);
    let sample = pending.deletions.iter().take(PENDING_SAMPLE_MAX);
    Some(PendingPrune {
        digest: pending.digest.clone(),
        count: i64::try_from(pending.deletions.len()).unwrap_or(i64::MAX),
        since,
        reasons: reasons
            .map(|reason| bounded(reason, MESSAGE_PART_MAX))
            .collect(),
        sample: sample
            .map(|deletion| bounded(&deletion.key.to_string(), MESSAGE_PART_MAX))
            .collect(),
    })
}

/// Lists what is held: by the plan, where there is one, and by a rewound branch, whose hold must not wait for a plan.
fn hold(status: &mut ReleaseSourceStatus, report: &PassReport<'_>) {
    let mut held = if report.plan.is_some() {
        held_items(report)
    } else {
        let mut known = status.holds.clone();
        known.retain(|item| item.reason != HoldReason::Rewound.as_str());
        known
    };
    if let Err(failure) = report.fetched
        && let Some(commit) = &failure.rewound_to
    {
        let item = HeldItem {
            what: format!("revision sha1:{}", bounded(commit, MESSAGE_PART_MAX)),
            reason: HoldReason::Rewound.as_str().to_owned(),
            message: bounded(&failure.to_string(), MESSAGE_PART_MAX),
            place: None,
        };
        held.insert(0, item);
    }
    if report.plan.is_some() || held.len() != status.holds.len() {
        status.hold_count = i64::try_from(held.len()).ok();
    }
    held.truncate(HOLDS_LISTED_MAX);
    status.holds = held;
}

fn held_items(report: &PassReport<'_>) -> Vec<HeldItem> {
    let plan = report.plan.into_iter();
    let mut items: Vec<HeldItem> = plan.flat_map(|plan| &plan.holds).map(held_item).collect();
    items.extend(report.claims.iter().map(claimed_item));
    let pending = report.plan.and_then(|plan| plan.pending.as_ref());
    if let Some(pending) = pending
        && !items
            .iter()
            .any(|item| item.reason == HoldReason::ApprovalNeeded.as_str())
    {
        items.insert(
            0,
            HeldItem {
                what: counted(pending.deletions.len(), "deletion"),
                reason: HoldReason::ApprovalNeeded.as_str().to_owned(),
                message: some_of(pending.reasons.len(), pending.reasons.iter().cloned()),
                place: None,
            },
        );
    }
    items
}

/// Words the other side of a conflict, for the source that owns the object.
fn claimed_item(claim: &Claim) -> HeldItem {
    HeldItem {
        what: bounded(&claim.object, MESSAGE_PART_MAX),
        reason: HoldReason::Conflict.as_str().to_owned(),
        message: bounded(
            &format!(
                "source `{}` wants it as well; it stays as this source has it. Remove it from one of the two repositories",
                claim.by
            ),
            MESSAGE_PART_MAX,
        ),
        place: None,
    }
}

fn held_item(hold: &Hold) -> HeldItem {
    HeldItem {
        what: bounded(&hold.what, MESSAGE_PART_MAX),
        reason: hold.reason.as_str().to_owned(),
        message: bounded_lines(&hold.message, HOLD_MESSAGE_MAX),
        place: hold
            .place
            .as_ref()
            .map(|place| bounded(&place.to_string(), MESSAGE_PART_MAX)),
    }
}

/// Sets the conditions of one resource.
struct Writer<'a> {
    conditions: &'a mut Vec<Condition>,
    generation: Option<i64>,
    now: Timestamp,
}

impl<'a> Writer<'a> {
    fn new(conditions: &'a mut Vec<Condition>, generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            conditions,
            generation,
            now,
        }
    }

    fn set(&mut self, type_: Type, status: ConditionStatus, reason: Reason, message: &str) {
        let message = bounded(message, CONDITION_MESSAGE_MAX);
        set(
            self.conditions,
            type_,
            (status, reason, message),
            self.generation,
            self.now,
        );
    }

    fn unset(&mut self, type_: Type) {
        unset(self.conditions, type_);
    }

    fn verdict(&mut self, verdict: &Verdict) {
        self.set(
            Type::Ready,
            verdict.status,
            verdict.reason,
            &verdict.message,
        );
        match verdict.next {
            Next::Rest => {
                self.unset(Type::Reconciling);
                self.unset(Type::Stalled);
            }
            Next::Proceed | Next::Retry => {
                let reason = if verdict.next == Next::Retry {
                    Reason::Retrying
                } else {
                    Reason::Progressing
                };
                self.set(Type::Reconciling, True, reason, &verdict.message);
                self.unset(Type::Stalled);
            }
            Next::WaitForPerson => {
                self.unset(Type::Reconciling);
                self.set(Type::Stalled, True, verdict.reason, &verdict.message);
            }
        }
    }

    fn fetched(&mut self, report: &PassReport<'_>) {
        match (report.fetched, report.revision) {
            (Ok(()), Some(revision)) => {
                let message = format!("read {}", short(revision));
                self.set(Type::Fetched, True, Reason::Fetched, &message);
            }
            (Ok(()), None) => {}
            (Err(failure), _) => {
                let message = format!("failed to fetch: {failure}");
                self.set(Type::Fetched, False, failure.reason(), &message);
            }
        }
    }

    fn runtimes(&mut self, report: &PassReport<'_>) {
        match report.runtimes {
            Some(runtimes) => {
                let (status, reason, message) = runtimes.catalog_synced();
                self.set(Type::CatalogSynced, status, reason, &message);
            }
            None => self.unset(Type::CatalogSynced),
        }
    }

    /// Sets `Valid`, `Applied` and `Pruned`, each where the pass came far enough to know it.
    fn results(&mut self, report: &PassReport<'_>) {
        if report.is_withdrawal() {
            // Nothing was read and nothing is applied any more; what was said about that stays.
            if report.plan.is_some() {
                self.pruned(report);
            }
            return;
        }
        self.valid(report);
        self.migrated(report);
        if report.plan.is_some() && report.failed.is_none() {
            self.applied(report);
            self.pruned(report);
        }
    }

    fn valid(&mut self, report: &PassReport<'_>) {
        let Some(desired) = report.desired else {
            return;
        };
        if let Some(errors) = invalid(report) {
            self.set(Type::Valid, False, Reason::Invalid, &errors);
            return;
        }
        let mut warnings = desired
            .diagnostics
            .iter()
            .filter(|found| found.severity == Severity::Warning);
        let message = match warnings.next() {
            None => "no errors".to_owned(),
            Some(first) => {
                let count = 1 + warnings.count();
                format!(
                    "no errors, {}; the first: {first}",
                    counted(count, "warning")
                )
            }
        };
        self.set(Type::Valid, True, Reason::Valid, &message);
    }

    /// Sets `Migrated`, where the revision has migrations.
    fn migrated(&mut self, report: &PassReport<'_>) {
        let (Some(desired), Some(plan)) = (report.desired, report.plan) else {
            return;
        };
        // What migrations have changed may be taken back after the last of them has left git.
        let is_held = plan.holds.iter().any(|it| it.reason.is_migration());
        if desired.migrations.is_empty() && desired.held_migrations.is_empty() && !is_held {
            self.unset(Type::Migrated);
            return;
        }
        let of = |wanted: &[HoldReason]| {
            let held = plan
                .holds
                .iter()
                .filter(|hold| wanted.contains(&hold.reason));
            let words: Vec<String> = held.map(hold_words).collect();
            (!words.is_empty()).then(|| some_of(words.len(), words.into_iter()))
        };
        let failed = of(&[
            HoldReason::MigrationFailed,
            HoldReason::MigrationManual,
            HoldReason::MigrationHeld,
        ]);
        let blocked = of(&[HoldReason::MigrationBlocked]);
        let pending = of(&[
            HoldReason::MigrationPending,
            HoldReason::MigrationSuppressed,
        ]);
        if let Some(message) = failed {
            self.set(Type::Migrated, False, Reason::MigrationFailed, &message);
        } else if let Some(message) = blocked {
            self.set(Type::Migrated, False, Reason::MigrationBlocked, &message);
        } else if let Some(message) = pending {
            self.set(Type::Migrated, Unknown, Reason::Progressing, &message);
        } else if plan.migrations.is_empty() {
            let message = "every migration has ended well, or had nothing to do";
            self.set(Type::Migrated, True, Reason::Migrated, message);
        } else {
            let message = format!(
                "{} to be judged",
                counted(plan.migrations.len(), "migration")
            );
            self.set(Type::Migrated, Unknown, Reason::Progressing, &message);
        }
    }

    fn applied(&mut self, report: &PassReport<'_>) {
        let failures: Vec<String> = failed(report)
            .filter(|hold| !is_deletion(hold))
            .map(hold_words)
            .collect();
        let held: Vec<String> = holds(report, true)
            .filter(|hold| !is_about_pruning(hold))
            .map(hold_words)
            .collect();
        if !failures.is_empty() {
            let message = some_of(failures.len(), failures.into_iter());
            self.set(Type::Applied, False, Reason::ApplyFailed, &message);
        } else if !held.is_empty() {
            let message = some_of(held.len(), held.into_iter());
            if is_under_way(report, true) {
                self.set(Type::Applied, Unknown, Reason::Progressing, &message);
            } else {
                self.set(Type::Applied, False, Reason::Held, &message);
            }
        } else if let Some(errors) = invalid(report) {
            self.set(Type::Applied, False, Reason::Held, &errors);
        } else if let Some(left) = left(report, |action| !action.is_deletion()) {
            self.set(Type::Applied, Unknown, Reason::Progressing, &left);
        } else {
            let objects = report.objects_in_step().unwrap_or_default();
            let message = format!("{} in step", counted(objects, "object"));
            self.set(Type::Applied, True, Reason::Applied, &message);
        }
    }

    fn pruned(&mut self, report: &PassReport<'_>) {
        let failures: Vec<String> = failed(report)
            .filter(|hold| is_deletion(hold))
            .map(hold_words)
            .collect();
        let holds = || report.plan.into_iter().flat_map(|plan| &plan.holds);
        let unsafe_because = holds().find(|hold| hold.reason == HoldReason::PruneUnsafe);
        let in_use = holds().find(|hold| hold.reason == HoldReason::InUse);
        let undo = holds().find(|hold| is_undo(hold));
        let pending = report.plan.and_then(|plan| plan.pending.as_ref());
        if let Some(hold) = unsafe_because {
            self.set(Type::Pruned, False, Reason::PruneUnsafe, &hold_words(hold));
        } else if let Some(pending) = pending {
            let count = counted(pending.deletions.len(), "deletion");
            let reasons = some_of(pending.reasons.len(), pending.reasons.iter().cloned());
            let message = format!("{count} held as {}: {reasons}", pending.digest);
            self.set(Type::Pruned, False, Reason::ApprovalNeeded, &message);
        } else if !failures.is_empty() {
            let message = some_of(failures.len(), failures.into_iter());
            self.set(Type::Pruned, False, Reason::PruneFailed, &message);
        } else if let Some(hold) = in_use {
            self.set(Type::Pruned, False, Reason::Held, &hold_words(hold));
        } else if let Some(hold) = undo {
            let (status, reason) = match hold.reason {
                HoldReason::MigrationPending => (Unknown, Reason::Progressing),
                _ => (False, Reason::Held),
            };
            self.set(Type::Pruned, status, reason, &hold_words(hold));
        } else if let Some(left) = left(report, Action::is_deletion) {
            self.set(Type::Pruned, Unknown, Reason::Progressing, &left);
        } else {
            let kept: &[Kept] = report.plan.map_or(&[], |plan| &plan.kept);
            let each = kept
                .iter()
                .map(|kept| format!("{}: {}", kept.key, kept.reason));
            let message = if kept.is_empty() {
                "nothing that git has dropped is left".to_owned()
            } else {
                format!("{} kept: {}", kept.len(), some_of(kept.len(), each))
            };
            self.set(Type::Pruned, True, Reason::Pruned, &message);
        }
    }
}

/// Says how many actions of a sort were planned and not begun.
fn left(report: &PassReport<'_>, of_this_sort: impl Fn(&Action) -> bool) -> Option<String> {
    let actions = report.plan.into_iter().flat_map(Plan::actions);
    let count = actions.filter(|action| of_this_sort(action)).count();
    (count > 0).then(|| format!("{} to go", counted(count, "action")))
}

/// Returns whether a hold is about a deletion; planning words it so.
fn is_deletion(hold: &Hold) -> bool {
    hold.what.starts_with("deletion of ")
}

fn is_about_pruning(hold: &Hold) -> bool {
    is_undo(hold)
        || matches!(
            hold.reason,
            HoldReason::PruneUnsafe | HoldReason::ApprovalNeeded | HoldReason::InUse
        )
}

/// Returns whether deletions wait until what migrations have changed is taken back.
fn is_undo(hold: &Hold) -> bool {
    hold.reason.is_migration() && is_deletion(hold)
}
