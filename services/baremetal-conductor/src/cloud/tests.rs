//! Tests of the calls to a cloud, with an emulated OpenStack.

use baremetal_core::{EarlierReport, JoinLimits};
use jiff::Timestamp;
use openstack_emulator::{Act, Cloud, Emulator, Rule, Settings};

use super::*;
use crate::conductor::Conductor;
use crate::samples::{conductor, session_of_admin, settings};

/// A conductor with a session of the cloud's administrator.
struct CloudSite {
    cloud: Cloud,
    conductor: Conductor,
    _emulator: Emulator,
}

impl CloudSite {
    async fn start() -> CloudSite {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let session = session_of_admin(&cloud);
        let conductor = conductor(crate::Settings { cloud: Some(session), ..settings() }).await;
        CloudSite { cloud, conductor, _emulator: emulator }
    }

    async fn look(&self, host: &Hypervisor) -> CloudSeen {
        let session = self.conductor.context.settings.cloud.as_ref().unwrap();
        look(session, host).await.unwrap_or_else(|error| CloudSeen::Failed(problem(&error)))
    }

    async fn ask(&self, host: &Hypervisor, action: JoinAction) -> Result<(), Problem> {
        self.conductor.context.ask_cloud(host, &action).await
    }

    async fn aggregate(&self, host: &Hypervisor, name: &str) -> AggregateSeen {
        let CloudSeen::Aggregates(all) = self.look(host).await else {
            panic!("the aggregates are listed")
        };
        all.into_iter().find(|one| one.name == name).unwrap()
    }

    /// Answers every call with this path by `status`.
    fn fail(&self, path: &str, status: u16) -> u64 {
        self.cloud.misbehave(Rule {
            method: None,
            path: path.to_owned(),
            body_contains: None,
            after: 0,
            times: None,
            lasts_millis: None,
            act: Act::Answer { status, retry_after: None, message: None },
        })
    }
}

fn host(name: &str, state: JoinState) -> Hypervisor {
    Hypervisor {
        profile: "kvm".to_owned(),
        host: name.to_owned(),
        availability_zone: None,
        aggregate: None,
        limits: JoinLimits::default(),
        state,
        since: Timestamp::UNIX_EPOCH,
        before: EarlierReport::Unknown,
        id: None,
    }
}

#[tokio::test]
async fn each_state_of_joining_looks_at_its_part_of_the_cloud() {
    let site = CloudSite::start().await;
    let waiting = host("compute-1", JoinState::AwaitingService);
    let CloudSeen::Service(Some(service)) = site.look(&waiting).await else {
        panic!("the service is listed")
    };
    assert!(service.up && service.enabled, "{service:?}");
    let listed = host("compute-1", JoinState::AwaitingHypervisor);
    let CloudSeen::Hypervisor(Some(hypervisor)) = site.look(&listed).await else {
        panic!("the hypervisor is listed")
    };
    assert!(hypervisor.up);
    let mut provider = host("compute-1", JoinState::AwaitingProvider);
    provider.id = Some(hypervisor.id);
    assert_eq!(site.look(&provider).await, CloudSeen::Provider(true));
    provider.id = Some("00000000-0000-4000-8000-000000000000".to_owned());
    assert_eq!(site.look(&provider).await, CloudSeen::Provider(false));
    let none = host("compute-9", JoinState::AwaitingService);
    assert_eq!(site.look(&none).await, CloudSeen::Service(None));
}

#[tokio::test]
async fn a_repeated_call_succeeds_and_a_refused_one_fails() {
    let site = CloudSite::start().await;
    let one = host("compute-1", JoinState::Grouping);
    let make = || JoinAction::MakeAggregate { name: "kvm".to_owned(), zone: None };
    site.ask(&one, make()).await.unwrap();
    site.ask(&one, make()).await.unwrap();
    let made = site.aggregate(&one, "kvm").await;
    assert!(!made.has_host, "{made:?}");
    let add = || JoinAction::AddHost { aggregate: made.id.clone() };
    site.ask(&one, add()).await.unwrap();
    assert!(site.aggregate(&one, "kvm").await.has_host);
    site.ask(&one, add()).await.unwrap();
    let other = host("compute-2", JoinState::Grouping);
    assert!(!site.aggregate(&other, "kvm").await.has_host);

    // A host is in one availability zone only.
    let zone = |name: &str| JoinAction::MakeAggregate {
        name: name.to_owned(),
        zone: Some(name.to_owned()),
    };
    site.ask(&one, zone("east")).await.unwrap();
    site.ask(&one, zone("west")).await.unwrap();
    let east = site.aggregate(&one, "east").await.id;
    let west = site.aggregate(&one, "west").await.id;
    site.ask(&one, JoinAction::AddHost { aggregate: east }).await.unwrap();
    let refused = site.ask(&one, JoinAction::AddHost { aggregate: west }).await.unwrap_err();
    assert_eq!((refused.reason, refused.transient), (Reason::CloudRefuses, false));

    // Other errors are no conflicts.
    let rule = site.fail("/**/os-aggregates/**", 403);
    site.ask(&one, add()).await.unwrap_err();
    site.cloud.end_rule(rule);
    site.fail("/**/os-aggregates", 403);
    site.ask(&one, make()).await.unwrap_err();
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_may_answer_later() {
    let site = CloudSite::start().await;
    let one = host("compute-1", JoinState::AwaitingService);
    site.look(&one).await;
    site.fail("/**/os-services", 503);
    let CloudSeen::Failed(problem) = site.look(&one).await else { panic!("the cloud fails") };
    assert_eq!((problem.reason, problem.transient), (Reason::CloudUnreachable, true));
}
