//! What a mirror hands out without its server: the revision that was taken before, whole and from the very same source.

use std::path::Path;

use fairway::model::Snapshot;
use fairway::source::{
    CommitId, Credentials, FetchRequest, Fetched, Mirror, MirrorLimits, Reference, SourceError,
    SourceUrl,
};
use rstest::rstest;

use super::{Scene, main, read};

/// What a new process finds while the repository is gone.
async fn stored(scene: &Scene, request: FetchRequest) -> Result<Option<Snapshot>, SourceError> {
    let url = SourceUrl::parse(scene.repository.path().to_str().unwrap()).unwrap();
    stored_of(scene, url, request).await
}

async fn stored_of(
    scene: &Scene,
    url: SourceUrl,
    request: FetchRequest,
) -> Result<Option<Snapshot>, SourceError> {
    let aside = scene.directory.path().join("aside");
    std::fs::rename(scene.repository.path(), &aside).unwrap();
    let directory = scene.directory.path().join("mirror");
    let mirror = Mirror::new(directory, url, MirrorLimits::default());
    let failed = mirror
        .fetch(request.clone(), Credentials::default())
        .await
        .is_err();
    assert!(failed, "the repository is gone");
    let found = mirror.stored(request).await;
    std::fs::rename(&aside, scene.repository.path()).unwrap();
    found
}

#[tokio::test]
async fn what_was_taken_last_is_there_without_the_server() {
    let scene = Scene::new();
    let first = scene.commit("deploy/a.yaml", "one");
    scene.fetch(None).unwrap();
    let second = scene.commit("deploy/a.yaml", "two");
    scene.fetch(Some(first)).unwrap();
    // The record of what was taken may be one fetch behind the mirror.
    for (commit, content) in [(first, "one"), (second, "two")] {
        let found = stored(&scene, main(Some(commit))).await.unwrap().unwrap();
        assert_eq!(found.revision.hash(), commit.to_string());
        assert_eq!(read(&found, "deploy/a.yaml"), content);
    }
}

#[tokio::test]
async fn nothing_is_there_before_the_first_fetch_or_without_a_record() {
    let scene = Scene::new();
    let commit = scene.commit("a.yaml", "one");
    let unknown = scene.directory.path().join("mirror");
    assert!(!unknown.exists());
    assert!(stored(&scene, main(Some(commit))).await.unwrap().is_none());
    scene.fetch(None).unwrap();
    assert!(stored(&scene, main(None)).await.unwrap().is_none());
}

#[rstest]
#[case::path(FetchRequest { path: "deploy".to_owned(), ..main(None) })]
#[case::reference(FetchRequest { reference: Reference::Branch("other".to_owned()), ..main(None) })]
#[case::kind_of_reference(FetchRequest { reference: Reference::Tag("main".to_owned()), ..main(None) })]
#[tokio::test]
async fn another_declaration_finds_nothing(#[case] request: FetchRequest) {
    let scene = Scene::new();
    let commit = scene.commit("deploy/a.yaml", "one");
    scene.repository.git(&["branch", "other"]);
    scene.fetch(None).unwrap();
    let last = Some(commit);
    let other = FetchRequest { last, ..request };
    assert!(stored(&scene, other).await.unwrap().is_none());
    assert!(stored(&scene, main(last)).await.unwrap().is_some());
}

#[tokio::test]
async fn another_url_finds_nothing() {
    let scene = Scene::new();
    let commit = scene.commit("a.yaml", "one");
    scene.fetch(None).unwrap();
    let url = SourceUrl::parse("/nowhere/modules.git").unwrap();
    let found = stored_of(&scene, url, main(Some(commit))).await;
    assert!(found.unwrap().is_none());
}

#[tokio::test]
async fn what_somebody_has_rewound_to_is_not_handed_out() {
    let scene = Scene::new();
    scene.commit("a.yaml", "one");
    let last = scene.commit("a.yaml", "two");
    scene.fetch(None).unwrap();
    scene
        .repository
        .git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    let Fetched::Rewound { to, .. } = scene.fetch(Some(last)).unwrap() else {
        panic!("the last commit is not part of the branch any more")
    };
    assert!(stored(&scene, main(Some(to))).await.unwrap().is_none());
    let found = stored(&scene, main(Some(last))).await.unwrap().unwrap();
    assert_eq!(found.revision.hash(), last.to_string());
}

type Damage = fn(&Path);

#[rstest]
#[case::truncated(|file: &Path| std::fs::File::options().write(true).open(file).unwrap().set_len(40).unwrap())]
#[case::removed(|file: &Path| std::fs::remove_file(file).unwrap())]
#[case::one_bit(|file: &Path| {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
})]
#[tokio::test]
async fn a_damaged_mirror_hands_out_nothing_and_says_so(#[case] damage: Damage) {
    let scene = Scene::new();
    for number in 1..20_u8 {
        let content: Vec<u8> = (1..500_u16)
            .map(|at| (at * u16::from(number) % 251).to_le_bytes()[0])
            .collect();
        scene.repository.write(&format!("{number}.bin"), content);
    }
    let commit: CommitId = scene.repository.commit("many").parse().unwrap();
    scene.fetch(None).unwrap();
    for name in scene.packs() {
        let folder = scene.directory.path().join("mirror/objects/pack");
        let path = folder.join(&name);
        if path.extension().is_some_and(|end| end == "pack") {
            // git makes packs read-only.
            let content = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, content).unwrap();
            damage(&path);
        }
    }
    let error = stored(&scene, main(Some(commit))).await.unwrap_err();
    assert!(
        matches!(error, SourceError::MirrorCorrupt { .. }),
        "{error:?}"
    );
}
