//! Every limit, with its arithmetic. A limit that is not here does not exist.

mod migrations;

use std::time::Duration;

pub use migrations::*;

/// Bytes of one file: twice what etcd accepts in one object (1.5 MiB), rounded up, so that a CRD bundle still fits.
pub const FILE_SIZE_MAX: u64 = 4 * 1024 * 1024;
/// Files of one snapshot: ten times the largest repository we measure with.
pub const FILES_MAX: usize = 100_000;
/// Documents of one file.
pub const DOCUMENTS_MAX: usize = 5_000;
/// Nesting depth of a document. The deepest published CRDs stay below 40; the parser recurses, and a level takes up to
/// 25 KiB of stack without optimisation, so that 64 levels fit the 2 MiB that a thread has.
pub const DEPTH_MAX: usize = 64;
/// YAML nodes of one file after aliases are resolved: 4 MiB of the densest real manifests are about 400,000.
pub const NODES_MAX: usize = 500_000;
/// Parser events that the aliases of one document may repeat: real manifests repeat a few hundred, and what a bomb costs
/// until it is refused stays below a tenth of a second.
pub const ALIAS_EVENTS_MAX: usize = 100_000;
/// Diagnostics that one validation keeps; what is beyond is counted.
pub const DIAGNOSTICS_MAX: usize = 1_000;
/// Diagnostics of one file whose exact column is looked up, since each replays the file: 50 × 20 ms for 4 MiB. The rest name
/// the line on which their document starts.
pub const DIAGNOSTICS_LOCATED_MAX: usize = 50;
/// Passes after which a parsed file that no revision used is forgotten. Two, so that a branch and its base both stay warm.
pub const CACHE_PASSES: u64 = 2;
/// Threads that parse files at once. Parsing is a matter of milliseconds; more threads only take cores from others.
pub const PARSE_THREADS_MAX: usize = 8;
/// Holds listed in a status; the rest is counted. 20 × at most 2 KiB stay well below what etcd likes.
pub const HOLDS_LISTED_MAX: usize = 20;
/// Revisions kept in a status' history.
pub const HISTORY_MAX: usize = 10;

/// Requests in flight to one cluster. More than 16 added latency and no throughput on a real API server.
pub const CLUSTER_CONCURRENCY: usize = 16;
/// Time for one write or read of a single object, retries included.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(15);
/// Time for the first answer of a connection.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Time for one page of a list; 500 objects took 15 ms.
pub const LIST_DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of one answer of an API server: a page of 500 objects of the largest size etcd takes is never asked for; one
/// object of 1.5 MiB with its managed fields stays below 8 MiB.
pub const RESPONSE_SIZE_MAX: usize = 16 * 1024 * 1024;
/// Bytes of one watch, which the server ends after five minutes: 10,000 changes of 25 KiB.
pub const WATCH_SIZE_MAX: usize = 256 * 1024 * 1024;
/// Seconds after which the server ends a watch, so that a new one is balanced anew.
pub const WATCH_SECONDS: u32 = 290;
/// Time without a word on a watch after which its connection counts as dead; the server sends a bookmark every minute.
pub const WATCH_SILENCE_MAX: Duration = Duration::from_secs(150);
/// Time that a watch may be broken before what was last seen no longer counts as known: long enough for a restart of the
/// API server, short enough that nothing is decided on an old view.
pub const WATCH_BROKEN_MAX: Duration = Duration::from_secs(60);
/// Delay before a list or watch that failed is tried again, the first time; doubled each time.
pub const WATCH_RETRY_MIN: Duration = Duration::from_millis(500);
/// Longest delay before a list or watch is tried again.
pub const WATCH_RETRY_MAX: Duration = Duration::from_secs(30);
/// Time after which it is asked again whether a kind is served that was not; two requests for all such kinds together.
pub const UNSERVED_INTERVAL: Duration = Duration::from_secs(30);
/// Bytes of a kubeconfig in a Secret: one context with chains of certificates stays below 20 KiB; etcd takes 1.5 MiB.
pub const KUBECONFIG_SIZE_MAX: usize = 256 * 1024;
/// Nesting depth of a kubeconfig: its own fields take five levels, what tools keep in `extensions` two or three more.
pub const KUBECONFIG_DEPTH_MAX: usize = 16;
/// YAML nodes of a kubeconfig: a context with its cluster and user has about 40; fifty of them fit.
pub const KUBECONFIG_NODES_MAX: usize = 2_000;
/// Objects on one page of a list.
pub const PAGE_SIZE: u32 = 500;
/// Whole objects on one page of a list: 50 of 300 KiB, a large CRD, stay below `RESPONSE_SIZE_MAX`.
pub const PAGE_SIZE_WHOLE: u32 = 50;
/// First delay before a request is sent again, then doubled up to `RETRY_DELAY_MAX`.
pub const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
/// Longest delay before a request is sent again: a third of `REQUEST_DEADLINE`. What `Retry-After` asks beyond it is left
/// to the caller.
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);
/// Times that a request is sent again: 50 ms doubled six times is 3 s, and an API server restarts in 2 s.
pub const RETRIES_MAX: usize = 6;
/// Times that a request is sent again after an answer 500, which may well be final.
pub const RETRIES_AFTER_500: usize = 2;
/// Time for which discovery is not asked again because a kind is unknown; a pass with a hundred such objects asks once.
pub const DISCOVERY_INTERVAL: Duration = Duration::from_secs(2);
/// Bytes of a message of an API server that are kept; the text may be another program's page.
pub const SERVER_MESSAGE_MAX: usize = 1024;
/// Rounds of taking over fields while somebody else keeps writing the object.
pub const TAKEOVER_ROUNDS: usize = 3;
/// Time that a pass may wait for a CRD that it has just applied to be served (0.25 s measured).
pub const CRD_SERVED_DEADLINE: Duration = Duration::from_secs(1);
/// First pause between two looks at what is served, doubled each time.
pub const SERVED_PAUSE_MIN: Duration = Duration::from_millis(20);

/// Bytes of one credential: a bundle of all public certificate authorities has 220 KiB.
pub const CREDENTIAL_SIZE_MAX: u64 = 512 * 1024;
/// Time for one git operation as a whole: a first clone of a large repository over a slow line.
pub const FETCH_DEADLINE: Duration = Duration::from_secs(300);
/// Time without a byte from the git server.
pub const GIT_SERVER_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for which a connection to a git server is kept after a fetch: the pushes of one busy minute share it, and servers
/// close theirs after 60 to 75 seconds.
pub const GIT_CONNECTION_IDLE_MAX: Duration = Duration::from_secs(55);
/// Redirects that one listing of references follows, all on the same host: a renamed project and a missing `.git` are two.
pub const GIT_REDIRECTS_MAX: usize = 4;
/// Bytes of a git server's list of references: half a million of 100 bytes.
pub const GIT_REFERENCES_SIZE_MAX: usize = 50 * 1024 * 1024;
/// Time to take in the end of an answer that has been understood: what a new connection would cost on a slow line.
pub const GIT_DRAIN_PATIENCE: Duration = Duration::from_millis(100);
/// Names of git servers that are looked up at once; the system's resolver blocks a thread for each.
pub const GIT_RESOLVERS_MAX: usize = 8;
/// Time that a fetch which was told to stop has to do so before it is left to itself: the disk may be busy with a pack.
pub const FETCH_STOP_PATIENCE: Duration = Duration::from_secs(1);
/// Commits whose signatures are verified at once: a month of a busy repository; at about a millisecond each, two seconds.
pub const VERIFY_COMMITS_MAX: usize = 2_000;
/// Bytes that are read of what an ssh server says beside git's protocol: a few lines of refusal.
pub const SSH_STDERR_MAX: u64 = 4 * 1024;
/// Bytes of one received pack: a hundred thousand files of 10 KiB, compressed, with history.
pub const PACK_SIZE_MAX: usize = 1024 * 1024 * 1024;
/// Objects of one received pack: a hundred thousand files, each changed with its folders some ten times.
pub const PACK_OBJECTS_MAX: usize = 5_000_000;
/// Packs of one mirror, after which it is cloned anew: libgit2 never merges packs and looks into each of them. A push every
/// five minutes reaches this in about two days.
pub const MIRROR_PACKS_MAX: usize = 500;
/// Repositories that stay open for reading; as many readers as a pass has threads, each holding a few file handles.
pub const MIRROR_READERS_MAX: usize = 8;
/// Folders above a file; git's own limit for paths (4,096 bytes) is never reached by a person's tree.
pub const TREE_DEPTH_MAX: usize = 64;
/// Time without a further change after which a watched directory counts as changed: an editor writes a file, renames it
/// and removes its backup within a few milliseconds.
pub const WATCH_QUIET: Duration = Duration::from_millis(50);
/// Time after the first change when the bell rings at the latest, however busy the directory is.
pub const WATCH_DELAY_MAX: Duration = Duration::from_secs(1);

/// Re-applies of one object within `CONTESTED_WINDOW` after which somebody else evidently keeps writing it.
pub const CONTESTED_APPLIES: usize = 3;
/// The window for `CONTESTED_APPLIES`, and how long we then stay away.
pub const CONTESTED_WINDOW: Duration = Duration::from_secs(60);

/// Objects that one approval of a deletion covers: its stored form is 8 hexadecimal bytes an object, 64 KiB in all.
pub const APPROVAL_OBJECTS_MAX: usize = 4_096;
/// Objects that one source wants of others, as far as these are told; beyond it the conflict is known well enough.
pub const CLAIMS_MAX: usize = 20;
/// Time for listing everybody who may use a ModuleTemplate: 5,000 Kymas and 25,000 Manifests are 600 pages of some 15 ms.
pub const TEMPLATE_USE_DEADLINE: Duration = Duration::from_secs(30);
/// Time for which the answer holds up templates that are in use; what is to be deleted is asked for anew in each pass.
pub const TEMPLATE_USE_AGE_MAX: Duration = Duration::from_secs(60);
/// Jobs of one source that its Target remembers: at most about 250 bytes each, 64 KiB in all.
pub const JOBS_REMEMBERED_MAX: usize = 256;
/// Drifted fields that one reason names; the first few show who interferes, and a line stays readable.
pub const DRIFTED_FIELDS_NAMED_MAX: usize = 5;
/// Objects, files or kinds that one message names before it only counts; a line stays below some 400 characters.
pub const NAMED_IN_MESSAGE_MAX: usize = 3;

/// Delay before an object that has failed is tried again, the first time; doubled with each failure.
pub const FAILURE_DELAY_MIN: Duration = Duration::from_secs(1);
/// Longest delay before an object that has failed is tried again.
pub const FAILURE_DELAY_MAX: Duration = Duration::from_secs(300);
/// Rounds of planning and doing within one pass. Each round but the last does something, so this bounds a pass that makes
/// progress through a chain of components; the rest is done in the next pass.
pub const PASS_ROUNDS_MAX: usize = 32;
/// Time that a pass waits for the first list of a kind; what is not listed by then is held, and its list rings the bell.
pub const FIRST_LIST_PATIENCE: Duration = Duration::from_secs(1);
/// How often that time is taken for the first lists of a runtime that is new, before it counts as unreachable: 5 s in all.
pub const FIRST_LOOKS: usize = 5;
/// Time that SIGTERM leaves for what is under way.
pub const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(8);
/// Delay before a failed fetch is tried again, the first time; doubled each time, up to the source's interval.
pub const FETCH_RETRY_MIN: Duration = Duration::from_secs(2);
/// How often a task gives a sign of life while it has nothing to do.
pub const HEARTBEAT: Duration = Duration::from_secs(30);
/// Silence after which a task counts as hung. A pass gives a sign with each object, and while it waits for its turn; between
/// two signs there are a few requests at their deadlines, and the evaluation of one revision.
pub const HEARTBEAT_MISSED: Duration = Duration::from_secs(600);
/// Bytes of a message in a condition: about ten lines of a terminal; the schema allows 4,096.
pub const CONDITION_MESSAGE_MAX: usize = 1_000;
/// Bytes of the note of an Event; the API server refuses more than 1 KiB.
pub const EVENT_NOTE_MAX: usize = 1_000;
/// Bytes of one part of a message that comes from outside: an author, the name of an object, an error of a server.
pub const MESSAGE_PART_MAX: usize = 400;
/// Bytes of the message of one hold, with the lines for a file that lift it.
pub const HOLD_MESSAGE_MAX: usize = 1_000;
/// Things that one message names before it counts the rest.
pub const MESSAGE_ITEMS_MAX: usize = 3;
/// Events of one kind that one pass writes for single things; the rest is counted in one more.
pub const EVENTS_PER_PASS_MAX: usize = 10;
/// Objects named in a Target's pending deletion: 20 names of at most 400 bytes are 8 KiB.
pub const PENDING_SAMPLE_MAX: usize = 20;
/// Reasons of a pending deletion that a Target keeps.
pub const PENDING_REASONS_MAX: usize = 10;

/// Bytes of the annotation with a decision: a name and a reason at their limits, in characters of up to four bytes that JSON
/// may escape with six.
pub const DECISION_SIZE_MAX: usize = 16 * 1024;
/// Bytes of a decision's author that are recorded; the schema of Targets refuses more characters.
pub const DECISION_BY_MAX: usize = 256;
/// Bytes of a decision's reason that are recorded; the schema of Targets refuses more characters.
pub const DECISION_REASON_MAX: usize = 1_024;

/// Connections to the private port: a kubelet's two probes and a few scrapers, with room for a person.
pub const SERVER_CONNECTIONS_MAX: usize = 32;
/// Life of one connection, which serves one request: a scrape takes milliseconds.
pub const SERVER_CONNECTION_DEADLINE: Duration = Duration::from_secs(10);
/// Requests that fail one after another in a way that may pass, after which a pass leaves the rest for later: two rounds of
/// everything that may be in flight.
pub const FAILURES_IN_A_ROW_MAX: usize = 2 * CLUSTER_CONCURRENCY;

/// Things that a runtime's Target names as left out; the rest is not listed. 20 × about 200 bytes.
pub const LEFT_OUT_LISTED_MAX: usize = 20;
/// First delay before a runtime that could not be reached is tried again, doubled each time.
pub const RUNTIME_RETRY_MIN: Duration = Duration::from_secs(1);
/// Longest delay before a runtime that could not be reached is tried again. Whatever changes in its Secret or Kyma ends it.
pub const RUNTIME_RETRY_MAX: Duration = Duration::from_secs(120);
/// Time for which the catalog of a runtime is left alone after somebody else has written it again since we took it over.
pub const RUNTIME_CONTESTED_PAUSE: Duration = Duration::from_secs(30 * 60);
/// Time that a wave waits for its members, before those that are late no longer hold up the next.
pub const WAVE_DEADLINE: Duration = Duration::from_secs(60);

/// What a takeover from a killed agent may take, with the default life of a lease.
pub const TAKEOVER_MAX: Duration = Duration::from_secs(15);
/// Life of a lease after its last renewal. Who stands by counts it from when the renewal was seen, and then has to take the lease:
/// 15 s − 14 s leaves a second for the watch and one request, which take some 50 ms. A shorter life would only cost renewals.
pub const LEASE_DURATION: Duration = Duration::from_secs(14);
const _: () = assert!(LEASE_DURATION.as_secs() < TAKEOVER_MAX.as_secs());
/// Shortest life of a lease that can be asked for: its parts below are still longer than requests usually take.
pub const LEASE_DURATION_MIN: Duration = Duration::from_secs(2);
/// Longest life of a lease that can be asked for, and that a lease of somebody else is believed to have.
pub const LEASE_DURATION_MAX: Duration = Duration::from_secs(300);
/// A lease is renewed after this part of its life: 14 s / 3 = 4.7 s, one request.
pub const LEASE_RENEW_PART: u32 = 3;
/// Effects end this part of its life before a lease can expire: 14 s / 5 = 2.8 s, at 11.2 s after the last renewal was sent. It is
/// for what is on the wire then, and for clocks that do not run equally fast.
pub const LEASE_GRACE_PART: u32 = 5;
/// Time for one request on a lease: 14 s / 5 = 2.8 s. From the renewal at 4.7 s to the end of effects at 11.2 s one may hang, and
/// there is a pause and time for another.
pub const LEASE_REQUEST_PART: u32 = 5;
/// Pause after a request on a lease that has failed: 14 s / 15 = 0.9 s.
pub const LEASE_RETRY_PART: u32 = 15;
/// Giving a lease back, and looking what became of that where its answer is lost, takes at most the time of so many requests.
pub const LEASE_GIVE_BACK_TRIES: u32 = 2;
/// What the clock of an agent may differ from the cluster's before people are told. Nothing is decided by it.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(30);
/// Bytes of one webhook delivery: GitHub sends no payload beyond 25 MiB. It is hashed as it comes and not kept.
pub const WEBHOOK_BODY_MAX: u64 = 25 * 1024 * 1024;
/// Bytes of a delivery that are kept to be read: a thousand commits of 1 KiB. What is larger and correctly signed counts as
/// an announcement without being read.
pub const WEBHOOK_BODY_KEPT_MAX: usize = 1024 * 1024;
/// Bytes of all deliveries that are kept at the same time. With `WEBHOOK_CONNECTIONS_MAX` × (`WEBHOOK_HEAD_SIZE_MAX` + some
/// 6 KiB for task and socket) = 11 MiB this is 23 MiB, however many connections are tried.
pub const WEBHOOK_BODIES_MAX: usize = 12 * 1024 * 1024;
/// Connections to the webhook port. A further one takes the place of the oldest that has not sent its headers.
pub const WEBHOOK_CONNECTIONS_MAX: usize = 512;
/// Bytes of the request line and all headers; GitHub's are about 1 KiB. Also what a connection buffers of a body.
pub const WEBHOOK_HEAD_SIZE_MAX: usize = 16 * 1024;
/// Time after its first reading in which no connection gives way to another one, so that what a forge has sent is heard: 512
/// places are given to 5,120 newcomers a second, and a longer queue stays with the kernel.
pub const WEBHOOK_HEAD_GRACE: Duration = Duration::from_millis(100);
/// Time for the request line and all headers.
pub const WEBHOOK_HEAD_DEADLINE: Duration = Duration::from_secs(5);
/// Time for the body: GitHub itself gives up after ten seconds.
pub const WEBHOOK_BODY_DEADLINE: Duration = Duration::from_secs(10);
/// Life of one connection, which serves one request: head, keys, body and answer.
pub const WEBHOOK_CONNECTION_DEADLINE: Duration = Duration::from_secs(20);
/// Age of a token that was read from its Secret beyond which it is read again before anything is decided: a burst of
/// deliveries, and any number of guessed paths, cost one request in this time for each source.
pub const WEBHOOK_KEYS_AGE_MAX: Duration = Duration::from_secs(1);
/// Time that a delivery waits for that, before what was known is used: the forge waits ten seconds.
pub const WEBHOOK_KEYS_PATIENCE: Duration = Duration::from_secs(3);
/// Delay before a token that cannot be used is read again, the first time; doubled each time.
pub const WEBHOOK_KEYS_RETRY_MIN: Duration = Duration::from_secs(2);
/// Longest delay before a token that cannot be used is read again.
pub const WEBHOOK_KEYS_RETRY_MAX: Duration = Duration::from_secs(60);
/// Characters of a token: below 16 it could be guessed from the path, which a status shows.
pub const WEBHOOK_TOKEN_MIN: usize = 16;
/// Difference of clocks up to which a signed timestamp is valid, as the specification of Standard Webhooks suggests.
pub const WEBHOOK_CLOCK_SKEW: Duration = Duration::from_secs(300);
/// Deliveries of one source that are remembered, so that a repeated one does nothing: 32 digests of 16 digits are 0.6 KiB.
pub const WEBHOOK_RECENT_MAX: usize = 32;
/// Time without a delivery after which a burst is over: the first one of a burst is acted on at once, the rest together.
pub const WEBHOOK_QUIET: Duration = Duration::from_millis(500);
/// Time after which the rest of a burst is acted on, however long it goes on: a source fetches at most every ten seconds for
/// somebody who never stops.
pub const WEBHOOK_BURST_MAX: Duration = Duration::from_secs(10);
/// Time around a poll that has found a change in which a delivery still counts as its announcement.
pub const WEBHOOK_GRACE: Duration = Duration::from_secs(10);
/// Characters of a delivery's id that a status shows.
pub const WEBHOOK_ID_SHOWN: usize = 8;
