//! Rules between migrations and the rest of the repository: what each belongs to, names, order, lifecycle, contests, hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::bind::{Bound, bind};
use super::contest::{Owned, check_contests};
use super::facts::MigrationFacts;
use super::lifecycle::{LifecycleState, Offers};
use super::order::{check_after, find_cycles};
use crate::desired::cache::LoadedFile;
use crate::desired::evaluate::Assembly;
use crate::desired::facts::Definition;
use crate::desired::finding::{Finding, SourceText, pointer};
use crate::desired::layout::Role;
use crate::desired::output::HeldMigration;
use crate::model::limits::{DIAGNOSTICS_MAX, FILE_SIZE_MAX, MIGRATIONS_MAX};
use crate::model::migration::{Migration, StepAction, host_is_allowed};
use crate::model::{Code, ComponentName, Diagnostic, Place, Snapshot};

/// One definition with what it belongs to.
struct Candidate<'a> {
    path: &'a str,
    facts: &'a MigrationFacts,
    bound: Bound,
    migration: Option<Arc<Migration>>,
    /// The first thing that is wrong.
    error: Option<(Place, String)>,
}

/// Puts the migrations together.
pub(in crate::desired) fn assemble(
    assembly: &mut Assembly<'_>,
    files: &[LoadedFile<'_>],
    snapshot: &Snapshot,
) {
    let mut candidates = collect(assembly, files, snapshot);
    hold_twice(assembly, &mut candidates);
    check_each(assembly, snapshot, &mut candidates);
    check_order(assembly, snapshot, &mut candidates);
    for candidate in candidates {
        if let Some((place, message)) = candidate.error {
            assembly.held_migrations.push(HeldMigration {
                name: candidate
                    .facts
                    .name
                    .clone()
                    .unwrap_or_else(|| candidate.path.to_owned()),
                is_global: candidate.bound.is_global(),
                components: candidate.bound.components,
                place,
                message,
            });
        } else if let Some(migration) = candidate.migration {
            assembly.migrations.push(migration);
        }
    }
    let migrations = &mut assembly.migrations;
    migrations.sort_by(|one, two| one.name.cmp(&two.name));
    let held = &mut assembly.held_migrations;
    held.sort_by(|one, two| (&one.name, &one.place).cmp(&(&two.name, &two.place)));
}

/// Finds the definitions, and holds files that cannot be read.
fn collect<'a>(
    assembly: &mut Assembly<'_>,
    files: &'a [LoadedFile<'_>],
    snapshot: &Snapshot,
) -> Vec<Candidate<'a>> {
    let mut candidates = Vec::new();
    for file in files {
        let (Role::Migrations(owner), Some(facts)) = (file.role, &file.facts) else {
            continue;
        };
        let folder = owner.component();
        let before = candidates.len();
        let mut is_explained = false;
        for definition in &facts.definitions {
            let Definition::Migration(facts) = definition else {
                continue;
            };
            is_explained |= facts.error.is_some();
            let (bound, findings) = bind(
                facts.scope,
                &facts.components,
                folder.as_ref(),
                &assembly.components,
            );
            let mut error = facts.error.clone();
            for finding in findings {
                let found = report(assembly, snapshot, (file.path, facts), finding);
                error = error.or(found);
            }
            let migration = match (&facts.spec, &facts.name, &error) {
                (Some(spec), Some(name), None) => Some(Arc::new(Migration {
                    name: name.clone(),
                    components: bound.components.clone(),
                    spec: spec.as_ref().clone(),
                    digest: facts.digest.clone(),
                    place: facts.place.clone(),
                })),
                _ => None,
            };
            candidates.push(Candidate {
                path: file.path,
                facts,
                bound,
                migration,
                error,
            });
        }
        if let (Some((place, message)), false) = (&facts.error, is_explained) {
            assembly.held_migrations.push(HeldMigration {
                name: file.path.to_owned(),
                is_global: folder.is_none(),
                components: folder.into_iter().collect(),
                place: place.clone(),
                message: message.clone(),
            });
        }
        if candidates.len() > MIGRATIONS_MAX && before <= MIGRATIONS_MAX {
            let place = Place::whole_file(file.path);
            let message = format!("more than {MIGRATIONS_MAX} migrations in one repository");
            let help = "delete those that no version needs any more: fairway migration retire FILE";
            let diagnostic =
                Diagnostic::error(Code::MigrationStep, place.clone(), message.clone()).help(help);
            assembly.diagnostics.push(diagnostic);
            for candidate in &mut candidates[MIGRATIONS_MAX..] {
                candidate
                    .error
                    .get_or_insert((place.clone(), message.clone()));
            }
        }
    }
    candidates
}

/// Adds a finding about a definition; returns place and message where it is an error.
fn report(
    assembly: &mut Assembly<'_>,
    snapshot: &Snapshot,
    (path, facts): (&str, &MigrationFacts),
    finding: Finding,
) -> Option<(Place, String)> {
    let is_error = finding.is_error();
    let diagnostic = if assembly.diagnostics.len() < DIAGNOSTICS_MAX {
        let blob = snapshot.files[path].blob;
        let bytes = snapshot.blobs.read(blob, FILE_SIZE_MAX).unwrap_or_default();
        let text = SourceText {
            path,
            bytes: &bytes,
        };
        text.diagnose(facts.at, finding)
    } else {
        finding.at(facts.place.clone())
    };
    let what = (diagnostic.place.clone(), diagnostic.message.clone());
    assembly.diagnostics.push(diagnostic);
    is_error.then_some(what)
}

impl Candidate<'_> {
    fn report(&mut self, assembly: &mut Assembly<'_>, snapshot: &Snapshot, findings: Vec<Finding>) {
        for finding in findings {
            let found = report(assembly, snapshot, (self.path, self.facts), finding);
            if self.error.is_none() {
                self.error = found;
            }
        }
    }
}

/// Holds migrations of one name: which is meant is not for us to guess.
fn hold_twice(assembly: &mut Assembly<'_>, candidates: &mut [Candidate<'_>]) {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut twice = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let Some(name) = candidate.facts.name.as_deref() else {
            continue;
        };
        if let Some(other) = first.insert(name, index) {
            twice.push((other, index));
        }
    }
    for (one, two) in twice {
        for (here, there) in [(one, two), (two, one)] {
            let other = candidates[there].facts.place.clone();
            let facts = candidates[here].facts;
            let name = facts.name.as_deref().unwrap_or_default();
            let message = format!("migration {name} stands twice");
            let place = facts.place.clone();
            assembly.diagnostics.push(
                Diagnostic::error(Code::DuplicateObject, place.clone(), message.clone()).help(
                    format!("the other one is {other}; rename or remove one of them"),
                ),
            );
            candidates[here].error.get_or_insert((place, message));
        }
    }
}

/// Checks each migration against components, settings and objects.
fn check_each(assembly: &mut Assembly<'_>, snapshot: &Snapshot, candidates: &mut [Candidate<'_>]) {
    let has_post = |candidate: &Candidate<'_>| {
        candidate.migration.as_ref().is_some_and(|migration| {
            migration.spec.bind.phase == crate::model::migration::HookPhase::Post
        })
    };
    let mut objects = Owned::new();
    if candidates.iter().any(has_post) {
        let all = assembly.components.values().flat_map(|it| &it.objects);
        objects.extend(all.map(|object| (object.key.clone(), Arc::clone(object))));
    }
    for candidate in candidates {
        let Some(migration) = candidate.migration.clone() else {
            continue;
        };
        let mut findings = check_contests(&migration.spec, &objects);
        findings.extend(check_hosts(assembly, &migration));
        let (is_fatal, finding) = check_lifecycle(assembly, &migration);
        if is_fatal {
            findings.extend(finding);
        } else if let Some(finding) = finding {
            // It never runs again, and blocks where it is still needed: nothing is held for being late.
            report(
                assembly,
                snapshot,
                (candidate.path, candidate.facts),
                finding,
            );
        }
        findings.extend(check_beginning(assembly, &migration));
        candidate.report(assembly, snapshot, findings);
    }
}

/// Warns of a migration that no version on offer reaches yet: it would be silent, and nobody would know why.
fn check_beginning(assembly: &Assembly<'_>, migration: &Migration) -> Option<Finding> {
    let (highest, what) = Offers {
        settings: &assembly.settings,
        components: &assembly.components,
        catalog: &assembly.catalog,
    }
    .all_below_beginning(&migration.components, &migration.spec.lifecycle)?;
    let first = migration.spec.lifecycle.introduced_in.as_ref()?;
    let at = pointer!["spec", "lifecycle", "introducedIn"];
    let message = format!("it takes part from {first} on, and {what}: until then it never runs");
    let finding = Finding::warning(Code::MigrationLifecycle, at, message);
    Some(finding.help(format!(
        "introducedIn: {highest}   # or raise that version to {first} in the change that needs the migration"
    )))
}

/// Judges a lifecycle; the first value says whether the migration cannot run as it stands.
fn check_lifecycle(assembly: &Assembly<'_>, migration: &Migration) -> (bool, Option<Finding>) {
    let state = Offers {
        settings: &assembly.settings,
        components: &assembly.components,
        catalog: &assembly.catalog,
    }
    .judge(&migration.components, &migration.spec.lifecycle);
    let is_retired = migration.spec.steps.is_empty();
    match state {
        LifecycleState::Needed(why) if is_retired => {
            let message = format!("it has no steps, and is not over: {why}");
            let finding = Finding::error(Code::MigrationStep, pointer!["spec"], message).at_key();
            let help = "steps:\n  - id: NAME\n    patch: {ref: LOOKUP, body: {…}}";
            (true, Some(finding.help(help)))
        }
        LifecycleState::Over { remove_in, offered } if !is_retired => {
            let at = pointer!["spec", "lifecycle", "removeIn"];
            let message = format!("it goes in {remove_in}, and {offered}");
            let help = format!("fairway migration retire {}", migration.place.file);
            let finding = Finding::error(Code::MigrationLifecycle, at, message);
            (false, Some(finding.help(help)))
        }
        LifecycleState::Unmeasured(why)
            if assembly.settings_error.is_none() && !is_only_unoffered(assembly, migration) =>
        {
            let at = pointer!["spec", "lifecycle", "removeIn"];
            let message = format!("there is nothing to measure this on: {why}");
            let finding = Finding::error(Code::MigrationLifecycle, at, message).help(
                "write in fairway.yaml:\nrelease: 1.0.0\nor in component.yaml:\nversion: 1.0.0\nor here, in place of removeIn:\nnever: WHY",
            );
            (true, Some(finding))
        }
        _ => (false, None),
    }
}

/// Returns whether a migration belongs to modules alone, which are measured on channels even where none offers one yet.
fn is_only_unoffered(assembly: &Assembly<'_>, migration: &Migration) -> bool {
    let is_module = |name: &ComponentName| matches!(name, ComponentName::Module(_));
    let has_release = assembly.settings.release.is_some();
    !migration.is_global() && migration.components.iter().all(is_module) || has_release
}

/// Checks that constant addresses are allowed.
fn check_hosts(assembly: &Assembly<'_>, migration: &Migration) -> Vec<Finding> {
    let spec = &migration.spec;
    let mut found = Vec::new();
    for (field, steps) in [("steps", &spec.steps), ("undo", &spec.undo)] {
        for (index, step) in steps.iter().enumerate() {
            let StepAction::Http(http) = &step.action else {
                continue;
            };
            let Some(url) = super::steps::constant(&http.url, spec) else {
                continue;
            };
            let at = pointer!["spec", field, index, "http", "url"];
            // Which hosts are allowed is not known while the settings are broken.
            if assembly.settings_error.is_some() {
                continue;
            }
            match host_is_allowed(&url, &assembly.settings.http_hosts) {
                Err(None) => found.push(
                    Finding::error(Code::MigrationStep, at, format!("`{url}` is no address"))
                        .help("https://HOST/PATH"),
                ),
                Err(Some(host)) => found.push(
                    Finding::error(
                        Code::MigrationStep,
                        at,
                        format!("`{host}` is no host that migrations may call"),
                    )
                    .help(format!("allow it in fairway.yaml:\nhttpHosts: [{host}]")),
                ),
                Ok(()) => {}
            }
        }
    }
    found
}

/// Checks the order of migrations.
fn check_order(assembly: &mut Assembly<'_>, snapshot: &Snapshot, candidates: &mut [Candidate<'_>]) {
    let migrations: Vec<Arc<Migration>> = candidates
        .iter()
        .filter_map(|it| it.migration.clone())
        .collect();
    let all: BTreeMap<&str, &Migration> = migrations
        .iter()
        .map(|it| (it.name.as_str(), it.as_ref()))
        .collect();
    let held: BTreeSet<&str> = candidates
        .iter()
        .filter(|it| it.migration.is_none())
        .filter_map(|it| it.facts.name.as_deref())
        .collect();
    let cycles: BTreeMap<String, String> = find_cycles(&all).into_iter().collect();
    for candidate in candidates {
        let Some(migration) = &candidate.migration else {
            continue;
        };
        let mut findings = check_after(migration, &all, &held);
        if let Some(other) = cycles.get(&migration.name).filter(|_| findings.is_empty()) {
            let message = format!("{} comes after itself through {other}", migration.name);
            findings.push(
                Finding::error(Code::MigrationBinding, pointer!["spec", "after"], message)
                    .at_key()
                    .help("take one name out of `after`"),
            );
        }
        candidate.report(assembly, snapshot, findings);
    }
}
