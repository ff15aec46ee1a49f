//! Preflight: every migration that a deploy comes by is judged before the deploy changes anything. One that must not begin as things are
//! gets its Run then, so that people see it and can say what they know; nothing of it is done before its hook comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};

use super::Inner;
use super::foresight::Ahead;
use super::naming::{new_run, spec_of};
use super::offers::Wanted;
use super::once::Found;
use super::state::Part;
use crate::model::api::RunSpec;
use crate::model::limits;
use crate::model::migration::{Decision, Hook, HookPhase, HookScope};
use crate::plan::hooks::DueHook;
use crate::runs::clock::Clock;
use crate::runs::driver::Judgement;
use crate::runs::effects::Effects;
use crate::runs::lookups::LookupCache;
use crate::runs::sight::{Open, Sight};
use crate::runs::store::RunStore;

/// A migration by its hook and its name.
type Whose = (Hook, String);

/// A hook with the migrations of it that are to be judged, each from where it is seen.
type OpenHook = (Hook, Arc<Wanted>, BTreeMap<String, Sight>);

/// One migration that is to be judged.
struct Question {
    hook: Hook,
    wanted: Arc<Wanted>,
    spec: RunSpec,
    /// The name that its Run would have.
    name: String,
    sight: Sight,
}

/// What came of a question.
struct Answer {
    question: Question,
    judgement: Judgement,
}

impl<E, S, C> Inner<E, S, C>
where
    E: Effects + 'static,
    S: RunStore + 'static,
    C: Clock + 'static,
{
    /// Has the hooks that come later judged, by one task that stays.
    pub(super) fn watch_ahead(self: &Arc<Self>) {
        {
            let mut state = self.state();
            if state.is_watching_ahead || state.ahead.is_empty() {
                return;
            }
            state.is_watching_ahead = true;
        }
        let inner = Arc::clone(self);
        self.spawn(async move { inner.judge_ahead().await });
    }

    async fn judge_ahead(self: Arc<Self>) {
        let (mut changed, mut nudged) = (self.changed.subscribe(), self.nudged.subscribe());
        let mut unknown = BTreeMap::new();
        loop {
            changed.mark_unchanged();
            nudged.mark_unchanged();
            let rest = tokio::select! {
                () = self.stop.cancelled() => return,
                rest = self.turn_ahead(&mut unknown) => rest,
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                _ = changed.changed() => {}
                _ = nudged.changed() => {}
                () = self.driver.clock().sleep(rest) => {}
            }
        }
    }

    /// Judges what was not judged yet; returns how long until something is asked again.
    async fn turn_ahead(self: &Arc<Self>, unknown: &mut BTreeMap<Whose, u32>) -> Duration {
        let questions = self.questions();
        if questions.is_empty() {
            unknown.retain(|(hook, _), _| self.state().ahead.contains_key(hook));
            return limits::HOOK_REST;
        }
        let lookups = LookupCache::new();
        let answers = self.ask(questions, &lookups).await;
        let answers = self.ask_again_after_work(answers, &lookups).await;
        let mut rest = limits::HOOK_REST;
        for answer in answers {
            rest = rest.min(self.note(answer, unknown).await);
        }
        self.note_change();
        (self.bell)();
        rest
    }

    /// Returns what is to be asked, having taken up the Runs that are there already.
    fn questions(self: &Arc<Self>) -> Vec<Question> {
        let open: Vec<OpenHook> = {
            let mut state = self.state();
            let unlisted = (!state.is_listed).then(|| state.unlisted.clone().unwrap_or_default());
            if let Some(reason) = unlisted {
                if !reason.is_empty() {
                    let what = format!("the records of runs cannot be read: {reason}");
                    let parts = state
                        .ahead
                        .values_mut()
                        .flat_map(|it| it.parts.values_mut());
                    parts.for_each(|part| *part = Ahead::Judging(what.clone()));
                }
                return Vec::new();
            }
            let entries = state.ahead.iter().filter(|(_, entry)| !entry.is_under_way);
            let entries = entries.map(|(hook, entry)| {
                let open = entry.parts.iter();
                let open = open.filter(|(_, part)| matches!(part, Ahead::Judging(_)));
                let open = open.map(|(name, _)| (name.clone(), entry.sight(name)));
                (hook.clone(), Arc::clone(&entry.wanted), open.collect())
            });
            entries.collect()
        };
        let mut questions = Vec::new();
        for (hook, wanted, open) in open {
            let is_older = self.state().older_run(&hook).is_some();
            for (migration, sight) in open {
                let mut migrations = wanted.due.migrations.iter();
                let Some(due) = migrations.find(|it| it.migration.name == migration) else {
                    continue;
                };
                let spec = spec_of(&self.whose, &wanted, due);
                match self.find(&wanted, &spec) {
                    Found::Existing(name) => self.attach_ahead(&hook, &migration, &name),
                    // What an earlier deploy still does is not what this one will find; its hook waits for that.
                    Found::New(_) if is_older => self.put(&hook, &migration, Ahead::Later),
                    // Its hook asks a person.
                    Found::Lost(_) => self.put(&hook, &migration, Ahead::Later),
                    Found::New(name) => questions.push(Question {
                        hook: hook.clone(),
                        wanted: Arc::clone(&wanted),
                        spec,
                        name,
                        sight,
                    }),
                }
            }
        }
        questions
    }

    fn put(&self, hook: &Hook, migration: &str, part: Ahead) {
        let now = self.driver.clock().monotonic();
        if let Some(entry) = self.state().ahead.get_mut(hook) {
            entry.judged = now;
            entry.parts.insert(migration.to_owned(), part);
        }
    }

    fn attach_ahead(self: &Arc<Self>, hook: &Hook, migration: &str, name: &str) {
        self.put(hook, migration, Ahead::Run(name.to_owned()));
        if let Some(entry) = self.state().runs.get_mut(name) {
            entry.is_wanted = true;
        }
        self.work_on(name);
        self.note_change();
        (self.bell)();
    }

    async fn ask(&self, questions: Vec<Question>, lookups: &LookupCache) -> Vec<Answer> {
        let mut asking = Vec::new();
        for question in questions {
            let asked = async move {
                let judgement = self
                    .driver
                    .judge(&question.spec, lookups, &question.sight)
                    .await;
                Answer {
                    question,
                    judgement,
                }
            };
            asking.push(asked.boxed());
        }
        futures::stream::iter(asking)
            .buffer_unordered(limits::HOOK_CONCURRENCY)
            .collect()
            .await
    }

    /// Asks once more what is blocked though work comes first that may well unblock it; the lookups are there already.
    async fn ask_again_after_work(
        &self,
        answers: Vec<Answer>,
        lookups: &LookupCache,
    ) -> Vec<Answer> {
        let work = self.work(&answers);
        let (again, mut answers): (Vec<Answer>, Vec<Answer>) =
            answers.into_iter().partition(|answer| {
                let question = &answer.question;
                let migration = &question.spec.migration;
                let comes_after_work = {
                    let mut state = self.state();
                    state.ahead.get_mut(&question.hook).is_some_and(|entry| {
                        let due = &question.wanted.due;
                        let is_late = entry.is_late(migration);
                        let after = work
                            .iter()
                            .any(|it| is_before(it, (due, migration), is_late));
                        if after {
                            entry.after_work.insert(migration.clone());
                        }
                        after
                    })
                };
                comes_after_work && answer.judgement.decision == Decision::Block
            });
        let questions = again.into_iter().map(|answer| {
            let mut question = answer.question;
            question.sight.open = Open::All;
            question
        });
        answers.extend(self.ask(questions.collect(), lookups).await);
        answers
    }

    /// Returns the migrations that have work to do.
    fn work(&self, answers: &[Answer]) -> BTreeSet<Whose> {
        let state = self.state();
        let mut work: BTreeSet<Whose> = answers
            .iter()
            .filter(|it| matches!(it.judgement.decision, Decision::Run | Decision::Block))
            .map(|it| (it.question.hook.clone(), it.question.spec.migration.clone()))
            .collect();
        for (hook, entry) in &state.ahead {
            let parts = entry.parts.iter();
            let known = parts.filter(|(_, part)| matches!(part, Ahead::Work | Ahead::Run(_)));
            work.extend(known.map(|(name, _)| (hook.clone(), name.clone())));
        }
        for (hook, entry) in &state.hooks {
            let parts = entry.parts.iter();
            let known = parts.filter(|(_, part)| **part != Part::Done);
            work.extend(known.map(|(name, _)| (hook.clone(), name.clone())));
        }
        work
    }

    /// Notes what came of a question; returns when it is asked again.
    async fn note(
        self: &Arc<Self>,
        answer: Answer,
        unknown: &mut BTreeMap<Whose, u32>,
    ) -> Duration {
        let Answer {
            question,
            judgement,
        } = answer;
        let (hook, migration) = (&question.hook, &question.spec.migration);
        self.listener.judged(hook, &question.spec, &judgement);
        let mut is_final = false;
        if let Some(entry) = self.state().ahead.get_mut(hook) {
            *entry.times.entry(migration.clone()).or_default() += judgement.took;
            is_final = entry.sight(migration).open.is_none();
        }
        let part = match judgement.decision {
            Decision::NotNeeded | Decision::Skip if is_final => Ahead::Nothing,
            Decision::NotNeeded | Decision::Skip => Ahead::Later,
            Decision::Run => Ahead::Work,
            Decision::Unknown => {
                let count = unknown
                    .entry((hook.clone(), migration.clone()))
                    .or_default();
                *count += 1;
                if judgement.may_pass && *count < limits::GUARD_TRIES {
                    self.put(hook, migration, Ahead::Judging(judgement.message));
                    return limits::GUARD_RETRY * *count;
                }
                Ahead::Later
            }
            Decision::Block => match self.record(&question).await {
                Ok(()) => return limits::HOOK_REST,
                Err(message) => {
                    self.put(hook, migration, Ahead::Judging(message));
                    return limits::GUARD_RETRY;
                }
            },
        };
        self.put(hook, migration, part);
        limits::HOOK_REST
    }

    /// Makes the record of a migration that must not begin; its task writes down why.
    async fn record(self: &Arc<Self>, question: &Question) -> Result<(), String> {
        if question.spec.definition.policy.run.is_once()
            && let Some(reason) = self.state().no_room(&question.name)
        {
            return Err(reason);
        }
        let run = new_run(&self.whose, &question.name, question.spec.clone());
        let stored = self.driver.store().create(&run).await;
        let stored = stored.map_err(|error| format!("its record cannot be made: {error}"))?;
        self.listener.changed(None, &stored);
        self.state().see(stored);
        self.attach_ahead(&question.hook, &question.spec.migration, &question.name);
        Ok(())
    }
}

/// Returns whether work comes before a migration: in its own hook by `after`; elsewhere, where its own failure would hold that work,
/// unless that certainly comes later.
fn is_before(work: &Whose, (due, migration): (&DueHook, &str), is_late: bool) -> bool {
    let (hook, name) = work;
    if *hook == due.hook {
        return comes_after(due, migration, name);
    }
    let is_later = match (&due.hook.scope, due.hook.phase) {
        (HookScope::Global, HookPhase::Pre) => true,
        (HookScope::Global, HookPhase::Post) => false,
        (scope, phase) => {
            let is_last = hook.scope == HookScope::Global && hook.phase == HookPhase::Post;
            is_last
                || (hook.scope == *scope
                    && phase == HookPhase::Pre
                    && hook.phase == HookPhase::Post)
        }
    };
    is_late && !is_later
}

/// Returns whether a migration comes after another one of its hook.
fn comes_after(due: &DueHook, migration: &str, other: &str) -> bool {
    let mut open = vec![migration];
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        let mut migrations = due.migrations.iter();
        let Some(found) = migrations.find(|it| it.migration.name == name) else {
            continue;
        };
        let after = found.migration.spec.after.iter().map(String::as_str);
        open.extend(after);
    }
    migration != other && seen.contains(other)
}
