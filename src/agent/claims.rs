//! What one source wants and another one owns, told to the owner: an object that two sources want stays with its owner, and both
//! report it.
//!
//! Only sources of the same agent hear of each other here; a source of another agent reports its side alone. Bounded by
//! [`limits::CLAIMS_MAX`] for each source.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use super::bell::Bell;
use crate::model::api::Claim;
use crate::model::{ObjectKey, SourceName, limits};

/// The bells of all sources that are followed.
pub(super) type Bells = Arc<Mutex<BTreeMap<SourceName, Bell>>>;

/// What each source of this agent wants and does not own. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Claims {
    bells: Bells,
    by_claimant: Arc<Mutex<BTreeMap<SourceName, Owners>>>,
}

type Owners = BTreeMap<ObjectKey, SourceName>;

impl Claims {
    /// Makes an empty one; owners are rung by these bells.
    pub(super) fn new(bells: Bells) -> Self {
        Self {
            bells,
            by_claimant: Arc::default(),
        }
    }

    /// Takes what a source wants and others own now, in the place of what it said before. Owners that hear something new are
    /// rung.
    pub(super) fn put(&self, claimant: &SourceName, conflicts: &[(ObjectKey, SourceName)]) {
        let claims: Owners = conflicts.iter().take(limits::CLAIMS_MAX).cloned().collect();
        let before = self.lock().insert(claimant.clone(), claims.clone());
        self.ring(&before.unwrap_or_default(), &claims);
    }

    /// Takes back what a source has said that is not followed any more.
    pub(super) fn forget(&self, claimant: &str) {
        let mut all = self.lock();
        let name = all.keys().find(|name| name.as_str() == claimant).cloned();
        let before = name.and_then(|name| all.remove(&name));
        drop(all);
        self.ring(&before.unwrap_or_default(), &Owners::new());
    }

    /// Returns what others want of what a source owns. A source that is followed and has not spoken since the start is
    /// believed to say what it said before, so that a restart does not look like the end of a conflict.
    pub(super) fn against(&self, owner: &SourceName, before: &[Claim]) -> Vec<Claim> {
        let all = self.lock();
        let mut claims: BTreeSet<(String, String)> = all
            .iter()
            .flat_map(|(by, owners)| owners.iter().map(move |claim| (by, claim)))
            .filter(|(_, (_, claimed))| *claimed == owner)
            .map(|(by, (key, _))| (key.to_string(), by.to_string()))
            .collect();
        let spoken: BTreeSet<&str> = all.keys().map(SourceName::as_str).collect();
        let bells = self.bells.lock().expect(NO_PANIC);
        let silent = before.iter().filter(|claim| {
            !spoken.contains(claim.by.as_str())
                && bells.keys().any(|followed| followed.as_str() == claim.by)
        });
        claims.extend(silent.map(|claim| (claim.object.clone(), claim.by.clone())));
        let claims = claims.into_iter().take(limits::CLAIMS_MAX);
        claims.map(|(object, by)| Claim { object, by }).collect()
    }

    fn ring(&self, before: &Owners, after: &Owners) {
        let changed = |one: &Owners, other: &Owners| -> Vec<SourceName> {
            let differs = one
                .iter()
                .filter(|(key, owner)| other.get(*key) != Some(*owner));
            differs.map(|(_, owner)| owner.clone()).collect()
        };
        let bells = self.bells.lock().expect(NO_PANIC);
        for owner in changed(before, after)
            .into_iter()
            .chain(changed(after, before))
        {
            if let Some(bell) = bells.get(&owner) {
                bell.ring();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SourceName, Owners>> {
        self.by_claimant.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "nothing panics while holding the lock";

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::model::GroupKind;

    fn name(text: &str) -> SourceName {
        SourceName::new(text).unwrap()
    }

    #[test]
    fn an_owner_hears_what_others_want_and_is_rung_only_when_that_changes() {
        let (owner, claimant) = (name("owner"), name("claimant"));
        let bell = Bell::default();
        let bells: Bells = Arc::default();
        bells.lock().unwrap().insert(owner.clone(), bell.clone());
        let claims = Claims::new(Arc::clone(&bells));
        let key = ObjectKey::new(GroupKind::new("", "ConfigMap"), Some("apps"), "one");
        let wanted = [(key, owner.clone())];
        claims.put(&claimant, &wanted);
        assert_eq!(bell.rung().now_or_never(), Some(()));
        let said = claims.against(&owner, &[]);
        assert_eq!((said.len(), said[0].by.as_str()), (1, "claimant"));
        assert_eq!(claims.against(&claimant, &[]), []);
        claims.put(&claimant, &wanted);
        assert_eq!(bell.rung().now_or_never(), None, "nothing new");

        let restarted = Claims::new(Arc::clone(&bells));
        assert_eq!(restarted.against(&owner, &said), [], "it is not followed");
        bells
            .lock()
            .unwrap()
            .insert(claimant.clone(), Bell::default());
        assert_eq!(restarted.against(&owner, &said), said, "it has not spoken");
        restarted.put(&claimant, &[]);
        assert_eq!(restarted.against(&owner, &said), [], "it has");

        claims.forget("claimant");
        assert_eq!(bell.rung().now_or_never(), Some(()));
        assert_eq!(claims.against(&owner, &[]), []);
    }
}
