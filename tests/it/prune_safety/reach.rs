//! Git answers in part, not at all, or with nothing, also while the agent starts with what little it has kept.

use super::witness::{Wanted, in_step, nothing_is_lost, only_this_goes};
use crate::support::world::{World, ready};

/// Asks for a pass, which must say that nothing could be fetched.
async fn fetch_fails(world: &World, wanted: &Wanted, fault: &str) {
    let source = world.reconcile().await;
    let (_, reason, message) = ready(&source);
    assert_eq!(reason, "FetchFailed", "{fault}: {message}");
    nothing_is_lost(world, wanted, fault).await;
}

fn drop_one(world: &World) {
    world.repository.remove("components/web/one.yaml");
}

#[tokio::test]
async fn half_a_pack_is_no_revision() {
    let (world, _agent, wanted) = in_step().await;
    drop_one(&world);
    let noise: Vec<u8> = (0..20_000_u64)
        .flat_map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    world.repository.write("noise.txt", noise);
    world.repository.publish("Drop one, and make a large pack");
    world.server.fault("truncate 4000");
    fetch_fails(&world, &wanted, "half a pack").await;
    let requests = world.server.requests();
    assert!(requests.contains(&"fetch 200".to_owned()), "{requests:?}");
    world.server.fault("");
    world.reconcile().await;
    only_this_goes(&world, &wanted, "one", "the whole pack").await;
}

#[tokio::test]
async fn a_repository_without_any_branch_wants_nothing_to_be_deleted() {
    let (world, mut agent, wanted) = in_step().await;
    let bare = world.server.repository();
    let bare = bare.to_str().unwrap();
    let git = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["--git-dir", bare]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        world.repository.git(&arguments)
    };
    git(&["update-ref", "-d", "refs/heads/main"]);
    git(&["gc", "--quiet", "--prune=now"]);
    fetch_fails(&world, &wanted, "emptied").await;
    agent.kill();
    let _agent = world.agent();
    fetch_fails(&world, &wanted, "emptied, restarted").await;
    world.repository.push();
    let source = world.reconcile().await;
    assert_eq!(ready(&source).1, "Synced", "{:?}", ready(&source));
    nothing_is_lost(&world, &wanted, "filled again").await;
}

#[tokio::test]
async fn an_agent_that_finds_neither_its_mirror_nor_the_server_does_nothing() {
    let (mut world, mut agent, wanted) = in_step().await;
    drop_one(&world);
    world.repository.publish("Drop one");
    world.server.stop();
    fetch_fails(&world, &wanted, "server stopped").await;
    agent.kill();
    let mut agent = world.agent();
    fetch_fails(&world, &wanted, "server stopped, restarted").await;
    agent.kill();
    std::fs::remove_dir_all(world.cache()).unwrap();
    let _agent = world.agent();
    fetch_fails(&world, &wanted, "server stopped, mirror gone").await;
}

#[tokio::test]
async fn a_server_that_never_answers_holds_up_nothing_but_the_fetch() {
    let (world, _agent, wanted) = in_step().await;
    drop_one(&world);
    world.repository.publish("Drop one");
    world.server.fault("hang");
    fetch_fails(&world, &wanted, "hang").await;
    world.server.fault("");
    world.reconcile().await;
    only_this_goes(&world, &wanted, "one", "answers again").await;
}
