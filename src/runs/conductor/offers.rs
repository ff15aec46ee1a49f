//! What a plan wants: the hooks that begin, go on or end with it, and whether what a run is for is still wanted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Offer;
use super::naming::hook_of;
use super::once::is_asked;
use super::stands::{is_undoing, phase_of};
use super::state::{HookEntry, Part, State};
use crate::model::api::Run;
use crate::model::migration::Hook;
use crate::plan::hooks::DueHook;

/// What a hook's task works on.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) due: DueHook,
    pub(super) revision: String,
    pub(super) author: String,
    pub(super) release: Option<String>,
    pub(super) http_hosts: Vec<String>,
}

impl Wanted {
    pub(super) fn of(offer: &Offer<'_>, due: &DueHook) -> Self {
        Self {
            due: due.clone(),
            revision: offer.revision.to_string(),
            author: offer.author.to_owned(),
            release: offer.release.map(str::to_owned),
            http_hosts: offer.http_hosts.to_vec(),
        }
    }
}

/// A hook that begins: its task gets what is wanted of it, and is told when nothing is any more.
pub(super) type Begun = (Hook, watch::Receiver<Arc<Wanted>>, CancellationToken);

// === impl State ===

impl State {
    /// Takes up what a plan wants. Returns the hooks that begin, and whether runs that were parked must look again.
    pub(super) fn take_offer(&mut self, offer: Offer<'_>, now: Duration) -> (Vec<Begun>, bool) {
        let offered: BTreeSet<&Hook> = offer.hooks.iter().map(|due| &due.hook).collect();
        self.hooks.retain(|hook, entry| {
            let is_kept = offered.contains(hook);
            if !is_kept {
                entry.stop.cancel();
            }
            is_kept
        });
        let mut begun = Vec::new();
        for due in offer.hooks {
            let wanted = Arc::new(Wanted::of(&offer, due));
            if let Some(entry) = self.hooks.get_mut(&due.hook) {
                entry.wanted.send_if_modified(|known| {
                    let differs = known.due != wanted.due;
                    if differs {
                        *known = wanted;
                    }
                    differs
                });
                continue;
            }
            let sender = watch::Sender::new(Arc::clone(&wanted));
            let stop = CancellationToken::new();
            begun.push((due.hook.clone(), sender.subscribe(), stop.clone()));
            let foreseen = self.foreseen(&due.hook, now);
            let parts = due.migrations.iter().map(|it| {
                let name = it.migration.name.clone();
                let part = if foreseen.nothing.contains(&name) {
                    Part::Done
                } else {
                    Part::Judging(String::new())
                };
                (name, part)
            });
            let entry = HookEntry {
                wanted: sender,
                stop,
                parts: parts.collect(),
                foreseen,
            };
            self.hooks.insert(due.hook.clone(), entry);
        }
        self.take_ahead(&offer);
        let is_first = self.is_told && !self.is_offered;
        self.is_offered = self.is_told;
        let is_news = self.once.as_ref() != Some(offer.once);
        if is_news {
            self.once = Some(offer.once.clone());
        }
        let changed = self.mark_wanted() || is_first || is_news;
        (begun, changed)
    }

    /// Notes of each run whether what it is for is wanted; returns whether that changed for any.
    fn mark_wanted(&mut self) -> bool {
        let wanted: Vec<(String, bool)> = self
            .runs
            .iter()
            .filter(|(_, entry)| !phase_of(&entry.run).is_over())
            .map(|(name, entry)| (name.clone(), self.wants(&entry.run)))
            .collect();
        let mut changed = false;
        for (name, is_wanted) in wanted {
            if let Some(entry) = self.runs.get_mut(&name) {
                changed |= entry.is_wanted != is_wanted;
                entry.is_wanted = is_wanted;
            }
        }
        changed
    }

    /// Returns whether any hook wants a run: it is a part of it, or is what the hook would begin.
    pub(super) fn wants(&self, run: &Run) -> bool {
        if is_undoing(run) {
            return false;
        }
        let name = run.name_any();
        let is_part = |entry: &HookEntry| {
            entry
                .parts
                .values()
                .any(|part| matches!(part, Part::Run(run) if *run == name))
        };
        if self.hooks.values().any(is_part) || self.ahead.values().any(|it| it.has_run(&name)) {
            return true;
        }
        let Some(hook) = hook_of(run) else {
            return false;
        };
        let wanted = match (self.hooks.get(&hook), self.ahead.get(&hook)) {
            (Some(entry), _) => Arc::clone(&entry.wanted.borrow()),
            (None, Some(ahead)) => Arc::clone(&ahead.wanted),
            (None, None) => return false,
        };
        wanted.due.migrations.iter().any(|it| {
            it.migration.name == run.spec.migration
                && it.migration.digest.as_str() == run.spec.definition_digest
        })
    }

    /// Returns another run of the same scope that is not over and no longer wanted: its effects must end before new ones begin.
    pub(super) fn older_run(&self, hook: &Hook) -> Option<String> {
        let mut others = self.runs.iter().filter(|(_, entry)| {
            let is_of_scope = hook_of(&entry.run).is_some_and(|other| {
                other.scope == hook.scope && (other != *hook || is_undoing(&entry.run))
            });
            is_of_scope
                && !entry.is_wanted
                && !phase_of(&entry.run).is_over()
                && !is_asked(&entry.run)
        });
        others.next().map(|(name, _)| name.clone())
    }
}
