//! The agent as a process, and the command line.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::canaries;

pub(crate) const FAIRWAY: &[&str] = &[env!("CARGO_BIN_EXE_fairway")];

/// The agent as a process, killed when it is dropped.
pub(crate) struct Agent {
    child: Child,
    log: PathBuf,
    audit: PathBuf,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the agent is tested as the process that it is"
)]
pub(crate) fn command(program: &[&str]) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).env_remove("KUBECONFIG");
    command
}

// === impl Agent ===

impl Agent {
    /// Starts the agent for a namespace, with its folders and files in a directory.
    pub(crate) fn start(
        program: &[&str],
        kubeconfig: &Path,
        namespace: &str,
        directory: &Path,
        arguments: &[&str],
    ) -> Self {
        let (log, audit) = (directory.join("agent.log"), directory.join("audit.jsonl"));
        let open = |path: &Path| {
            let file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            Stdio::from(file.expect("the log can be written"))
        };
        // One that is killed and started again keeps its name, as a container in its pod does, and goes on at once.
        let named = arguments.contains(&"--identity");
        let identity: &[&str] = if named { &[] } else { &["--identity", "agent"] };
        // Much is logged so that there is much to search; the whole dependency tree is logged where somebody asks for it.
        let filter = super::environment("FAIRWAY_TEST_LOG");
        let filter = filter.as_deref().unwrap_or("info,fairway=trace");
        let child = command(program)
            .env("FAIRWAY_LOG", filter)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args([
                "--namespace",
                namespace,
                "agent",
                "--listen",
                "127.0.0.1:0",
                "--cache-dir",
            ])
            .arg(directory.join("cache"))
            .args(identity)
            .args(arguments)
            .stdout(open(&audit))
            .stderr(open(&log))
            .spawn()
            .expect("the binary is built");
        Self { child, log, audit }
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Returns whether the process has not ended yet.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the process as the kernel does when memory runs out.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the process to stop, and returns how long that took and whether it ended well.
    pub(crate) fn terminate(&mut self) -> (Duration, bool) {
        let begun = Instant::now();
        let asked = signal(self.child.id(), "TERM");
        assert!(
            asked,
            "the agent has ended before it was told to; {}",
            self.log()
        );
        let status = self.child.wait().expect("it is our child");
        (begun.elapsed(), status.success())
    }

    /// Returns everything that was logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the address of the private port, which the agent logs when it has started.
    pub(crate) fn address(&self) -> String {
        let log = self.log();
        let started = log
            .lines()
            .find_map(|line| line.split_once("\"agent.address\":\""));
        let (address, _) = started
            .and_then(|(_, rest)| rest.split_once('"'))
            .expect("it has started");
        address.to_owned()
    }

    /// Returns the audit lines.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.audit).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "--- the agent's log ---\n{}", self.log());
        }
        canaries::search("the agent's log", &self.log());
        let audit = std::fs::read_to_string(&self.audit).unwrap_or_default();
        canaries::search("the audit lines", &audit);
    }
}

/// Sends a signal by its name.
#[expect(
    clippy::disallowed_methods,
    reason = "the standard library sends SIGKILL only"
)]
pub(crate) fn signal(process: u32, name: &str) -> bool {
    let status = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    status.is_ok_and(|status| status.success())
}
