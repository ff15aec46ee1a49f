//! What one evaluation may cost.
//!
//! There is no clock here, so that the same values always give the same answer; what bounds the time, and with it the
//! memory, is a count. One unit is one part of the tree that is evaluated, or sixteen bytes that are compared or built.

use super::evaluate::Failure;
use crate::model::limits;

/// Bytes that are compared or built for one unit.
const UNIT_BYTES: usize = 16;

/// What is left.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            left: limits::EXPRESSION_COST_MAX,
        }
    }
}

impl Budget {
    /// Takes units.
    pub(super) fn take(&mut self, units: usize) -> Result<(), Failure> {
        self.left = self
            .left
            .checked_sub(units as u64)
            .ok_or_else(Failure::too_much)?;
        Ok(())
    }

    /// Takes what a list of so many elements costs to build; each has forty bytes.
    pub(super) fn take_items(&mut self, items: usize) -> Result<(), Failure> {
        self.take(items.saturating_mul(3))
    }

    /// Takes what handling so many bytes costs.
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        self.take(bytes / UNIT_BYTES)
    }
}
