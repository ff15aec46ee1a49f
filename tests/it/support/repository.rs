//! A working clone that a test edits, commits and pushes, with the real `git`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A working clone with a remote.
pub(crate) struct Repository {
    directory: PathBuf,
}

impl Repository {
    /// Makes a repository in an empty directory. Certificates of `ca` are trusted for its remote.
    pub(crate) fn create(directory: &Path) -> Self {
        std::fs::create_dir_all(directory).expect("the directory can be made");
        let repository = Self {
            directory: directory.to_owned(),
        };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.git(&["config", "user.name", "Ada Example"]);
        repository.git(&["config", "user.email", "ada@example.com"]);
        repository.git(&["config", "commit.gpgsign", "false"]);
        repository
    }

    /// Sets where `push` goes.
    pub(crate) fn remote(&self, url: &str, ca: Option<&Path>) {
        self.git(&["remote", "add", "origin", url]);
        if let Some(ca) = ca {
            self.git(&[
                "config",
                "http.sslCAInfo",
                ca.to_str().expect("test paths are UTF-8"),
            ]);
        }
    }

    /// Returns the working directory.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.directory.join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder"))
            .expect("folders can be made");
        std::fs::write(path, content).expect("the file can be written");
    }

    /// Removes a file or a folder.
    pub(crate) fn remove(&self, path: &str) {
        let path = self.directory.join(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).expect("the folder can be removed");
        } else {
            std::fs::remove_file(path).expect("the file can be removed");
        }
    }

    /// Commits everything and returns the commit's id.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Pushes `main`, also backwards.
    pub(crate) fn push(&self) {
        self.git(&["push", "--quiet", "--force", "origin", "main"]);
    }

    /// Commits and pushes; returns the commit's id.
    pub(crate) fn publish(&self, message: &str) -> String {
        let commit = self.commit(message);
        self.push();
        commit
    }

    /// Runs git in the directory and returns its trimmed output.
    #[expect(
        clippy::disallowed_methods,
        reason = "a person's git is the real program"
    )]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(&self.directory)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .args(arguments)
            .output()
            .expect("git is installed");
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}
