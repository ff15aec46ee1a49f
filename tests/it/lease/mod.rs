//! Leases: of two replicas one acts, the other takes over, and a late one undoes nothing.

mod clock;
mod faults;
mod handover;
mod migrations;
mod quiet;
mod record;
mod replicas;
mod sync;
mod two_leaders;
