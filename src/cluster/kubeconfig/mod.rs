//! Kubeconfigs that somebody put into a Secret.
//!
//! What comes in is the bytes of a Secret's key, from whoever may write that Secret; what goes out is [`RemoteAccess`], from
//! which one cluster can be reached, or a [`KubeconfigError`] that names the field and the way out. It is guaranteed that the
//! file makes the agent run no program, open no file, use no proxy, skip no check of a certificate, act for nobody else and
//! talk to nothing on its own machine, and that no error repeats a value of it.
//!
//! kube's own reading is not used: it runs `exec` plugins, reads the files that the kubeconfig names, takes a proxy from the
//! environment, and none of it can be switched off. Here everything that is not on the list is refused, used or not, so that
//! a field that a later client understands cannot slip in.

mod access;
mod address;
mod credentials;
mod error;
mod fields;
mod read;

pub use access::{AccessPolicy, RemoteAccess};
pub use error::KubeconfigError;
