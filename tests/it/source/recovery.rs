//! A mirror that is damaged, too large, too old or in the wrong place.

use std::path::{Path, PathBuf};

use fairway::source::{Credentials, Fetched, Mirror, MirrorLimits, Origin, SourceError, SourceUrl};
use rstest::rstest;

use super::{Scene, main, read};

type Damage = fn(&Path);

#[rstest]
#[case::packs_overwritten(|mirror: &Path| each_pack(mirror, |file| std::fs::write(file, "garbage").unwrap()))]
#[case::packs_truncated(|mirror: &Path| each_pack(mirror, |file| std::fs::write(file, "").unwrap()))]
#[case::packs_removed(|mirror: &Path| each_pack(mirror, |file| std::fs::remove_file(file).unwrap()))]
#[case::head_removed(|mirror: &Path| std::fs::remove_file(mirror.join("HEAD")).unwrap())]
#[case::everything_removed(|mirror: &Path| {
    std::fs::remove_dir_all(mirror).unwrap();
    std::fs::create_dir(mirror).unwrap();
})]
#[case::reference_overwritten(|mirror: &Path| {
    std::fs::write(mirror.join("refs/fairway/heads/main"), "garbage").unwrap();
})]
fn a_damaged_mirror_is_cloned_anew(#[case] damage: Damage) {
    let scene = Scene::new();
    let commit = scene.commit("a.yaml", "one");
    let before = scene.fetch(None).unwrap();
    damage(&scene.directory.path().join("mirror"));

    // A new process, which has nothing open.
    let url = SourceUrl::parse(scene.repository.path().to_str().unwrap()).unwrap();
    let mirror = Mirror::new(
        scene.directory.path().join("mirror"),
        url,
        MirrorLimits::default(),
    );
    let found = mirror
        .fetch_blocking(main(Some(commit)), Credentials::default())
        .unwrap();
    assert!(matches!(found, Fetched::Unmoved(_)));
    assert_eq!(read(found.snapshot(), "a.yaml"), "one");
    assert_eq!(read(before.snapshot(), "a.yaml"), "one");
}

#[test]
fn a_damaged_mirror_and_no_repository_is_the_repositorys_error_and_loses_nothing() {
    let scene = Scene::new();
    scene.commit("a.yaml", "one");
    scene.fetch(None).unwrap();
    let mirror = scene.directory.path().join("mirror");
    std::fs::remove_file(mirror.join("HEAD")).unwrap();
    let packs = scene.packs();
    std::fs::remove_dir_all(scene.repository.path()).unwrap();
    assert!(matches!(
        scene.fetch(None),
        Err(SourceError::RepositoryNotFound { .. })
    ));
    assert_eq!(scene.packs(), packs);
}

#[rstest]
#[case::bytes(MirrorLimits { pack_size_max: 2_000, ..MirrorLimits::default() })]
#[case::objects(MirrorLimits { pack_objects_max: 10, ..MirrorLimits::default() })]
fn too_large_a_pack_is_refused_and_leaves_the_mirror_as_it_was(#[case] limits: MirrorLimits) {
    let scene = Scene::with_limits(limits);
    let small = scene.commit("a.yaml", "one");
    let before = scene.fetch(None).unwrap();
    let packs = scene.packs();
    for number in 0..20 {
        scene
            .repository
            .write(&format!("{number}.bin"), noise(number));
    }
    scene.repository.commit("Add too much");
    let error = scene.fetch(Some(small)).unwrap_err();
    assert!(
        matches!(error, SourceError::PackTooLarge { .. }),
        "{error:?}"
    );
    assert_eq!(scene.packs(), packs);
    assert_eq!(read(before.snapshot(), "a.yaml"), "one");

    scene
        .repository
        .git(&["reset", "--quiet", "--hard", &small.to_string()]);
    assert!(matches!(
        scene.fetch(Some(small)).unwrap(),
        Fetched::Unmoved(_)
    ));
}

#[test]
fn a_mirror_of_many_packs_is_cloned_anew() {
    let scene = Scene::with_limits(MirrorLimits {
        packs_max: 2,
        ..MirrorLimits::default()
    });
    let mut last = None;
    let mut first = None;
    for number in 0..5 {
        let commit = scene.commit("a.yaml", &number.to_string());
        let found = scene.fetch(last).unwrap();
        assert_eq!(read(found.snapshot(), "a.yaml"), number.to_string());
        first = first.or(Some(found));
        last = Some(commit);
    }
    let packs = scene
        .packs()
        .iter()
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "pack"))
        .count();
    assert!(packs <= 3, "{packs} packs");
    assert_eq!(read(first.unwrap().snapshot(), "a.yaml"), "0");
    assert!(!scene.directory.path().join("mirror.old").exists());
}

#[test]
fn a_directory_that_cannot_be_made_is_ours_to_mend() {
    let scene = Scene::new();
    scene.commit("a.yaml", "one");
    let url = SourceUrl::parse(scene.repository.path().to_str().unwrap()).unwrap();
    let below_a_file = scene.repository.path().join("a.yaml/mirror");
    let mirror = Mirror::new(&below_a_file, url, MirrorLimits::default());
    let error = mirror
        .fetch_blocking(main(None), Credentials::default())
        .unwrap_err();
    assert!(matches!(&error, SourceError::Storage { directory, .. } if *directory == below_a_file));
    assert_eq!(error.origin(), Origin::Ours);
}

fn each_pack(mirror: &Path, damage: fn(&PathBuf)) {
    let folder = mirror.join("objects/pack");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        std::fs::remove_file(&file)
            .and_then(|()| std::fs::write(&file, ""))
            .unwrap();
        damage(&file);
    }
}

/// Ten thousand bytes that do not compress.
fn noise(seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(2_654_435_761);
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    })
    .take(10_000)
    .collect()
}
