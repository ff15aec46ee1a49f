//! Where deliveries are noted, by whoever receives them.

use std::sync::{Mutex, MutexGuard};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::burst::Burst;
use crate::agent::bell::Bell;
use crate::agent::clock;
use crate::model::api::{WebhookDelivery, WebhookStatus};
use crate::model::limits;
use crate::server::webhook::{Delivery, DeliveryResult};

/// Notes deliveries, and rings for them. The first one of a burst rings at once, from here, so that no slow
/// API server delays it.
pub(super) struct Desk {
    pub(super) notes: Mutex<Notes>,
    pub(super) heard: Notify,
    pub(super) announced: Bell,
}

#[derive(Default)]
pub(super) struct Notes {
    pub(super) status: WebhookStatus,
    pub(super) burst: Burst,
    pub(super) last_ring: Option<Instant>,
}

// === impl Desk ===

impl Desk {
    /// Notes a delivery, unless it was delivered before.
    pub(super) fn deliver(&self, delivery: Delivery) -> DeliveryResult {
        let mut notes = self.notes();
        if let Some(digest) = delivery.digest {
            let digest = format!("{digest:016x}");
            let recent = &mut notes.status.recent;
            if recent.contains(&digest) {
                return DeliveryResult::Repeated;
            }
            recent.push(digest);
            let surplus = recent.len().saturating_sub(limits::WEBHOOK_RECENT_MAX);
            recent.drain(..surplus);
        }
        let id = delivery.id.map(|id| {
            let mut shown: String = id.chars().take(limits::WEBHOOK_ID_SHOWN).collect();
            if shown.len() < id.len() {
                shown.push('…');
            }
            shown
        });
        notes.status.last_delivery = Some(WebhookDelivery {
            time: Time(clock::now()),
            event: delivery.event,
            id,
            result: delivery.result.as_str().to_owned(),
        });
        let (now, rings) = (Instant::now(), delivery.result == DeliveryResult::Announced);
        if rings {
            notes.last_ring = Some(now);
        }
        if notes.burst.heard(now, rings) {
            self.announced.ring();
        }
        self.heard.notify_one();
        delivery.result
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes
            .lock()
            .expect("nothing panics while holding the notes")
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn delivery(id: u64, result: DeliveryResult) -> Delivery {
        Delivery {
            event: "push".to_owned(),
            id: Some(format!("{id:036}")),
            digest: Some(id),
            result,
        }
    }

    fn desk() -> Desk {
        Desk {
            notes: Mutex::default(),
            heard: Notify::new(),
            announced: Bell::default(),
        }
    }

    #[test]
    fn a_repeated_delivery_leaves_no_trace() {
        let desk = desk();
        let announced = DeliveryResult::Announced;
        assert_eq!(desk.deliver(delivery(1, announced)), announced);
        assert!(desk.announced.rung().now_or_never().is_some());
        assert!(desk.heard.notified().now_or_never().is_some());
        let before = desk.notes().status.clone();
        let again = desk.deliver(delivery(1, announced));
        assert_eq!(again, DeliveryResult::Repeated);
        assert_eq!(desk.notes().status, before);
        assert!(desk.announced.rung().now_or_never().is_none());
        assert!(desk.heard.notified().now_or_never().is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_ids_are_shortened() {
        let desk = desk();
        for id in 0..1_000 {
            desk.deliver(delivery(id, DeliveryResult::OtherEvent));
        }
        let status = desk.notes().status.clone();
        assert_eq!(status.recent.len(), limits::WEBHOOK_RECENT_MAX);
        assert_eq!(status.recent.last().unwrap(), "00000000000003e7");
        assert_eq!(status.last_delivery.unwrap().id.unwrap(), "00000000…");
        assert!(desk.announced.rung().now_or_never().is_none());
    }
}
