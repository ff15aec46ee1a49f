//! Since when and until when.

use rstest::rstest;

use super::*;
use crate::desired::compare_with_base;
use crate::desired::migrations::retire;

use Code::{MigrationLifecycle as Lifecycle, MigrationStep as Step};

#[rstest]
#[case::nothing_to_measure("migrations/grow.yaml", "", "version: 1.3.0", "names no `release`")]
#[case::component_without_version(GROW, "", "", "components/shop has no version")]
fn without_a_version_only_never_is_valid(
    #[case] path: &str,
    #[case] settings: &str,
    #[case] version: &str,
    #[case] message: &str,
) {
    let settings = format!(
        "apiVersion: fairway.dev/v1alpha1\nkind: Repository\n{settings}httpHosts: [api.example.com]\n"
    );
    let component = COMPONENT.replace("version: 1.3.0", version);
    let files = |text: &str| {
        read(&[
            ("fairway.yaml", settings.as_str()),
            ("components/shop/all.yaml", component.as_str()),
            (path, text),
        ])
    };
    let desired = files(GOOD);
    assert_found(
        &desired.diagnostics,
        Lifecycle,
        &format!("{path}:12:15"),
        message,
        "release: 1.0.0",
    );
    let never = GOOD.replace(
        "    introducedIn: 1.2.0\n    removeIn: 1.5.0",
        "    never: it cannot be known who comes back",
    );
    assert_eq!(files(&never).diagnostics, []);
}
fn module(channels: &str) -> Vec<(String, String)> {
    let mut files = vec![(
        "modules/keda/module-release-meta.yaml".to_owned(),
        format!(
            "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleReleaseMeta\nmetadata: {{name: keda}}\nspec:\n  moduleName: keda\n  ocmComponentName: kyma-project.io/module/keda\n  channels: [{channels}]\n"
        ),
    )];
    for version in ["1.4.0", "1.5.0"] {
        files.push((format!("modules/keda/{version}/module-template.yaml"), format!("apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\nmetadata: {{name: keda-{version}}}\nspec: {{moduleName: keda, version: {version}, descriptor: {{}}}}\n"), ));
    }
    files.push((
        "modules/keda/migrations/grow.yaml".to_owned(),
        GOOD.to_owned(),
    ));
    files.push(("fairway.yaml".to_owned(), SETTINGS.to_owned()));
    files
}
#[rstest]
#[case::one_channel_below(
    "{channel: regular, version: 1.4.0}, {channel: fast, version: 1.5.0}",
    false
)]
#[case::all_at_or_past(
    "{channel: regular, version: 1.5.0}, {channel: fast, version: 1.5.0}",
    true
)]
fn a_module_is_measured_on_the_lowest_version_that_a_channel_offers(
    #[case] channels: &str,
    #[case] is_over: bool,
) {
    let files = module(channels);
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let found = read(&files).diagnostics;
    assert_eq!(found.len(), usize::from(is_over), "{found:?}");
    assert!(found.iter().all(|it| it.code == Lifecycle));
}

#[rstest]
#[case::deleted(None, "1.3.0", Some("deleted before 1.5.0"))]
#[case::retired_is_found_by_itself(Some("retired"), "1.3.0", None)]
#[case::kept(Some("kept"), "1.3.0", None)]
#[case::deleted_in_time(None, "1.5.0", None)]
#[case::retired_in_time(Some("retired"), "1.5.0", None)]
fn what_a_version_on_offer_needs_stays(
    #[case] head: Option<&str>,
    #[case] version: &str,
    #[case] message: Option<&str>,
) {
    let base = repository(GOOD);
    let component = COMPONENT.replace("1.3.0", version);
    let retired = retire(GOOD, None).unwrap();
    let mut files = vec![
        ("fairway.yaml", SETTINGS),
        ("components/shop/all.yaml", component.as_str()),
    ];
    match head {
        Some("retired") => files.push((GROW, &retired)),
        Some(_) => files.push((GROW, GOOD)),
        None => {}
    }
    let found = compare_with_base(&base, &read(&files), jiff::civil::date(2026, 11, 22));
    match message {
        None => assert_eq!(found, []),
        Some(message) => {
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].code, Code::MigrationRemovedEarly);
            assert_eq!(found[0].place.file, GROW);
            assert!(found[0].message.contains(message), "{found:?}");
        }
    }
}

#[test]
fn what_goes_with_its_component_is_not_removed_early() {
    let base = repository(GOOD);
    let head = read(&[
        ("fairway.yaml", SETTINGS),
        (
            "components/other/all.yaml",
            &COMPONENT.replace("shop", "other"),
        ),
    ]);
    let found = compare_with_base(&base, &head, jiff::civil::date(2026, 11, 22));
    let codes: Vec<_> = found.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::RemovalUnannounced]);
}

#[test]
fn a_retired_migration_is_valid_once_its_time_is_over() {
    let retired = retire(GOOD, None).unwrap();
    let early = repository(&retired);
    assert_eq!(early.diagnostics[0].code, Step, "{:?}", early.diagnostics);
    let late = read(&[
        ("fairway.yaml", SETTINGS),
        (
            "components/shop/all.yaml",
            &COMPONENT.replace("1.3.0", "1.5.0"),
        ),
        (GROW, &retired),
    ]);
    assert_eq!(late.diagnostics, []);
    assert_eq!(late.migrations[0].spec.steps, []);
}

#[test]
fn one_that_no_version_reaches_yet_is_told_of_and_goes_on() {
    let early = GOOD.replace("introducedIn: 1.2.0", "introducedIn: 1.4.0");
    let desired = repository(&early);
    let [found] = desired.diagnostics.as_slice() else {
        panic!("one finding: {:#?}", desired.diagnostics);
    };
    assert_eq!(found.severity, crate::model::Severity::Warning);
    assert_eq!((found.code, found.place.line), (Lifecycle, 11));
    let message =
        "it takes part from 1.4.0 on, and components/shop is at 1.3.0: until then it never runs";
    assert_eq!(found.message, message);
    let help = found.help.as_deref().unwrap();
    assert!(
        help.starts_with("introducedIn: 1.3.0 ") && help.contains("to 1.4.0"),
        "{help}"
    );
    assert_eq!(desired.migrations.len(), 1, "it is no error");

    // A global one is measured on the release, and a version that is reached is no reason to say anything.
    let global = read(&[("fairway.yaml", SETTINGS), ("migrations/grow.yaml", &early)]);
    let found: Vec<&str> = global
        .diagnostics
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert!(
        !found.iter().any(|it| it.contains("never runs")),
        "{found:?}"
    );
}

#[test]
fn one_channel_that_is_there_is_enough() {
    let warned = |channels: &str| {
        let files = module(channels);
        let early = GOOD.replace("introducedIn: 1.2.0", "introducedIn: 1.4.5");
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| {
                let is_migration = path.ends_with("grow.yaml");
                (
                    path.as_str(),
                    if is_migration {
                        early.as_str()
                    } else {
                        text.as_str()
                    },
                )
            })
            .collect();
        read(&files).diagnostics.len()
    };
    assert_eq!(warned("{channel: regular, version: 1.4.0}"), 1);
    assert_eq!(
        warned("{channel: regular, version: 1.4.0}, {channel: fast, version: 1.5.0}"),
        0
    );
}
