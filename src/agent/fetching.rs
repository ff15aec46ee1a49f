//! One fetch of one source: with which credentials, from where on, whether the result may be taken, and what is said when it may
//! not.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;

use super::clock;
use super::source_task::{Origin, SourceTask, Wanted};
use crate::model::Snapshot;
use crate::model::api::{
    self, DecisionKind, GitReference, HOME, ReleaseSource, ReleaseSourceSpec, SecretReference,
};
use crate::report::{DecisionAction, FetchFailure};
use crate::source::{
    CertificateAuthorities, CommitId, Credentials, FetchRequest, Fetched, Mirror, Reference,
    Signers, SourceError, SourceUrl, Verification, VerifyMode,
};

impl SourceTask {
    pub(super) async fn fetch(
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
                // Both ends are named: the way back to the same commit is another decision from another commit.
                let step = format!("{from}..{to}");
                let approval = wanted
                    .decision
                    .as_ref()
                    .filter(|decision| decision.approves(DecisionKind::Rewind, &step));
                if approval.is_none() {
                    let last = last_tag.unwrap_or_default();
                    return Err(self.rewound(&reference, (&last, &from), &to, &snapshot));
                }
                let whose = (self.namespace.as_str(), &self.source, HOME);
                let details = [format!("from {from}")];
                self.outlets
                    .decided(whose, DecisionAction::ApproveRewind, approval, &details);
                snapshot
            }
        };
        self.verify(resource, &wanted.spec, mirror, &snapshot)
            .await?;
        Ok(snapshot)
    }

    /// After a restart, takes what was applied last from the mirror when no newer revision can be had, so that drift is put
    /// right all the same.
    pub(super) async fn go_on_with_stored(
        &self,
        resource: &ReleaseSource,
        wanted: &Wanted,
        origin: Option<&(ReleaseSourceSpec, Origin)>,
        failure: &mut FetchFailure,
    ) {
        let (Some((_, Origin::Mirror(mirror))), Ok(reference)) =
            (origin, reference(&wanted.spec.reference))
        else {
            return;
        };
        if self.state.borrow().snapshot.is_some() {
            return;
        }
        let (last_tag, last) = self.last_commit(resource, &reference).unzip();
        let path = wanted.spec.path.clone();
        let request = FetchRequest {
            reference,
            path,
            last,
            last_tag,
        };
        match mirror.stored(request).await {
            Ok(Some(snapshot)) => {
                // It was accepted under the rules of its time; those of today may be stricter.
                let verified = self.verify(resource, &wanted.spec, mirror, &snapshot).await;
                if let Err(refused) = verified {
                    failure.message = format!(
                        "{}; what was applied last is not taken from the mirror either: {}",
                        failure.message, refused.message
                    );
                    return;
                }
                tracing::info!(
                    source.name = %self.source,
                    source.revision = %snapshot.revision,
                    "going on with the revision that the mirror holds"
                );
                self.state
                    .send_modify(|state| state.snapshot = Some(snapshot));
            }
            // The fetch that has failed is still at it; the next attempt looks again.
            Ok(None) | Err(SourceError::Busy { .. }) => {}
            Err(error) => {
                failure.message = format!(
                    "{}; what was applied last cannot be taken from the mirror either: {error}",
                    failure.message
                );
            }
        }
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
        let found = self.cluster.get::<Secret>(&self.namespace, name).await;
        let found = found.map_err(|error| {
            failure(
                format!("the Secret `{name}` with {with} cannot be read: {error}"),
                "allow the agent's ServiceAccount to `get` this Secret",
            )
        })?;
        if let Some(watch) = self.secret.as_ref().filter(|watch| watch.name() == name) {
            watch.read(found.as_ref());
        }
        found.ok_or_else(|| {
            let namespace = &self.namespace;
            failure(
                format!("the Secret `{name}` does not exist in {namespace}"),
                help,
            )
        })
    }
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

pub(super) fn failure(error: &SourceError) -> FetchFailure {
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
