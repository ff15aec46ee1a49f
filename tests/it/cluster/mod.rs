//! The door to a Kubernetes API, held against a real one.

mod claim;
mod faults;
mod kubeconfig;
mod requests;
mod takeover;
