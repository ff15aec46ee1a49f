use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::desired::Desired;
use crate::plan::testing::*;

const JOB: &str = "Job.batch default/migrate";

fn job(component: &str, image: &str) -> Desired {
    let body: Value = json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
    and(staying(), [object(component, JOB, body)])
}

/// A cluster on which the Job was applied, seen to be there, and is gone again.
fn after_it_ran() -> Cluster {
    let wanted = job("components/a", "one");
    let mut cluster = Cluster::with(&wanted, &wanted);
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert!(plan.jobs[&key(JOB)].uid.is_some());
    cluster.jobs = plan.jobs;
    cluster.forget(&key(JOB));
    cluster
}

#[rstest]
#[case::the_same("components/a", "one", &[])]
#[case::moved_to_another_component("components/b", "one", &[])]
#[case::changed("components/a", "two", &["created Job.batch default/migrate"])]
fn a_job_that_was_created_and_is_gone_runs_again_only_with_another_content(
    #[case] component: &str,
    #[case] image: &str,
    #[case] wanted: &[&str],
) {
    let plan = after_it_ran().plan(&job(component, image));
    assert_eq!(changes(&plan), wanted);
    assert_eq!(holds(&plan), NOTHING);
}

#[test]
fn a_job_that_was_only_begun_is_tried_again() {
    let wanted = job("components/a", "one");
    let mut cluster = Cluster::with(&staying(), &wanted);
    let plan = cluster.plan(&wanted);
    assert_eq!(plan.jobs[&key(JOB)].uid, None, "written before the create");
    cluster.jobs = plan.jobs;
    assert_eq!(changes(&cluster.plan(&wanted)).len(), 1);
}

#[test]
fn what_git_does_not_name_is_forgotten_unless_it_may_stand_in_a_file_that_cannot_be_read() {
    let cluster = after_it_ran();
    assert!(cluster.plan(&staying()).jobs.is_empty());
    let mut unclear = staying();
    unclear.unread.push(unread("components/a/bad.yaml"));
    assert_eq!(cluster.plan(&unclear).jobs.len(), 1);
}

#[test]
fn a_job_does_not_run_while_nobody_knows_whether_it_has() {
    let wanted = job("components/a", "one");
    let mut cluster = Cluster::with(&staying(), &wanted);
    cluster.record = Err("the record was lost");
    let plan = cluster.plan(&wanted);
    assert_eq!(changes(&plan), NOTHING);
    assert_eq!(holds(&plan), [format!("Unobserved {JOB}")]);
}

#[rstest]
#[case::ended(Health::Current, &["replaced Job.batch default/migrate"])]
#[case::failed(Health::Failed("BackoffLimitExceeded".to_owned()), &["replaced Job.batch default/migrate"])]
#[case::running(Health::InProgress("it has not completed".to_owned()), &[])]
fn a_changed_job_replaces_the_one_that_has_ended(#[case] health: Health, #[case] wanted: &[&str]) {
    let (base, changed) = (job("components/a", "one"), job("components/a", "two"));
    let mut cluster = Cluster::with(&base, &changed);
    cluster.change(JOB, |live| live.health = health);
    assert_eq!(
        changes(&cluster.plan(&changed)),
        ["configured Job.batch default/migrate"]
    );
    let digest = changed.objects().find(|it| it.key == key(JOB)).unwrap();
    let failure = crate::plan::PastFailure {
        digest: Some(digest.digest.to_string()),
        immutable: true,
        message: "field is immutable".to_owned(),
        due: false,
    };
    cluster.failures.insert(key(JOB), failure);
    let plan = cluster.plan(&changed);
    assert_eq!(changes(&plan), wanted);
    let held = plan.holds.iter().map(|hold| hold.reason.as_str());
    assert_eq!(held.collect::<Vec<_>>().len(), 1 - wanted.len());
}

#[test]
fn more_jobs_than_can_be_remembered_are_not_started() {
    let many = (0..=limits::JOBS_REMEMBERED_MAX).map(|number| {
        let name = format!("Job.batch default/job-{number:04}");
        object("components/a", &name, json!({"spec": {"number": number}}))
    });
    let wanted = desired(many);
    let plan = Cluster::with(&desired([]), &wanted).plan(&wanted);
    assert_eq!(changes(&plan).len(), limits::JOBS_REMEMBERED_MAX);
    assert_eq!(plan.jobs.len(), limits::JOBS_REMEMBERED_MAX);
    assert_eq!(holds(&plan), ["Invalid Job.batch default/job-0256"]);
}
