//! `builtin`: helpers that are no data, since they need chance or a search. What chance makes is never told anywhere.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::change::{Changes, Fields};
use super::help::{Ended, Seen, done, failed, named};
use super::{StepContext, StepOutcome, StepResult};
use crate::model::limits;
use crate::model::migration::{
    BUILTINS, BuiltinStep, EnsureCredentialsWith, FindNodePortWith, GenerateSecretWith, PatchType,
};
use crate::runs::effects::{EffectError, Effects, ObjectPatch, ResourceKind};

pub(super) async fn attempt<E: Effects>(context: &StepContext<'_, E>, step: &BuiltinStep) -> Ended {
    let with = context.render(&json!(step.with))?;
    match step.name.as_str() {
        "generate-secret" => {
            let with: GenerateSecretWith = read(&step.name, with)?;
            let entries = [(with.key, Entry::Random(with.length))];
            ensure(context, (with.namespace, with.name), &entries).await
        }
        "ensure-credentials" => {
            let with: EnsureCredentialsWith = read(&step.name, with)?;
            let entries = [
                (with.username_key, Entry::Constant(with.username)),
                (with.password_key, Entry::Random(with.length)),
            ];
            ensure(context, (with.namespace, with.name), &entries).await
        }
        "find-node-port" => {
            let with: FindNodePortWith = read(&step.name, with)?;
            find_node_port(context, &with).await
        }
        name => Ok(StepResult::fail(format!(
            "there is no builtin `{name}`; there are {}",
            BUILTINS.join(", ")
        ))),
    }
}

fn read<T: serde::de::DeserializeOwned>(name: &str, with: Value) -> Result<T, StepResult> {
    serde_json::from_value(with)
        .map_err(|error| StepResult::fail(format!("builtin {name}: `with` is wrong: {error}")))
}

/// What an entry is where it is missing.
enum Entry {
    Constant(String),
    Random(usize),
}

/// Makes a Secret have entries. What is there is never changed.
async fn ensure<E: Effects>(
    context: &StepContext<'_, E>,
    (namespace, name): (String, String),
    entries: &[(String, Entry)],
) -> Ended {
    let kind = ResourceKind {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
    };
    let subject = named(&kind, Some(&namespace), &name);
    let live = context.effects.get(&kind, Some(&namespace), &name);
    let live = live.await.map_err(failed)?;
    let data = live.as_ref().map(|live| &live["data"]);
    let mut missing = serde_json::Map::new();
    for (key, entry) in entries {
        if data.is_some_and(|data| data.get(key).is_some()) {
            continue;
        }
        let value = match entry {
            Entry::Constant(text) => STANDARD.encode(text),
            Entry::Random(length) => STANDARD.encode(random_text(*length)?),
        };
        missing.insert(key.clone(), value.into());
    }
    let result = json!({"namespace": namespace, "name": name});
    if missing.is_empty() {
        let outcome = StepOutcome {
            result,
            ..StepOutcome::default()
        };
        return Ok(done("builtin", &subject, "it was there already", outcome));
    }
    let keys: Vec<&str> = missing.keys().map(String::as_str).collect();
    let found = format!("made the keys {}", keys.join(", "));
    let written = match live.as_ref().and_then(Seen::of) {
        None => {
            let manifest = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"namespace": namespace, "name": name}, "data": missing,
            });
            context.effects.create(&manifest).await
        }
        Some(seen) => {
            let patch = ObjectPatch {
                kind,
                namespace: seen.namespace,
                name: seen.name,
                subresource: None,
                form: PatchType::Merge,
                body: json!({"data": missing}),
                uid: seen.uid,
                resource_version: seen.resource_version,
            };
            context.effects.patch(&patch).await
        }
    };
    let after = match written {
        Ok(after) => after,
        // Somebody was faster, or our own answer was lost: the next look says what is there.
        Err(EffectError::Exists(message) | EffectError::Conflict(message)) => {
            return Ok(StepResult::Wait {
                message,
                after: limits::STEP_CONFLICT_PAUSE,
                progress: BTreeMap::new(),
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let mut changes = Changes::default();
    if let Some(seen) = Seen::of(&after) {
        let action = if live.is_none() { "created" } else { "patched" };
        let fields: Fields = missing
            .keys()
            .map(|key| {
                (
                    format!("/data/{}", key.replace('~', "~0").replace('/', "~1")),
                    (None, None),
                )
            })
            .collect();
        changes.add(action, &seen, &fields);
    }
    let outcome = StepOutcome {
        result,
        effect: changes.record(),
        changed: true,
        ..StepOutcome::default()
    };
    Ok(done("builtin", &subject, &found, outcome))
}

/// Letters and digits that chance has chosen, each as likely as any other.
fn random_text(length: usize) -> Result<String, StepResult> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let allowed = limits::GENERATED_SECRET_MIN..=limits::GENERATED_SECRET_MAX;
    if !allowed.contains(&length) {
        return Err(StepResult::fail(format!(
            "a length of {length} is not within {} to {}",
            allowed.start(),
            allowed.end()
        )));
    }
    let mut text = String::with_capacity(length);
    let mut bytes = [0_u8; 64];
    while text.len() < length {
        aws_lc_rs::rand::fill(&mut bytes)
            .map_err(|_| StepResult::retry("the operating system has no random numbers"))?;
        // 248 is the largest multiple of 62 in a byte; what is beyond would make some letters likelier.
        let letters = bytes.iter().filter(|byte| **byte < 248);
        let letters = letters.map(|byte| char::from(ALPHABET[usize::from(byte % 62)]));
        text.extend(letters.take(length - text.len()));
    }
    Ok(text)
}

async fn find_node_port<E: Effects>(
    context: &StepContext<'_, E>,
    with: &FindNodePortWith,
) -> Ended {
    if !(with.first..=with.last).contains(&with.preferred) {
        return Ok(StepResult::fail(format!(
            "the preferred port {} is not within {} to {}",
            with.preferred, with.first, with.last
        )));
    }
    let kind = ResourceKind {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
    };
    let mut taken = BTreeSet::new();
    let mut next: Option<String> = None;
    loop {
        let page = (limits::PAGE_SIZE_WHOLE, next.as_deref());
        let listing = context.effects.list(&kind, None, None, page);
        let listing = listing.await.map_err(failed)?;
        for service in &listing.objects {
            let metadata = &service["metadata"];
            let own = with.service.as_ref().is_some_and(|own| {
                Some(own.as_str())
                    == metadata["namespace"]
                        .as_str()
                        .zip(metadata["name"].as_str())
                        .map(|(namespace, name)| format!("{namespace}/{name}"))
                        .as_deref()
            });
            if !own {
                taken.extend(node_ports(service));
            }
        }
        match listing.next {
            Some(token) => next = Some(token),
            None => break,
        }
    }
    let ports = (with.preferred..=with.last).chain(with.first..with.preferred);
    let free = ports
        .into_iter()
        .find(|port| !taken.contains(&u64::from(*port)));
    let Some(port) = free else {
        return Ok(StepResult::fail(format!(
            "every node port from {} to {} is taken",
            with.first, with.last
        )));
    };
    let outcome = StepOutcome {
        result: json!({"port": port, "preferred": port == with.preferred}),
        ..StepOutcome::default()
    };
    let found = format!("port {port} is free");
    Ok(done("builtin", "find-node-port", &found, outcome))
}

fn node_ports(service: &Value) -> BTreeSet<u64> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let ports = ports.into_iter().flatten();
    ports
        .filter_map(|port| port["nodePort"].as_u64())
        .chain(service["spec"]["healthCheckNodePort"].as_u64())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_text_has_its_length_its_alphabet_and_is_another_each_time() {
        let first = random_text(64).unwrap();
        assert_eq!(first.len(), 64);
        assert!(first.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(first, random_text(64).unwrap());
        assert!(random_text(4).is_err() && random_text(100_000).is_err());
    }

    #[test]
    fn every_port_of_a_service_counts() {
        let service = json!({"spec": {
            "ports": [{"port": 80, "nodePort": 30_080}, {"port": 443}], "healthCheckNodePort": 30_081,
        }});
        assert_eq!(node_ports(&service), BTreeSet::from([30_080, 30_081]));
    }
}
