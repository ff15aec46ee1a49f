//! A git server over TLS, as a process of the `control-plane` binary, for the life of a value.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the server as a process"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

use super::control_plane::binary;

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

/// A running git server with one repository.
pub(crate) struct GitServer {
    state: PathBuf,
    /// The name of the repository.
    repository: String,
    address: String,
    /// None once another one has got it.
    process: Option<Child>,
    life: Life,
}

/// Who has a server after this one.
enum Life {
    /// Nobody: its directory goes with it.
    Own(#[expect(dead_code, reason = "it is there to be dropped")] TempDir),
    /// The next world, which signs in with this password. Each has a repository of its own, by which its requests are known.
    Lent(&'static str, AtomicBool),
}

/// Servers that run and that nobody has: what is needed to have one.
static IDLE: Mutex<Vec<(&'static str, PathBuf, String, Child)>> = Mutex::new(Vec::new());

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

    /// Returns a server that user `ci` gets into with a password, with an empty repository of a name that no other test uses. It may
    /// have served another test; it takes longer to start one than most tests take.
    pub(crate) fn lent(repository: &str, password: &'static str) -> Self {
        let found = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let found = idle.iter().position(|(known, ..)| *known == password);
            found.map(|found| idle.swap_remove(found))
        };
        let (state, address, process) = if let Some((_, state, address, process)) = found {
            (state, address, process)
        } else {
            let state = lasting_directory();
            let command = server_of(&state, "127.0.0.1", SignIn::Password(password));
            let (process, address) = spawn(command);
            (state, address, process)
        };
        make_repository(&state, repository);
        Self {
            state,
            repository: repository.to_owned(),
            address,
            process: Some(process),
            life: Life::Lent(password, AtomicBool::new(true)),
        }
    }

    fn start_with(host: &str, sign_in: SignIn, ssh: Option<(&str, &str)>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let state = directory.path().join("state");
        make_repository(&state, "modules");
        let mut command = server_of(&state, host, sign_in);
        if let Some((authorized_keys, host_keys)) = ssh {
            let file = directory.path().join("authorized_keys");
            std::fs::write(&file, authorized_keys).expect("the keys can be written");
            command.arg(format!("--ssh={}", file.display()));
            command.arg(format!("--ssh-host-keys={host_keys}"));
        }
        let (process, address) = spawn(command);
        Self {
            state,
            repository: "modules".to_owned(),
            address,
            process: Some(process),
            life: Life::Own(directory),
        }
    }

    /// Starts a server that was stopped, on the same port and with the same key.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let mut command = Command::new(binary());
        command.args(["git-server", "--resume"]);
        command.arg(format!("--state={}", self.state.display()));
        let (process, _) = spawn(command);
        self.process = Some(process);
    }

    /// Returns the URL of the repository.
    pub(crate) fn url(&self) -> String {
        format!("{}/{}.git", self.address, self.repository)
    }

    /// Returns host and port of the ssh server.
    pub(crate) fn ssh_address(&self) -> String {
        self.text("ssh-address")
    }

    /// Returns the URL of the repository over ssh.
    pub(crate) fn ssh_url(&self) -> String {
        format!("ssh://git@{}/{}.git", self.ssh_address(), self.repository)
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
        std::fs::read_to_string(self.state.join(file)).expect("the server has written it")
    }

    /// Returns the bare repository behind the server, so that tests can push without it.
    pub(crate) fn repository(&self) -> PathBuf {
        let name = format!("{}.git", self.repository);
        self.state.join("repositories").join(name)
    }

    /// Returns the certificate authority of this server, in PEM.
    pub(crate) fn certificate_authority(&self) -> Vec<u8> {
        std::fs::read(self.certificate_authority_file())
            .expect("the server has written its authority")
    }

    /// Returns the file that holds the certificate authority.
    pub(crate) fn certificate_authority_file(&self) -> PathBuf {
        self.state.join("ca.crt")
    }

    /// Makes every further request fail: `deny`, `unauthorized`, `error`, `hang`, `truncate N` or `redirect FROM TO`, which
    /// concerns the requests whose path begins with FROM; empty for none.
    pub(crate) fn fault(&self, fault: &str) {
        self.keep();
        std::fs::write(self.state.join("fault"), fault).expect("the fault can be written");
    }

    /// Returns what was asked since the start, each as git's command and the HTTP status: `advertise 401`.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = self.text("access.log");
        self.ours(&log)
            .map(|words| format!("{} {}", words[7], words[3]))
            .collect()
    }

    /// Returns how many connections these requests came by.
    pub(crate) fn connections(&self) -> usize {
        let log = self.text("access.log");
        let clients: BTreeSet<_> = self.ours(&log).map(|words| words[6]).collect();
        clients.len()
    }

    /// Returns the words of each line of the log that is of this one's repository.
    fn ours<'a>(&self, log: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
        let begin = format!("/{}.git", self.repository);
        let is_own = matches!(self.life, Life::Own(_));
        log.lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .filter(move |words| is_own || words[2].starts_with(&begin))
    }

    /// Stops the server; its address then refuses connections.
    pub(crate) fn stop(&mut self) {
        self.keep();
        if let Some(mut process) = self.process.take() {
            drop(process.kill());
            drop(process.wait());
        }
    }

    /// Gives it to nobody else, since it does not do what another one expects of it.
    fn keep(&self) {
        if let Life::Lent(_, may_be_lent) = &self.life {
            may_be_lent.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        match (&self.life, self.process.take()) {
            (Life::Lent(password, may_be_lent), Some(process))
                if may_be_lent.load(Ordering::Relaxed) && !std::thread::panicking() =>
            {
                drop(std::fs::remove_dir_all(self.repository()));
                let (state, address) = (self.state.clone(), self.address.clone());
                let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
                idle.push((password, state, address, process));
            }
            (life, process) => {
                if let Some(mut process) = process {
                    drop(process.kill());
                    drop(process.wait());
                }
                if matches!(life, Life::Lent(..)) {
                    drop(std::fs::remove_dir_all(&self.state));
                }
            }
        }
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

/// Returns the command that serves a directory.
fn server_of(state: &Path, host: &str, sign_in: SignIn) -> Command {
    let mut command = Command::new(binary());
    command.args(["git-server", &format!("--listen={host}:0")]);
    command.arg(format!("--state={}", state.display()));
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
    command
}

/// Makes an empty bare repository: a copy of one that `git-init` has made, which takes longer than the copy.
fn make_repository(state: &Path, name: &str) {
    static MADE: OnceLock<Vec<(PathBuf, Option<Vec<u8>>)>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let state = tempfile::tempdir().expect("a temporary directory can be made");
        let option = format!("--state={}", state.path().display());
        let made = Command::new(binary())
            .args(["git-init", &option, "modules"])
            .output()
            .expect("the control-plane binary runs");
        let told = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{told}");
        let mut content = Vec::new();
        read_whole(
            &state.path().join("repositories/modules.git"),
            Path::new(""),
            &mut content,
        );
        content
    });
    let repository = state.join("repositories").join(format!("{name}.git"));
    for (path, file) in made {
        let path = repository.join(path);
        match file {
            None => std::fs::create_dir_all(path).expect("the directory can be made"),
            Some(file) => std::fs::write(path, file).expect("the file can be written"),
        }
    }
}

/// Reads a folder with all below it, each folder before what it holds.
fn read_whole(folder: &Path, name: &Path, content: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
    content.push((name.to_owned(), None));
    for entry in std::fs::read_dir(folder).expect("it can be read") {
        let entry = entry.expect("it can be read");
        let name = name.join(entry.file_name());
        if entry.path().is_dir() {
            read_whole(&entry.path(), &name, content);
        } else {
            let file = std::fs::read(entry.path()).expect("it can be read");
            content.push((name, Some(file)));
        }
    }
}

/// Makes a directory that lasts as long as the process of the tests: the next one removes it.
fn lasting_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static SWEPT: OnceLock<()> = OnceLock::new();
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("git-servers");
    SWEPT.get_or_init(|| {
        let processes = Path::new("/proc");
        let is_over = |name: &OsStr| processes.exists() && !processes.join(name).exists();
        for folder in std::fs::read_dir(&all).into_iter().flatten().flatten() {
            if is_over(&folder.file_name()) {
                drop(std::fs::remove_dir_all(folder.path()));
            }
        }
    });
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    let directory = all.join(std::process::id().to_string()).join(number);
    std::fs::create_dir_all(&directory).expect("the directory can be made");
    directory
}
