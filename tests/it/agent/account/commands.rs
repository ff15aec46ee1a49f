//! The command line acts as the account as well, whatever the person may do, and tells what is missing.

use serde_json::json;

use super::stage::{ALL, account, may_act_as, one_setting};
use crate::support::proxy::{Fault, Rule};
use crate::support::world::World;

fn arguments<'a>(world: &'a World, command: &'a str) -> Vec<&'a str> {
    let directory = world.repository.path().to_str().unwrap();
    let catalog = ["--catalog-namespace", &world.apps];
    [&[command, directory, "--source", &world.name], &catalog[..]].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_do_everything_does_what_the_account_may() {
    let world = World::new().await;
    account(
        &world,
        "releases",
        &[("configmaps", &["get", "list", "watch"])],
    )
    .await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    world
        .declare(json!({"serviceAccountName": "releases", "suspend": true}))
        .await;
    let mut sync = arguments(&world, "sync");
    sync.extend(["--yes", "--timeout", "1s"]);
    let (_, out, err) = world.fairway(&sync);
    let said = format!("acting as ServiceAccount {}/releases", world.name);
    assert!(err.contains(&said), "{err}");
    let user = format!("system:serviceaccount:{}:releases", world.name);
    assert!(out.contains(&user), "{out}{err}");
    assert_eq!(world.value("settings").await, None);

    account(&world, "releases", &[("configmaps", ALL)]).await;
    let (code, out, err) = world.fairway(&sync);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(world.value("settings").await.as_deref(), Some("one"));
    let (code, out, err) = world.fairway(&arguments(&world, "plan"));
    assert!(code == 0 && err.contains(&said), "{out}{err}");

    // What is not there is not acted as.
    world
        .declare(json!({"serviceAccountName": "nobody", "suspend": true}))
        .await;
    for command in [sync.clone(), arguments(&world, "plan")] {
        let (code, _, err) = world.fairway(&command);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("create serviceaccount nobody"), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_cannot_be_read_is_not_taken_for_one_without_an_account() {
    let world = World::new().await;
    account(&world, "releases", &[("configmaps", ALL)]).await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    world
        .declare(json!({"serviceAccountName": "releases", "suspend": true}))
        .await;
    let path = format!("/releasesources/{}", world.name);
    world
        .proxy
        .inject(Rule::always("GET", path, Fault::Status(500)));
    let (code, _, err) = world.fairway_through_proxy(&arguments(&world, "plan"));
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("failed to read ReleaseSource"), "{err}");
    let lists = world.proxy.count("GET", "/api/v1/configmaps");
    assert_eq!(lists, 0, "nothing is read as somebody else");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_asks_for_the_account_of_each_source() {
    let world = World::new().await;
    account(&world, "releases", &[("configmaps", ALL)]).await;
    may_act_as(&world, &["releases"]).await;
    let _agent = one_setting(&world).await;
    world.until_reason("Synced").await;
    let who = format!(
        "the account releases in {}, which a source names,",
        world.name
    );
    let (_, out, err) = world.fairway(&["check"]);
    let fine = format!("ok      {who} may do all that its sources have applied");
    assert!(out.contains(&fine), "{out}{err}");
    account(&world, "releases", &[("configmaps", &["get"])]).await;
    let (code, out, _) = world.fairway(&["check"]);
    assert_eq!(code, 1, "{out}");
    let failed = format!("FAILED  {who} may not ");
    let line = out.lines().find(|line| line.starts_with(&failed));
    let line = line.expect("what the account lacks is told");
    assert!(line.contains("list configmaps anywhere"), "{line}");
    world.declare(json!({"serviceAccountName": "nobody"})).await;
    let (_, out, _) = world.fairway(&["check"]);
    assert!(out.contains("create serviceaccount nobody"), "{out}");
    assert!(out.contains("impersonate serviceaccounts nobody"), "{out}");
}
