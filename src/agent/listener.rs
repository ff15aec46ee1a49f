//! What hears of a pass of the agent while it goes on: the record, the audit log, and the log.

use super::clock;
use super::heartbeat::Heartbeat;
use super::outlets::Outlets;
use super::pass::PassListener;
use super::record::Record;
use crate::execute;
use crate::plan::Plan;
use crate::report::{Effect, Origin};

/// Writes down kinds and collects effects while a pass goes on.
pub(super) struct Listener<'a> {
    pub(super) heartbeat: Option<&'a Heartbeat>,
    pub(super) origin: Origin<'a>,
    pub(super) outlets: &'a Outlets,
    pub(super) record: &'a mut Record,
    pub(super) effects: &'a mut Vec<Effect>,
}

impl PassListener for Listener<'_> {
    fn record(&mut self) -> &mut Record {
        self.record
    }

    fn planned(&mut self, plan: &Plan) {
        tracing::info!(
            source.name = %self.origin.source,
            source.revision = %plan.revision,
            plan.actions = plan.actions().count(),
            plan.holds = plan.holds.len(),
            "planned"
        );
    }

    fn effect(&mut self, effect: &execute::Effect) {
        if let Some(heartbeat) = self.heartbeat {
            heartbeat.beat();
        }
        if let Some(effect) = Effect::of(effect, clock::now()) {
            self.outlets.audit(&self.origin, &effect);
            self.effects.push(effect);
        }
    }
}
