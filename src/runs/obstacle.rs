//! What keeps a migration from being done that its guard does not ask for: a right that the account lacks, a kind that the cluster does
//! not serve. Found before the first effect, so that a deploy does not stop half way.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::effects::{EffectError, Effects, ResourceKind, Serving};
use super::lookups::{LookupCache, Scene, Surroundings};
use super::places::placed;
use super::rights::{Need, Plurals, Subject, Use, Within, manifests, merged, needs};
use super::sight::Sight;
use crate::cluster::Access;
use crate::expression::Expression;
use crate::model::api::RunSpec;

/// Bytes of roles that a record holds; where there is more, it says how to print them.
const ROLES_MAX: usize = 3_000;

/// Something that has to be mended first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// The stable word for it.
    pub(super) reason: &'static str,
    /// What has to be so, on its first line; below it, what can be applied to make it so.
    pub(super) message: String,
}

/// Looks for what keeps the steps of a migration from being done. What cannot be known before a step runs is not asked for: a namespace
/// that depends on an earlier step, a kind that this deploy installs.
///
/// # Errors
///
/// When the cluster could not be asked.
pub(super) async fn obstacle<E: Effects>(
    effects: &E,
    spec: &RunSpec,
    sight: &Sight,
    (lookups, surroundings): (&LookupCache, Surroundings<'_>),
) -> Result<Option<Obstacle>, EffectError> {
    let mut definition = spec.definition.clone();
    definition.undo.clear();
    let (needs, _) = needs(&spec.migration, &definition);
    let seen = (sight, lookups, surroundings);
    let needs = placed(effects, spec, needs, seen).await;
    find(effects, spec, &needs, (sight, lookups)).await
}

/// Looks for a right that the steps lack which take back what a run has done. A kind that is not served any more keeps nothing: there is
/// nothing of it left.
///
/// # Errors
///
/// When the cluster could not be asked.
pub(super) async fn undo_obstacle<E: Effects>(
    effects: &E,
    spec: &RunSpec,
    surroundings: Surroundings<'_>,
) -> Result<Option<Obstacle>, EffectError> {
    let mut spec = spec.clone();
    spec.definition.steps = std::mem::take(&mut spec.definition.undo);
    let (mut needs, _) = needs(&spec.migration, &spec.definition);
    for need in &mut needs {
        need.used = Use::Found;
    }
    let (sight, lookups) = (Sight::default(), LookupCache::new());
    let needs = placed(effects, &spec, needs, (&sight, &lookups, surroundings)).await;
    find(effects, &spec, &needs, (&sight, &lookups)).await
}

async fn find<E: Effects>(
    effects: &E,
    spec: &RunSpec,
    needs: &[Need],
    (sight, lookups): (&Sight, &LookupCache),
) -> Result<Option<Obstacle>, EffectError> {
    let mut served: BTreeMap<ResourceKind, Serving> = BTreeMap::new();
    let (mut plurals, mut asked) = (Plurals::new(), BTreeSet::new());
    for need in needs {
        let kind = kind_of(need);
        let serving = match served.get(&kind) {
            Some(serving) => serving.clone(),
            None => effects.serving(&kind).await?,
        };
        served.insert(kind.clone(), serving.clone());
        match serving {
            Serving::As(plural) => {
                let key = (need.group().to_owned(), need.kind.clone());
                asked.extend(access(need, &plural));
                plurals.insert(key, plural);
            }
            Serving::Not { closest } => {
                if need.used == Use::Write
                    && !sight.may_install(&kind, &closest)
                    && is_done(effects, spec, need, lookups).await
                {
                    return Ok(Some(not_served(spec, need, &closest)));
                }
            }
        }
    }
    let asked: Vec<Access> = asked.into_iter().collect();
    let refused = effects.refused(&asked).await?;
    let Some(first) = refused.first() else {
        return Ok(None);
    };
    let subject = Subject::of_user(&effects.user().await?);
    Ok(Some(not_allowed(
        spec,
        (needs, &plurals),
        (first, refused.len()),
        &subject,
    )))
}

fn kind_of(need: &Need) -> ResourceKind {
    ResourceKind {
        api_version: need.api_version.clone(),
        kind: need.kind.clone(),
    }
}

fn access(need: &Need, plural: &str) -> Option<Access> {
    let namespace = match &need.namespace {
        Within::Named(namespace) => Some(namespace.clone()),
        Within::All => None,
        Within::Computed(_) => return None,
    };
    Some(Access {
        namespace,
        group: need.group().to_owned(),
        resource: match &need.subresource {
            Some(subresource) => format!("{plural}/{subresource}"),
            None => plural.to_owned(),
        },
        name: need.name.clone(),
        verb: need.verb.to_owned(),
    })
}

/// Returns whether a step is done, as far as that can be said now: one that is certainly left out writes nothing.
async fn is_done<E: Effects>(
    effects: &E,
    spec: &RunSpec,
    need: &Need,
    lookups: &LookupCache,
) -> bool {
    let mut steps = spec.definition.steps.iter();
    let step = steps.find(|step| need.step.as_ref() == Some(&step.id));
    let Some(when) = step.and_then(|step| step.when.as_ref()) else {
        return true;
    };
    let Ok(when) = Expression::compile(when) else {
        return true;
    };
    let scene = Scene::look(effects, lookups, spec, None, Surroundings::default()).await;
    when.holds(&scene.bindings) != Ok(false)
}

fn not_served(spec: &RunSpec, need: &Need, closest: &[String]) -> Obstacle {
    let step = need.step.as_deref().unwrap_or_default();
    let help = match closest {
        [] => "nothing of this deploy installs it".to_owned(),
        closest => format!(
            "it serves {}, which is what {} has to name",
            closest.join(", "),
            spec.place
        ),
    };
    Obstacle {
        reason: "KindNotServed",
        message: format!(
            "step {step} needs a cluster that serves {} {}; {help}",
            need.api_version, need.kind
        ),
    }
}

fn not_allowed(
    spec: &RunSpec,
    (needs, plurals): (&[Need], &Plurals),
    (first, count): (&Access, usize),
    subject: &Subject,
) -> Obstacle {
    let rights = merged(needs, plurals);
    let name = format!("fairway-migration-{}", spec.migration);
    let items = manifests(&name, &rights, subject);
    let items: Vec<_> = items.into_iter().map(|(object, _)| object).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let roles = serde_yaml::to_string(&list).unwrap_or_default();
    let namespace = match &first.namespace {
        Some(namespace) => format!(" in {namespace}"),
        None => String::new(),
    };
    let name = match &first.name {
        Some(name) => format!(" {name}"),
        None => String::new(),
    };
    let more = match count {
        1 => String::new(),
        count => format!(" (and {} more rights)", count - 1),
    };
    let what = format!(
        "{subject} needs the right to {} {}{name}{namespace}{more}",
        first.verb, first.resource
    );
    let message = if roles.len() > ROLES_MAX {
        format!("{what}; `fairway migration rbac` prints the roles")
    } else {
        format!(
            "{what}; `fairway describe run` prints a role for it, and `fairway migration rbac` those of all migrations\n{}",
            roles.trim_end()
        )
    };
    Obstacle {
        reason: "RightMissing",
        message,
    }
}
