//! One pass over one target: evaluate, plan, execute, and again while that makes progress.
//!
//! This is the only path to a cluster: the agent's target tasks and `fairway sync` call it. A pass never waits for health,
//! jobs or people; what is not possible now is a hold, and the change that lifts it rings the bell.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::failures::Failures;
use super::record::Record;
use super::secret_key::secret_key;
use super::template_use::template_users;
use crate::cluster::{Acting, Cluster, ClusterError};
use crate::desired::{Cache, Desired, EvaluateOptions, evaluate};
use crate::execute::{Effect, EffectResult, Executor, Outcome};
use crate::model::{
    ComponentName, FileEntry, GroupKind, Hold, HoldReason, Revision, SecretKey, Snapshot,
    SourceName, limits,
};
use crate::observe::{KindObservation, Observer};
use crate::plan::hooks::{Committed, HookStates, MigrationInput};
use crate::plan::{Approval, Jobs, Plan, PlanInput, PruneSettings, TemplateUse, check, plan};
use crate::runs::conductor::{Conduct, Offer};

/// What keeps its state between the passes over one target.
pub struct Engine {
    /// Where our own records are.
    cluster: Cluster,
    /// Does what the repository says.
    acting: Acting,
    observer: Observer,
    cache: Cache,
    failures: Failures,
    /// Where the key of the digests of Secrets is kept.
    namespace: String,
    key: Option<SecretKey>,
    /// Who used which template when it was asked last.
    templates: Option<(Instant, TemplateUsers)>,
    last: Option<Evaluated>,
    conductor: Option<Arc<dyn Conduct>>,
}

/// Users of templates by the template's name, or why they are not known.
type TemplateUsers = Result<BTreeMap<String, String>, String>;

struct Evaluated {
    revision: Revision,
    files: Arc<BTreeMap<String, FileEntry>>,
    options: EvaluateOptions,
    desired: Arc<Desired>,
}

/// What one pass is asked to do.
#[derive(Clone, Copy)]
pub struct PassRequest<'a> {
    /// The source.
    pub source: &'a SourceName,
    /// How deletions are limited.
    pub prune: &'a PruneSettings,
    /// Field managers whose fields become ours.
    pub takeover: &'a [String],
    /// What a person has approved.
    pub approval: Option<&'a Approval>,
    /// Whether the target's record is whole; see [`PlanInput::record`].
    pub record: Result<(), &'a str>,
    /// The Jobs that were created before, from the record.
    pub jobs: &'a Jobs,
    /// What was committed of components with migrations, from the record.
    pub committed: &'a Committed,
    /// The author of the commit, for the records of migrations.
    pub author: &'a str,
    /// Only this component, for `fairway sync --component`; nothing else is touched.
    pub only: Option<&'a ComponentName>,
    /// Ends the pass early: nothing new is started.
    pub stop: &'a CancellationToken,
}

/// What came of one pass.
#[derive(Debug)]
pub struct Pass {
    /// What git wants.
    pub desired: Arc<Desired>,
    /// The last plan: what is still held, pending or unhealthy after everything that could be done was done.
    pub plan: Plan,
    /// Everything that was done.
    pub outcome: Outcome,
    /// When the pass should be repeated even if no bell rings.
    pub next: Option<Instant>,
}

/// Whether objects of a source are on a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Every kind that is looked at was listed, and none has an object of the source.
    Absent,
    /// There is at least one.
    Present,
    /// None was seen, but some kind could not be listed.
    Unknown,
}

/// Hears of a pass while it goes on.
pub trait PassListener {
    /// Returns the record of the target. Written down in it before they happen: kinds that are about to be applied, Jobs that are about to
    /// be created, and what is committed. It is confirmed before anything is deleted. The pass ends where that fails.
    fn record(&mut self) -> &mut Record;

    /// Is told of a plan that is about to be executed.
    fn planned(&mut self, plan: &Plan);

    /// Is told of each effect as it ends.
    fn effect(&mut self, effect: &Effect);
}

// === impl Engine ===

impl Engine {
    /// Makes the engine of one target. The namespace is that of Fairway's own resources. What the repository says is done through
    /// `acting`, and `observer` sees what whom it is for may see.
    pub fn new(cluster: Cluster, acting: Acting, observer: Observer, namespace: &str) -> Self {
        Self {
            cluster,
            acting,
            observer,
            cache: Cache::default(),
            failures: Failures::default(),
            namespace: namespace.to_owned(),
            key: None,
            templates: None,
            last: None,
            conductor: None,
        }
    }

    /// Has the migrations of the target run by this conductor. Without one, a plan shows what would be done if each migration ended
    /// well, and a pass changes nothing that has to wait for one.
    #[must_use]
    pub fn with_conductor(mut self, conductor: Arc<dyn Conduct>) -> Self {
        self.conductor = Some(conductor);
        self
    }

    /// Reads a snapshot; a pass with the same one finds it done. Parsing runs on a thread of its own.
    pub async fn evaluate(
        &mut self,
        snapshot: &Snapshot,
        options: &EvaluateOptions,
    ) -> Arc<Desired> {
        if let Some(last) = &self.last
            && last.revision == snapshot.revision
            && last.files == snapshot.files
            && last.options == *options
        {
            return Arc::clone(&last.desired);
        }
        let mut cache = std::mem::take(&mut self.cache);
        let (files, asked) = (snapshot.clone(), options.clone());
        let (mut desired, cache) = tokio::task::spawn_blocking(move || {
            let desired = evaluate(&files, &asked, &mut cache);
            (desired, cache)
        })
        .await
        .expect("evaluation has no panics and is never aborted");
        self.cache = cache;
        if desired.has_secrets() {
            let key = self.secret_key().await;
            desired.seal_secrets(|digest| key.seal(digest));
        }
        let desired = Arc::new(desired);
        self.last = Some(Evaluated {
            revision: snapshot.revision.clone(),
            files: Arc::clone(&snapshot.files),
            options: options.clone(),
            desired: Arc::clone(&desired),
        });
        desired
    }

    /// Returns who uses templates, as far as that was asked lately.
    fn template_use(&self) -> TemplateUse<'_> {
        match &self.templates {
            Some((at, users)) if at.elapsed() < limits::TEMPLATE_USE_AGE_MAX => match users {
                Ok(users) => TemplateUse::Known(users),
                Err(reason) => TemplateUse::Unknown(reason),
            },
            _ => TemplateUse::NotAsked,
        }
    }

    fn has_asked_since(&self, moment: Instant) -> bool {
        let asked = self.templates.as_ref().map(|(at, _)| *at);
        asked.is_some_and(|at| at >= moment && at.elapsed() < limits::TEMPLATE_USE_AGE_MAX)
    }

    /// Forgets who used templates, so that the next pass asks again.
    pub fn forget_template_use(&mut self) {
        self.templates = None;
    }

    async fn secret_key(&mut self) -> SecretKey {
        if let Some(key) = &self.key {
            return key.clone();
        }
        let key = secret_key(&self.cluster, &self.namespace).await;
        self.key.insert(key).clone()
    }

    /// Makes sure that the given kinds and those of `desired` are watched, and waits a little for their first lists.
    pub async fn observe(&self, desired: &Desired, recorded: &BTreeSet<GroupKind>) {
        let mut kinds = recorded.clone();
        kinds.extend(desired.objects().map(|object| object.key.kind.clone()));
        self.observer.ensure(kinds.clone());
        self.observer
            .listed(&kinds, limits::FIRST_LIST_PATIENCE)
            .await;
    }

    /// Returns whether any object of this source is on the cluster.
    pub fn presence_of(&self, source: &SourceName) -> Presence {
        let view = self.observer.view();
        let mut presence = Presence::Absent;
        for kind in view.kinds.values() {
            match kind {
                KindObservation::Listed(objects) => {
                    let mut sources = objects.values().map(|object| object.source.as_ref());
                    if sources.any(|one| one == Some(source)) {
                        return Presence::Present;
                    }
                }
                KindObservation::Unlisted(_) => presence = Presence::Unknown,
            }
        }
        presence
    }

    /// Takes out of an approval what git wants again, and what is gone.
    pub fn narrow(&self, approval: &mut Approval, source: &SourceName, desired: &Desired) {
        approval.narrow(source, desired, &self.observer.view());
    }

    /// Plans without doing anything.
    pub fn plan(&self, desired: &Desired, request: &PassRequest<'_>) -> Plan {
        let states = self.conductor.as_ref().map(|it| it.states());
        self.plan_with(desired, request, states.as_ref())
    }

    fn plan_with(
        &self,
        desired: &Desired,
        request: &PassRequest<'_>,
        states: Option<&HookStates>,
    ) -> Plan {
        let observed = self.observer.view();
        let failures = self.failures.past(Instant::now());
        let input = PlanInput {
            source: request.source,
            desired,
            observed: &observed,
            prune: request.prune,
            approval: request.approval,
            record: request.record,
            failures: &failures,
            jobs: request.jobs,
            templates: self.template_use(),
            only: request.only,
            takeover: request.takeover,
            migrations: MigrationInput {
                committed: request.committed,
                states,
            },
        };
        let mut plan = plan(input);
        refuse_violations(&mut plan, &input);
        plan
    }

    /// Does one pass. [`Engine::evaluate`] and [`Engine::observe`] come first.
    ///
    /// # Errors
    ///
    /// When new kinds could not be written down, or the record has changed; nothing of the plan was then done.
    pub async fn pass(
        &mut self,
        desired: Arc<Desired>,
        request: &PassRequest<'_>,
        listener: &mut impl PassListener,
    ) -> Result<Pass, ClusterError> {
        let mut total = Outcome::default();
        let mut rounds = 0;
        let begun = Instant::now();
        let mut jobs = request.jobs.clone();
        let mut committed = request.committed.clone();
        let plan = loop {
            let round = PassRequest {
                jobs: &jobs,
                committed: &committed,
                ..*request
            };
            let plan = self.plan_round(&desired, &round);
            // What is to be deleted now must not be judged by what was so a while ago.
            if plan.deletes_templates() && !self.has_asked_since(begun) {
                let users = template_users(&self.acting).await;
                self.templates = Some((Instant::now(), users));
                continue;
            }
            let is_new = plan.committed != committed;
            if is_new {
                listener.record().commit(&plan.committed).await?;
                committed = plan.committed.clone();
            }
            self.offer(&desired, &plan, request.author);
            // What was committed may be what something else waited for.
            let done = plan.is_empty() && !is_new;
            rounds += 1;
            if done || rounds > limits::PASS_ROUNDS_MAX || request.stop.is_cancelled() {
                break plan;
            }
            if plan.is_empty() {
                continue;
            }
            let kinds = plan
                .phases
                .iter()
                .flatten()
                .map(|action| action.key.kind.clone())
                .collect();
            listener.record().begin(&kinds, &plan.jobs).await?;
            if plan.deletes() {
                listener.record().confirm().await?;
            }
            listener.planned(&plan);
            let executor = Executor {
                acting: &self.acting,
                observer: &self.observer,
                takeover: request.takeover,
                stop: request.stop,
            };
            let outcome = executor.run(&plan, |effect| listener.effect(effect)).await;
            self.failures.note(&outcome, Instant::now());
            jobs = plan.jobs;
            self.note_jobs(&mut jobs, &outcome);
            total.effects.extend(outcome.effects);
            if outcome.gave_up {
                total.gave_up = true;
                let round = PassRequest {
                    jobs: &jobs,
                    committed: &committed,
                    ..*request
                };
                break self.plan_round(&desired, &round);
            }
        };
        // Our own answers ring no bell: what had to be left for the next pass has nobody else to start it.
        let next = if plan.is_empty() || total.gave_up {
            self.failures.next_due(Instant::now())
        } else {
            Some(Instant::now())
        };
        Ok(Pass {
            desired,
            plan,
            outcome: total,
            next,
        })
    }
}

impl Engine {
    /// Plans what is about to be carried out: where nobody runs migrations, none has ended well.
    fn plan_round(&self, desired: &Desired, round: &PassRequest<'_>) -> Plan {
        let states = self.conductor.as_ref().map(|it| it.states());
        self.plan_with(desired, round, Some(&states.unwrap_or_default()))
    }

    /// Hands the hooks that are wanted to the conductor, which rings the bell when one has come further.
    fn offer(&self, desired: &Desired, plan: &Plan, author: &str) {
        if let Some(conductor) = &self.conductor {
            conductor.offer(Offer {
                revision: &desired.revision,
                author,
                release: desired.settings.release.as_deref(),
                http_hosts: &desired.settings.http_hosts,
                hooks: &plan.hooks,
                undo: &plan.undo,
                once: &plan.committed.once,
                ahead: &plan.ahead,
            });
        }
    }

    /// Notes which Jobs were created: one that has ended may be gone before anybody looks again.
    fn note_jobs(&self, jobs: &mut Jobs, outcome: &Outcome) {
        for effect in &outcome.effects {
            if let Some(job) = jobs.get_mut(&effect.key)
                && job.uid.is_none()
                && matches!(
                    effect.result,
                    EffectResult::Applied | EffectResult::Unchanged
                )
            {
                let known = self.observer.known(&effect.key);
                job.uid = Some(known.map_or_else(|| "gone".to_owned(), |live| live.uid.clone()));
            }
        }
    }
}

/// Takes every action out of a plan that breaks the rules of planning: doing nothing is the safe side of an error of ours.
fn refuse_violations(plan: &mut Plan, input: &PlanInput<'_>) {
    let violations = check(plan, input);
    let Some(first) = violations.first() else {
        return;
    };
    tracing::error!(source.name = %plan.source, plan.violations = violations.len(), %first, "refused a plan");
    plan.phases.clear();
    plan.holds.push(Hold {
        what: "every change".to_owned(),
        reason: HoldReason::Invalid,
        message: format!(
            "the plan breaks a rule of its own: {first}. This is an error in Fairway, please report it; nothing is done"
        ),
        place: None,
    });
}
