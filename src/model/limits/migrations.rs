//! Limits of migrations and their runs.

use std::time::Duration;

/// Migrations of one repository.
pub const MIGRATIONS_MAX: usize = 2_000;
/// Bytes of one expression: etcd holds a Run with sixty of them several times over.
pub const EXPRESSION_SIZE_MAX: usize = 4 * 1024;
/// Parts of an expression that are inside of each other; reading and evaluating recurse, with up to two kilobytes for each.
pub const EXPRESSION_DEPTH_MAX: usize = 64;
/// Loops inside loops.
pub const EXPRESSION_LOOPS_MAX: usize = 2;
/// Units of work of one evaluation: one for each part that is evaluated and for every sixteen bytes that are compared or built. A
/// unit takes less than a quarter of a microsecond, so that an evaluation ends within its deadline even where processors are slow, and
/// builds at most 32 MB.
pub const EXPRESSION_COST_MAX: u64 = 2_000_000;
/// Units of work for compiling one pattern: some milliseconds at the most, for a program of `EXPRESSION_PATTERN_SIZE_MAX`.
pub const EXPRESSION_PATTERN_COST: usize = 50_000;
/// Bytes of a pattern's program, which bounds what each byte of a text costs in a match.
pub const EXPRESSION_PATTERN_SIZE_MAX: usize = 256 * 1024;
/// Time of one evaluation.
pub const EXPRESSION_DEADLINE: Duration = Duration::from_secs(1);
/// Bytes, as JSON, of everything that an expression may look at.
pub const BINDINGS_SIZE_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the evidence of one step.
pub const EVIDENCE_SIZE_MAX: usize = 4 * 1024;
/// Lookups of one migration.
pub const LOOKUPS_MAX: usize = 16;
/// Objects of a list, where the lookup says nothing.
pub const LOOKUP_OBJECTS_DEFAULT: u32 = 100;
/// Objects of a list that a lookup may ask for.
pub const LOOKUP_OBJECTS_MAX: u32 = 500;
/// Steps of one migration.
pub const STEPS_MAX: usize = 32;
/// Elements that a step is done for.
pub const FOR_EACH_MAX: usize = 100;
/// Records of steps in one Run, elements of `forEach` counted: 256 of at most 4 KiB of evidence would be 1 MiB, so evidence goes
/// from the oldest first when a Run comes near `RUN_SIZE_MAX`.
pub const RUN_STEPS_MAX: usize = 256;
/// Bytes of a Run's status: etcd takes 1.5 MiB.
pub const RUN_SIZE_MAX: usize = 512 * 1024;
/// Entries of a Run's timeline.
pub const RUN_TIMELINE_MAX: usize = 64;
/// Commands that a Run remembers.
pub const RUN_COMMANDS_MAX: usize = 16;
/// Migrations of one hook that run at once.
pub const HOOK_CONCURRENCY: usize = 8;
/// A hook's task looks at least this often, whatever rings.
pub const HOOK_REST: Duration = Duration::from_secs(60);
/// Tries of a guard that cannot be evaluated before that is written down as a Run.
pub const GUARD_TRIES: u32 = 3;
/// Delay before a guard is tried again; twice and three times as long after that.
pub const GUARD_RETRY: Duration = Duration::from_secs(1);
/// Runs of the same work, of which each but the last was superseded or had succeeded before.
pub const RUNS_AGAIN_MAX: u32 = 32;
/// Shortest time between two looks at a blocked run, however often the bell rings.
pub const BLOCKED_LOOK_MIN: Duration = Duration::from_secs(2);
/// Longest time between two looks at a blocked run: what it waits for may be of a kind that nobody watches.
pub const BLOCKED_LOOK_MAX: Duration = Duration::from_secs(60);
/// Time between two looks for runs that are to be deleted.
pub const RUN_TRIM_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Time before the next such look while it is not known yet which runs are still asked for.
pub const RUN_TRIM_PATIENCE: Duration = Duration::from_secs(2);
/// Changes of runs whose Events wait to be written; what is beyond is left out, and logged.
pub const RUN_EVENTS_WAITING_MAX: usize = 256;
/// A guard that finds nothing to do and takes longer than this is reported as slow, where its policy does not say otherwise.
pub const GUARD_SLOW: Duration = Duration::from_millis(500);
/// Migrations that a log line about a deploy names, the slowest first.
pub const SLOWEST_LISTED_MAX: usize = 10;
/// Time within which preflight's answer that there is nothing to do need not be asked for again: the hook comes in the same pass.
pub const PREFLIGHT_FRESH: Duration = Duration::from_secs(10);
/// Questions about rights in one namespace from which on its rules are read as a whole: one request for all of them.
pub const RULES_QUESTIONS_MIN: usize = 3;
/// Elements of a loop whose namespaces are asked about before the loop begins; the rest is left to the steps.
pub const RIGHTS_ELEMENTS_MAX: usize = 256;
/// Rights that a connection remembers to have: 4,096 × 150 bytes.
pub const RIGHTS_REMEMBERED_MAX: usize = 4_096;
/// Longest time that an override of a precondition may be valid.
pub const OVERRIDE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Components with migrations that a Target remembers: 1,024 × 200 bytes.
pub const COMMITTED_MAX: usize = 1_024;
/// Runs that happen once which a Target remembers: 1,024 × 250 bytes. At one a migration, or one for each of its hops, a
/// cluster's life does not come near it.
pub const ONCE_REMEMBERED_MAX: usize = 1_024;
/// Components that `deploy.components` names, and that a Target remembers while a deploy is under way: 512 × 200 bytes.
pub const DEPLOY_COMPONENTS_MAX: usize = 512;
/// Bytes of the answer that an `http` step reads.
pub const HTTP_ANSWER_MAX: usize = 64 * 1024;
/// Bytes that a Job's termination message can have; Kubernetes cuts it there.
pub const TERMINATION_MESSAGE_MAX: usize = 4 * 1024;
/// Objects of one page of a `rewrite`, where the step says nothing.
pub const REWRITE_PAGE: u32 = 100;
/// Delay after the first write of a run's record that could not be sent; doubled each time.
pub const RECORD_RETRY_MIN: Duration = Duration::from_millis(200);
/// Longest delay between two such writes: an API server that comes back is noticed within this.
pub const RECORD_RETRY_MAX: Duration = Duration::from_secs(10);
/// When a run that is blocked is looked at again, where no change of the cluster rings before.
pub const BLOCKED_INTERVAL: Duration = Duration::from_secs(60);
/// Time that an attempt has to end once the process is asked to stop: most are one request.
pub const STOP_GRACE: Duration = Duration::from_secs(2);
/// How often agents may be killed in the same step before somebody is told.
pub const RESTARTS_ALERT: u32 = 3;
/// Longest wait between two attempts or looks; another side that asks for more is asked again all the same.
pub const RUN_WAIT_MAX: Duration = Duration::from_secs(10 * 60);
/// Objects that one `delete` step may select: as many as a lookup.
pub const DELETE_OBJECTS_MAX: usize = 500;
/// Objects that a step's record names while their end is waited for: 50 × 200 bytes are 10 KiB.
pub const DELETE_PENDING_MAX: usize = 50;
/// Time before a step whose object was changed by somebody else is judged anew: what writes it has usually ended by then.
pub const STEP_CONFLICT_PAUSE: Duration = Duration::from_millis(200);
/// Time between two looks at what has been asked for and takes its time: an object's end, a Job.
pub const STEP_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time that every attempt has, however little of its time is left: one request, so that what is under way is looked at once more.
pub const ATTEMPT_MIN: Duration = Duration::from_secs(1);
/// Tries to write one object of a `rewrite` back while somebody else keeps changing it, before the step is tried again.
pub const REWRITE_TRIES: usize = 5;
/// Characters of a generated secret, of 62 each: 32 of them are 190 bits.
pub const GENERATED_SECRET_DEFAULT: usize = 32;
/// Fewest characters of a generated secret: 95 bits.
pub const GENERATED_SECRET_MIN: usize = 16;
/// Most characters of a generated secret.
pub const GENERATED_SECRET_MAX: usize = 512;
/// Time that a Job which has failed is kept for who wants to read its logs, once its result is recorded.
pub const JOB_KEPT: Duration = Duration::from_secs(60 * 60);
/// Longest time between two looks at a Job that takes long; the first is `STEP_LOOK_INTERVAL`.
pub const JOB_LOOK_INTERVAL_MAX: Duration = Duration::from_secs(10);
/// Longest time that the answer to an `http` step may ask to be left alone; beyond it the run's own timeout is the better judge.
pub const HTTP_RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);
/// Runs of one target that are kept after their end: at 20 KiB each, 2 MiB.
pub const RUN_HISTORY_RUNS: u32 = 100;
/// Most of them that `spec.history` may ask for: 20 MiB in etcd, and as much in one list.
pub const RUN_HISTORY_RUNS_MAX: u32 = 1_000;
/// Days that a run is kept after its end.
pub const RUN_HISTORY_DAYS: u32 = 90;
/// Most days that `spec.history` may ask for: ten years.
pub const RUN_HISTORY_DAYS_MAX: u32 = 3_650;
/// Bytes of one definition, as JSON: a Run holds it beside a status of `RUN_SIZE_MAX` and desired objects, and etcd takes 1.5 MiB.
pub const DEFINITION_SIZE_MAX: usize = 128 * 1024;
/// Attempts of one step: with delays of two minutes, more than three hours.
pub const RETRY_ATTEMPTS_MAX: u32 = 100;
