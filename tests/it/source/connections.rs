//! How a mirror talks to its server: with few requests, over few connections, and to nobody else.

use fairway::model::limits;
use fairway::source::{Credentials, Fetched, Mirror, MirrorLimits, SourceError, SourceUrl};
use rstest::rstest;

use super::https::Scene;
use super::{main, read};
use crate::support::git_server::SignIn;

#[test]
fn credentials_are_shown_at_once_and_fetches_share_a_connection() {
    let scene = Scene::new(SignIn::Password("hunter2"));
    let credentials = scene.trusted(Credentials::basic("ci", "hunter2").unwrap());
    scene.fetch(credentials.clone()).unwrap();
    assert_eq!(scene.server.requests(), ["advertise 200", "fetch 200"]);
    let fetch = || {
        let request = main(Some(scene.commit));
        scene.mirror.fetch_blocking(request, credentials.clone())
    };
    assert!(matches!(fetch().unwrap(), Fetched::Unmoved(_)));
    scene.repository.write("a.yaml", "two");
    scene.repository.publish("two");
    let moved = fetch().unwrap();
    assert!(matches!(moved, Fetched::Moved(_)));
    assert_eq!(read(moved.snapshot(), "a.yaml"), "two");
    assert_eq!(
        scene.server.requests()[2..],
        ["advertise 200", "advertise 200", "fetch 200"]
    );
    assert_eq!(scene.server.connections(), 1);
}

#[test]
fn a_long_history_is_compared_over_the_same_connection() {
    let scene = Scene::new(SignIn::Nobody);
    let credentials = scene.trusted(Credentials::default());
    for number in 0..60 {
        scene
            .repository
            .write("a.yaml", format!("number: {number}"));
        scene.repository.commit("another");
    }
    scene.repository.publish("the last");
    scene.fetch(credentials.clone()).unwrap();
    scene.repository.write("a.yaml", "two");
    scene.repository.publish("two");
    let found = scene.fetch(credentials).unwrap();
    assert_eq!(read(found.snapshot(), "a.yaml"), "two");
    assert_eq!(scene.server.connections(), 1);
}

#[test]
fn a_connection_that_the_server_has_closed_is_no_error() {
    let mut scene = Scene::new(SignIn::Nobody);
    let credentials = scene.trusted(Credentials::default());
    scene.fetch(credentials.clone()).unwrap();
    scene.server.restart();
    scene.fetch(credentials).unwrap();
    assert_eq!(
        scene.server.requests(),
        ["advertise 200", "fetch 200", "advertise 200"]
    );
    assert_eq!(scene.server.connections(), 2);
}

#[test]
fn a_connection_is_not_used_under_other_trust() {
    let scene = Scene::new(SignIn::Nobody);
    let credentials = scene.trusted(Credentials::default());
    scene.fetch(credentials.clone()).unwrap();
    let error = scene.fetch(Credentials::default()).unwrap_err();
    assert!(matches!(error, SourceError::Untrusted { .. }), "{error:?}");
    scene.fetch(credentials).unwrap();
    assert_eq!(scene.server.connections(), 2);
}

#[test]
fn a_repository_that_has_moved_on_its_host_is_followed() {
    let scene = Scene::new(SignIn::Password("hunter2"));
    let credentials = scene.trusted(Credentials::basic("ci", "hunter2").unwrap());
    let url = SourceUrl::parse(&scene.server.url().replace("modules", "old")).unwrap();
    let directory = scene.directory.path().join("old");
    let mirror = Mirror::new(directory, url, MirrorLimits::default());
    scene.server.fault("redirect /old.git /modules.git");
    let found = mirror.fetch_blocking(main(None), credentials).unwrap();
    assert_eq!(read(found.snapshot(), "a.yaml"), "one");
    assert_eq!(
        scene.server.requests(),
        ["advertise 302", "advertise 200", "fetch 200"]
    );
    assert_eq!(scene.server.connections(), 1);
}

#[rstest]
#[case::in_circles("/modules.git", "/modules.git", 1 + limits::GIT_REDIRECTS_MAX)]
#[case::to_another_host("/modules.git", "https://localhost:1/modules.git", 1)]
#[case::to_another_port("/modules.git", "https://127.0.0.1:1/modules.git", 1)]
#[case::to_plain_http("/modules.git", "http://127.0.0.1:1/modules.git", 1)]
#[case::to_a_page("/modules.git/info/refs", "/login", 1)]
#[case::of_the_pack("/modules.git/git-upload-pack", "/modules.git/git-upload-pack", 2)]
fn credentials_are_carried_nowhere_else(
    #[case] from: &str,
    #[case] to: &str,
    #[case] requests: usize,
) {
    let scene = Scene::new(SignIn::Password("hunter2"));
    let credentials = scene.trusted(Credentials::basic("ci", "hunter2").unwrap());
    scene.server.fault(&format!("redirect {from} {to}"));
    let error = scene.fetch(credentials).unwrap_err();
    assert!(matches!(error, SourceError::Redirected { .. }), "{error:?}");
    assert_eq!(scene.server.requests().len(), requests);
}
