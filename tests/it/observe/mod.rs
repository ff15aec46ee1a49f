//! What is seen of a real cluster.

mod faults;
mod ownership;
mod watching;
