//! The routing table: which source a path belongs to, with the tokens as they were last read.
//!
//! The agent reads tokens from their Secrets, by name, and only when somebody is at the door: the table asks it to when what
//! it knows is older than [`WEBHOOK_KEYS_AGE_MAX`], and once more before it says that nobody has a path. So the path of a new
//! token is known with the next delivery, a withdrawn token counts no longer than that age, and while nobody delivers
//! anything, nothing is asked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use futures::future::join_all;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::keys::Keys;
use super::payload::{DeliveryResult, Followed};
use super::verify::equal;
use crate::model::SourceName;
use crate::model::api::WebhookProvider;
use crate::model::limits::{WEBHOOK_KEYS_AGE_MAX, WEBHOOK_KEYS_PATIENCE};

/// All sources with a webhook. Clones share them.
#[derive(Clone, Default)]
pub struct Routes(Arc<RwLock<BTreeMap<SourceName, Entry>>>);

/// A source that takes deliveries.
#[derive(Debug)]
pub struct Route {
    /// Its name.
    pub source: SourceName,
    /// Whether it is left alone for now.
    pub suspended: bool,
    /// How its deliveries are signed and written.
    pub provider: WebhookProvider,
    /// What it follows.
    pub followed: Followed,
    /// Its tokens.
    pub keys: Keys,
    /// The path of each token.
    pub paths: Vec<String>,
}

/// What is known of a source's webhook.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// None, when no delivery can be verified.
    pub route: Option<Arc<Route>>,
    /// When its Secret was last read, or could not be read.
    pub checked: Option<Instant>,
}

/// A delivery with a valid signature, for the agent.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The event, as the forge calls it.
    pub event: String,
    /// The forge's id for it.
    pub id: Option<String>,
    /// Recognises it when it comes again; none where the forge gives no id.
    pub digest: Option<u64>,
    /// What it announces.
    pub result: DeliveryResult,
}

/// Takes a delivery, at once, and says what became of it.
pub type Deliver = Arc<dyn Fn(Delivery) -> DeliveryResult + Send + Sync>;

#[derive(Clone)]
struct Entry {
    known: watch::Receiver<Known>,
    wanted: Arc<Notify>,
    deliver: Deliver,
}

/// The agent's side of one entry; dropping it takes the source out.
pub struct Registration {
    routes: Routes,
    source: SourceName,
    /// Publishes what is known.
    pub known: watch::Sender<Known>,
    /// Notified when the Secret should be read again.
    pub wanted: Arc<Notify>,
}

// === impl Routes ===

impl Routes {
    /// Takes a source in; nothing is delivered to it before something is known of it.
    pub fn register(&self, source: SourceName, deliver: Deliver) -> Registration {
        let (sender, known) = watch::channel(Known::default());
        let wanted = Arc::new(Notify::new());
        let entry = Entry {
            known,
            wanted: Arc::clone(&wanted),
            deliver,
        };
        self.0
            .write()
            .expect("nothing panics while holding the routes")
            .insert(source.clone(), entry);
        Registration {
            routes: self.clone(),
            source,
            known: sender,
            wanted,
        }
    }

    /// Returns whether nobody takes deliveries here: the agent stands by, or no source has a webhook.
    pub(super) fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Finds who has a path, with what is known of it now.
    pub(super) async fn find(&self, path: &str) -> Option<(Arc<Route>, Deliver)> {
        let entries: Vec<Entry> = self.entries().values().cloned().collect();
        let arrived = Instant::now();
        if let Some(entry) = entries.iter().find(|entry| entry.matching(path).is_some()) {
            let oldest = arrived.checked_sub(WEBHOOK_KEYS_AGE_MAX);
            entry.read_since(oldest.unwrap_or(arrived)).await;
            if let Some(found) = entry.matching(path) {
                return Some(found);
            }
        }
        // A token that was changed a moment ago has a path that is not known yet.
        join_all(entries.iter().map(|entry| entry.read_since(arrived))).await;
        entries.iter().find_map(|entry| entry.matching(path))
    }

    fn entries(&self) -> RwLockReadGuard<'_, BTreeMap<SourceName, Entry>> {
        self.0
            .read()
            .expect("nothing panics while holding the routes")
    }
}

impl Entry {
    fn matching(&self, path: &str) -> Option<(Arc<Route>, Deliver)> {
        let route = self.known.borrow().route.clone()?;
        let mut found = false;
        for own in &route.paths {
            found |= equal(own.as_bytes(), path.as_bytes());
        }
        found.then(|| (route, Arc::clone(&self.deliver)))
    }

    /// Waits until the Secret was read since then, but not for long; asks for it no sooner than its age allows.
    async fn read_since(&self, since: Instant) {
        let recent = |known: &Known| known.checked.is_some_and(|checked| checked > since);
        let mut known = self.known.clone();
        let checked = known.borrow().checked;
        let wait = async {
            if let Some(checked) = checked.filter(|checked| *checked <= since) {
                sleep_until(checked + WEBHOOK_KEYS_AGE_MAX).await;
            }
            if !recent(&self.known.borrow()) {
                self.wanted.notify_one();
            }
            // An error means that the source has gone.
            let _ = known.wait_for(recent).await;
        };
        // Whether it is there or late: what is known then decides.
        let _ = timeout(WEBHOOK_KEYS_PATIENCE, wait).await;
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries().keys()).finish()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Ok(mut entries) = self.routes.0.write() {
            entries.remove(&self.source);
        }
    }
}
