//! Services that are down for a whole minute, while clusters are created, running and deleted. All stories run in parallel to save time.

use std::time::Duration;

use cluster_core::ConditionStatus;
use futures::future::join_all;
use openstack_emulator::{Act, Call, Rule};

use crate::given::ClusterFixture;

const MINUTE_MILLIS: u64 = 60_000;

/// The part of a cluster's life in which a service goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum During {
    Creation,
    Rest,
    Deletion,
}

/// Runs the story of one cluster, with a service that is down for a minute.
async fn story(service: &'static str, during: During) {
    // A longer interval keeps the load of so many running clusters low.
    let mut given = ClusterFixture::cluster(1, 1).await;
    given.settings.look_every = Duration::from_secs(1);
    let path = format!("/{service}/**");
    let (act, reason) = match during {
        During::Creation | During::Rest => (Act::Close, "CloudUnreachable"),
        During::Deletion => {
            (Act::Answer { status: 503, retry_after: None, message: None }, "CloudBusy")
        }
    };
    let mut working = None;
    if during != During::Creation {
        working = Some(given.conductor());
        given.until_complete().await;
    }
    let before = given.ids();
    given.cloud.forget_calls();
    let story = format!("{service} down during {during:?}");
    let outage = given.cloud.misbehave(Rule::new("", &path, act));
    if during == During::Deletion {
        given.delete().await;
    }
    let _working = working.unwrap_or_else(|| given.conductor());

    let reported = given.until_told(reason).await;
    assert_eq!((reported.status, reported.is_final), (ConditionStatus::False, false), "{story}");
    let is_down = |call: &&Call| {
        call.path.starts_with(&format!("/{service}/")) && matches!(call.status, None | Some(503))
    };
    // The service is used again and again for a whole minute, and fails each time.
    let first = given.cloud.calls().iter().find(is_down).unwrap().at_millis;
    let is_late = |call: &Call| is_down(&call) && call.at_millis >= first + MINUTE_MILLIS;
    given.cloud.wait_until(|cloud| (cloud.count(is_late) > 0).then_some(())).await;
    given.until_told(reason).await;
    if during == During::Rest {
        assert_eq!(given.ids(), before, "{story}");
    }
    given.cloud.end_rule(outage);

    match during {
        During::Creation | During::Rest => {
            given.until_complete().await;
            given.until_complete_again().await;
            given.assert_once(1, 1);
        }
        During::Deletion => given.until_gone().await,
    }
    if during == During::Rest {
        assert_eq!(given.ids(), before, "{story}");
    }
}

#[tokio::test]
async fn each_service_may_be_down_for_a_minute_in_any_part_of_a_clusters_life() {
    let made = ["identity", "network", "compute", "load-balancer", "dns", "image", "volume"];
    // A complete cluster needs neither images nor volumes.
    let used = &made[..5];
    let stories = made.iter().map(|service| story(service, During::Creation));
    let stories = join_all(stories);
    let rest = join_all(used.iter().map(|service| story(service, During::Rest)));
    let deletion = join_all(used.iter().map(|service| story(service, During::Deletion)));
    tokio::join!(stories, rest, deletion);
}
