//! Repositories over ssh: a smart subtransport of libgit2 on libssh2, with keys from memory.
//!
//! What comes in is an address and a login (key, passphrase, known hosts); what goes out is the conversation with the server's
//! `git-upload-pack`. Guaranteed: no file, agent or configuration of ssh is read, nothing is trusted on first use, and nobody signs
//! in before the host's key was found in `known_hosts`.

mod address;
mod known_hosts;
mod login;
mod stream;
mod transport;

pub(super) use address::Address;
pub(super) use login::Login;
pub(super) use transport::{Call, register};
