//! What docs/operate.md promises: each command in it works as printed, on a cluster with the shipped rights, and what it shows as
//! output is what comes out; a command that the page names and this walk does not run fails the test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use serde_json::json;

use crate::readme::placeholders;
use crate::support::agent::{FAIRWAY, command};
use crate::support::control_plane::{ControlPlane, binary};
use crate::support::world::{PASSWORD, World};

const NAMESPACE: &str = "fairway-system";
const IMAGE: &str = "registry.example.com/fairway:0.1.0";

/// What needs a run that waits, or has failed; tests/it/migrations tries these.
const OF_RUNS: [&str; 3] = ["fairway run ", "fairway describe run", "fairway migration "];

/// Somebody who reads the page and types what it says.
struct Walk {
    page: String,
    kubeconfig: PathBuf,
    /// A clone of the repository, where commands are typed.
    folder: PathBuf,
    /// The commit that stands for the one on the page.
    commit: String,
    done: BTreeSet<String>,
}

impl Walk {
    fn new(plane: &ControlPlane) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            page: std::fs::read_to_string(root.join("docs/operate.md")).unwrap(),
            kubeconfig: plane.kubeconfig().to_owned(),
            folder: root.to_owned(),
            commit: String::new(),
            done: BTreeSet::new(),
        }
    }

    /// Types a command; returns its exit code and output.
    fn try_typing(&mut self, line: &str) -> (i32, String) {
        self.done.insert(placed(line));
        let script = "set -euo pipefail
            kubectl() { \"$CONTROL_PLANE\" kubectl --kubeconfig \"$CONFIG\" \"$@\"; }
            fairway() { \"$FAIRWAY\" --kubeconfig \"$CONFIG\" \"$@\"; }
            eval \"$LINE\"";
        let line = placed(line).replace("5240008a9f", &self.commit);
        let output = command(&["bash", "-c", script])
            .current_dir(&self.folder)
            .env("CONTROL_PLANE", binary())
            .env("FAIRWAY", FAIRWAY[0])
            .env("CONFIG", &self.kubeconfig)
            .env("LINE", &line)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        (code, text(&output.stdout) + &text(&output.stderr))
    }

    /// Types a command that works.
    fn types(&mut self, line: &str) -> String {
        let (code, text) = self.try_typing(line);
        assert_eq!(code, 0, "{line}\n{text}");
        text
    }

    /// Types a command of the page until its output has these words: what it looks at takes a moment.
    #[expect(
        clippy::disallowed_methods,
        reason = "what a command says has no event to wait for"
    )]
    fn until(&mut self, line: &str, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let (_, text) = self.try_typing(line);
            if text.contains(words) {
                return text;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(90),
                "{line} never says {words}:\n{text}"
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Types a command that the page shows with its output, which is what comes out.
    fn shows(&self, line: &str, found: &str) {
        let block = format!("```console\n$ {line}\n");
        let (_, rest) = self.page.split_once(&block).expect("the page shows it");
        let (shown, _) = rest.split_once("```").unwrap();
        let each = |text: &str| text.lines().map(placeholders).collect::<Vec<_>>();
        assert_eq!(
            each(found),
            each(shown),
            "copy what {line} prints into the page"
        );
    }

    /// Fails when the page names a command that was not typed.
    fn ends(&self) {
        let commands = commands(&self.page);
        assert!(commands.len() > 30, "{commands:?}");
        let missed: Vec<&String> = commands
            .iter()
            .filter(|named| !OF_RUNS.iter().any(|begin| named.starts_with(begin)))
            .filter(|named| {
                let begun = format!("{named} ");
                !self
                    .done
                    .iter()
                    .any(|done| done == *named || done.starts_with(&begun))
            })
            .collect();
        assert!(missed.is_empty(), "nobody has tried: {missed:#?}");
    }
}

/// Puts the walk's own names in the place of those that a page leaves open.
fn placed(line: &str) -> String {
    line.replace("DIR", ".")
        .replace("SOURCE", "modules")
        .replace("--target NAME", "--target one")
        .replace("source NAME", "source modules")
        .replace("--image …", &format!("--image {IMAGE}"))
}

/// Returns the commands of a page: the lines of its shell blocks, what stands after `$`, and code in its text.
fn commands(page: &str) -> BTreeSet<String> {
    let is_command = |text: &str| text.starts_with("fairway ") || text.starts_with("kubectl ");
    let (mut found, mut text, mut block) = (BTreeSet::new(), String::new(), None);
    for line in page.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(language), None) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (None, Some("sh")) => {
                // What stands behind it is for the reader.
                let command = line.split(" #").next().unwrap_or_default();
                found.insert(placed(command.trim_end()));
            }
            (None, Some(_)) => {
                found.extend(line.strip_prefix("$ ").map(placed));
            }
            (None, None) => text = text + line + " ",
        }
    }
    let code = text.split('`').skip(1).step_by(2);
    found.extend(code.filter(|code| is_command(code)).map(placed));
    found
}

#[test]
fn the_commands_of_a_page_are_found() {
    let page = "Say `fairway check` or `kubectl\nget pods`.\n```sh\nfairway a\nfairway b\n```\n```console\n$ fairway c\nNAME\n```\n\
                And `Ready`.";
    let found: Vec<String> = commands(page).into_iter().collect();
    assert_eq!(
        found,
        [
            "fairway a",
            "fairway b",
            "fairway c",
            "fairway check",
            "kubectl get pods"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_page_works() {
    let plane: &'static ControlPlane = Box::leak(Box::new(ControlPlane::of_its_own("operate")));
    let mut walk = Walk::new(plane);
    let world = install(&mut walk, plane).await;
    let mut agent =
        world.agent_with(&["--allow-local-runtimes", "--webhook-listen", "127.0.0.1:0"]);
    declare(&mut walk, &world).await;
    looks(&mut walk);
    decides(&mut walk, &world).await;
    leaves_alone(&mut walk);
    agent.terminate();
    works_without_an_agent(&mut walk);
    let _agent = world.agent_with(&["--allow-local-runtimes"]);
    deletes(&mut walk);
    walk.ends();
}

async fn install(walk: &mut Walk, plane: &'static ControlPlane) -> World {
    walk.types("fairway check --pre");
    let line = format!("fairway install --image {IMAGE} --kyma-crds");
    walk.types(&line);
    walk.types("fairway install --image …");
    let catalog =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kcp-system"}});
    plane.apply_yaml(&catalog.to_string()).await;
    walk.types("kubectl apply -f deploy/role-runtimes.yaml");
    World::beside(plane, NAMESPACE.to_owned(), "kcp-system".to_owned()).await
}

async fn declare(walk: &mut Walk, world: &World) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo/components");
    for component in ["ingress", "observability"] {
        for entry in std::fs::read_dir(examples.join(component)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Migrations have pages and tests of their own.
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            let content = std::fs::read(&path).unwrap();
            world
                .repository
                .write(&format!("components/{component}/{name}"), content);
        }
    }
    world.publish_modules();
    let _one = Box::leak(Box::new(world.runtime("one", json!({}), json!([])).await));
    let hook = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook", "namespace": NAMESPACE},
        "stringData": {"token": PASSWORD},
    });
    world.plane.apply_yaml(&hook.to_string()).await;
    let source = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "ReleaseSource",
        "metadata": {"name": "modules", "namespace": NAMESPACE},
        "spec": {
            "url": world.server.url(), "ref": {"branch": "main"}, "interval": "1h", "landscape": "prod",
            "secretRef": {"name": "git-credentials"}, "catalog": {"namespace": "kcp-system"},
            "webhook": {"provider": "GitHub", "secretRef": {"name": "hook"}}, "runtimes": {"catalog": "Sync"},
        },
    });
    world.plane.apply_yaml(&source.to_string()).await;
    world.repository.path().clone_into(&mut walk.folder);
    let head = world.repository.git(&["rev-parse", "HEAD"]);
    head.trim().clone_into(&mut walk.commit);
    walk.until("fairway get sources", "Synced");
}

fn looks(walk: &mut Walk) {
    walk.types("fairway wait modules --revision 5240008a9f --runtimes 95%");
    walk.types("fairway wait modules --revision 5240008a9f");
    walk.types("fairway reconcile modules");
    walk.types("kubectl -n fairway-system wait --for=condition=Ready releasesource/modules");
    let sources = walk.types("fairway get sources");
    walk.shows("fairway get sources", &sources);
    walk.types("kubectl -n fairway-system get releasesources");
    let source = walk.types("fairway describe source modules");
    assert!(source.contains("1 runtime in step"), "{source}");
    walk.types("fairway get targets");
    walk.types("fairway describe target modules");
    let one = walk.types("fairway describe target modules.one");
    assert!(one.contains("Target:     modules.one"), "{one}");
    assert!(one.contains("Left out:"), "{one}");
    walk.types("fairway get components");
    walk.types("fairway get runs");
    walk.types("kubectl -n fairway-system get releasesource modules -o yaml");
    assert_eq!(
        walk.types("fairway get approvals").trim(),
        "nothing waits for a person"
    );
    walk.types("fairway plan DIR --base main");
    walk.types("fairway validate DIR");
    walk.types("fairway history modules");
    walk.types("fairway check");
    walk.types("kubectl -n fairway-system get events");
    walk.types("fairway webhook show modules");
    let (code, text) = walk.try_typing("fairway describe source modules.one");
    assert_eq!(code, 2);
    assert!(
        text.contains("fairway describe target modules.one"),
        "{text}"
    );
}

async fn decides(walk: &mut Walk, world: &World) {
    world.repository.remove("components/observability");
    world.repository.publish("Remove observability");
    walk.types("fairway reconcile modules || true");
    let waiting = walk.until(
        "fairway get approvals",
        "components/observability disappears",
    );
    walk.shows("fairway get approvals", &waiting);
    walk.types("fairway approve prune modules --reason 'observability moved to the platform team'");
    walk.until("fairway get sources", "Synced");

    world
        .repository
        .git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    world
        .repository
        .git(&["push", "--quiet", "--force", "origin", "main"]);
    walk.types("fairway reconcile modules || true");
    walk.until("fairway get approvals", "fairway approve rewind modules");
    walk.types(
        "fairway approve rewind modules --reason 'a secret was committed; history was rewritten'",
    );
    walk.until("fairway get sources", "Synced");

    for (target, decision) in [
        (
            "modules.home",
            "fairway approve identity modules --reason 'restored from the backup of 2026-11-20'",
        ),
        (
            "modules.one",
            "fairway adopt SOURCE --target NAME --reason '…'",
        ),
    ] {
        world
            .targets()
            .delete(target, &DeleteParams::default())
            .await
            .unwrap();
        walk.types("fairway reconcile modules || true");
        walk.until(
            "fairway get approvals",
            "its record on this cluster was lost",
        );
        walk.types(decision);
        walk.until("fairway get approvals", "nothing waits for a person");
    }
}

fn leaves_alone(walk: &mut Walk) {
    walk.types("fairway suspend modules");
    let (code, text) = walk.try_typing("fairway wait modules --revision 1111111");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("fairway resume modules"), "{text}");
}

fn works_without_an_agent(walk: &mut Walk) {
    walk.types("kubectl -n fairway-system scale deployment fairway --replicas 2");
    walk.types("kubectl -n fairway-system get lease fairway-home");
    walk.types("kubectl -n fairway-system scale deployment fairway --replicas 0");
    walk.types("kubectl -n ingress scale deployment ingress --replicas 7");
    // It asks where somebody could answer.
    walk.types("fairway sync DIR --source modules --yes");
    walk.types("fairway plan DIR --exit-code");
    walk.types("fairway resume modules");
}

fn deletes(walk: &mut Walk) {
    walk.types(
        "kubectl -n fairway-system patch releasesource modules --type merge --patch '{\"spec\":{\"deletionPolicy\":\"Delete\"}}'",
    );
    walk.until(
        "kubectl -n fairway-system get releasesource modules -o 'jsonpath={.metadata.finalizers}'",
        "fairway.dev/prune",
    );
    let (code, text) = walk.try_typing("fairway uninstall --yes");
    assert_eq!(code, 2, "{text}");
    walk.types("kubectl -n fairway-system delete releasesource modules --wait=false");
    walk.until("fairway get approvals", "the source is deleted");
    let source = walk.types("fairway describe source modules");
    assert!(
        source.contains("the catalog of its runtime stays as it is"),
        "{source}"
    );
    walk.types("fairway approve prune modules --reason '…'");
    walk.until("fairway get sources", "no sources");
    walk.types("fairway uninstall --yes");
    walk.types("kubectl get all,configmaps,namespaces,moduletemplates,modulereleasemetas --all-namespaces --selector fairway.dev/source=modules");
    Path::new(env!("CARGO_MANIFEST_DIR")).clone_into(&mut walk.folder);
    walk.types("kubectl delete -f deploy/role-runtimes.yaml");
}
