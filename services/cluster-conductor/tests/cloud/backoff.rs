//! A cloud that fails repeatedly at the same object: the waiting time between attempts grows, and a change of the cluster is tried at once.

use std::time::Duration;

use cluster_core::{ConditionKind, ConditionStatus};
use jiff::{SignedDuration, Timestamp};
use openstack_emulator::{Act, Call, Cloud, CreateOutcome, End, Kind, Rule};

use crate::given::{ClusterFixture, PATIENCE};
use crate::life::workers;

const NO_HOST: &str = "No valid host was found. There are not enough hosts available.";

fn is_asked(call: &Call) -> bool {
    call.method == "POST" && call.path == "/compute/v2.1/servers"
}

impl ClusterFixture {
    /// Returns when servers were requested, in milliseconds, once there were this many requests.
    async fn asked(&self, times: usize) -> Vec<u64> {
        let enough = |cloud: &Cloud| (cloud.count(is_asked) >= times).then_some(());
        let enough = self.cloud.wait_until(enough);
        tokio::time::timeout(PATIENCE, enough).await.unwrap();
        let calls = self.cloud.calls();
        calls.iter().filter(|call| is_asked(call)).map(|call| call.at_millis).collect()
    }

    /// Asserts that the waiting time after six or more failures is 800 milliseconds, read from the condition, which has whole seconds.
    /// Without the limit the time would double to 3,200 or more.
    async fn assert_waits_no_longer(&self) {
        let waiting = async {
            let mut longest: Option<(u32, SignedDuration)> = None;
            loop {
                let cluster = self.find().await.unwrap();
                let failed = cluster.setbacks.values().find(|it| it.times >= 6);
                let reported = cluster.conditions.iter().find(|it| it.reason == "BackingOff");
                if let (Some(failed), Some(reported)) = (failed, reported) {
                    let (_, until) = reported.message.split_once("next attempt at ").unwrap();
                    let wait = until.parse::<Timestamp>().unwrap().duration_since(failed.at);
                    // The condition may still show the time of an earlier failure, so the longest time until the next failure counts.
                    longest = match longest {
                        Some((times, longest)) if times != failed.times => return longest,
                        Some((times, longest)) => Some((times, longest.max(wait))),
                        None => Some((failed.times, wait)),
                    };
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waits = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
        assert!(waits <= SignedDuration::from_millis(800 + 500), "{waits:?}");
    }

    /// Waits until the failures in a row are at most this many.
    async fn until_failed_at_most(&self, times: u32) {
        let waiting = async {
            loop {
                let setbacks = self.find().await.unwrap().setbacks;
                if setbacks.values().any(|setback| setback.times <= times) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }
}

/// Asserts waiting times of at least 100, 200, 400 and 800 milliseconds, and 800 again. On a busy machine each may be longer.
#[track_caller]
fn assert_backs_off(asked: &[u64]) {
    let waited: Vec<u64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waited.len() >= 6, "{asked:?}");
    for (waited, least) in waited.iter().zip([100, 200, 400, 800, 800, 800]) {
        assert!(*waited >= least, "{waited} ms and not {least}: {asked:?}");
    }
}

#[tokio::test]
async fn a_server_that_fails_repeatedly_is_requested_after_growing_waits() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    given.cloud.forget_calls();
    let (name, end) = ("*-default-worker-1".to_owned(), End::Error(NO_HOST.to_owned()));
    given.cloud.set_fate(CreateOutcome { kind: Kind::Server, name, after: 0, times: None, end });
    let more = |group: &mut cluster_core::NodeGroup| {
        group.add_machine();
    };
    given.ask(|_, group| more(group), workers()).await;
    assert_backs_off(&given.asked(7).await);
    given.assert_waits_no_longer().await;
    let reported =
        given.until(ConditionKind::InfrastructureReady, |it| it.reason == "BackingOff").await;
    assert_eq!((reported.status, reported.is_final), (ConditionStatus::False, false));
    let said = format!("the cloud failed to create server/default-worker-1 ({NO_HOST}), ");
    assert!(reported.message.starts_with(&said), "{reported:?}");
    assert!(reported.message.contains("next attempt at 20"), "{reported:?}");
    assert!(
        reported.next_action.contains("applies a change of the cluster at once"),
        "{reported:?}"
    );

    // A change of the cluster resets the count.
    given.ask(|_, group| group.min_node_count = 0, workers()).await;
    given.until_failed_at_most(3).await;

    given.cloud.forgive_all();
    given.until_complete().await;
    given.assert_once(1, 2);
    assert_eq!(given.find().await.unwrap().setbacks, Default::default());
    given.deleted().await;
}

#[tokio::test]
async fn a_request_that_nova_answers_with_no_valid_host_is_repeated_after_growing_waits() {
    let given = ClusterFixture::cluster(1, 1).await;
    let act = Act::Answer { status: 500, retry_after: None, message: Some(NO_HOST.to_owned()) };
    let name = "-default-worker-0\"";
    let rule =
        Rule { body_contains: Some(name.to_owned()), ..Rule::new("POST", "/compute/**", act) };
    let rule = given.cloud.misbehave(rule);
    let _working = given.conductor();
    // The control-plane server is requested once, in parallel with the first attempt.
    let asked = given.asked(8).await;
    assert_backs_off(&asked[1..]);
    given.assert_waits_no_longer().await;
    let reported =
        given.until(ConditionKind::InfrastructureReady, |it| it.reason == "BackingOff").await;
    assert!(reported.message.contains(NO_HOST), "{reported:?}");
    given.cloud.end_rule(rule);
    given.until_complete().await;
    given.assert_once(1, 1);
    assert_eq!(given.find().await.unwrap().setbacks, Default::default());
}
