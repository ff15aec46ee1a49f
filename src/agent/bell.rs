//! Bells: what asks a task to look again. A bell carries no data, and rings that nobody has heard yet are one.

use std::sync::Arc;

use tokio::sync::Notify;

/// Rings a task awake. Clones ring the same bell; one task listens.
#[derive(Debug, Clone, Default)]
pub(super) struct Bell(Arc<Notify>);

impl Bell {
    /// Asks the task to look again; never waits.
    pub(super) fn ring(&self) {
        self.0.notify_one();
    }

    /// Waits until the bell has been rung since the last time that this returned.
    pub(super) async fn rung(&self) {
        self.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn rings_before_anybody_listens_are_kept_and_are_one() {
        let bell = Bell::default();
        assert_eq!(bell.rung().now_or_never(), None);
        bell.ring();
        bell.clone().ring();
        assert_eq!(bell.rung().now_or_never(), Some(()));
        assert_eq!(bell.rung().now_or_never(), None);
    }
}
