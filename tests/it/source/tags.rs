//! Tags: ranges of versions, and what happens when a tag moves.

use fairway::source::{CommitId, Credentials, FetchRequest, Fetched, Reference, SourceError};
use rstest::rstest;

use super::{Scene, main};

impl Scene {
    /// Commits one file under a tag, annotated if it has a message.
    fn release(&self, tag: &str, message: Option<&str>) -> CommitId {
        let commit = self.commit("a.yaml", tag);
        match message {
            Some(message) => self
                .repository
                .git(&["tag", "--annotate", "--message", message, tag]),
            None => self.repository.git(&["tag", tag]),
        };
        commit
    }

    fn range(&self, range: &str, last: Option<(&str, CommitId)>) -> Result<Fetched, SourceError> {
        let (last_tag, last) = last.unzip();
        let request = FetchRequest {
            reference: Reference::Range(range.parse().unwrap()),
            last_tag: last_tag.map(str::to_owned),
            ..main(last)
        };
        self.mirror.fetch_blocking(request, Credentials::default())
    }

    fn tag(&self, tag: &str, last: CommitId) -> Fetched {
        let request = FetchRequest {
            reference: Reference::Tag(tag.to_owned()),
            ..main(Some(last))
        };
        self.mirror
            .fetch_blocking(request, Credentials::default())
            .unwrap()
    }
}

#[test]
fn a_range_follows_the_highest_tag_from_release_to_release() {
    let scene = Scene::new();
    scene.release("v1.9.0", None);
    let ten = scene.release("v1.10.0", Some("annotated"));
    scene.release("v2.0.0-rc.1", None);
    let Fetched::Moved(snapshot) = scene.range("^1", None).unwrap() else {
        panic!("the first fetch is a move")
    };
    assert_eq!(snapshot.revision.to_string(), format!("v1.10.0@sha1:{ten}"));

    let packs = scene.packs();
    let last = Some(("v1.10.0", ten));
    assert!(matches!(
        scene.range("^1", last).unwrap(),
        Fetched::Unmoved(_)
    ));
    assert_eq!(scene.packs(), packs, "an idle poll downloads nothing");

    // A fix of an older line, which is no descendant of what was last.
    scene
        .repository
        .git(&["checkout", "--quiet", "-b", "fix", "v1.9.0"]);
    let fix = scene.release("v1.10.1", Some("a fix"));
    let Fetched::Moved(snapshot) = scene.range("^1", last).unwrap() else {
        panic!("a higher version is a move")
    };
    assert_eq!(snapshot.revision.to_string(), format!("v1.10.1@sha1:{fix}"));
}

#[test]
fn what_a_person_selects_by_another_range_needs_no_approval() {
    let scene = Scene::new();
    let one = scene.release("v1.0.0", None);
    scene.release("v2.0.0", None);
    let Fetched::Moved(snapshot) = scene.range("^1", None).unwrap() else {
        panic!("it is the first from this range")
    };
    assert_eq!(snapshot.revision.hash(), one.to_string());
}

#[test]
fn a_tag_of_the_range_that_moves_or_goes_is_held() {
    let scene = Scene::new();
    let one = scene.release("v1.0.0", None);
    let two = scene.release("v1.1.0", Some("two"));
    let later = scene.commit("a.yaml", "later");
    scene.range("^1", None).unwrap();

    scene.repository.git(&["tag", "--force", "v1.1.0"]);
    let Fetched::Rewound { from, to, .. } = scene.range("^1", Some(("v1.1.0", two))).unwrap()
    else {
        panic!("the same version is another commit")
    };
    assert_eq!((from, to), (two, later));

    scene.repository.git(&["tag", "--delete", "v1.1.0"]);
    let Fetched::Rewound { from, to, .. } = scene.range("^1", Some(("v1.1.0", two))).unwrap()
    else {
        panic!("the version goes back")
    };
    assert_eq!((from, to), (two, one));
}

#[rstest]
#[case::forward(false)]
#[case::backward(true)]
fn a_tag_that_moves_is_held_wherever_it_goes(#[case] backward: bool) {
    let scene = Scene::new();
    let before = scene.commit("a.yaml", "before");
    let tagged = scene.release("v1", Some("one"));
    let after = scene.commit("a.yaml", "after");
    let moved = if backward { before } else { after };
    assert!(matches!(scene.tag("v1", tagged), Fetched::Unmoved(_)));
    scene
        .repository
        .git(&["tag", "--force", "v1", &moved.to_string()]);
    let Fetched::Rewound { from, to, .. } = scene.tag("v1", tagged) else {
        panic!("the tag has moved")
    };
    assert_eq!((from, to), (tagged, moved));
}

#[test]
fn a_tag_that_is_annotated_anew_on_the_same_commit_has_not_moved() {
    let scene = Scene::new();
    let tagged = scene.release("v1", None);
    scene.repository.git(&[
        "tag",
        "--force",
        "--annotate",
        "--message",
        "now signed",
        "v1",
    ]);
    assert!(matches!(scene.tag("v1", tagged), Fetched::Unmoved(_)));
}

#[rstest]
#[case::near(&["v1.0.0", "v1.2.0", "v1.3.0-rc.1", "v2.0.0"], "the nearest are v1.2.0, v1.3.0-rc.1 and v2.0.0")]
#[case::annotated(&["v0.1.0"], "the nearest is v0.1.0")]
#[case::no_versions(&["nightly"], "none of its tags is a version, as `v1.2.3`")]
#[case::no_tags(&[], "it has no tags")]
fn a_range_without_a_tag_names_the_nearest(#[case] tags: &[&str], #[case] words: &str) {
    let scene = Scene::new();
    scene.commit("a.yaml", "one");
    for tag in tags {
        scene
            .repository
            .git(&["tag", "--annotate", "--message", "x", tag]);
    }
    let error = scene.range("~1.3", None).unwrap_err();
    let url = scene.repository.path().display();
    assert_eq!(
        error.to_string(),
        format!("no tag in {url} is in the range `~1.3`: {words}")
    );
    assert!(error.is_retryable() && error.help().contains("What was applied last stays"));
}

#[test]
fn an_empty_repository_has_no_tags() {
    assert!(matches!(
        Scene::new().range("^1", None),
        Err(SourceError::RepositoryEmpty { .. })
    ));
}
