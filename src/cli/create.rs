//! `fairway create secret git`: credentials for a git server, with the keys that Flux has as well.
//!
//! Values come from standard input or from files and never from the command line, which other users of a machine can read
//! and a shell remembers.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::arguments::OutputFormat;
use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::resources::{Home, MANAGER};
use crate::cluster::Patch;
use crate::model::limits;

/// Arguments of `fairway create`.
#[derive(Debug, Args)]
pub struct CreateArguments {
    #[command(subcommand)]
    what: Created,
}

#[derive(Debug, Subcommand)]
enum Created {
    /// Create a Secret
    Secret(SecretArguments),
}

/// Arguments of `fairway create secret`.
#[derive(Debug, Args)]
struct SecretArguments {
    #[command(subcommand)]
    kind: SecretKind,
}

#[derive(Debug, Subcommand)]
enum SecretKind {
    /// Credentials for a git server, for `spec.secretRef` of a ReleaseSource
    Git(GitArguments),
}

/// Arguments of `fairway create secret git`.
#[derive(Debug, Args)]
struct GitArguments {
    /// The name of the Secret; one that is there gets these keys in the place of those that this command gave it
    name: String,
    /// The user for https
    #[arg(long, value_name = "USER", requires = "password_stdin", group = "way")]
    username: Option<String>,
    /// Read the password, or a token in its place, from standard input
    #[arg(long, requires = "username", conflicts_with = "bearer_token_stdin")]
    password_stdin: bool,
    /// Read a bearer token for https from standard input
    #[arg(long, group = "way")]
    bearer_token_stdin: bool,
    /// The private key for ssh
    #[arg(
        long,
        value_name = "FILE",
        requires = "known_hosts_file",
        group = "way"
    )]
    ssh_key_file: Option<PathBuf>,
    /// The host keys that are trusted for ssh, as `ssh-keyscan HOST` prints them
    #[arg(long, value_name = "FILE", requires = "ssh_key_file")]
    known_hosts_file: Option<PathBuf>,
    /// Certificates of authorities that are trusted for https beside the system's, as PEM
    #[arg(long, value_name = "FILE", conflicts_with = "ssh_key_file")]
    ca_file: Option<PathBuf>,
    /// Print the Secret, and send nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("failed to read {what}")]
struct ReadError {
    what: String,
    source: io::Error,
}

pub(super) fn run(arguments: &CreateArguments, context: &mut Context) -> Result<Exit, Failure> {
    let Created::Secret(SecretArguments {
        kind: SecretKind::Git(arguments),
    }) = &arguments.what;
    let keys = keys(arguments)?;
    let namespace = context.cluster.namespace.clone();
    if arguments.dry_run {
        let namespace = namespace.unwrap_or_else(|| super::connection::NAMESPACE.to_owned());
        print(&secret(&arguments.name, &namespace, &keys), context)?;
        return Ok(Exit::Ok);
    }
    let name = &arguments.name;
    let namespace = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let body = secret(name, &home.namespace, &keys);
        let patch = (Patch::Apply, &body);
        home.cluster
            .patch::<Secret>(&home.namespace, name, None, MANAGER, patch)
            .await
            .map_err(|error| {
                Failure::of(error).help(format!(
                    "the namespace {} must be there (fairway install), and you need `patch` on Secrets in it",
                    home.namespace
                ))
            })?;
        Ok::<_, Failure>(home.namespace)
    })?;
    let names: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
    writeln!(
        context.err,
        "secret/{name} in {namespace} has the keys {}; name it in spec.secretRef of a ReleaseSource",
        names.join(", ")
    )?;
    Ok(Exit::Ok)
}

fn print(secret: &Value, context: &mut Context) -> Result<(), Failure> {
    if context.output == OutputFormat::Text {
        // A manifest has no other form for people than this.
        let text = serde_yaml::to_string(secret).map_err(Failure::of)?;
        context.out.write_all(text.as_bytes())?;
        return Ok(());
    }
    context.write_value(secret)
}

/// Reads what was given, by the keys under which the agent and Flux look for it.
fn keys(arguments: &GitArguments) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    let mut keys = Vec::new();
    if let Some(username) = &arguments.username {
        keys.push(("username", username.clone().into_bytes()));
        keys.push(("password", from_stdin("the password")?));
    }
    if arguments.bearer_token_stdin {
        keys.push(("bearerToken", from_stdin("the token")?));
    }
    for (key, file) in [
        ("identity", &arguments.ssh_key_file),
        ("known_hosts", &arguments.known_hosts_file),
        ("ca.crt", &arguments.ca_file),
    ] {
        if let Some(file) = file {
            keys.push((key, from_file(file)?));
        }
    }
    if keys.is_empty() {
        return Err(Failure::Misuse(
            "nothing to put into the Secret: --username with --password-stdin, --bearer-token-stdin, --ssh-key-file with \
             --known-hosts-file, or --ca-file; a public repository needs no Secret"
                .to_owned(),
        ));
    }
    Ok(keys)
}

fn secret(name: &str, namespace: &str, keys: &[(&'static str, Vec<u8>)]) -> Value {
    let data: serde_json::Map<String, Value> = keys
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(ByteString(value.clone()))))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": data,
    })
}

/// Reads one value; the line end that `echo` and editors add is none of it.
fn from_stdin(what: &str) -> Result<Vec<u8>, Failure> {
    let mut value = bounded(&mut io::stdin().lock(), what)?;
    if value.last() == Some(&b'\n') {
        value.pop();
        if value.last() == Some(&b'\r') {
            value.pop();
        }
    }
    if value.is_empty() {
        return Err(Failure::Misuse(format!(
            "{what} is expected on standard input, which is empty"
        )));
    }
    Ok(value)
}

fn from_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let what = path.display().to_string();
    let mut file = File::open(path).map_err(|source| {
        Failure::of(ReadError {
            what: what.clone(),
            source,
        })
    })?;
    let value = bounded(&mut file, &what)?;
    if value.is_empty() {
        return Err(Failure::Misuse(format!("{what} is empty")));
    }
    Ok(value)
}

fn bounded(from: &mut impl Read, what: &str) -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    let limit = limits::CREDENTIAL_SIZE_MAX;
    from.take(limit + 1)
        .read_to_end(&mut value)
        .map_err(|source| {
            Failure::of(ReadError {
                what: what.to_owned(),
                source,
            })
        })?;
    if value.len() as u64 > limit {
        return Err(Failure::Misuse(format!(
            "{what} is larger than {limit} bytes, which no credential is"
        )));
    }
    Ok(value)
}
