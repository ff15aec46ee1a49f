//! What good deliveries do: a push is seen at once, a burst costs two fetches, and what is not about the source costs none.

use std::time::Instant;

use futures::stream::{self, StreamExt as _};
use serde_json::json;

use super::forge::{Hooked, TOKEN, github, headers, sign};

#[tokio::test]
async fn a_push_is_applied_and_the_same_delivery_again_does_nothing() {
    let mut hooked = Hooked::new("GitHub").await;
    hooked.world.config_map("web", "settings", "two");
    hooked.world.repository.publish("Change settings");
    let before = hooked.fetches();
    hooked.world.proxy.forget();
    let answer = hooked.push("72d3162e-cc78-11e3-81ab-4c9367dc0958").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        answer.text.starts_with("looking for a new revision of "),
        "{answer:?}"
    );
    hooked.world.until_value("settings", Some("two")).await;
    let status = hooked
        .until("it is noted", |status| status.last_delivery.is_some())
        .await;
    let last = status.last_delivery.unwrap();
    assert_eq!(
        (last.event.as_str(), last.result.as_str()),
        ("push", "Announced")
    );
    assert_eq!(last.id.as_deref(), Some("72d3162e…"));
    assert_eq!(status.last_missed, None);
    assert_eq!(status.recent.len(), 1);

    let repeated = hooked.push("72d3162e-cc78-11e3-81ab-4c9367dc0958").await;
    assert_eq!(
        (repeated.status, repeated.text.as_str()),
        (200, "nothing to do: delivered before\n")
    );
    assert_eq!(hooked.fetches(), before + 1);
    assert_eq!(hooked.status_writes(), 1);

    hooked.restart().await;
    let before = hooked.fetches();
    let repeated = hooked.push("72d3162e-cc78-11e3-81ab-4c9367dc0958").await;
    assert_eq!(
        repeated.text, "nothing to do: delivered before\n",
        "a restart forgets nothing"
    );
    assert_eq!(hooked.fetches(), before);
    let answer = hooked.push("another").await;
    assert!(answer.text.starts_with("looking"), "{answer:?}");
}

#[tokio::test]
async fn what_is_not_about_the_source_rings_no_bell() {
    let hooked = Hooked::new("GitHub").await;
    let url = hooked.world.server.url();
    let (host, _) = url.rsplit_once('/').unwrap();
    let push = |url: &str, reference: &str| {
        json!({"ref": reference, "repository": {"clone_url": url}}).to_string()
    };
    let main = "refs/heads/main";
    let before = hooked.fetches();
    hooked.world.proxy.forget();
    let others = [
        (
            push(&format!("{host}/evil/modules.git"), main),
            "another repository",
        ),
        (
            push(&format!("{host}/x-modules.git"), main),
            "another repository",
        ),
        (
            push(&format!("{host}/modules.git/modules"), main),
            "another repository",
        ),
        (
            push("https://example.com/modules.git", main),
            "another repository",
        ),
        (push(&url, "refs/heads/main2"), "another branch or tag"),
        (
            push(&url, "refs/heads/feature/main"),
            "another branch or tag",
        ),
        (push(&url, "refs/tags/main"), "another branch or tag"),
    ];
    for (number, (body, why)) in others.iter().enumerate() {
        let answer = hooked
            .send(&github(&format!("other-{number}"), body), body)
            .await;
        assert_eq!(answer.status, 200);
        assert!(answer.text.contains(why), "{answer:?} for {body}");
    }
    let body = hooked.body(main);
    for (event, text) in [
        ("ping", "takes deliveries here"),
        ("issues", "not a push"),
        ("surprise", "not a push"),
    ] {
        let mut headers = github(event, &body);
        headers[0].1 = event.to_owned();
        let answer = hooked.send(&headers, &body).await;
        assert_eq!(answer.status, 200);
        assert!(answer.text.contains(text), "{answer:?}");
    }
    let status = hooked.until("the last one is noted", |status| {
        status
            .last_delivery
            .as_ref()
            .is_some_and(|last| last.event == "surprise")
    });
    assert_eq!(status.await.last_delivery.unwrap().result, "OtherEvent");
    assert_eq!(hooked.fetches(), before, "nothing was worth a look");
    let counted: Vec<u64> = [
        "OtherRepository",
        "OtherReference",
        "OtherEvent",
        "Ping",
        "Announced",
    ]
    .map(|result| hooked.counted(result))
    .to_vec();
    assert_eq!(counted, [4, 3, 2, 1, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_deliveries_cost_two_fetches_and_lose_no_change() {
    let hooked = Hooked::new("GitHub").await;
    let (before, body) = (hooked.fetches(), hooked.body("refs/heads/main"));
    hooked.world.proxy.forget();
    hooked.world.config_map("web", "settings", "two");
    hooked.world.repository.publish("First");
    hooked.world.config_map("web", "settings", "last");
    hooked.world.repository.commit("Last");
    let begun = Instant::now();
    // The ids go backwards, as they do where deliveries overtake each other; the last commit arrives in the midst of them.
    let statuses: Vec<u16> = stream::iter((0..2_000).rev())
        .map(|number| {
            let (hooked, body) = (&hooked, &body);
            async move {
                if number == 1_000 {
                    tokio::task::block_in_place(|| hooked.world.repository.push());
                }
                let headers = github(&format!("delivery-{number}"), body);
                hooked.send(&headers, body).await.status
            }
        })
        .buffer_unordered(32)
        .collect()
        .await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    assert!(
        statuses.iter().all(|status| *status == 200),
        "every valid delivery is taken"
    );
    hooked.world.until_value("settings", Some("last")).await;
    hooked
        .until("the burst is noted", |status| status.recent.len() == 32)
        .await;
    // One burst, unless the machine itself has paused for longer than its deliveries may be apart.
    let (fetches, writes) = (hooked.fetches() - before, hooked.status_writes());
    assert!(writes <= 1 + seconds, "{writes} writes in {seconds} s");
    assert!(
        (2..=2 * writes).contains(&fetches),
        "{fetches} fetches, {writes} writes"
    );
    assert_eq!(hooked.counted("Announced"), 2_000);
}

#[tokio::test]
async fn forms_and_large_payloads_are_taken() {
    let hooked = Hooked::new("GitHub").await;
    let payload = hooked.body("refs/heads/main");
    let form: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload)
        .finish();
    let mut headers = github("form", &form);
    headers[2].1 = "application/x-www-form-urlencoded".to_owned();
    let answer = hooked.send(&headers, &form).await;
    assert!(answer.text.starts_with("looking"), "{answer:?}");

    // Larger than what is kept to be read: the signature alone decides.
    let large = payload.replace('}', &format!("}}{}", " ".repeat(2 * 1024 * 1024)));
    let answer = hooked.send(&github("large", &large), &large).await;
    assert!(answer.text.starts_with("looking"), "{answer:?}");
    let mut changed = large.clone();
    changed.replace_range(large.len() - 1.., "\n");
    let answer = hooked.send(&github("changed", &large), &changed).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    let other = hooked.body("refs/heads/other");
    let answer = hooked.send(&headers_of_gitlab(), &other).await;
    assert_eq!(
        answer.status, 404,
        "a forge of another kind is not listened to"
    );
}

fn headers_of_gitlab() -> Vec<(String, String)> {
    headers(&[
        ("X-Gitlab-Event", "Push Hook"),
        ("X-Gitlab-Token", TOKEN),
        ("X-Hub-Signature", &sign(TOKEN, "")),
        ("Content-Type", "application/json"),
    ])
}

#[tokio::test]
async fn a_change_that_nobody_announces_is_found_by_the_poll_and_noted() {
    let hooked = Hooked::with("GitHub", json!({"interval": "10s"})).await;
    hooked.world.config_map("web", "settings", "two");
    let commit = hooked.world.repository.publish("Change settings");
    let status = hooked
        .until("it is missed", |status| status.last_missed.is_some())
        .await;
    assert_eq!(
        status.last_missed.unwrap().revision,
        format!("main@sha1:{commit}")
    );
    assert_eq!(status.last_delivery, None);
    assert_eq!(hooked.world.value("settings").await.as_deref(), Some("two"));
}

#[tokio::test]
async fn a_suspended_source_is_not_fetched_for_anybody() {
    let hooked = Hooked::new("GitHub").await;
    let spec = |suspend: bool| {
        let webhook = json!({"provider": "GitHub", "secretRef": {"name": "hook"}});
        json!({"suspend": suspend, "webhook": webhook})
    };
    hooked.world.declare(spec(true)).await;
    let mut number = 0;
    loop {
        number += 1;
        let answer = hooked.push(&format!("push-{number}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        if answer.text.ends_with("is suspended\n") {
            break;
        }
    }
    hooked
        .until("it is noted", |status| {
            status
                .last_delivery
                .as_ref()
                .is_some_and(|last| last.result == "Suspended")
        })
        .await;
    hooked.world.config_map("web", "settings", "two");
    hooked.world.repository.publish("Change settings");
    let before = hooked.fetches();
    assert!(
        hooked
            .push("while suspended")
            .await
            .text
            .ends_with("is suspended\n")
    );
    assert_eq!(hooked.fetches(), before);
    hooked.world.declare(spec(false)).await;
    hooked.world.until_value("settings", Some("two")).await;
}
