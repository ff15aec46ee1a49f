//! Rules for steps that leave the API: Jobs and requests.

use super::steps::StepRules;
use crate::desired::finding::Finding;
use crate::model::Code;
use crate::model::migration::{HttpStep, JobStep};

/// Programs that take a text and do what it says.
const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "ash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "busybox",
    "cmd",
    "powershell",
    "pwsh",
];

impl StepRules<'_> {
    pub(super) fn check_job(&self, job: &JobStep) -> Vec<Finding> {
        let mut found = Vec::new();
        // `env bash -c …` is a shell as well.
        let programs = job.command.iter().map(|word| ("command", word));
        let programs = programs.chain(job.args.iter().take(1).map(|word| ("args", word)));
        for (field, word) in programs {
            let name = word.rsplit('/').next().unwrap_or(word);
            if SHELLS.contains(&name.trim_end_matches(".exe")) {
                let message = format!("`{word}` is a shell; a Job runs a program");
                found.push(self.wrong(&["job", field], &message).help(
                    "put the logic into a program of the image, or write it as steps; see docs/write-a-migration.md",
                ));
                break;
            }
        }
        match self.constant(&job.image) {
            Some(image) if has_digest(&image) => {}
            Some(image) => {
                let (name, given) = image.split_once('@').unwrap_or((&image, ""));
                let message = if given.is_empty() {
                    format!("`{image}` has no digest: another program could run tomorrow")
                } else {
                    format!("`{given}` is no digest: it is sha256: with 64 hexadecimal digits")
                };
                found.push(self.wrong(&["job", "image"], &message).help(format!(
                    "image: {name}@sha256:DIGEST\nDIGEST is what this prints: docker buildx imagetools inspect {name}"
                )));
            }
            None => found.push(
                self.wrong(&["job", "image"], "the image must be known from git alone")
                    .help("image: REGISTRY/NAME@sha256:DIGEST"),
            ),
        }
        for (name, secret) in &job.env_from_secrets {
            if secret
                .namespace
                .as_ref()
                .is_some_and(|other| *other != job.namespace)
            {
                let mut at = self.at(&["job", "envFromSecrets"]);
                at.push(name.as_str().into());
                let message = format!(
                    "a Job reads Secrets of its own namespace, {}",
                    job.namespace
                );
                found.push(Finding::error(Code::MigrationStep, at, message));
            }
        }
        found
    }

    pub(super) fn check_http(&self, http: &HttpStep) -> Vec<Finding> {
        let mut found = Vec::new();
        for name in http.headers.keys() {
            if [
                "authorization",
                "cookie",
                "host",
                "idempotency-key",
                "content-length",
            ]
            .contains(&name.to_ascii_lowercase().as_str())
            {
                let mut at = self.at(&["http", "headers"]);
                at.push(name.as_str().into());
                let message = format!("the header `{name}` is not for a definition to set");
                found.push(Finding::error(Code::MigrationStep, at, message).at_key().help(
                    "tokens: bearerToken: {namespace: …, name: …, key: …}; the key of a request: idempotencyKey: …",
                ));
            }
        }
        if http
            .bearer_token
            .as_ref()
            .is_some_and(|it| it.namespace.is_none())
        {
            found.push(
                self.wrong(&["http", "bearerToken"], "the Secret has no namespace")
                    .help("namespace: NAMESPACE"),
            );
        }
        let statuses = http.expect.iter().chain(&http.retry_on);
        if let Some(status) = statuses.copied().find(|it| !(100..=599).contains(it)) {
            found.push(self.wrong(&["http"], &format!("{status} is no status")));
        }
        found
    }
}

/// Returns whether an image is named by its digest.
fn has_digest(image: &str) -> bool {
    image.split_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty()
            && digest.len() == 64
            && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
