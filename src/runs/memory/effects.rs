//! The world as runs reach it.

use serde_json::Value;

use super::Memory;
use super::faults::{LogEntry, Write};
use super::jobs;
use super::objects::Key;
use super::patches;
use super::state::{Outcome, State};
use crate::cluster::Access;
use crate::model::Selector;
use crate::model::limits;
use crate::model::migration::{Lookup, MissingKind};
use crate::runs::rights::{Plurals, plural};
use crate::runs::{
    Deletion, EffectError, Effects, HttpAnswer, HttpRequest, Listing, ObjectPatch, Removed,
    ResourceKind, Serving,
};

impl Memory {
    /// Does what `act` says, unless a fault comes in between.
    async fn effect<T>(
        &self,
        (verb, about, key): (&'static str, String, Option<&str>),
        act: impl FnOnce(&mut State) -> Result<(T, bool), EffectError>,
    ) -> Result<T, EffectError> {
        self.alive().await;
        let entry = LogEntry {
            write: Write::Effect,
            verb,
            about,
            step: None,
            changed: false,
            key: key.map(str::to_owned),
        };
        let outcome = self
            .lock()
            .attempt(entry, act, EffectError::Lost, |error| error);
        self.conclude(outcome).await
    }

    /// Never returns once the process has ended.
    pub(super) async fn alive(&self) {
        if *self.down.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// Hands over an answer, or ends the process.
    pub(super) async fn conclude<T, E>(&self, outcome: Outcome<T, E>) -> Result<T, E> {
        match outcome {
            Outcome::Answer(answer) => answer,
            Outcome::Stop => {
                self.down.send_replace(true);
                std::future::pending().await
            }
        }
    }
}

impl Effects for Memory {
    async fn look(&self, lookup: &Lookup) -> Result<Value, EffectError> {
        self.alive().await;
        let kind = ResourceKind {
            api_version: lookup.api_version.clone(),
            kind: lookup.kind.clone(),
        };
        let mut state = self.lock();
        state.read(&kind)?;
        if !state.objects.is_served(&kind) && lookup.missing_kind == MissingKind::Unknown {
            return Err(unserved(&kind));
        }
        let namespace = lookup.namespace.as_deref();
        if let Some(name) = lookup.name.as_deref().filter(|_| !lookup.list) {
            let object = state.objects.get(&kind, namespace, name);
            return Ok(object.unwrap_or(Value::Null));
        }
        let selector = read_selector(lookup.selector.as_deref())?;
        let objects = state.objects.list(&kind, namespace, &selector);
        let limit = lookup.limit.unwrap_or(limits::LOOKUP_OBJECTS_DEFAULT);
        if objects.len() > limit as usize {
            return Err(EffectError::Refused(format!(
                "there are more than {limit} objects of kind {}",
                kind.kind
            )));
        }
        Ok(Value::Array(objects))
    }

    async fn serving(&self, kind: &ResourceKind) -> Result<Serving, EffectError> {
        self.alive().await;
        let group = kind.api_version.rsplit_once('/').map_or("", |it| it.0);
        Ok(if self.lock().objects.is_served(kind) {
            Serving::As(plural(group, &kind.kind, &Plurals::new()).0)
        } else {
            Serving::Not {
                closest: Vec::new(),
            }
        })
    }

    async fn refused(&self, asked: &[Access]) -> Result<Vec<Access>, EffectError> {
        self.alive().await;
        let state = self.lock();
        let refused = asked.iter().filter(|access| {
            let right = (access.verb.clone(), access.resource.clone());
            state.refused_rights.contains(&right)
        });
        Ok(refused.cloned().collect())
    }

    async fn user(&self) -> Result<String, EffectError> {
        Ok("system:serviceaccount:fairway-system:fairway".to_owned())
    }

    async fn get(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, EffectError> {
        self.alive().await;
        let mut state = self.lock();
        state.read(kind)?;
        Ok(state.objects.get(kind, namespace, name))
    }

    async fn list(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        selector: Option<&str>,
        (size, after): (u32, Option<&str>),
    ) -> Result<Listing, EffectError> {
        self.alive().await;
        let mut state = self.lock();
        state.read(kind)?;
        let selector = read_selector(selector)?;
        let mut objects = state.objects.list(kind, namespace, &selector);
        let is_served = state.objects.is_served(kind);
        // The next page begins after the last object of this one, whatever comes and goes between the two.
        if let Some(after) = after {
            objects.retain(|object| position(object).as_str() > after);
        }
        let has_more = size > 0 && objects.len() > size as usize;
        if has_more {
            objects.truncate(size as usize);
        }
        let next = objects.last().filter(|_| has_more).map(position);
        Ok(Listing {
            objects,
            next,
            is_served,
        })
    }

    async fn patch(&self, patch: &ObjectPatch) -> Result<Value, EffectError> {
        let key = Key::new(&patch.kind, patch.namespace.as_deref(), &patch.name);
        self.effect(("patch", key.to_string(), None), |state| {
            served(state, &patch.kind)?;
            let before = state.seen(&key, &patch.uid, patch.resource_version.as_deref())?;
            let patched = patches::patched(&before, patch.form, &patch.body)
                .map_err(|reason| EffectError::Refused(format!("{key}: {reason}")))?;
            let (object, changed) = state.objects.change(&key, patched);
            Ok((object, changed))
        })
        .await
    }

    async fn apply(&self, manifest: &Value) -> Result<Value, EffectError> {
        let key = Key::of(manifest);
        self.effect(("apply", key.to_string(), None), |state| {
            served(state, &kind_of(manifest))?;
            match state.seen(&key, "", None) {
                Ok(before) => Ok(state
                    .objects
                    .change(&key, patches::applied(&before, manifest))),
                Err(_) => Ok((state.objects.create(manifest, false)?, true)),
            }
        })
        .await
    }

    async fn create(&self, manifest: &Value) -> Result<Value, EffectError> {
        let key = Key::of(manifest);
        self.effect(("create", key.to_string(), None), |state| {
            served(state, &kind_of(manifest))?;
            let is_job = jobs::is_job(manifest);
            let created = state.objects.create(manifest, is_job)?;
            if is_job {
                let script = state.current_script().cloned().unwrap_or_default();
                match &mut state.running_jobs {
                    Some(running) => running.push(created.clone()),
                    None => jobs::finish(&mut state.objects, &created, &script),
                }
            }
            Ok((created, true))
        })
        .await
    }

    async fn replace(&self, manifest: &Value) -> Result<Value, EffectError> {
        let key = Key::of(manifest);
        self.effect(("replace", key.to_string(), None), |state| {
            served(state, &kind_of(manifest))?;
            let field = |name: &str| manifest["metadata"][name].as_str();
            state.seen(
                &key,
                field("uid").unwrap_or_default(),
                field("resourceVersion"),
            )?;
            let (object, _) = state.objects.change(&key, manifest.clone());
            Ok((object, true))
        })
        .await
    }

    async fn delete(&self, deletion: &Deletion) -> Result<Removed, EffectError> {
        let key = Key::new(
            &deletion.kind,
            deletion.namespace.as_deref(),
            &deletion.name,
        );
        self.effect(("delete", key.to_string(), None), |state| {
            let version = deletion.resource_version.as_deref();
            if state.seen(&key, &deletion.uid, None).is_err() {
                return Ok((Removed::AlreadyGone, false));
            }
            state.seen(&key, &deletion.uid, version)?;
            Ok((state.objects.delete(&key, deletion.propagation), true))
        })
        .await
    }

    async fn http(&self, request: &HttpRequest) -> Result<HttpAnswer, EffectError> {
        let about = format!("{} {}", request.method, request.url);
        let key = request
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"))
            .map(|(_, key)| key.as_str());
        let changes = !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS");
        self.effect(("http", about, key), |state| {
            if let Some(answer) = state.answers.pop_front() {
                return answer.map(|answer| (answer, changes));
            }
            let script = state.current_script().cloned().unwrap_or_default();
            let answer = HttpAnswer {
                status: script.status,
                retry_after: None,
                body: script.result,
            };
            Ok((answer, changes))
        })
        .await
    }
}

fn read_selector(text: Option<&str>) -> Result<Selector, EffectError> {
    Selector::parse(text.unwrap_or_default()).map_err(EffectError::Refused)
}

fn served(state: &State, kind: &ResourceKind) -> Result<(), EffectError> {
    if state.objects.is_served(kind) {
        Ok(())
    } else {
        Err(unserved(kind))
    }
}

fn unserved(kind: &ResourceKind) -> EffectError {
    EffectError::KindUnknown(format!(
        "the cluster does not serve {} {}",
        kind.api_version, kind.kind
    ))
}

fn kind_of(manifest: &Value) -> ResourceKind {
    let text = |name: &str| manifest[name].as_str().unwrap_or_default().to_owned();
    ResourceKind {
        api_version: text("apiVersion"),
        kind: text("kind"),
    }
}

/// Where an object stands in a list. Names have no spaces, so that this sorts as the list does.
fn position(object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{} {}", text("namespace"), text("name"))
}
