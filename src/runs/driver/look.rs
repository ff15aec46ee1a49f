//! What an attempt looks at: everything that the migration names, read anew, and whether the step is to be done at all.

use std::collections::BTreeMap;

use serde_json::Value;

use super::session::Session;
use crate::expression::{Bindings, EvaluationError, Expression, evidence};
use crate::model::api::{Evidence, Run};
use crate::model::migration::{Step, StepAction};
use crate::runs::clock::Clock;
use crate::runs::effects::{EffectError, Effects, ResourceKind};
use crate::runs::lookups::Scene;
use crate::runs::machine::{Position, find_element};
use crate::runs::store::RunStore;

/// What an attempt of a step, or of one element, looks at.
pub(super) struct View {
    pub(super) scene: Scene,
    pub(super) item: Option<Value>,
}

/// What came of looking.
pub(super) enum Look {
    /// The step can be begun.
    Ready(Box<View>, Option<Evidence>),
    /// It is left out.
    LeaveOut(Option<Evidence>, String),
    /// Its elements are settled.
    Elements(Vec<Value>, Evidence),
    /// It cannot be said now.
    Unclear { message: String, transient: bool },
}

// === impl Session ===

impl<E: Effects, S: RunStore, C: Clock, F: Fn(&Run) + Send + Sync> Session<'_, E, S, C, F> {
    /// Reads everything anew, and asks whether the step is to be done. With `begun` that is no question any more.
    pub(super) async fn look(&self, position: &Position, step: &Step, begun: bool) -> Look {
        let mut scene = self.scene().await;
        if let Some((name, error)) = scene.failures.iter().next() {
            return Look::Unclear {
                message: format!("lookup `{name}`: {error}"),
                transient: matches!(error, EffectError::Transient { .. } | EffectError::Lost(_)),
            };
        }
        if let Some(message) = scene.unknown() {
            return Look::Unclear {
                message,
                transient: false,
            };
        }
        let mut item = None;
        let mut asks_when = true;
        if let Some(each) = &step.for_each {
            let of_element = step
                .when
                .as_deref()
                .is_some_and(|when| names(when, &each.name));
            asks_when = of_element == position.item.is_some();
            let (list, found) = match self.evaluate("forEach", &each.list, &scene.bindings).await {
                (Ok(Value::Array(list)), found) => (list, found),
                // An element that has begun is found by what its record keeps.
                _ if begun => (Vec::new(), blank()),
                (Ok(Value::Null), found) => (Vec::new(), found),
                (Ok(_), _) => return unclear("`forEach` comes to no list".to_owned()),
                (Err(error), _) => return unclear(format!("`forEach`: {error}")),
            };
            match &position.item {
                None if asks_when && step.when.is_some() => {
                    match self.when(step, &scene.bindings).await {
                        Ok((true, _)) => return Look::Elements(list, found),
                        Ok((false, found)) => {
                            return Look::LeaveOut(Some(found), String::new());
                        }
                        Err(look) => return look,
                    }
                }
                None => return Look::Elements(list, found),
                Some(key) => {
                    let element = find_element(&list, key).cloned();
                    let element = match element {
                        // What has begun goes on, though the list does not have it any more.
                        None if begun => match self.kept(position).await {
                            Ok(element) => Some(element),
                            Err(error) => {
                                return Look::Unclear {
                                    message: error.to_string(),
                                    transient: true,
                                };
                            }
                        },
                        element => element,
                    };
                    let Some(element) = element else {
                        return Look::LeaveOut(
                            None,
                            "the list does not have it any more".to_owned(),
                        );
                    };
                    scene.bindings.set(&each.name, element.clone());
                    item = Some(element);
                }
            }
        }
        let mut found = None;
        if !begun {
            if asks_when && step.when.is_some() {
                match self.when(step, &scene.bindings).await {
                    Ok((true, evidence)) => found = Some(evidence),
                    Ok((false, evidence)) => return Look::LeaveOut(Some(evidence), String::new()),
                    Err(look) => return look,
                }
            }
            if self.status().undoing {
                match self.touched(step, item.as_ref(), &scene).await {
                    Ok(None) => {}
                    Ok(Some(why)) => return Look::LeaveOut(None, why),
                    Err(error) => return unclear(error.to_string()),
                }
            }
        }
        Look::Ready(Box::new(View { scene, item }), found)
    }

    /// Reads the element of an attempt that has begun: the object as it is now; null where it is gone, but for what only names it.
    async fn kept(&self, position: &Position) -> Result<Value, EffectError> {
        let machine = self.machine();
        let record = machine.record(position);
        let kept = record.map_or(Value::Null, |record| record.element.clone());
        let names_it = !matches!(
            machine.step(position).action,
            StepAction::Patch(_) | StepAction::Delete(_)
        );
        drop(machine);
        let text = |pointer: &str| kept.pointer(pointer).and_then(Value::as_str);
        let (Some(version), Some(kind), Some(name)) =
            (text("/apiVersion"), text("/kind"), text("/metadata/name"))
        else {
            return Ok(kept);
        };
        let kind = ResourceKind {
            api_version: version.to_owned(),
            kind: kind.to_owned(),
        };
        let namespace = text("/metadata/namespace");
        let live = self.driver.effects().get(&kind, namespace, name).await?;
        let same = live.filter(|live| live["metadata"]["uid"] == kept["metadata"]["uid"]);
        Ok(match same {
            Some(mut live) => {
                Bindings::redact(&mut live);
                live
            }
            None if names_it => kept,
            None => Value::Null,
        })
    }

    async fn when(&self, step: &Step, bindings: &Bindings) -> Result<(bool, Evidence), Look> {
        let when = step.when.as_deref().unwrap_or("true");
        match self.evaluate("when", when, bindings).await {
            (Ok(Value::Bool(holds)), found) => Ok((holds, found)),
            (Ok(_), _) => Err(unclear("`when` comes to neither true nor false".to_owned())),
            (Err(error), _) => Err(unclear(format!("`when`: {error}"))),
        }
    }

    /// Evaluates an expression where it holds up nothing else.
    pub(super) async fn evaluate(
        &self,
        about: &'static str,
        text: &str,
        bindings: &Bindings,
    ) -> (Result<Value, EvaluationError>, Evidence) {
        let (text, bindings) = (text.to_owned(), bindings.clone());
        let failed = |message: String| (Err(EvaluationError { message }), blank());
        let evaluated = self
            .driver
            .clock()
            .apart(move || {
                let expression = Expression::compile(&text).map_err(|error| error.to_string())?;
                let value = expression.evaluate(&bindings);
                let found = evidence(about, &expression, &bindings, &value);
                Ok((value, found))
            })
            .await;
        match evaluated {
            Ok(Ok((value, found))) => (value, self.dated(found)),
            Ok(Err(message)) | Err(message) => failed(message),
        }
    }
}

fn unclear(message: String) -> Look {
    Look::Unclear {
        message,
        transient: false,
    }
}

fn blank() -> Evidence {
    Evidence {
        about: String::new(),
        expression: String::new(),
        result: String::new(),
        values: BTreeMap::new(),
        at: None,
    }
}

/// Returns whether an expression names a variable.
fn names(text: &str, variable: &str) -> bool {
    Expression::compile(text).is_ok_and(|expression| {
        expression
            .paths()
            .iter()
            .any(|path| path.first().is_some_and(|root| root == variable))
    })
}
