//! Our https below libgit2: it speaks git's protocol and unpacks, we carry its words.
//!
//! libgit2 makes a transport by the scheme of a URL alone, so that what belongs to one fetch (its client, credentials and time
//! limits) is handed over through the thread that fetches.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream, Transport};
use git2::{ErrorClass, ErrorCode};

use super::error::SourceError;
use super::exchange::{Answer, Exchange, Question};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Exchange>>> = const { RefCell::new(None) };
}

/// Does something with libgit2 whose https goes through this exchange.
pub(super) fn through<T>(exchange: Arc<Exchange>, work: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            CURRENT.set(None);
        }
    }
    CURRENT.set(Some(exchange));
    let _reset = Reset;
    work()
}

/// Makes libgit2 use this for all URLs with https.
///
/// # Safety
///
/// No other thread may use libgit2 yet: it keeps its transports in a list without a lock.
#[expect(
    unsafe_code,
    reason = "git2 offers it as an unsafe function only; called once, with the other process-wide options"
)]
pub(super) unsafe fn register() -> Result<(), git2::Error> {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe {
        git2::transport::register("https", |remote| {
            let exchange = CURRENT.with_borrow(Clone::clone);
            let exchange = exchange.ok_or_else(|| stopped("https outside of a fetch"))?;
            Transport::smart(remote, true, Subtransport(exchange))
        })
    }
}

struct Subtransport(Arc<Exchange>);

/// One request and its answer.
struct Stream {
    exchange: Arc<Exchange>,
    state: State,
}

enum State {
    /// What is asked is sent once somebody wants to read the answer.
    Asking(Question),
    Reading(Answer, Bytes),
    Ended,
}

// === impl Subtransport ===

impl SmartSubtransport for Subtransport {
    fn action(
        &self,
        _url: &str,
        action: Service,
    ) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let question = match action {
            Service::UploadPackLs => Question::References,
            Service::UploadPack => Question::Pack(Vec::new()),
            Service::ReceivePackLs | Service::ReceivePack => {
                return Err(stopped("nothing is ever pushed"));
            }
        };
        Ok(Box::new(Stream {
            exchange: Arc::clone(&self.0),
            state: State::Asking(question),
        }))
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

// === impl Stream ===

impl Stream {
    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, SourceError> {
        loop {
            match &mut self.state {
                State::Asking(question) => {
                    let answer = self.exchange.ask(question)?;
                    self.state = State::Reading(answer, Bytes::new());
                }
                State::Reading(_, received) if received.has_remaining() => {
                    let count = received.remaining().min(buffer.len());
                    received.copy_to_slice(&mut buffer[..count]);
                    return Ok(count);
                }
                State::Reading(answer, received) => match self.exchange.read(answer)? {
                    Some(more) => *received = more,
                    None => self.state = State::Ended,
                },
                State::Ended => return Ok(0),
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.next(buffer).map_err(|error| {
            self.state = State::Ended;
            self.exchange.refusal.say(error);
            // libgit2 wants a text; the error itself goes past it.
            io::Error::other("the conversation was broken off")
        })
    }
}

impl Write for Stream {
    fn write(&mut self, words: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Asking(Question::Pack(all)) => {
                all.extend_from_slice(words);
                Ok(words.len())
            }
            _ => Err(io::Error::other("there is nothing to be said here")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Stream {
    /// libgit2 reads no further than it must.
    fn drop(&mut self) {
        if let State::Reading(answer, _) = std::mem::replace(&mut self.state, State::Ended) {
            self.exchange.finish(answer);
        }
    }
}

fn stopped(message: &str) -> git2::Error {
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Net, message)
}
