//! Tokens that are missing, mended, changed and withdrawn, without a restart; and that are never told.

use serde_json::{Value, json};

use super::forge::{
    Hooked, TOKEN, deliver, github, headers, page, sign, token, until_path, webhook,
};
use crate::support::world::World;

const NEXT: &str = "canary-token-that-comes-next";

#[tokio::test]
async fn both_tokens_are_valid_while_one_replaces_the_other_and_a_withdrawn_one_is_not() {
    let hooked = Hooked::new("GitHub").await;
    let body = hooked.body("refs/heads/main");
    let signed = |id: &str, with: &str| {
        let mut headers = github(id, &body);
        headers[3].1 = sign(with, &body);
        headers
    };
    token(
        &hooked.world,
        json!({"token": NEXT, "tokenPrevious": TOKEN}),
    )
    .await;
    // The path follows the token; nobody has told the agent, but whoever delivers makes it look.
    let mut answer = hooked.send(&signed("old", TOKEN), &body).await;
    assert_eq!(answer.status, 200, "the old token goes on: {answer:?}");
    let (mut path, mut number) = (hooked.path.clone(), 0);
    while path == hooked.path {
        number += 1;
        answer = hooked
            .send(&signed(&format!("again-{number}"), TOKEN), &body)
            .await;
        assert_eq!(
            answer.status, 200,
            "no valid delivery is refused meanwhile: {answer:?}"
        );
        path = webhook(&hooked.world.source().await).path.unwrap();
    }
    for (path, with) in [
        (&path, NEXT),
        (&path, TOKEN),
        (&hooked.path, NEXT),
        (&hooked.path, TOKEN),
    ] {
        number += 1;
        let headers = signed(&format!("both-{number}"), with);
        let answer = deliver(&hooked.address, path, &headers, body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    token(&hooked.world, json!({"token": NEXT, "tokenPrevious": ""})).await;
    loop {
        number += 1;
        let headers = signed(&format!("withdrawn-{number}"), TOKEN);
        if deliver(&hooked.address, &path, &headers, body.as_bytes())
            .await
            .status
            == 404
        {
            break;
        }
    }
    let headers = signed("new", NEXT);
    let answer = deliver(&hooked.address, &path, &headers, body.as_bytes()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = deliver(&hooked.address, &hooked.path, &headers, body.as_bytes()).await;
    assert_eq!(answer.status, 404, "its path has gone with the token");
}

#[tokio::test]
async fn a_token_that_is_missing_or_unusable_is_named_and_mended() {
    let world = World::new().await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let agent = world.agent_with(&["--webhook-listen", "127.0.0.1:0"]);
    let spec = json!({"webhook": {"provider": "GitHub", "secretRef": {"name": "hook"}}});
    world.declare(spec).await;
    let until = async |what: &'static str| {
        let source = world.until_source(
            what,
            move |source: Option<&fairway::model::api::ReleaseSource>| {
                let message = source.and_then(|source| webhook(source).message);
                message.is_some_and(|message| message.contains(what))
            },
        );
        assert_eq!(webhook(&source.await).path, None);
    };
    until("the Secret `hook` does not exist").await;
    token(&world, json!({"other": "key"})).await;
    until("it has no key `token`").await;
    token(&world, json!({"token": "short"})).await;
    until("shorter than 16 characters").await;
    token(&world, json!({"token": format!("{TOKEN}\n")})).await;
    until("printf").await;
    token(&world, json!({"token": TOKEN})).await;
    let path = until_path(&world, |_| true).await;
    assert_eq!(webhook(&world.source().await).message, None);
    world.until_reason("Synced").await;

    // Taken out again, nothing of it is left.
    world.declare(json!({})).await;
    world
        .until_source(
            "the webhook is gone",
            |source: Option<&fairway::model::api::ReleaseSource>| {
                source.is_some_and(|source| {
                    source
                        .status
                        .as_ref()
                        .is_some_and(|status| status.webhook.is_none())
                })
            },
        )
        .await;
    let answer = deliver(
        &super::forge::webhook_address(&agent),
        &path,
        &github("gone", ""),
        b"",
    )
    .await;
    assert_eq!(answer.status, 503, "nobody takes deliveries");
}

#[tokio::test]
async fn an_agent_that_does_not_listen_says_so() {
    let world = World::new().await;
    world.repository.write("README.md", "nothing yet");
    world.repository.publish("Begin");
    let _agent = world.agent();
    let spec = json!({"webhook": {"provider": "GitHub", "secretRef": {"name": "hook"}}});
    world.declare(spec).await;
    world
        .until_source(
            "it is said",
            |source: Option<&fairway::model::api::ReleaseSource>| {
                let message = source.and_then(|source| webhook(source).message);
                message.is_some_and(|message| message.contains("--webhook-listen"))
            },
        )
        .await;
}

#[tokio::test]
async fn the_token_is_told_nowhere() {
    let hooked = Hooked::new("GitLab").await;
    let body =
        json!({"ref": "refs/heads/main", "project": {"git_http_url": hooked.world.server.url()}})
            .to_string();
    let sent = |token: &str| {
        headers(&[
            ("X-Gitlab-Event", "Push Hook"),
            (
                "X-Gitlab-Event-UUID",
                "13792a34-cac6-4fda-95a8-c58e00a3954e",
            ),
            ("Content-Type", "application/json"),
            ("X-Gitlab-Token", token),
        ])
    };
    assert_eq!(hooked.send(&sent(TOKEN), &body).await.status, 200);
    assert_eq!(hooked.send(&sent(&TOKEN[1..]), &body).await.status, 404);
    hooked
        .until("it is noted", |status| status.last_delivery.is_some())
        .await;
    let world = &hooked.world;
    let told: [(&str, String); 5] = [
        ("log", hooked.agent.log()),
        (
            "audit lines",
            format!("{:?}", Value::from(hooked.agent.audit())),
        ),
        ("metrics", page(&hooked.agent.address(), "/metrics")),
        ("source", format!("{:?}", world.source().await)),
        ("events", world.events().await),
    ];
    for (place, text) in told {
        assert!(!text.contains(&TOKEN[1..]), "the token is in the {place}");
    }
}
