//! One observer of home for each account that acts for a source, and one for the agent itself.
//!
//! What an account may not see, no other source sees for it: sources share watches only where they act as the same account.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::bell::Bell;
use super::claims::Bells;
use crate::cluster::Acting;
use crate::model::Account;
use crate::observe::{Observer, WeakObserver};

/// The observers that are in use. Clones share them.
#[derive(Clone)]
pub(super) struct Observers {
    /// Rings every target task, since an observer does not know whose object has changed.
    bells: Bells,
    known: Arc<Mutex<BTreeMap<Option<Account>, WeakObserver>>>,
}

// === impl Observers ===

impl Observers {
    pub(super) fn new(bells: Bells) -> Self {
        Self {
            bells,
            known: Arc::default(),
        }
    }

    /// Returns the observer of whom `acting` is for; watching ends when nobody has it any more.
    pub(super) fn of(&self, acting: &Acting) -> Observer {
        let start = || {
            let bells = Arc::clone(&self.bells);
            Observer::start(acting, move || {
                let bells = bells
                    .lock()
                    .expect("nothing panics while holding the bells");
                bells.values().for_each(Bell::ring);
            })
        };
        // Who cannot be acted as sees nothing, and has nothing to share.
        if acting.is_nobody() {
            return start();
        }
        let mut known = self
            .known
            .lock()
            .expect("nothing panics while holding the observers");
        known.retain(|_, observer| observer.upgrade().is_some());
        let account = acting.account().cloned();
        if let Some(observer) = known.get(&account).and_then(WeakObserver::upgrade) {
            return observer;
        }
        let observer = start();
        known.insert(account, observer.downgrade());
        observer
    }
}
