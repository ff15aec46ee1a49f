//! Runtimes: their catalogs follow home's, on a real API server, through kubeconfig Secrets.

mod access;
mod catalog;
mod faults;
