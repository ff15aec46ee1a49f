//! `fairway webhook`: how to register a source at its forge, and whether that works.

use std::io::Write;
use std::time::Duration;

use clap::{Args, Subcommand};
use k8s_openapi::api::core::v1::Secret;
use serde::Serialize;

use super::arguments::OutputFormat;
use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::resources::{Home, parse_duration};
use super::webhook_delivery::{SERVICE, Sent, full_url, send, through_api_server};
use crate::agent::{clock, keys_of};
use crate::cluster::ClusterError;
use crate::model::SourceName;
use crate::model::api::{GitReference, ReleaseSource, WebhookProvider, WebhookSpec, WebhookStatus};
use crate::server::webhook::{DeliveryResult, Keys, signed_push};

/// Stands for the address that leads to the webhook port, where nobody has said it.
const UNKNOWN: &str = "https://HOST";

/// Arguments of `fairway webhook`.
#[derive(Debug, Args)]
pub struct WebhookArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say how to register the webhook of a source at its forge
    Show(ShowArguments),
    /// Send a signed delivery, as the forge would, and say what the agent made of it
    Test(TestArguments),
}

#[derive(Debug, Args)]
struct ShowArguments {
    /// The ReleaseSource
    source: SourceName,
    /// Where the webhook port is reached from outside, such as `https://hooks.example.com`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

#[derive(Debug, Args)]
struct TestArguments {
    /// The ReleaseSource
    source: SourceName,
    /// Where the webhook port is reached; otherwise through the API server and the Service `fairway-webhook`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// How long to wait for the agent
    #[arg(long, value_parser = parse_duration, default_value = "30s")]
    timeout: Duration,
}

/// What is shown of a webhook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    source: String,
    provider: WebhookProvider,
    path: String,
    url: String,
    #[serde(skip)]
    base: String,
    secret: String,
    status: WebhookStatus,
    register: Vec<(&'static str, String)>,
}

pub(super) fn run(arguments: &WebhookArguments, context: &mut Context) -> Result<Exit, Failure> {
    match &arguments.action {
        Action::Show(arguments) => show(arguments, context),
        Action::Test(arguments) => test(arguments, context),
    }
}

fn show(arguments: &ShowArguments, context: &mut Context) -> Result<Exit, Failure> {
    let page = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let source = home.source(&arguments.source).await?;
        page(&home, &source, arguments).await
    })?;
    if context.output == OutputFormat::Text {
        write_page(&page, context)?;
    } else {
        context.write_value(&page)?;
    }
    Ok(Exit::Ok)
}

async fn page(
    home: &Home,
    source: &ReleaseSource,
    arguments: &ShowArguments,
) -> Result<Page, Failure> {
    let webhook = webhook_of(source)?;
    let status = source
        .status
        .as_ref()
        .and_then(|status| status.webhook.clone());
    let status = status.unwrap_or_default();
    // The Secret is the truth, and may have changed since the agent read it; who may not read it gets what the agent knows.
    let path = match keys(home, webhook).await {
        Ok(keys) => path_of(&keys, home, &arguments.source),
        Err(failure) => status.path.clone().ok_or(failure)?,
    };
    let base = arguments.url.clone().unwrap_or_else(|| UNKNOWN.to_owned());
    let url = full_url(&base, &path);
    let secret = &webhook.secret_ref.name;
    Ok(Page {
        source: arguments.source.to_string(),
        provider: webhook.provider,
        register: registration(webhook.provider, &url, &home.namespace, secret),
        path,
        url,
        base,
        secret: format!("{}/{secret}", home.namespace),
        status,
    })
}

fn write_page(page: &Page, context: &mut Context) -> Result<(), Failure> {
    let out = &mut context.out;
    writeln!(
        out,
        "{} takes deliveries of {:?}",
        page.source, page.provider
    )?;
    let status = &page.status;
    if let Some(message) = &status.message {
        writeln!(out, "  not now        {message}")?;
    }
    writeln!(out, "  path           {}", page.path)?;
    writeln!(
        out,
        "  token          key `token` of the Secret {}",
        page.secret
    )?;
    let delivery = status.last_delivery.as_ref();
    let delivery = delivery.map_or_else(
        || "none yet".to_owned(),
        |last| {
            let id = last.id.as_deref().unwrap_or_default();
            let words = format!("{} {id}", last.event);
            format!("{} at {}: {}", words.trim(), last.time.0, last.result)
        },
    );
    writeln!(out, "  last delivery  {delivery}")?;
    if let Some(missed) = &status.last_missed {
        let (revision, time) = (&missed.revision, missed.time.0);
        writeln!(
            out,
            "  last missed    {revision}, found by the poll at {time}"
        )?;
    }
    writeln!(out, "\nRegister it at the forge:")?;
    for (field, value) in &page.register {
        writeln!(out, "  {field:<14} {value}")?;
    }
    if page.base == UNKNOWN {
        let hint = "HOST is what leads to port 9292 of the Service";
        writeln!(out, "\n{hint} `{SERVICE}`, with TLS in front of it.")?;
    }
    writeln!(
        out,
        "\nThen try it:\n  fairway webhook test {} --url {}",
        page.source, page.base
    )?;
    Ok(())
}

/// What to fill in at the forge. The token itself is never printed, only where it is.
fn registration(
    provider: WebhookProvider,
    url: &str,
    namespace: &str,
    secret: &str,
) -> Vec<(&'static str, String)> {
    let token = format!(
        "kubectl --namespace {namespace} get secret {secret} --output jsonpath='{{.data.token}}' | base64 --decode"
    );
    let json = "application/json".to_owned();
    let own = |text: &str| text.to_owned();
    match provider {
        WebhookProvider::GitHub => vec![
            ("Where", own("Settings > Webhooks > Add webhook")),
            ("Payload URL", url.to_owned()),
            ("Content type", json),
            ("Secret", token),
            ("Events", own("just the push event; it covers tags")),
        ],
        WebhookProvider::GitLab => vec![
            ("Where", own("Settings > Webhooks > Add new webhook")),
            ("URL", url.to_owned()),
            ("Token", token),
            (
                "",
                own("as signing token if it begins with whsec_, otherwise as secret token"),
            ),
            (
                "Trigger",
                own("push events; for a source that follows tags, tag push events"),
            ),
        ],
        WebhookProvider::Gitea | WebhookProvider::Forgejo => vec![
            ("Where", own("Settings > Webhooks > Add Webhook")),
            ("Target URL", url.to_owned()),
            ("Content type", json),
            ("Secret", token),
            ("Trigger on", own("push events; they cover tags")),
        ],
        WebhookProvider::Bitbucket => vec![
            ("Where", own("Repository settings > Webhooks > Add webhook")),
            ("URL", url.to_owned()),
            ("Secret", token),
            ("Triggers", own("repository push")),
        ],
        WebhookProvider::Generic => vec![
            ("Send", format!("POST {url}")),
            ("Content-Type", json),
            (
                "X-Signature",
                own("sha256=, and HMAC-SHA256 of the body under the token, in hexadecimal digits"),
            ),
            (
                "X-Delivery",
                own("an id of the delivery, so that a repeated one does nothing; optional"),
            ),
            (
                "Body",
                own(r#"{"repository": "https://…", "ref": "refs/heads/…"}"#),
            ),
            ("Token", token),
        ],
    }
}

fn test(arguments: &TestArguments, context: &mut Context) -> Result<Exit, Failure> {
    let name = &arguments.source;
    let (sent, noted) = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let source = home.source(name).await?;
        let webhook = webhook_of(&source)?;
        let keys = keys(&home, webhook).await?;
        let now = clock::now();
        // The status shows its first eight characters.
        let id = format!("{:08x}-test", now.as_nanosecond() & 0xffff_ffff);
        let reference = reference(&source.spec.reference);
        let named = (source.spec.url.as_str(), reference.as_str());
        let delivery = signed_push(webhook.provider, &keys, named, &id, now);
        let path = path_of(&keys, &home, name);
        let sending = async {
            match &arguments.url {
                Some(url) => send(&full_url(url, &path), delivery).await,
                None => through_api_server(&home, &path, delivery).await,
            }
        };
        let sent = tokio::time::timeout(arguments.timeout, sending).await;
        let sent = sent.map_err(|_| {
            Failure::Misuse(format!(
                "no answer within {:?}; is it the agent's webhook port?",
                arguments.timeout
            ))
        })??;
        let noted = if sent.status.is_success() {
            Some(await_note(&home, name, &id, arguments.timeout).await?)
        } else {
            None
        };
        Ok::<_, Failure>((sent, noted))
    })?;
    report(&sent, noted.as_deref(), name, context)
}

/// Waits until the status shows the delivery: so it was this cluster's agent that answered.
async fn await_note(
    home: &Home,
    name: &SourceName,
    id: &str,
    timeout: Duration,
) -> Result<String, Failure> {
    let shown: String = id.chars().take(8).collect();
    let result = move |source: Option<&ReleaseSource>| {
        let last = source?
            .status
            .as_ref()?
            .webhook
            .as_ref()?
            .last_delivery
            .as_ref()?;
        last.id
            .as_deref()?
            .starts_with(&shown)
            .then(|| last.result.clone())
    };
    let noted = result.clone();
    let condition = move |source: Option<&ReleaseSource>| noted(source).is_some();
    let what = "the delivery was answered, but the agent of this namespace has not noted it, which";
    let source = home.await_source(name, condition, (what, timeout)).await?;
    Ok(result(Some(&source)).unwrap_or_default())
}

fn report(
    sent: &Sent,
    noted: Option<&str>,
    name: &SourceName,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let Some(noted) = noted else {
        let hint = match sent.status.as_u16() {
            404 => {
                "the path or the token is another one there: compare with `fairway webhook show`, and reach this agent's webhook port"
            }
            502..=504 => {
                "nothing serves the webhook port: is --webhook-listen given, and does the Service have an endpoint?"
            }
            _ => "is this the agent's webhook port?",
        };
        let text = format!(
            "the delivery was answered with {}: {}",
            sent.status,
            sent.text.trim()
        );
        return Err(Failure::Misuse(format!("{text}; {hint}")));
    };
    if context.output == OutputFormat::Text {
        writeln!(
            context.out,
            "{}: {} ({noted})",
            sent.status,
            sent.text.trim()
        )?;
    } else {
        context.write_value(&serde_json::json!({
            "source": name,
            "status": sent.status.as_u16(),
            "answer": sent.text.trim(),
            "result": noted,
        }))?;
    }
    Ok(if noted == DeliveryResult::Announced.as_str() {
        Exit::Ok
    } else {
        Exit::Found
    })
}

fn webhook_of(source: &ReleaseSource) -> Result<&WebhookSpec, Failure> {
    source.spec.webhook.as_ref().ok_or_else(|| {
        let name = source.metadata.name.as_deref().unwrap_or_default();
        Failure::Misuse(format!(
            "{name} has no webhook: set spec.webhook to {{provider: GitHub, secretRef: {{name: …}}}}; see docs/webhooks.md"
        ))
    })
}

fn path_of(keys: &Keys, home: &Home, source: &SourceName) -> String {
    keys.paths(&home.namespace, source.as_str()).remove(0)
}

/// Reads the tokens with the rights of whoever runs the command.
async fn keys(home: &Home, webhook: &WebhookSpec) -> Result<Keys, Failure> {
    let name = &webhook.secret_ref.name;
    let secret = home.cluster.get::<Secret>(&home.namespace, name).await;
    let secret = secret.map_err(|error| {
        let help = matches!(error, ClusterError::Forbidden { .. }).then_some(
            "whoever tries out a webhook must be allowed to `get` the Secret with its token",
        );
        let failure = Failure::of(error);
        match help {
            Some(help) => failure.help(help),
            None => failure,
        }
    })?;
    let Some(secret) = secret else {
        return Err(Failure::Misuse(format!(
            "there is no Secret `{name}` in {}: create it with `kubectl create secret generic {name} --from-literal=token=$(openssl rand -hex 32)`",
            home.namespace
        )));
    };
    keys_of(&secret)
        .map_err(|error| Failure::Misuse(format!("the Secret `{name}` cannot be used: {error}")))
}

/// Returns the reference that a delivery must name to be about this source.
fn reference(reference: &GitReference) -> String {
    match (&reference.branch, &reference.tag, &reference.semver) {
        (Some(branch), _, _) => format!("refs/heads/{branch}"),
        (None, Some(tag), _) => format!("refs/tags/{tag}"),
        // Which tag it is does not matter: any may be the highest of the range.
        (None, None, Some(_)) => "refs/tags/v0.0.0".to_owned(),
        (None, None, None) => "refs/heads/main".to_owned(),
    }
}
