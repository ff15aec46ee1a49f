//! Which objects go, and every reason why one does not.
//!
//! What comes in is the view and what is known of the applies; what goes out is deletions, holds, and one set that waits
//! for a person. An object is deleted only when all of this holds: it is ours by label *and* by field ownership, git does
//! not name it in any form, everything in git could be read, its kind could be listed, nothing that stays needs it, and
//! either it is one of a few ordinary objects, or git announced the removal, or a person approved it.
//!
//! The rooms: `candidates` (what git does not want any more), `dependents` (what stays and needs a candidate), `brake`
//! (what needs a person's eye).

mod brake;
mod candidates;
mod dependents;
mod pruning;

pub(super) use pruning::prune;

#[cfg(test)]
mod tests;
