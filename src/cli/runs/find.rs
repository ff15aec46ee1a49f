//! From what somebody types to the one run that is meant.

use std::collections::BTreeMap;

use kube::ResourceExt as _;

use crate::cli::failure::Failure;
use crate::cli::install::none_if_unserved;
use crate::cli::resources::Home;
use crate::model::api::Run;

/// All runs of the agent's namespace, the newest last.
pub(in crate::cli) struct Known {
    pub(in crate::cli) runs: Vec<Run>,
}

/// What makes runs of one migration different from each other, besides the deploy: source, cluster and component.
type Place<'a> = (&'a str, &'a str, Option<&'a str>);

/// Reads all runs, sorted by their dates. A cluster that does not know the kind yet has none.
pub(in crate::cli) async fn all_runs(home: &Home) -> Result<Vec<Run>, Failure> {
    let listed = home.cluster.list::<Run>(&home.namespace, "").await;
    let mut runs = none_if_unserved(listed.map(Some))?.unwrap_or_default();
    runs.sort_by_cached_key(|run| (run.creation_timestamp(), run.name_any()));
    Ok(runs)
}

// === impl Known ===

impl Known {
    pub(in crate::cli) async fn read(home: &Home) -> Result<Self, Failure> {
        let runs = all_runs(home).await?;
        Ok(Self { runs })
    }

    /// Finds the run of a name. The name of its migration will do, where that can only mean one: the open run, or, where none is
    /// open, the last one.
    ///
    /// # Errors
    ///
    /// When there is none, or the migration has several; both name what there is.
    pub(super) fn find(&self, text: &str) -> Result<&Run, Failure> {
        if let Some(run) = self.runs.iter().find(|run| run.name_any() == text) {
            return Ok(run);
        }
        let candidates = self.candidates(text);
        match candidates.as_slice() {
            [one] => Ok(one),
            [] => Err(Failure::Misuse(self.nothing_like(text))),
            several => {
                let names: Vec<String> = several.iter().map(|run| named(run)).collect();
                Err(Failure::Misuse(format!(
                    "`{text}` has several runs; say which one you mean:\n  {}",
                    names.join("\n  ")
                )))
            }
        }
    }

    /// Returns all runs by their names, as lists show them: those of one migration stand together.
    pub(super) fn by_name(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        runs.sort_by_cached_key(|run| run.name_any());
        runs
    }

    /// Returns the shortest name by which a run is found.
    pub(super) fn short_name(&self, run: &Run) -> String {
        let migration = &run.spec.migration;
        let alone =
            matches!(self.candidates(migration)[..], [one] if one.name_any() == run.name_any());
        // A migration could be called as another one's run is.
        if alone && !self.runs.iter().any(|one| one.name_any() == *migration) {
            migration.clone()
        } else {
            run.name_any()
        }
    }

    /// Returns whether this is the last run of its migration at its place: one that has failed holds something back only then.
    pub(super) fn is_last(&self, run: &Run) -> bool {
        let of = |one: &&Run| one.spec.migration == run.spec.migration && place(one) == place(run);
        let last = self.runs.iter().rfind(of);
        last.is_some_and(|last| last.name_any() == run.name_any())
    }

    fn candidates(&self, migration: &str) -> Vec<&Run> {
        let all = self
            .runs
            .iter()
            .filter(|run| run.spec.migration == migration);
        let mut last: BTreeMap<Place<'_>, &Run> = BTreeMap::new();
        for run in all {
            // The newest is last, but an open one counts more than one that is over.
            let kept = last
                .get(&place(run))
                .is_none_or(|other| is_over(other) || !is_over(run));
            if kept {
                last.insert(place(run), run);
            }
        }
        let open: Vec<&Run> = last.values().copied().filter(|run| !is_over(run)).collect();
        if open.is_empty() {
            last.into_values().collect()
        } else {
            open
        }
    }

    fn nothing_like(&self, text: &str) -> String {
        let mut migrations: Vec<&str> = self
            .runs
            .iter()
            .map(|run| run.spec.migration.as_str())
            .collect();
        migrations.sort_unstable();
        migrations.dedup();
        if migrations.is_empty() {
            format!(
                "there is no run `{text}`, and no other: a migration that is not needed leaves none. `fairway migration plan` says what each \
                 one would decide"
            )
        } else {
            format!(
                "there is no run `{text}`, and no migration of that name has one; there are: {} (fairway get runs --all)",
                migrations.join(", ")
            )
        }
    }
}

/// Returns whether a run has come to its end.
pub(super) fn is_over(run: &Run) -> bool {
    run.status
        .as_ref()
        .is_some_and(|status| status.phase.is_over())
}

fn place(run: &Run) -> Place<'_> {
    let spec = &run.spec;
    (&spec.source, &spec.cluster, spec.component.as_deref())
}

/// Names a run with what tells it apart from others of its migration.
fn named(run: &Run) -> String {
    let spec = &run.spec;
    let component = spec.component.as_deref().unwrap_or("the whole deploy");
    format!(
        "{} ({component} of {} on {})",
        run.name_any(),
        spec.source,
        spec.cluster
    )
}
