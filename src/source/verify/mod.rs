//! Whose work a revision is: signatures of commits and tags, by SSH keys and OpenPGP certificates.
//!
//! What comes in is a repository, two commits and the allowed signers; what goes out is nothing, or the first commit or tag whose
//! signature is not good, with the reason. Guaranteed: unknown is never good. The rules are those that `git verify-commit` follows with
//! `ssh-keygen` and `gpg`: tests compare the two.

mod allowed;
mod openpgp;
mod refusal;
mod signed;
mod signers;
mod sshsig;
mod walk;

pub use refusal::Refusal;
pub use signers::Signers;
pub use walk::{Verification, VerifyMode};
