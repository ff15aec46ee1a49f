//! `http`: sends one request to a host that the repository allows.
//!
//! A request that changes something is sent with the same `Idempotency-Key` in every attempt. Without a key nobody can say what
//! became of it when its answer is lost, and then neither does the step.

use std::collections::BTreeMap;

use http::Uri;
use serde_json::{Value, json};

use super::help::{Ended, done, failed};
use super::{StepContext, StepOutcome, StepResult};
use crate::model::migration::{HttpStep, host_is_allowed};
use crate::runs::effects::{EffectError, Effects, HttpAnswer, HttpRequest};

/// In a step's progress: the key that was sent first.
const KEY: &str = "idempotencyKey";
/// Methods that may be repeated: RFC 9110, section 9.2.2.
const IDEMPOTENT: &[&str] = &["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];
/// Headers that belong to the connection, or have a field of their own in the definition.
const OWN_HEADERS: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "host",
    "idempotency-key",
    "transfer-encoding",
    "upgrade",
];

pub(super) async fn attempt<E: Effects>(context: &StepContext<'_, E>, step: &HttpStep) -> Ended {
    let key = key(context, step)?;
    let request = request(context, step, key.as_deref())?;
    let subject = format!("{} {}", request.method, request.url);
    let kept: BTreeMap<String, Value> = key
        .iter()
        .map(|key| (KEY.to_owned(), key.as_str().into()))
        .collect();
    let repeatable = key.is_some() || is_idempotent(&request.method);
    match context.effects.http(&request).await {
        Ok(answer) => Ok(judge(step, &subject, repeatable, answer).with_progress(kept)),
        Err(EffectError::Lost(message)) if repeatable => {
            Err(StepResult::retry(message).with_progress(kept))
        }
        Err(EffectError::Lost(message)) => Err(StepResult::Unknown {
            message: format!(
                "{message}; without idempotencyKey nobody knows whether {subject} took effect"
            ),
        }),
        Err(error) => Err(failed(error).with_progress(kept)),
    }
}

/// Goes on with a request that may have been sent before a restart.
pub(super) async fn recover<E: Effects>(context: &StepContext<'_, E>, step: &HttpStep) -> Ended {
    if is_repeatable(step) {
        return attempt(context, step).await;
    }
    Ok(StepResult::Unknown {
        message: format!(
            "the request {} {} may have been sent before a restart; without idempotencyKey nobody knows whether it took effect",
            step.method, step.url
        ),
    })
}

fn key<E: Effects>(
    context: &StepContext<'_, E>,
    step: &HttpStep,
) -> Result<Option<String>, StepResult> {
    // The first attempt decides: what the key is made of may look different by now.
    if let Some(Value::String(key)) = context.record.progress.get(KEY) {
        return Ok(Some(key.clone()));
    }
    context.optional(step.idempotency_key.as_ref())
}

fn request<E: Effects>(
    context: &StepContext<'_, E>,
    step: &HttpStep,
    key: Option<&str>,
) -> Result<HttpRequest, StepResult> {
    let url = context.text(&step.url)?;
    check(&url, &context.spec.http_hosts, step.bearer_token.is_some()).map_err(StepResult::fail)?;
    let mut headers = BTreeMap::new();
    for (name, value) in &step.headers {
        if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(StepResult::fail(format!(
                "the header {name} cannot be set; a token is named by bearerToken, a key by idempotencyKey"
            )));
        }
        headers.insert(name.clone(), context.text(value)?);
    }
    if let Some(key) = key {
        headers.insert("Idempotency-Key".to_owned(), key.to_owned());
    }
    let body = step.body.as_ref().map(|body| context.render(body));
    Ok(HttpRequest {
        method: step.method.clone(),
        url,
        headers,
        body: body.transpose()?,
        bearer_token: step.bearer_token.clone(),
        deadline: context.deadline,
    })
}

fn judge(step: &HttpStep, subject: &str, repeatable: bool, answer: HttpAnswer) -> StepResult {
    let HttpAnswer {
        status,
        retry_after,
        body,
    } = answer;
    let expected = if step.expect.is_empty() {
        (200..300).contains(&status)
    } else {
        step.expect.contains(&status)
    };
    if expected {
        let outcome = StepOutcome {
            result: json!({"status": status, "body": body}),
            effect: Value::Null,
            changed: !matches!(step.method.as_str(), "GET" | "HEAD" | "OPTIONS"),
            ..StepOutcome::default()
        };
        return done("http", subject, &format!("answer {status}"), outcome);
    }
    let message = format!("{subject} is answered with {status}");
    // Between us and who acts, somebody has lost the answer.
    if matches!(status, 502 | 504) && !repeatable {
        return StepResult::Unknown {
            message: format!(
                "{message}, and without idempotencyKey nobody knows whether it took effect"
            ),
        };
    }
    if step.retry_on.contains(&status) || matches!(status, 408 | 425 | 429 | 500..=599) {
        return StepResult::Retry {
            message,
            after: retry_after,
            counts: true,
            progress: BTreeMap::new(),
        };
    }
    if (300..400).contains(&status) {
        return StepResult::fail(format!(
            "{message}: redirects are not followed; write the address that it leads to"
        ));
    }
    StepResult::fail(message)
}

/// Returns whether a request may be sent again when nobody knows what became of it.
pub(super) fn is_repeatable(step: &HttpStep) -> bool {
    step.idempotency_key.is_some() || is_idempotent(&step.method)
}

fn is_idempotent(method: &str) -> bool {
    IDEMPOTENT.contains(&method.to_ascii_uppercase().as_str())
}

/// Says why an address may not be called: its host is not allowed, or a token would travel in the open. To this machine it does
/// not travel.
fn check(url: &str, hosts: &[String], with_token: bool) -> Result<(), String> {
    host_is_allowed(url, hosts).map_err(|host| match host {
        Some(host) => {
            format!("the host {host} is not allowed: list it in `httpHosts` of fairway.yaml")
        }
        None => "the address is none over http or https, or holds credentials".to_owned(),
    })?;
    let uri: Uri = url.parse().map_err(|_| format!("`{url}` is no address"))?;
    let local = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if with_token && uri.scheme_str() != Some("https") && !local {
        return Err("a token is sent over https alone".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_travel_in_the_open() {
        let hosts = ["api.example.com".to_owned(), "127.0.0.1:8080".to_owned()];
        assert!(check("http://api.example.com/", &hosts, true).is_err());
        assert!(check("https://api.example.com/", &hosts, true).is_ok());
        assert!(check("http://127.0.0.1:8080/", &hosts, true).is_ok());
    }
}
