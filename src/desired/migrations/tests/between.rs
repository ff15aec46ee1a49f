//! What definitions must keep between each other, and files that are none.

use rstest::rstest;

use super::*;

use Code::MigrationBinding as Binding;

#[test]
fn two_migrations_of_one_name_are_both_held() {
    let desired = read(&[
        ("fairway.yaml", SETTINGS),
        ("components/shop/all.yaml", COMPONENT),
        (GROW, GOOD),
        ("migrations/grow.yaml", &GOOD.replace("1.5.0", "1.13.0")),
    ]);
    let codes: Vec<_> = desired.diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::DuplicateObject; 2]);
    let held: Vec<_> = desired
        .held_migrations
        .iter()
        .map(|it| it.is_global)
        .collect();
    assert_eq!(held, [false, true]);
}
#[test]
fn a_circle_holds_all_that_stand_in_it() {
    let named = |name: &str, after: &str| {
        GOOD.replace("name: grow", &format!("name: {name}"))
            .replace(
                "  owner: team",
                &format!("  owner: team\n  after: [{after}]"),
            )
    };
    let desired = read(&[
        ("fairway.yaml", SETTINGS),
        ("components/shop/all.yaml", COMPONENT),
        ("components/shop/migrations/a.yaml", &named("a", "b")),
        ("components/shop/migrations/b.yaml", &named("b", "c")),
        ("components/shop/migrations/c.yaml", &named("c", "a")),
        ("components/shop/migrations/d.yaml", &named("d", "a")),
        (GROW, GOOD),
    ]);
    let found: Vec<_> = desired
        .diagnostics
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(
        found,
        [
            "a comes after itself through b",
            "b comes after itself through c",
            "c comes after itself through a"
        ]
    );
    let left: Vec<_> = desired
        .migrations
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(left, ["d", "grow"]);
}
#[test]
fn after_names_what_runs_in_the_same_hook() {
    let other = GOOD
        .replace("name: grow", "name: other")
        .replace("phase: pre", "phase: post");
    let mine = GOOD.replace("  owner: team", "  owner: team\n  after: [other]");
    let desired = read(&[
        ("fairway.yaml", SETTINGS),
        ("components/shop/all.yaml", COMPONENT),
        ("components/shop/migrations/other.yaml", &other),
        (GROW, &mine),
    ]);
    assert_found(
        &desired.diagnostics,
        Binding,
        &format!("{GROW}:7:11"),
        "it is post of components/shop",
        "no other migration",
    );
}
#[rstest]
#[case::component("components/shop/migrations/broken.yaml", false)]
#[case::top("migrations/broken.yaml", true)]
fn a_file_that_cannot_be_read_holds_what_its_folder_says(#[case] path: &str, #[case] global: bool) {
    let desired = read(&[
        ("fairway.yaml", SETTINGS),
        ("components/shop/all.yaml", COMPONENT),
        (GROW, GOOD),
        (path, "a: [\n"),
    ]);
    assert_eq!(desired.diagnostics.len(), 1);
    let [held] = desired.held_migrations.as_slice() else {
        panic!("one: {:?}", desired.held_migrations);
    };
    assert_eq!((held.name.as_str(), held.is_global), (path, global));
    assert_eq!(desired.migrations.len(), 1, "the other one goes on");
    assert!(desired.unread.is_empty(), "deletions go on");
}
#[test]
fn something_else_in_a_folder_of_migrations_is_held_by_its_file() {
    let desired = read(&[
        ("components/shop/all.yaml", COMPONENT),
        (
            "components/shop/migrations/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n",
        ),
    ]);
    assert_found(
        &desired.diagnostics,
        Code::KindUnknown,
        "components/shop/migrations/a.yaml:2:7",
        "no place in this file",
        "kind: Migration",
    );
    assert_eq!(desired.objects().count(), 1, "it is not applied");
    assert_eq!(desired.held_migrations[0].name, "a");
}
#[test]
fn a_migration_outside_its_folders_is_refused() {
    let desired = read(&[
        ("components/shop/all.yaml", COMPONENT),
        ("components/shop/grow.yaml", GOOD),
    ]);
    assert_found(
        &desired.diagnostics,
        Code::KindUnknown,
        "components/shop/grow.yaml:2:7",
        "a definition",
        "components/NAME/migrations/",
    );
}
#[rstest]
#[case("components/global/a.yaml", "components/global")]
#[case("components/global/migrations/a.yaml", "components/global")]
#[case("modules/global/module-release-meta.yaml", "modules/global")]
fn nothing_is_called_global(#[case] path: &str, #[case] place: &str) {
    let desired = read(&[("components/shop/all.yaml", COMPONENT), (path, "a: b\n")]);
    assert_found(
        &desired.diagnostics,
        Binding,
        place,
        "`global` is no name for a component",
        "rename the folder",
    );
}
#[test]
fn what_stands_at_the_top_is_global_unless_it_names_components() {
    let desired = read(&[
        ("fairway.yaml", SETTINGS),
        ("components/shop/all.yaml", COMPONENT),
        (
            "migrations/a.yaml",
            &GOOD.replace("1.2.0", "1.12.0").replace("1.5.0", "1.14.0"),
        ),
        (
            "migrations/b.yaml",
            &GOOD
                .replace("name: grow", "name: b")
                .replace("    phase: pre", "    phase: pre\n    components: [shop]"),
        ),
    ]);
    assert_eq!(desired.diagnostics, []);
    let global: Vec<_> = desired.migrations.iter().map(|it| it.is_global()).collect();
    assert_eq!(global, [false, true]);
}
