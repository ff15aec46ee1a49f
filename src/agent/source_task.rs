//! Fetching: keeps the last good snapshot of one source, and says why a newer one could not be had.
//!
//! What comes out is a [`SourceState`], replaced as a whole after each attempt, and a ring of the target's bell. A failed
//! fetch never takes a snapshot away.

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::bell::Bell;
use super::clock;
use crate::cluster::Cluster;
use crate::model::api::{
    self, Decision, DecisionKind, GitReference, ReleaseSource, ReleaseSourceSpec, SecretReference,
};
use crate::model::{Snapshot, SourceName, limits, names};
use crate::report::{FetchFailure, Metrics};
use crate::source::{
    CertificateAuthorities, CommitId, Credentials, FetchRequest, Fetched, Mirror, MirrorLimits,
    Reference, Signers, SourceError, SourceUrl, Verification, VerifyMode, Watch, WorkingTree,
};

/// What is known of a source.
#[derive(Debug, Clone, Default)]
pub(super) struct SourceState {
    /// The last good snapshot; a rewound one only once it is approved.
    pub(super) snapshot: Option<Snapshot>,
    /// How the last attempt went; none before the first has ended.
    pub(super) attempt: Option<Result<(), FetchFailure>>,
    /// The annotation's value that the last attempt has answered.
    pub(super) requested_at: Option<String>,
}

/// Fetches one source again and again.
pub(super) struct SourceTask {
    pub(super) source: SourceName,
    pub(super) cluster: Cluster,
    pub(super) namespace: String,
    pub(super) cache: PathBuf,
    pub(super) resource: watch::Receiver<Arc<ReleaseSource>>,
    pub(super) state: watch::Sender<SourceState>,
    pub(super) target: Bell,
    pub(super) metrics: Arc<Metrics>,
    pub(super) stop: CancellationToken,
}

/// Where the files come from; made anew when URL, reference or path change.
enum Origin {
    Mirror(Mirror),
    /// A local directory, followed as it is edited.
    Directory(
        WorkingTree,
        #[expect(dead_code, reason = "watches until it is dropped")] Watch,
    ),
}

/// What an attempt depends on: when any of it changes, there is an attempt at once.
#[derive(Clone, PartialEq)]
struct Wanted {
    spec: ReleaseSourceSpec,
    requested_at: Option<String>,
    decision: Option<Decision>,
}

// === impl SourceTask ===

impl SourceTask {
    pub(super) async fn run(mut self) {
        let changed = Arc::new(Notify::new());
        let mut origin: Option<(ReleaseSourceSpec, Origin)> = None;
        let mut failures = 0;
        loop {
            let resource = Arc::clone(&self.resource.borrow_and_update());
            let wanted = Wanted::of(&resource);
            if !wanted.spec.suspend {
                if origin
                    .as_ref()
                    .is_some_and(|(spec, _)| !same_repository(spec, &wanted.spec))
                {
                    origin = None;
                }
                let attempt = tokio::select! {
                    attempt = self.attempt(&resource, &wanted, &mut origin, &changed) => attempt,
                    () = self.stop.cancelled() => return,
                };
                failures = if attempt.is_ok() { 0 } else { failures + 1 };
                self.publish(attempt, &wanted);
            }
            let pause = pause(&wanted.spec, failures);
            if self
                .idle(&wanted, Instant::now() + pause, &changed)
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// Waits for a reason to try again; an error means that it is time to end.
    async fn idle(&mut self, wanted: &Wanted, until: Instant, changed: &Notify) -> Result<(), ()> {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Err(()),
                () = tokio::time::sleep_until(until) => return Ok(()),
                () = changed.notified() => return Ok(()),
                result = self.resource.changed() => {
                    result.map_err(drop)?;
                    if Wanted::of(&self.resource.borrow_and_update()) != *wanted {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn publish(&self, attempt: Result<Snapshot, FetchFailure>, wanted: &Wanted) {
        self.metrics
            .fetched(&self.source, attempt.as_ref().map(drop));
        self.state.send_modify(|state| {
            match attempt {
                Ok(snapshot) => {
                    state.snapshot = Some(snapshot);
                    state.attempt = Some(Ok(()));
                }
                Err(failure) => {
                    tracing::warn!(
                        source.name = %self.source,
                        error = %failure.message,
                        help = failure.help.as_deref().unwrap_or_default(),
                        "failed to fetch"
                    );
                    state.attempt = Some(Err(failure));
                }
            }
            state.requested_at.clone_from(&wanted.requested_at);
        });
        self.target.ring();
    }

    async fn attempt(
        &self,
        resource: &ReleaseSource,
        wanted: &Wanted,
        origin: &mut Option<(ReleaseSourceSpec, Origin)>,
        changed: &Arc<Notify>,
    ) -> Result<Snapshot, FetchFailure> {
        if origin.is_none() {
            let opened = self
                .open(&wanted.spec, changed)
                .map_err(|error| failure(&error))?;
            *origin = Some((wanted.spec.clone(), opened));
        }
        match origin {
            Some((_, Origin::Directory(tree, _))) => {
                tree.snapshot().map_err(|error| failure(&error))
            }
            Some((_, Origin::Mirror(mirror))) => self.fetch(resource, wanted, mirror).await,
            None => unreachable!("it was opened above"),
        }
    }

    fn open(&self, spec: &ReleaseSourceSpec, changed: &Arc<Notify>) -> Result<Origin, SourceError> {
        let url = SourceUrl::parse(&spec.url)?;
        let directory = std::path::Path::new(&spec.url);
        // A bare repository is fetched from like any other; a working tree is followed as it is edited.
        if url.is_local()
            && directory.join(".git").exists()
            && spec.reference == GitReference::default()
            && spec.verify.is_none()
        {
            let tree = WorkingTree::open(&directory.join(&spec.path))?;
            let changed = Arc::clone(changed);
            let watch = Watch::start(tree.root(), move || changed.notify_one())?;
            return Ok(Origin::Directory(tree, watch));
        }
        Ok(Origin::Mirror(Mirror::new(
            &self.cache,
            url,
            MirrorLimits::default(),
        )))
    }

    async fn fetch(
        &self,
        resource: &ReleaseSource,
        wanted: &Wanted,
        mirror: &Mirror,
    ) -> Result<Snapshot, FetchFailure> {
        let credentials = self.credentials(&wanted.spec).await?;
        let reference = reference(&wanted.spec.reference).map_err(|error| failure(&error))?;
        let last = self.last_commit(resource, &reference);
        let (last_tag, last) = last.unzip();
        let request = FetchRequest {
            reference: reference.clone(),
            path: wanted.spec.path.clone(),
            last,
            last_tag: last_tag.clone(),
        };
        let fetched = mirror
            .fetch(request, credentials)
            .await
            .map_err(|error| failure(&error))?;
        let snapshot = match fetched {
            Fetched::Unmoved(snapshot) | Fetched::Moved(snapshot) => snapshot,
            Fetched::Rewound { from, to, snapshot } => {
                let approved = wanted.decision.as_ref().is_some_and(|decision| {
                    decision.approves(DecisionKind::Rewind, &to.to_string())
                });
                if !approved {
                    let last = last_tag.unwrap_or_default();
                    return Err(self.rewound(&reference, (&last, &from), &to, &snapshot));
                }
                snapshot
            }
        };
        self.verify(resource, &wanted.spec, mirror, &snapshot)
            .await?;
        Ok(snapshot)
    }

    /// Checks the signatures, where somebody has to have signed. It is done at each poll, so that a signer who is no longer allowed,
    /// or a key that has expired, is noticed without a new commit.
    async fn verify(
        &self,
        resource: &ReleaseSource,
        spec: &ReleaseSourceSpec,
        mirror: &Mirror,
        snapshot: &Snapshot,
    ) -> Result<(), FetchFailure> {
        let Some(wanted) = &spec.verify else {
            return Ok(());
        };
        let secret = self
            .secret(
                &wanted.secret_ref,
                "the allowed signers",
                "create it with the key `allowed_signers`, or with OpenPGP certificates in keys `*.asc`",
            )
            .await?;
        let data = secret.data.unwrap_or_default();
        let files = data
            .iter()
            .map(|(key, content)| (key.as_str(), &content.0[..]));
        let check = async {
            let signers = Arc::new(Signers::from_files(files)?);
            let is_tag = spec.reference.tag.is_some() || spec.reference.semver.is_some();
            let by_tag = is_tag && spec.reference.commit.is_none();
            let label = snapshot.revision.reference.clone();
            let verification = Verification {
                mode: match wanted.mode {
                    api::VerifyMode::Head => VerifyMode::Head,
                    api::VerifyMode::EachCommit => VerifyMode::EachCommit,
                },
                signers,
                tag: by_tag.then_some(label),
                from: self.last_read(resource).map(|(_, commit)| commit),
                to: snapshot.revision.hash().parse()?,
                now: clock::now().as_second(),
            };
            mirror.verify(verification).await
        };
        check.await.map_err(|error| failure(&error))
    }

    fn rewound(
        &self,
        reference: &Reference,
        (last, from): (&str, &CommitId),
        to: &CommitId,
        snapshot: &Snapshot,
    ) -> FetchFailure {
        let label = &snapshot.revision.reference;
        let commit = format!(
            "{to} ({:?} by {})",
            snapshot.commit.subject, snapshot.commit.author
        );
        let (message, mend) = match reference {
            Reference::Range(range) if label != last => (
                format!(
                    "the highest tag in the range `{range}` is now {label}, {commit}; {last} is applied"
                ),
                format!("push {last} again, or a higher tag"),
            ),
            Reference::Tag(_) | Reference::Range(_) => (
                format!("the tag {label} was moved to {commit} from {from}, which is applied"),
                format!("move {label} back, or publish a new version"),
            ),
            Reference::Branch(_) | Reference::Commit(_) => (
                format!("{label} was rewound: {commit} does not contain {from}, which is applied"),
                format!("push a commit that contains {from}"),
            ),
        };
        FetchFailure {
            message,
            help: Some(format!(
                "{mend}, or, if this is meant: fairway approve rewind {} --reason '…'",
                self.source
            )),
            rewound_to: Some(to.to_string()),
            ..FetchFailure::default()
        }
    }

    /// Returns the commit that is applied from this reference, with the name it was found by; none when a person has changed the
    /// reference to something else.
    fn last_commit(
        &self,
        resource: &ReleaseSource,
        reference: &Reference,
    ) -> Option<(String, CommitId)> {
        self.last_read(resource)
            .filter(|(label, _)| reference.may_have_given(label))
    }

    /// Returns what was read and accepted last: the last snapshot, and after a restart what the status names.
    fn last_read(&self, resource: &ReleaseSource) -> Option<(String, CommitId)> {
        if let Some(snapshot) = &self.state.borrow().snapshot {
            let revision = &snapshot.revision;
            return Some((revision.reference.clone(), revision.hash().parse().ok()?));
        }
        let text = resource.status.as_ref()?.last_attempted_revision.as_ref()?;
        let (label, hash) = text.rsplit_once("@sha1:")?;
        Some((label.to_owned(), hash.parse().ok()?))
    }

    async fn credentials(&self, spec: &ReleaseSourceSpec) -> Result<Credentials, FetchFailure> {
        let Some(reference) = &spec.secret_ref else {
            return Ok(Credentials::default());
        };
        let secret = self
            .secret(
                reference,
                "the credentials",
                "create it with the keys `username` and `password`, or `bearerToken`; for ssh `identity` and `known_hosts`",
            )
            .await?;
        credentials_from(&secret, &spec.url).map_err(|error| failure(&error))
    }

    async fn secret(
        &self,
        reference: &SecretReference,
        with: &str,
        help: &str,
    ) -> Result<Secret, FetchFailure> {
        let name = &reference.name;
        let failure = |message, help: &str| FetchFailure {
            message,
            help: Some(help.to_owned()),
            retryable: true,
            ..FetchFailure::default()
        };
        let secret = self.cluster.get::<Secret>(&self.namespace, name).await;
        secret
            .map_err(|error| {
                failure(
                    format!("the Secret `{name}` with {with} cannot be read: {error}"),
                    "allow the agent's ServiceAccount to `get` this Secret",
                )
            })?
            .ok_or_else(|| {
                let namespace = &self.namespace;
                failure(
                    format!("the Secret `{name}` does not exist in {namespace}"),
                    help,
                )
            })
    }
}

// === impl Wanted ===

impl Wanted {
    fn of(resource: &ReleaseSource) -> Self {
        let annotations = resource.metadata.annotations.as_ref();
        Self {
            spec: resource.spec.clone(),
            requested_at: annotations
                .and_then(|all| all.get(names::ANNOTATION_REQUESTED_AT).cloned()),
            decision: Decision::of(resource),
        }
    }
}

fn same_repository(one: &ReleaseSourceSpec, other: &ReleaseSourceSpec) -> bool {
    one.url == other.url
        && one.reference == other.reference
        && one.path == other.path
        && one.verify == other.verify
}

fn reference(reference: &GitReference) -> Result<Reference, SourceError> {
    Ok(match reference {
        GitReference {
            commit: Some(commit),
            ..
        } => Reference::Commit(commit.parse()?),
        GitReference {
            semver: Some(range),
            ..
        } => Reference::Range(range.parse()?),
        GitReference { tag: Some(tag), .. } => Reference::Tag(tag.clone()),
        GitReference {
            branch: Some(branch),
            ..
        } => Reference::Branch(branch.clone()),
        GitReference { .. } => Reference::Branch("main".to_owned()),
    })
}

/// Reads a Secret with the keys that Flux uses, too.
fn credentials_from(secret: &Secret, url: &str) -> Result<Credentials, SourceError> {
    let value = |key: &str| {
        let bytes = &secret.data.as_ref()?.get(key)?.0;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    if SourceUrl::parse(url)?.is_ssh() {
        let text = |key| value(key).unwrap_or_default();
        let (public, passphrase) = (value("identity.pub"), value("password"));
        return Credentials::ssh(text("identity"), public, passphrase, &text("known_hosts"));
    }
    let credentials = match (value("bearerToken"), value("username"), value("password")) {
        (Some(token), _, _) => Credentials::bearer(token)?,
        (None, Some(username), Some(password)) => Credentials::basic(username, password)?,
        _ => Credentials::default(),
    };
    match value("ca.crt") {
        Some(bundle) => {
            Ok(credentials.trusting(CertificateAuthorities::from_pem(bundle.as_bytes())?))
        }
        None => Ok(credentials),
    }
}

fn failure(error: &SourceError) -> FetchFailure {
    FetchFailure {
        message: error.to_string(),
        help: Some(error.help()),
        retryable: error.is_retryable(),
        unverified: matches!(
            error,
            SourceError::SignatureRefused { .. } | SourceError::TooManyCommits { .. }
        ),
        ..FetchFailure::default()
    }
}

/// Returns how long to wait before the next attempt: the interval with up to a tenth less, so that many sources do not ask
/// at the same moment; after failures less than that, doubled each time.
fn pause(spec: &ReleaseSourceSpec, failures: u32) -> Duration {
    let interval = spec.interval();
    if failures > 0 {
        let doubled = limits::FETCH_RETRY_MIN * 2u32.pow(failures.min(16) - 1);
        return doubled.min(interval);
    }
    // Spread by the address of a fresh hasher's keys: no clock and no random number generator of our own.
    let spread = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) % 100;
    interval.mul_f64(1.0 - f64::from(u8::try_from(spread).unwrap_or(0)) / 1_000.0)
}
