//! Faults of git: what is fetched is missing, damaged, rewritten, or holds files that cannot be read.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::witness::{in_step, nothing_is_lost};
use crate::support::world::{World, ready};

/// A fault: its name, how it comes about, and what the condition `Ready` then says.
struct Fault {
    name: &'static str,
    inject: fn(&World),
    reason: &'static str,
}

/// Faults of the server, which heal when its file of faults is emptied.
const SERVER: &[Fault] = &[
    Fault {
        name: "403",
        inject: |world| world.server.fault("deny"),
        reason: "FetchFailed",
    },
    Fault {
        name: "401",
        inject: |world| world.server.fault("unauthorized"),
        reason: "FetchFailed",
    },
    Fault {
        name: "500",
        inject: |world| world.server.fault("error"),
        reason: "FetchFailed",
    },
    Fault {
        name: "truncated answer",
        inject: |world| world.server.fault("truncate 60"),
        reason: "FetchFailed",
    },
    Fault {
        name: "branch deleted",
        inject: delete_branch,
        reason: "FetchFailed",
    },
    Fault {
        name: "mirror damaged",
        inject: damage_mirror,
        reason: "Synced",
    },
];

/// Faults of content; each is one commit, taken back by the next.
const CONTENT: &[Fault] = &[
    Fault {
        name: "every file deleted",
        inject: delete_everything,
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a folder deleted",
        inject: |world| world.repository.remove("components/api"),
        reason: "ApprovalNeeded",
    },
    Fault {
        name: "more deletions than allowed",
        inject: delete_three,
        reason: "ApprovalNeeded",
    },
    Fault {
        name: "a file that is not YAML",
        inject: |world| write(world, "a: [b\n"),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a file that is not text",
        inject: |world| write(world, "\u{0}\u{1}"),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a file that is a list",
        inject: |world| write(world, "- a\n- b\n"),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a file that is too large",
        inject: |world| write(world, &"# x\n".repeat(1_200_000)),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a bomb of aliases",
        inject: |world| write(world, &bomb()),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "nesting without end",
        inject: |world| write(world, &"[".repeat(100_000)),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a symbolic link",
        inject: link,
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a submodule in the place of a file",
        inject: |world| submodule(world, "components/web/one.yaml"),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a submodule in the place of a component",
        inject: |world| submodule(world, "components/api"),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a file of a hundred megabytes",
        inject: |world| write(world, &"# x\n".repeat(25 << 20)),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "an object that stands twice",
        inject: duplicate,
        reason: "PartiallyApplied",
    },
    Fault {
        name: "an object that is refused",
        inject: |world| {
            write(
                world,
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: one-}\n",
            );
        },
        reason: "PartiallyApplied",
    },
    Fault {
        name: "settings that are not YAML",
        inject: |world| world.repository.write("fairway.yaml", "a: [b\n"),
        reason: "PartiallyApplied",
    },
    Fault {
        name: "a component that is renamed",
        inject: rename_component,
        reason: "Synced",
    },
    Fault {
        name: "a file that moves to another component",
        inject: move_file,
        reason: "Synced",
    },
];

fn write(world: &World, text: &str) {
    world.repository.write("components/web/one.yaml", text);
}

fn delete_branch(world: &World) {
    let bare = world.server.repository();
    let bare = bare.to_str().unwrap();
    world
        .repository
        .git(&["--git-dir", bare, "update-ref", "-d", "refs/heads/main"]);
}

fn damage_mirror(world: &World) {
    world
        .repository
        .write("README.md", "a commit, so that there is something to fetch");
    world.repository.publish("Unrelated");
    let mut folders = vec![world.cache()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "pack")
            {
                overwrite(&path);
            }
        }
    }
}

fn overwrite(path: &Path) {
    let mut permissions = std::fs::metadata(path).unwrap().permissions();
    #[expect(
        clippy::permissions_set_readonly_false,
        reason = "a file of the test's own directory"
    )]
    permissions.set_readonly(false);
    std::fs::set_permissions(path, permissions).unwrap();
    std::fs::write(path, b"not a pack").unwrap();
}

fn delete_everything(world: &World) {
    world
        .repository
        .git(&["rm", "-r", "--quiet", "--force", "."]);
}

fn delete_three(world: &World) {
    for name in ["one", "two", "three"] {
        world
            .repository
            .remove(&format!("components/web/{name}.yaml"));
    }
}

fn bomb() -> String {
    let mut text = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (letter, before) in ('b'..='k').zip('a'..) {
        let aliases = vec![format!("*{before}"); 10].join(",");
        let _ = writeln!(text, "{letter}: &{letter} [{aliases}]");
    }
    text
}

fn link(world: &World) {
    let path = world.repository.path().join("components/web/one.yaml");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
}

fn submodule(world: &World, path: &str) {
    let commit = world.repository.git(&["rev-parse", "HEAD"]);
    world
        .repository
        .git(&["rm", "-r", "--quiet", "--force", path]);
    // An empty folder is what a submodule that was not fetched looks like.
    std::fs::create_dir_all(world.repository.path().join(path)).unwrap();
    let entry = format!("160000,{commit},{path}");
    world
        .repository
        .git(&["update-index", "--add", "--cacheinfo", &entry]);
}

fn duplicate(world: &World) {
    let text = std::fs::read(world.repository.path().join("components/web/one.yaml")).unwrap();
    world.repository.write("components/web/again.yaml", text);
}

fn rename_component(world: &World) {
    world
        .repository
        .git(&["mv", "components/api", "components/renamed"]);
}

fn move_file(world: &World) {
    world
        .repository
        .git(&["mv", "components/web/one.yaml", "components/api/one.yaml"]);
}

#[tokio::test]
async fn no_fault_of_the_git_server_deletes_anything() {
    let (world, _agent, wanted) = in_step().await;
    for fault in SERVER {
        (fault.inject)(&world);
        let source = world.reconcile().await;
        let (_, reason, message) = ready(&source);
        assert_eq!(reason, fault.reason, "{}: {message}", fault.name);
        nothing_is_lost(&world, &wanted, fault.name).await;
        world.server.fault("");
        world.repository.push();
        let source = world.reconcile().await;
        assert_eq!(
            ready(&source).1,
            "Synced",
            "{} has healed: {}",
            fault.name,
            ready(&source).2
        );
        nothing_is_lost(&world, &wanted, fault.name).await;
    }
}

#[tokio::test]
async fn no_content_of_a_commit_deletes_what_was_not_approved() {
    let (world, _agent, wanted) = in_step().await;
    for fault in CONTENT {
        (fault.inject)(&world);
        let source = world.publish(fault.name).await;
        let (_, reason, message) = ready(&source);
        assert_eq!(reason, fault.reason, "{}: {message}", fault.name);
        nothing_is_lost(&world, &wanted, fault.name).await;
        world.repository.git(&["revert", "--no-edit", "HEAD"]);
        world.repository.push();
        let source = world.reconcile().await;
        assert_eq!(
            ready(&source).1,
            "Synced",
            "{} is taken back: {}",
            fault.name,
            ready(&source).2
        );
        nothing_is_lost(&world, &wanted, fault.name).await;
    }
}

#[tokio::test]
async fn a_rewritten_history_waits_for_a_person() {
    let (world, _agent, wanted) = in_step().await;
    world
        .repository
        .git(&["checkout", "--quiet", "--orphan", "other"]);
    world
        .repository
        .git(&["rm", "-r", "--quiet", "--force", "components/api"]);
    world.repository.commit("Another history");
    world
        .repository
        .git(&["branch", "--force", "main", "other"]);
    world.repository.push();
    let source = world.reconcile().await;
    let (_, reason, message) = ready(&source);
    assert_eq!(reason, "Rewound", "{message}");
    nothing_is_lost(&world, &wanted, "rewound").await;
    let (code, out, _) = world.fairway(&["get", "approvals"]);
    assert!(code == 0 && out.contains("approve rewind"), "{out}");
    let (code, _, err) = world.fairway(&["approve", "rewind", &world.name, "--reason", "tested"]);
    assert_eq!(code, 0, "{err}");
    // The rewound revision is followed now; that a whole component is gone in it is another question.
    world.until_reason("ApprovalNeeded").await;
    nothing_is_lost(&world, &wanted, "rewound and approved").await;

    // The way back to the same commit, from another one, is another decision.
    world.repository.write("README.md", "further");
    world.repository.commit("Go on");
    let main = ["branch", "--force", "main", "other"];
    world.repository.git(&main);
    world.repository.push();
    world.reconcile().await;
    world
        .repository
        .git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    world.repository.git(&main);
    world.repository.push();
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "Rewound", "{:?}", ready(&source));
}

#[tokio::test]
async fn a_source_that_points_elsewhere_deletes_nothing() {
    let (world, _agent, wanted) = in_step().await;
    for (fault, spec) in [
        ("a path that is not there", json!({"path": "nowhere"})),
        (
            "a branch that is not there",
            json!({"ref": {"branch": "nowhere"}}),
        ),
        (
            "a Secret that is not there",
            json!({"secretRef": {"name": "nowhere"}}),
        ),
        (
            "a host that is not there",
            json!({"url": "https://127.0.0.1:1/modules.git"}),
        ),
    ] {
        world.declare(spec).await;
        world
            .until_source(fault, |source: Option<&_>| {
                source.is_some_and(|source| ready(source).1.starts_with("Fetch"))
            })
            .await;
        nothing_is_lost(&world, &wanted, fault).await;
        world.declare(json!({})).await;
        world.until_reason("Synced").await;
    }
}
