//! Trying the cases of a definition without a cluster: what its guard decides, which steps have an effect, what is there
//! afterwards, that the guard then finds nothing to do, and that a process which is killed at any write comes to the same end.
//!
//! It is the same driver as in the agent, over a world in memory and a clock that never waits.

mod clock;
mod compare;
#[cfg(test)]
mod tests;
mod world;

use std::fmt::Write as _;

use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::memory::{Fault, Memory, Write};
use super::{Driver, Effects, Judgement, LookupCache, Sight};
use crate::desired::yaml::PointerPart;
use crate::model::Place;
use crate::model::api::{Run, RunPhase, RunSpec, RunStatus};
use crate::model::migration::{Decision, Fixture, Migration, RunPolicy};
use clock::TrialClock;
use compare::compare;
pub use compare::short as shown;

/// Name of the record of a trial.
const RUN: &str = "test";
/// The claim that every life of the process writes under.
const CLAIM: &str = "test";

/// What came of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// The migration.
    pub migration: String,
    /// The case.
    pub case: String,
    /// Where the case stands.
    pub place: String,
    /// What the guard decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The ids of the steps that had an effect.
    pub steps: Vec<String>,
    /// Kills of the process that were tried, each at another write.
    pub kills: usize,
    /// How many of them ended with a question to a person, as steps have it that nobody may repeat.
    pub questions: usize,
    /// What is not as it must be; none where all is well.
    pub differences: Vec<Difference>,
}

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What.
    pub what: String,
    /// What must be.
    pub expected: String,
    /// What is.
    pub found: String,
    /// Where what must be is written.
    pub place: String,
    #[serde(skip)]
    about: About,
}

/// What of a definition is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// A part of the case, by the way from the case to it.
    Case(Vec<PointerPart>),
    /// `guard.needed`.
    Needed,
}

impl About {
    /// Means a part of the case.
    fn case(path: &[&str]) -> Self {
        Self::Case(path.iter().map(|part| (*part).into()).collect())
    }
}

impl Difference {
    fn new(
        about: About,
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            expected: expected.into(),
            found: found.into(),
            place: String::new(),
            about,
        }
    }
}

impl Trial {
    /// Returns whether all was as it must be.
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Tries one case of a migration. `http_hosts` are those that `fairway.yaml` allows; `place` tells where something stands.
pub fn try_case(
    migration: &Migration,
    fixture: &Fixture,
    http_hosts: &[String],
    place: &dyn Fn(&About) -> Place,
) -> Trial {
    let mut trial = Trial {
        migration: migration.name.clone(),
        case: fixture.name.clone(),
        place: place(&About::case(&["name"])).to_string(),
        decision: None,
        steps: Vec::new(),
        kills: 0,
        questions: 0,
        differences: Vec::new(),
    };
    let spec = world::spec(migration, fixture, http_hosts);
    let differences = match world::world(&spec, fixture) {
        Ok(_) => trial.all(&spec, fixture),
        Err(reason) => {
            let about = About::case(&["name"]);
            vec![Difference::new(
                about,
                "the case",
                "one that can be tried",
                reason,
            )]
        }
    };
    trial.differences = differences;
    for difference in &mut trial.differences {
        difference.place = place(&difference.about).to_string();
    }
    trial
}

/// Says how a run ended, without the command that would try it again on a cluster, and with what a case may have left out.
fn came_to(status: &RunStatus) -> String {
    let (message, _) = status
        .message
        .split_once("; to try again:")
        .unwrap_or((&status.message, ""));
    let hint = if message.contains("is not true yet") {
        "; what others do while a step waits is said in the case: outcomes: {STEP: {leaves: {LOOKUP: …}}}"
    } else {
        ""
    };
    format!("{}: {message}{hint}", status.phase)
}

/// How one life or several came to their end.
struct End {
    world: Memory,
    judgement: Judgement,
    run: Option<Run>,
}

impl Trial {
    fn all(&mut self, spec: &RunSpec, fixture: &Fixture) -> Vec<Difference> {
        let Some(end) = live(spec, fixture, None, false) else {
            return vec![stuck("the run")];
        };
        self.decision = Some(end.judgement.decision);
        if end.judgement.decision != fixture.expect.decision {
            return vec![wrong_decision(fixture, &end.judgement)];
        }
        self.steps = effects(&end.world);
        let mut found = Vec::new();
        if let Some(status) = end.run.as_ref().and_then(|run| run.status.as_ref())
            && status.phase != RunPhase::Succeeded
        {
            let about = About::case(&["expect", "decision"]);
            found.push(Difference::new(
                about,
                "the end",
                "Succeeded",
                came_to(status),
            ));
            return found;
        }
        if let Some(steps) = &fixture.expect.steps
            && *steps != self.steps
        {
            found.push(Difference::new(
                About::case(&["expect", "steps"]),
                "steps with an effect",
                listed(steps),
                listed(&self.steps),
            ));
        }
        found.extend(then(spec, fixture, &end.world));
        if end.run.is_some() && found.is_empty() {
            found.extend(again(spec, &end.world));
            found.extend(self.kill(spec, fixture, &end));
        }
        found
    }

    /// Kills the process before and after each write, and lets another one go on.
    fn kill(&mut self, spec: &RunSpec, fixture: &Fixture, undisturbed: &End) -> Option<Difference> {
        let log = undisturbed.world.log();
        for (write, entry) in log.iter().enumerate() {
            for (fault, when) in [(Fault::StopBefore, "before"), (Fault::StopAfter, "after")] {
                self.kills += 1;
                let what = format!(
                    "killed {when} write {} ({} {})",
                    write + 1,
                    entry.verb,
                    entry.about
                );
                let Some(end) = live(spec, fixture, Some((write, fault)), false) else {
                    return Some(stuck(&what));
                };
                let status = status_of(&end);
                if status.phase == RunPhase::Manual {
                    self.questions += 1;
                    continue;
                }
                if status.phase != RunPhase::Succeeded {
                    let found = came_to(&status);
                    let about = About::case(&["name"]);
                    return Some(Difference::new(about, what, "Succeeded", found));
                }
                let about = About::case(&["name"]);
                if let Some(difference) = differs((about, &what), undisturbed, &end) {
                    return Some(difference);
                }
            }
            if entry.write == Write::Effect && entry.changed {
                let difference = self.forget(spec, fixture, undisturbed, write);
                if difference.is_some() {
                    return difference;
                }
            }
        }
        None
    }

    /// Kills the process after an effect and loses the record as well: where the state decides, it alone must lead to the end, so that
    /// `needed` has to stay true until the last effect.
    fn forget(
        &mut self,
        spec: &RunSpec,
        fixture: &Fixture,
        undisturbed: &End,
        write: usize,
    ) -> Option<Difference> {
        if spec.definition.policy.run != RunPolicy::WhenNeeded {
            return None;
        }
        self.kills += 1;
        let what = format!(
            "killed after write {}, and the record lost; `needed` must be true until the last effect",
            write + 1
        );
        let Some(end) = live(spec, fixture, Some((write, Fault::StopAfter)), true) else {
            return Some(stuck(&what));
        };
        differs((About::Needed, &what), undisturbed, &end)
    }
}

/// Compares the world of a life that was disturbed with that of one that was not.
fn differs((about, what): (About, &str), undisturbed: &End, disturbed: &End) -> Option<Difference> {
    let (wanted, found) = (undisturbed.world.settled(), disturbed.world.settled());
    if wanted == found {
        return None;
    }
    let (wanted, found) = compare::first_difference(&wanted, &found);
    Some(Difference::new(about, what, wanted, found))
}

/// Lets one process after another work until nothing is left to do; none where that never comes. With `forgets`, the record is lost
/// where a process ends.
fn live(
    spec: &RunSpec,
    fixture: &Fixture,
    fault: Option<(usize, Fault)>,
    forgets: bool,
) -> Option<End> {
    let world = world::world(spec, fixture).ok()?;
    if let Some((write, fault)) = fault {
        world.fault(write, fault);
    }
    let clock = TrialClock::default();
    let mut first = None;
    loop {
        let driver = Driver::new(world.clone(), world.clone(), clock.clone(), CLAIM);
        let life = async {
            tokio::select! {
                biased;
                () = world.stopped() => None,
                ended = work(&driver, &world, spec, &mut first) => Some(ended),
            }
        };
        if let Some(run) = clock.run(life)? {
            return Some(End {
                world,
                judgement: first?,
                run,
            });
        }
        world.restart();
        if forgets {
            world.forget_run(RUN);
        }
    }
}

/// Does what the agent does: judges, writes a record where there is work, and drives it.
async fn work(
    driver: &Driver<Memory, Memory, TrialClock>,
    world: &Memory,
    spec: &RunSpec,
    first: &mut Option<Judgement>,
) -> Option<Run> {
    if world.run(RUN).is_none() {
        let judgement = driver
            .judge(spec, &LookupCache::new(), &Sight::default())
            .await;
        let decision = judgement.decision;
        first.get_or_insert(judgement);
        if decision != Decision::Run {
            return None;
        }
    }
    let run = super::RunStore::create(world, &Run::new(RUN, spec.clone()))
        .await
        .ok()?;
    let (_commands, commands) = watch::channel(None);
    let stop = CancellationToken::new();
    Some(driver.drive(run, commands, &stop, |_| {}).await)
}

fn status_of(end: &End) -> RunStatus {
    end.run
        .as_ref()
        .and_then(|run| run.status.clone())
        .unwrap_or_default()
}

/// Returns the steps that have had an effect, in the order of their first.
fn effects(world: &Memory) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for entry in world.log() {
        if let (Write::Effect, true, Some(step)) = (entry.write, entry.changed, entry.step)
            && !steps.contains(&step)
        {
            steps.push(step);
        }
    }
    steps
}

fn wrong_decision(fixture: &Fixture, judgement: &Judgement) -> Difference {
    let mut found = judgement.decision.to_string();
    if !judgement.message.is_empty() {
        found = format!("{found}: {}", judgement.message);
    }
    for evidence in &judgement.evidence {
        let _ = write!(found, "\n{} is {}", evidence.about, evidence.result);
        for (path, value) in &evidence.values {
            let _ = write!(found, "\n  {path} = {value}");
        }
    }
    let about = About::case(&["expect", "decision"]);
    Difference::new(
        about,
        "decision",
        fixture.expect.decision.to_string(),
        found,
    )
}

/// Compares what lookups find at the end with what the case says.
fn then(spec: &RunSpec, fixture: &Fixture, world: &Memory) -> Vec<Difference> {
    let clock = TrialClock::default();
    let mut differences = Vec::new();
    for (name, wanted) in &fixture.expect.then {
        let at: Vec<PointerPart> = ["expect", "then", name].map(PointerPart::from).into();
        let found = match world::lookup_of(spec, name) {
            Ok(lookup) => clock.run(world.look(&lookup)).map_or_else(
                || Err("nothing".to_owned()),
                |it| it.map_err(|error| error.to_string()),
            ),
            Err(reason) => Err(reason),
        };
        match found {
            Ok(found) => differences.extend(compare((name, &at), wanted, &found)),
            Err(reason) => {
                let wanted = compare::short(wanted);
                differences.push(Difference::new(About::Case(at), name, wanted, reason));
            }
        }
    }
    differences
}

/// Asks the guard once more: a migration that is done must not be needed.
fn again(spec: &RunSpec, world: &Memory) -> Option<Difference> {
    if spec.definition.policy.run != RunPolicy::WhenNeeded {
        return None;
    }
    let clock = TrialClock::default();
    let driver = Driver::new(world.clone(), world.clone(), clock.clone(), CLAIM);
    let judgement = clock.run(driver.judge(spec, &LookupCache::new(), &Sight::default()))?;
    (judgement.decision != Decision::NotNeeded).then(|| {
        let found = format!("{}: {}", judgement.decision, judgement.message);
        Difference::new(About::Needed, "decision afterwards", "NotNeeded", found)
    })
}

fn stuck(what: &str) -> Difference {
    Difference::new(
        About::case(&["outcomes"]),
        what,
        "an end",
        "it waits for what never comes; say in `outcomes` what others do while it waits",
    )
}

fn listed(steps: &[String]) -> String {
    if steps.is_empty() {
        return "none".to_owned();
    }
    steps.join(", ")
}
