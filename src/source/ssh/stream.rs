//! One ssh session that runs `git-upload-pack`: connect, look at the host's key, sign in, talk.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ssh_key::PublicKey;
use ssh2::{Channel, ErrorCode, MethodType, Session};

use super::login::Login;
use super::transport::Call;
use crate::model::limits::{
    CONNECT_DEADLINE, GIT_SERVER_TIMEOUT, MESSAGE_PART_MAX, SSH_STDERR_MAX,
};
use crate::source::error::SourceError;

/// What libgit2 reads from and writes to.
pub(super) struct Stream {
    call: Arc<Call>,
    channel: Channel,
    answered: bool,
    /// Owns the connection; the channel works on it.
    _session: Session,
}

// libssh2.h; the crate has no names for them.
const ERROR_TIMEOUT: i32 = -9;
const ERROR_AUTHENTICATION_FAILED: i32 = -18;
const ERROR_PUBLICKEY_UNVERIFIED: i32 = -19;
const ERROR_SOCKET: [i32; 4] = [-7, -13, -30, -43];

// === impl Stream ===

impl Stream {
    /// Signs in and starts the command.
    pub(super) fn open(call: &Arc<Call>) -> Result<Self, SourceError> {
        let Some(login) = &call.login else {
            return Err(SourceError::SshKeys {
                key: "identity",
                reason: "it is missing".to_owned(),
            });
        };
        let broken = |error: ssh2::Error| call.broken(&error);
        let mut session = Session::new().map_err(broken)?;
        session.set_timeout(milliseconds(call.patience()?));
        let wanted = login.known_hosts.algorithms(&call.address);
        session
            .method_pref(MethodType::HostKey, &wanted)
            .map_err(broken)?;
        session.set_tcp_stream(call.dial()?);
        session.handshake().map_err(broken)?;
        call.check_host(&session, login)?;
        call.sign_in(&session, login)?;
        let mut channel = session.channel_session().map_err(broken)?;
        channel.exec(&call.address.command()).map_err(broken)?;
        Ok(Self {
            call: Arc::clone(call),
            channel,
            answered: false,
            _session: session,
        })
    }

    /// Says why the server has ended without a word to git.
    fn ended_at_once(&mut self) -> SourceError {
        let mut said = Vec::new();
        // What could be read counts; that it then breaks off changes nothing.
        let _ = self
            .channel
            .stderr()
            .take(SSH_STDERR_MAX)
            .read_to_end(&mut said);
        let said = one_line(&String::from_utf8_lossy(&said));
        let host = self.call.address.host();
        let url = self.call.address.to_string();
        let says = |signs: &[&str]| {
            let said = said.to_ascii_lowercase();
            signs.iter().any(|sign| said.contains(sign))
        };
        if says(&[
            "not found",
            "not appear to be a git",
            "could not be found",
            "does not exist",
        ]) {
            return SourceError::RepositoryNotFound { url };
        }
        if says(&["denied", "not allowed", "not authorized", "permission"]) {
            return SourceError::Forbidden { host, url };
        }
        let detail = if said.is_empty() {
            "the server has ended the session without an answer".to_owned()
        } else {
            format!("the server says: {said}")
        };
        SourceError::Network { host, detail }
    }

    fn fail(&self, error: SourceError) -> io::Error {
        self.call.refuse(error);
        io::Error::other("the ssh session has failed")
    }

    fn failed(&self, error: &io::Error) -> io::Error {
        let host = self.call.address.host();
        self.fail(if error.kind() == io::ErrorKind::TimedOut {
            SourceError::Timeout {
                host,
                after: GIT_SERVER_TIMEOUT,
            }
        } else {
            SourceError::Network {
                host,
                detail: one_line(&error.to_string()),
            }
        })
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call.patience().map_err(|error| self.fail(error))?;
        match self.channel.read(buffer) {
            Ok(0) if !self.answered => {
                let error = self.ended_at_once();
                Err(self.fail(error))
            }
            Ok(count) => {
                self.answered = true;
                Ok(count)
            }
            Err(error) => Err(self.failed(&error)),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.call.patience().map_err(|error| self.fail(error))?;
        self.channel
            .write(buffer)
            .map_err(|error| self.failed(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.channel.flush().map_err(|error| self.failed(&error))
    }
}

// === impl Call ===

impl Call {
    /// Returns how long the server may be silent now.
    fn patience(&self) -> Result<Duration, SourceError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(SourceError::Timeout {
                host: self.address.host(),
                after: GIT_SERVER_TIMEOUT,
            });
        }
        Ok(left.min(GIT_SERVER_TIMEOUT))
    }

    fn dial(&self) -> Result<TcpStream, SourceError> {
        let network = |error: &io::Error| SourceError::Network {
            host: self.address.host(),
            detail: one_line(&error.to_string()),
        };
        let addresses = (self.address.host.as_str(), self.address.port)
            .to_socket_addrs()
            .map_err(|error| network(&error))?;
        let mut last = io::Error::other("the name has no address");
        for address in addresses {
            let patience = self.patience()?.min(CONNECT_DEADLINE);
            match TcpStream::connect_timeout(&address, patience) {
                Ok(stream) => {
                    // Small questions and answers; a failure makes them slower, no more.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(network(&last))
    }

    fn check_host(&self, session: &Session, login: &Login) -> Result<(), SourceError> {
        let network = |detail: &str| SourceError::Network {
            host: self.address.host(),
            detail: detail.to_owned(),
        };
        let (raw, _) = session
            .host_key()
            .ok_or_else(|| network("the server has shown no host key"))?;
        let key = PublicKey::from_bytes(raw)
            .map_err(|_| network("the server's host key cannot be read"))?;
        login.known_hosts.check(&self.address, &key)
    }

    fn sign_in(&self, session: &Session, login: &Login) -> Result<(), SourceError> {
        let signed_in = session.userauth_pubkey_memory(
            &self.address.user,
            login.public.as_deref(),
            &login.identity,
            login.passphrase.as_deref(),
        );
        let Err(error) = signed_in else {
            return Ok(());
        };
        Err(match error.code() {
            ErrorCode::Session(ERROR_AUTHENTICATION_FAILED | ERROR_PUBLICKEY_UNVERIFIED) => {
                SourceError::Unauthorized {
                    host: self.address.host(),
                }
            }
            ErrorCode::Session(code) if code == ERROR_TIMEOUT || ERROR_SOCKET.contains(&code) => {
                self.broken(&error)
            }
            _ => SourceError::SshKeys {
                key: "identity",
                reason: format!(
                    "{}; it may be of an unknown kind, or its passphrase (`password`) is wrong",
                    one_line(error.message())
                ),
            },
        })
    }

    fn broken(&self, error: &ssh2::Error) -> SourceError {
        let host = self.address.host();
        match error.code() {
            ErrorCode::Session(ERROR_TIMEOUT) => SourceError::Timeout {
                host,
                after: GIT_SERVER_TIMEOUT,
            },
            _ => SourceError::Network {
                host,
                detail: one_line(error.message()),
            },
        }
    }
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1)
}

fn one_line(text: &str) -> String {
    let plain = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char });
    let text: String = plain.take(MESSAGE_PART_MAX).collect();
    text.trim().to_owned()
}
