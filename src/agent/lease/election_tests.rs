use rstest::rstest;

use super::*;

const TERM: Duration = Duration::from_secs(15);

fn election(identity: &str, inherit: bool) -> Election {
    Election::new(LeaseSettings {
        namespace: "fairway-system".to_owned(),
        name: "fairway-home".to_owned(),
        identity: identity.to_owned(),
        inherit,
        duration: TERM,
    })
}

fn wall() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

/// Stands for the API server: one lease, guarded by its resourceVersion.
#[derive(Default)]
struct Server {
    lease: Option<Lease>,
    version: u32,
    uid: u32,
}

impl Server {
    fn store(&mut self, mut lease: Lease) -> Lease {
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        lease.metadata.uid = Some(self.uid.to_string());
        self.lease = Some(lease.clone());
        lease
    }

    fn delete(&mut self) {
        self.lease = None;
        self.uid += 1;
    }

    fn edit(&mut self, change: impl FnOnce(&mut LeaseSpec)) {
        let lease = rewritten(self.lease.as_ref().unwrap(), change);
        self.store(lease);
    }

    /// Does what is asked; an error is a conflict.
    fn serve(&mut self, step: &Step) -> Result<Option<Lease>, ()> {
        match step {
            Step::Wait(_) => panic!("nothing to serve"),
            Step::Read => Ok(self.lease.clone()),
            Step::Create(_) if self.lease.is_some() => Err(()),
            Step::Create(lease) => Ok(Some(self.store((**lease).clone()))),
            Step::Replace(lease) => {
                let stored = self.lease.as_ref().ok_or(())?;
                if stored.metadata.resource_version != lease.metadata.resource_version {
                    return Err(());
                }
                Ok(Some(self.store((**lease).clone())))
            }
        }
    }
}

/// Lets one election act until it waits; returns the requests that it has sent, and until when it waits.
fn act(election: &mut Election, server: &mut Server, now: Instant) -> (Vec<&'static str>, Instant) {
    let mut sent = Vec::new();
    loop {
        election.lapse(now);
        let written = Duration::from_secs(server.version.into());
        let step = election.step(now, wall() + written);
        let name = match &step {
            Step::Wait(until) => return (sent, *until),
            Step::Read => "read",
            Step::Create(_) => "create",
            Step::Replace(_) => "replace",
        };
        sent.push(name);
        assert!(sent.len() < 10, "it never rests: {sent:?}");
        match (name, server.serve(&step)) {
            ("read", Ok(lease)) => election.read(lease, now),
            (_, Ok(lease)) => election.won(lease.unwrap(), now),
            (_, Err(())) => election.conflicted(),
        }
    }
}

fn claim(election: &Election) -> Option<Claim> {
    election.held().map(|held| held.claim)
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_there_is_created_and_renewed_with_one_request_each() {
    let (mut one, mut server, start) = (election("one", false), Server::default(), Instant::now());
    let (sent, until) = act(&mut one, &mut server, start);
    assert_eq!(sent, ["read", "create"]);
    assert_eq!(until, start + TERM / 3);
    assert_eq!(one.held().unwrap().effects_end, start + TERM * 4 / 5);
    let before = claim(&one);
    for period in 1..10 {
        let now = start + TERM / 3 * period;
        let (sent, until) = act(&mut one, &mut server, now);
        assert_eq!(sent, ["replace"]);
        assert_eq!(until, now + TERM / 3);
        // What the watch shows of it, late as it may be, is nothing new.
        one.noticed(server.lease.clone(), now);
        assert_eq!(act(&mut one, &mut server, now).0, Vec::<&str>::new());
    }
    assert_eq!(claim(&one), before);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_is_silent_is_followed_when_its_own_duration_is_over() {
    let (mut one, mut two) = (election("one", false), election("two", false));
    let (mut server, start) = (Server::default(), Instant::now());
    act(&mut one, &mut server, start);
    server.edit(|spec| spec.lease_duration_seconds = Some(20));
    let seen = start + Duration::from_secs(4);
    assert_eq!(
        act(&mut two, &mut server, seen),
        (vec!["read"], seen + Duration::from_secs(20))
    );
    // The same once more is no sign of life.
    two.noticed(server.lease.clone(), seen + Duration::from_secs(9));
    let (sent, until) = act(&mut two, &mut server, seen + Duration::from_secs(10));
    assert_eq!((sent, until), (vec![], seen + Duration::from_secs(20)));
    let (sent, _) = act(&mut two, &mut server, until);
    assert_eq!(sent, ["replace"]);
    assert_ne!(claim(&two), claim(&one));
    assert!(one.held().unwrap().effects_end < until);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_the_watch_has_missed_is_met_by_the_conflict() {
    let (mut one, mut two) = (election("one", false), election("two", false));
    let (mut server, start) = (Server::default(), Instant::now());
    act(&mut one, &mut server, start);
    act(&mut two, &mut server, start);
    act(&mut one, &mut server, start + Duration::from_secs(14));
    let (sent, until) = act(&mut two, &mut server, start + TERM);
    assert_eq!(sent, ["replace", "read"]);
    assert_eq!(until, start + TERM * 2);
    assert_eq!(two.held(), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_is_taken_at_once() {
    let (mut one, mut two) = (election("one", false), election("two", false));
    let (mut server, start) = (Server::default(), Instant::now());
    act(&mut one, &mut server, start);
    act(&mut two, &mut server, start);
    let given = one.given_back(wall()).unwrap();
    assert_eq!(one.held(), None);
    server.store(given);
    two.noticed(server.lease.clone(), start);
    assert_eq!(act(&mut two, &mut server, start).0, ["replace"]);
    assert_eq!(
        two.given_back(wall())
            .unwrap()
            .spec
            .unwrap()
            .holder_identity,
        None
    );
    assert_eq!(two.given_back(wall()), None, "once is enough");
}

#[rstest]
#[case::created(false)]
#[case::taken_over(true)]
#[tokio::test(start_paused = true)]
async fn what_a_lost_answer_has_taken_is_not_left_behind(#[case] is_there: bool) {
    let (mut one, mut server, now) = (election("one", false), Server::default(), Instant::now());
    if is_there {
        let mut before = election("before", false);
        act(&mut before, &mut server, now);
        server.store(before.given_back(wall()).unwrap());
    }
    assert_eq!(one.left_behind(wall()), None, "nothing was sent yet");
    assert_eq!(one.step(now, wall()), Step::Read);
    one.read(server.lease.clone(), now);
    let taking = one.step(now, wall());
    let taken = server.serve(&taking).unwrap();
    one.failed(now);
    assert_eq!(one.given_back(wall()), None);
    assert_eq!(one.left_behind(wall()), Some(Step::Read));
    one.read(taken, now);
    let given = one.left_behind(wall()).expect("it is ours");
    let given = server.serve(&given).unwrap();
    assert_eq!(holder(given.as_ref().unwrap()), None);
    one.read(given, now);
    assert_eq!(one.left_behind(wall()), None);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_has_is_never_given_back() {
    let (mut one, mut server, now) = (election("one", false), Server::default(), Instant::now());
    act(&mut one, &mut server, now);
    one.given_back(wall()).unwrap();
    one.conflicted();
    assert_eq!(one.left_behind(wall()), Some(Step::Read));
    server.edit(|spec| spec.holder_identity = Some("two".to_owned()));
    one.read(server.lease.clone(), now);
    assert_eq!(one.left_behind(wall()), None);
}

#[rstest]
#[case::deleted(Server::delete, &["read", "create"])]
#[case::stolen(|server: &mut Server| server.edit(|spec| spec.holder_identity = Some("a person".to_owned())), &["read"])]
#[case::counted(|server: &mut Server| server.edit(|spec| spec.lease_transitions = Some(77)), &["read"])]
#[case::emptied(|server: &mut Server| server.edit(|spec| *spec = LeaseSpec::default()), &["read", "replace"])]
#[tokio::test(start_paused = true)]
async fn what_somebody_does_to_the_lease_ends_the_claim(
    #[case] fault: fn(&mut Server),
    #[case] requests: &[&str],
) {
    let (mut one, mut server, start) = (election("one", false), Server::default(), Instant::now());
    act(&mut one, &mut server, start);
    let before = claim(&one);
    fault(&mut server);
    one.noticed(server.lease.clone(), start);
    let (sent, _) = act(&mut one, &mut server, start);
    assert_eq!(sent, requests);
    assert_ne!(claim(&one), before);
    // Whoever took it and does not renew it loses it.
    act(&mut one, &mut server, start + TERM);
    assert!(one.held().is_some());
    assert_ne!(claim(&one), before);
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_nothing_goes_on_without_a_fresh_claim() {
    let (mut one, mut server, start) = (election("one", false), Server::default(), Instant::now());
    act(&mut one, &mut server, start);
    let before = claim(&one);
    let mut now = start + TERM / 3;
    let mut attempts = 0;
    while one.held().is_some() {
        match one.step(now, wall()) {
            Step::Wait(until) => now = until,
            Step::Replace(_) => {
                attempts += 1;
                one.failed(now);
            }
            other => panic!("{other:?}"),
        }
        one.lapse(now);
    }
    assert_eq!(now, start + TERM * 4 / 5);
    assert_eq!(attempts, 7, "one each second from 5 s to 11 s");
    // Nobody else was there, so that it is taken at once, as another claim.
    let (sent, _) = act(&mut one, &mut server, start + TERM * 4);
    assert_eq!(sent, ["read", "replace"]);
    assert!(one.held().is_some());
    assert_ne!(claim(&one), before);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_was_lost_is_found_by_reading() {
    let (mut one, mut server, start) = (election("one", false), Server::default(), Instant::now());
    act(&mut one, &mut server, start);
    let before = claim(&one);
    // A renewal that arrived.
    let now = start + TERM / 3;
    server
        .serve(&one.step(now, wall() + Duration::from_secs(1)))
        .unwrap();
    one.failed(now);
    let later = now + TERM / 15;
    let (sent, _) = act(&mut one, &mut server, later);
    assert_eq!(sent, ["replace", "read", "replace"]);
    assert_eq!(claim(&one), before, "the same hold goes on");
    // A creation that arrived.
    let (mut two, mut server) = (election("two", false), Server::default());
    two.read(None, later);
    server.serve(&two.step(later, wall())).unwrap();
    two.failed(later);
    let (sent, _) = act(&mut two, &mut server, later + TERM / 15);
    assert_eq!(sent, ["create", "read", "replace"]);
    assert_eq!(claim(&two).unwrap().transitions, 1);
}

#[rstest]
#[case::a_pod_that_was_started_again(true, &["read", "replace"])]
#[case::two_who_have_the_same_name(false, &["read"])]
#[tokio::test(start_paused = true)]
async fn a_hold_in_our_name_is_taken_over_where_its_process_is_dead_for_sure(
    #[case] inherit: bool,
    #[case] requests: &[&str],
) {
    let (mut server, start) = (Server::default(), Instant::now());
    let mut dead = election("pod-a", false);
    act(&mut dead, &mut server, start);
    let mut one = election("pod-a", inherit);
    let (sent, _) = act(&mut one, &mut server, start);
    assert_eq!(sent, requests);
    assert_ne!(claim(&one), claim(&dead));
    // Only at the beginning: should the other be alive after all, they do not take it from each other for ever.
    dead.noticed(server.lease.clone(), start);
    let (sent, _) = act(&mut dead, &mut server, start);
    assert!(!sent.contains(&"replace"), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn who_stands_by_asks_less_and_less_often_while_nobody_answers() {
    let (mut one, start) = (election("one", false), Instant::now());
    let mut now = start;
    let mut pauses = Vec::new();
    for _ in 0..5 {
        assert_eq!(one.step(now, wall()), Step::Read);
        one.failed(now);
        let Step::Wait(until) = one.step(now, wall()) else {
            panic!("no pause");
        };
        pauses.push((until - now).as_secs());
        now = until;
    }
    assert_eq!(pauses, [1, 2, 4, 5, 5]);
}

#[test]
fn with_the_default_settings_a_lease_is_due_within_what_a_takeover_may_take() {
    let settings = |identity: &str| LeaseSettings {
        namespace: "fairway-system".to_owned(),
        name: "fairway-home".to_owned(),
        identity: identity.to_owned(),
        inherit: false,
        duration: limits::LEASE_DURATION,
    };
    let (mut leader, mut standby) = (
        Election::new(settings("leader")),
        Election::new(settings("standby")),
    );
    let (mut server, begun) = (Server::default(), Instant::now());
    leader.read(None, begun);
    let step = leader.step(begun, wall());
    let stored = server.serve(&step).unwrap().unwrap();
    // Killed right after a renewal that has just been seen: the longest wait there is.
    standby.read(Some(stored), begun);
    let Step::Wait(due) = standby.step(begun, wall()) else {
        panic!("it is held by somebody else");
    };
    let request = Duration::from_secs(1);
    assert!(due + request <= begun + limits::TAKEOVER_MAX);
    assert!(matches!(standby.step(due, wall()), Step::Replace(_)));
}
