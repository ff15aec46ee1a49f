//! What a clock that differs from the cluster's changes in a status.

use super::*;

#[test]
fn f14_a_wrong_clock_is_told_in_the_message_and_changes_nothing_else() {
    let pass = Pass::quiet();
    let plain = source_status(&ReleaseSourceStatus::default(), &pass.report());
    let report = PassReport {
        clock: Some("the clock is wrong"),
        ..pass.report()
    };
    let mut told = source_status(&ReleaseSourceStatus::default(), &report);
    let ready = told.conditions.iter_mut().find(|one| one.type_ == "Ready");
    let message = &mut ready.unwrap().message;
    assert!(message.ends_with("; the clock is wrong"), "{message}");
    message.truncate(message.len() - "; the clock is wrong".len());
    assert_eq!(told, plain);
}
