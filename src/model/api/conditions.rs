//! The words of conditions and events: stable, since scripts, alerts and people match them.

macro_rules! words {
    ($(#[doc = $summary:literal])+ $name:ident { $($(#[doc = $doc:literal])+ $word:ident,)+ }) => {
        $(#[doc = $summary])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $doc])+ $word,)+
        }

        impl $name {
            /// Every word, in the order of the reference page.
            pub const ALL: &[Self] = &[$(Self::$word,)+];

            /// Returns the word as it is written.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => stringify!($word),)+
                }
            }

            /// Returns what the word means, in Markdown.
            pub fn explanation(self) -> &'static str {
                match self {
                    $(Self::$word => concat!($($doc, "\n",)+),)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The type of a condition, on ReleaseSources and Targets alike.
    ConditionType {
        /// The sum of all others: `True` when the last revision that was fetched is applied in full, healthy, and nothing
        /// is held. `kubectl wait --for=condition=Ready` and kstatus read it.
        Ready,
        /// Only there while `True`: the agent is at work, or tries again by itself.
        Reconciling,
        /// Only there while `True`: nothing changes before a person does something; the message says what.
        Stalled,
        /// The repository could be read at the last attempt.
        Fetched,
        /// What the repository holds at this revision has no errors.
        Valid,
        /// Everything that git wants was accepted by the cluster.
        Applied,
        /// Nothing that git has dropped is left on the cluster.
        Pruned,
        /// Every migration of the revision has ended well, or had nothing to do. Only there while the revision has migrations.
        Migrated,
        /// The catalogs of all runtimes are as the last revision wants them. Only there while `spec.runtimes.catalog` is not `Off`.
        CatalogSynced,
    }
}

impl ConditionType {
    /// Returns whether a type is one that we write. Others may set conditions of their own beside ours.
    pub fn is_ours(text: &str) -> bool {
        Self::ALL.iter().any(|known| known.as_str() == text)
    }
}

words! {
    /// The reason of a condition.
    ConditionReason {
        /// The revision is applied in full, is healthy, and nothing is held.
        Synced,
        /// Part of the revision is held; the rest is applied. The message names each file with its line, the commit's author
        /// and what would mend it.
        PartiallyApplied,
        /// The revision is applied in full, but another source wants some of the same objects. They stay as this one has them;
        /// remove them from one of the two repositories.
        Conflict,
        /// The agent is applying the revision, or waits for components to become healthy.
        Progressing,
        /// Something failed that the agent tries again by itself, each time after a longer delay.
        Retrying,
        /// The repository was read.
        Fetched,
        /// The repository could not be read this time: the network, a deadline, a server's error. What was applied stays, drift is
        /// still corrected, and fetching is tried again.
        FetchFailed,
        /// The git server refuses: credentials, an unknown host, a branch that does not exist. Trying again does not help; change
        /// the Secret or the ReleaseSource.
        FetchRefused,
        /// A commit or tag is not signed by an allowed signer, though `spec.verify` demands it. The message names it and what is wrong:
        /// not signed, unknown, expired, revoked or forged. The older revision stays.
        SignatureRefused,
        /// The branch no longer contains the commit that is applied, since somebody has rewritten it; or a tag was moved or has
        /// gone. The older revision stays until that is undone, or the rewind is approved.
        Rewound,
        /// The revision has no errors; there may be warnings.
        Valid,
        /// The revision has errors. Each is held by name; `fairway validate` shows them all with their way out.
        Invalid,
        /// The cluster has accepted everything.
        Applied,
        /// The cluster refused or did not answer some requests; they are tried again.
        ApplyFailed,
        /// Some objects are held on purpose; `status.holds` lists them with the reason of each.
        Held,
        /// Nothing is left to prune, but for what is kept on purpose.
        Pruned,
        /// Deletions wait for a person: they go beyond the limits in `spec.prune`, or concern something that is never deleted
        /// without being asked.
        ApprovalNeeded,
        /// Deletions wait because something could not be read: a file, a kind on the cluster, or the Target's record.
        PruneUnsafe,
        /// The cluster refused a deletion; it is tried again.
        PruneFailed,
        /// Every migration has ended well, or had nothing to do.
        Migrated,
        /// A migration waits for something that the message names; `fairway get runs` lists it.
        MigrationBlocked,
        /// A migration has failed, cannot run, or needs a person; the message names the command that ends it.
        MigrationFailed,
        /// Some runtimes are not there yet, or something is held on them; `kubectl get targets` shows which.
        Behind,
        /// The runtime, or more runtimes than `spec.runtimes.tolerate` allows, cannot be reached. What is there stays; it is tried
        /// again, each time after a longer delay, and at once when the kubeconfig Secret changes.
        Unreachable,
        /// The kubeconfig Secret of the runtime is missing, ambiguous, or holds what is not allowed. The message says what to change.
        AccessRefused,
        /// The ServiceAccount that `spec.serviceAccountName` names is not there, or the agent may not act as it; the message has the
        /// command. Nothing is read, applied or deleted for the source meanwhile; what was applied stays.
        AccountRefused,
        /// The kubeconfig leads to another cluster than before. Nothing is written there until somebody adopts it.
        IdentityChanged,
        /// Another manager keeps writing what the agent syncs. The agent has stopped; the message names the manager.
        Contested,
        /// There is no such runtime any more; its record stays for when it comes back.
        Gone,
        /// The ReleaseSource is being deleted, and what it has applied goes first; the message says what is in the way.
        Deleting,
    }
}

words! {
    /// The reason of a Kubernetes Event. An event is written when something changes, never once for each pass.
    EventReason {
        /// A new revision is applied in full.
        RevisionApplied,
        /// Somebody had changed an object, and it was brought back; the event names the object and the fields.
        DriftCorrected,
        /// Something new is held.
        HoldAppeared,
        /// A set of deletions waits for approval.
        DeletionHeld,
        /// Objects that git has dropped were deleted.
        PruneDone,
        /// The repository cannot be read any more.
        FetchFailed,
        /// The repository can be read again.
        FetchRecovered,
        /// A run of a migration has begun, or begun to be taken back.
        RunBegun,
        /// A step of a run has failed and is tried again; it is told once for each step, not for each try.
        RunStepFailed,
        /// A precondition of a run is false; the event says which.
        RunBlocked,
        /// A person must say what became of a step of a run.
        RunWaitsForPerson,
        /// A run has ended with the proof that its work is done.
        RunSucceeded,
        /// A run has ended without success; `fairway describe run` says what to do.
        RunFailed,
        /// A person has cancelled a run.
        RunCancelled,
        /// What a run had changed was taken back; the event says what was left, since somebody has changed it.
        RunUndone,
        /// A person has decided that what could not be taken back stays as it is; the event says which steps.
        RunUndoGivenUp,
    }
}

/// Returns the reference page of all conditions, reasons and events, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Conditions and events\n\n\
         <!-- Generated from src/model/api/conditions.rs; a test compares. -->\n\n\
         ReleaseSources and Targets carry the same conditions. The words are stable; messages are for people and may change.\n\
         A message names the file, line and column, the commit and its author.\n",
    );
    let types = ConditionType::ALL.iter();
    section(
        &mut page,
        "Condition types",
        types.map(|word| (word.as_str(), word.explanation())),
    );
    let reasons = ConditionReason::ALL.iter();
    section(
        &mut page,
        "Reasons",
        reasons.map(|word| (word.as_str(), word.explanation())),
    );
    let events = EventReason::ALL.iter();
    section(
        &mut page,
        "Events",
        events.map(|word| (word.as_str(), word.explanation())),
    );
    page
}

fn section(
    page: &mut String,
    title: &str,
    words: impl Iterator<Item = (&'static str, &'static str)>,
) {
    let rows: Vec<String> = words
        .map(|(word, explanation)| {
            let meaning: Vec<&str> = explanation.lines().map(str::trim).collect();
            format!("| `{word}` | {} |\n", meaning.join(" "))
        })
        .collect();
    let head = "| word | meaning |\n| --- | --- |\n";
    page.extend(["\n## ", title, "\n\n", head, &rows.concat()]);
}
