//! Hooks ssh into libgit2, which finds a transport by the scheme of a URL.
//!
//! libgit2 makes the transport on the thread that fetches, and tells it nothing but the URL. What else it needs, and what it has to
//! say about a failure, passes through the thread: a [`Call`] is there for as long as one download runs.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream, Transport};
use git2::{Error, ErrorClass, ErrorCode};

use super::address::Address;
use super::login::Login;
use super::stream::Stream;
use crate::source::error::SourceError;

thread_local! {
    static CALL: RefCell<Option<Arc<Call>>> = const { RefCell::new(None) };
}

/// One download over ssh.
pub(in super::super) struct Call {
    pub(super) address: Address,
    pub(super) login: Option<Arc<Login>>,
    pub(super) deadline: Instant,
    refusal: Mutex<Option<SourceError>>,
}

// === impl Call ===

impl Call {
    /// Prepares a download that must have ended by the deadline.
    pub(in super::super) fn new(
        address: Address,
        login: Option<Arc<Login>>,
        deadline: Instant,
    ) -> Arc<Self> {
        Arc::new(Self {
            address,
            login,
            deadline,
            refusal: Mutex::default(),
        })
    }

    /// Runs what uses libgit2's ssh on this thread.
    pub(in super::super) fn during<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        /// Clears the thread, also when the work panics.
        struct Clear;
        impl Drop for Clear {
            fn drop(&mut self) {
                CALL.set(None);
            }
        }
        CALL.set(Some(Arc::clone(self)));
        let _clear = Clear;
        work()
    }

    /// Returns why the server or we said no, where libgit2's error could not carry it.
    pub(in super::super) fn take_refusal(&self) -> Option<SourceError> {
        self.refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub(super) fn refuse(&self, error: SourceError) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// The subtransport that libgit2 asks for streams.
struct Subtransport(Option<Arc<Call>>);

impl SmartSubtransport for Subtransport {
    fn action(
        &self,
        _url: &str,
        service: Service,
    ) -> Result<Box<dyn SmartSubtransportStream>, Error> {
        let failed = |text: &str| Error::new(ErrorCode::GenericError, ErrorClass::Ssh, text);
        let (Some(call), Service::UploadPackLs) = (&self.0, service) else {
            return Err(failed("nothing but fetching is supported over ssh"));
        };
        match Stream::open(call) {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => {
                call.refuse(error);
                Err(failed("the ssh server could not be used"))
            }
        }
    }

    fn close(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Tells libgit2 who serves `ssh://`.
///
/// # Safety
///
/// Must be called before other threads use libgit2, since its list of transports has no lock.
#[expect(
    unsafe_code,
    reason = "git2 offers the registration as an unsafe function only; the caller vouches for the order"
)]
pub(in super::super) unsafe fn register() -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe {
        git2::transport::register("ssh", |remote| {
            let call = CALL.with_borrow(Option::clone);
            Transport::smart(remote, false, Subtransport(call))
        })
    }
}
