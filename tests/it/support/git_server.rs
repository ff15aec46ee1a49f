//! A git server over TLS, as a process of the `control-plane` binary, for the life of a value.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the server as a process"
)]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Who may fetch and push.
#[derive(Clone, Copy)]
pub(crate) enum SignIn {
    /// Everybody.
    Nobody,
    /// User `ci` with this password.
    Password(&'static str),
    /// This bearer token.
    Token(&'static str),
}

/// A running git server with one repository, `modules`.
pub(crate) struct GitServer {
    state: TempDir,
    address: String,
    process: Child,
}

impl GitServer {
    /// Starts a server on a free port.
    pub(crate) fn start(sign_in: SignIn) -> Self {
        Self::start_on("127.0.0.1", sign_in)
    }

    /// Starts a server that these public keys may read from over ssh, with host keys of these kinds.
    pub(crate) fn start_ssh(authorized_keys: &str, host_keys: &str) -> Self {
        Self::start_with(
            "127.0.0.1",
            SignIn::Nobody,
            Some((authorized_keys, host_keys)),
        )
    }

    /// Starts a server on a free port of an address; its certificate names `127.0.0.1` and `localhost` only.
    pub(crate) fn start_on(host: &str, sign_in: SignIn) -> Self {
        Self::start_with(host, sign_in, None)
    }

    fn start_with(host: &str, sign_in: SignIn, ssh: Option<(&str, &str)>) -> Self {
        let state = tempfile::tempdir().expect("a temporary directory can be made");
        let option = format!("--state={}", state.path().display());
        let made = Command::new(control_plane())
            .args(["git-init", &option, "modules"])
            .output()
            .expect("the control-plane binary runs");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let mut command = Command::new(control_plane());
        command.args(["git-server", &option, &format!("--listen={host}:0")]);
        if let Some((authorized_keys, host_keys)) = ssh {
            let file = state.path().join("authorized_keys");
            std::fs::write(&file, authorized_keys).expect("the keys can be written");
            command.arg(format!("--ssh={}", file.display()));
            command.arg(format!("--ssh-host-keys={host_keys}"));
        }
        command.arg(format!("--watch-parent={}", std::process::id()));
        match sign_in {
            SignIn::Nobody => {}
            SignIn::Password(password) => {
                command.args(["--user=ci", &format!("--password={password}")]);
            }
            SignIn::Token(token) => {
                command.arg(format!("--token={token}"));
            }
        }
        let (process, address) = spawn(command);
        Self {
            state,
            address,
            process,
        }
    }

    /// Starts a server that was stopped, on the same port and with the same key.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let mut command = Command::new(control_plane());
        command.args(["git-server", "--resume"]);
        command.arg(format!("--state={}", self.state.path().display()));
        (self.process, _) = spawn(command);
    }

    /// Returns the URL of the repository.
    pub(crate) fn url(&self) -> String {
        format!("{}/modules.git", self.address)
    }

    /// Returns host and port of the ssh server.
    pub(crate) fn ssh_address(&self) -> String {
        self.text("ssh-address")
    }

    /// Returns the URL of the repository over ssh.
    pub(crate) fn ssh_url(&self) -> String {
        format!("ssh://git@{}/modules.git", self.ssh_address())
    }

    /// Returns the host's public keys, as `known_hosts` has them behind the name.
    pub(crate) fn ssh_host_keys(&self) -> Vec<String> {
        self.text("ssh-host-keys")
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Returns what was asked over ssh since the start: the commands, and the attempts to sign in that came to nothing.
    pub(crate) fn ssh_sessions(&self) -> Vec<String> {
        let log = self.text("access.log");
        log.lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .filter(|words| words[1] == "SSH")
            .map(|words| words[2].replace('_', " "))
            .collect()
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.state.path().join(file)).expect("the server has written it")
    }

    /// Returns the bare repository behind the server, so that tests can push without it.
    pub(crate) fn repository(&self) -> PathBuf {
        self.state.path().join("repositories/modules.git")
    }

    /// Returns the certificate authority of this server, in PEM.
    pub(crate) fn certificate_authority(&self) -> Vec<u8> {
        std::fs::read(self.certificate_authority_file())
            .expect("the server has written its authority")
    }

    /// Returns the file that holds the certificate authority.
    pub(crate) fn certificate_authority_file(&self) -> PathBuf {
        self.state.path().join("ca.crt")
    }

    /// Makes every further request fail: `deny`, `unauthorized`, `error`, `hang`, `truncate N` or `redirect FROM TO`, which
    /// concerns the requests whose path begins with FROM; empty for none.
    pub(crate) fn fault(&self, fault: &str) {
        std::fs::write(self.state.path().join("fault"), fault).expect("the fault can be written");
    }

    /// Returns what was asked since the start, each as git's command and the HTTP status: `advertise 401`.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.state.path().join("access.log"))
            .expect("the server keeps a log");
        log.lines()
            .map(|line| {
                let words: Vec<_> = line.split(' ').collect();
                format!("{} {}", words[7], words[3])
            })
            .collect()
    }

    /// Returns how many connections these requests came by.
    pub(crate) fn connections(&self) -> usize {
        let log = std::fs::read_to_string(self.state.path().join("access.log"))
            .expect("the server keeps a log");
        let clients: BTreeSet<_> = log.lines().map(|line| line.split(' ').nth(6)).collect();
        clients.len()
    }

    /// Stops the server; its address then refuses connections.
    pub(crate) fn stop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts a server and returns its address once it listens.
fn spawn(mut command: Command) -> (Child, String) {
    let mut process = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the control-plane binary runs");
    let mut address = String::new();
    BufReader::new(process.stdout.take().expect("stdout is piped"))
        .read_line(&mut address)
        .expect("the server prints its address");
    (process, address.trim().to_owned())
}

/// Returns the binary, built once.
fn control_plane() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/build");
        let built = Command::new(script)
            .stderr(Stdio::inherit())
            .output()
            .expect("the build script runs");
        assert!(
            built.status.success(),
            "tests/control-plane/build has failed"
        );
        PathBuf::from(String::from_utf8_lossy(&built.stdout).trim())
    })
}
