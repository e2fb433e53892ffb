//! Stories about compute hosts, hypervisors and aggregates, which only administrators see.

use openstack::CloudError;
use openstack::compute::services::{State, Status};
use openstack::compute::{aggregates, hypervisors, services};
use openstack::placement::candidates::{self, Need};
use openstack::placement::providers;

use crate::given;

/// Finds a host with free resources, because a story does not know the names of a cloud's hosts.
async fn host(admin: &openstack::Session) -> hypervisors::Hypervisor {
    let found = candidates::list(admin, &Need::of(1, 64, 0), 1).await.unwrap();
    let all = hypervisors::list(admin).await.unwrap();
    all.into_iter().find(|one| one.id == found[0].provider).expect("a hypervisor is a provider")
}

#[tokio::test]
async fn a_host_is_found_by_its_name_in_every_service() {
    let Some(admin) = given::session("admin") else { return };
    let host = host(&admin).await;
    let name = host.service.host.as_str();
    let service = services::find_compute(&admin, name).await.unwrap().expect("it has a service");
    assert_eq!((&service.state, &service.status), (&State::Up, &Status::Enabled));
    assert!(service.updated_at.is_some(), "{service:?}");
    let found = hypervisors::find_by_host(&admin, name).await.unwrap().expect("it is listed");
    assert_eq!((&found.id, &found.state), (&host.id, &State::Up));
    let has = providers::inventories(&admin, &host.id).await.unwrap().expect("a provider");
    assert!(has.get("VCPU").is_some_and(|total| *total > 0), "{has:?}");

    assert_eq!(services::find_compute(&admin, "contract-nobody").await.unwrap(), None);
    assert_eq!(hypervisors::find_by_host(&admin, "contract-nobody").await.unwrap(), None);
    let none = "00000000-0000-0000-0000-000000000000";
    assert_eq!(providers::inventories(&admin, none).await.unwrap(), None);
    // Enabling an enabled service changes nothing.
    services::enable(&admin, &service.id).await.unwrap();
}

#[tokio::test]
async fn a_host_is_put_into_an_aggregate_and_taken_out() {
    let Some(admin) = given::session("admin") else { return };
    let (host, name) = (host(&admin).await.service.host, given::name());
    let made = aggregates::create(&admin, &name, None).await.unwrap();
    assert_eq!((&made.name, &made.availability_zone), (&name, &None));
    let twice = aggregates::create(&admin, &name, None).await.unwrap_err();
    assert!(twice.is_conflict(), "{twice:?}");
    aggregates::add_host(&admin, &made.id, &host).await.unwrap();
    let again = aggregates::add_host(&admin, &made.id, &host).await.unwrap_err();
    assert!(again.is_conflict(), "{again:?}");
    let nobody = aggregates::add_host(&admin, &made.id, "contract-nobody").await.unwrap_err();
    assert!(matches!(nobody, CloudError::NotFound(_)), "{nobody:?}");
    let all = aggregates::list(&admin).await.unwrap();
    let found = all.into_iter().find(|one| one.id == made.id).expect("it is listed");
    assert_eq!(found.hosts, [host.as_str()]);
    aggregates::remove_host(&admin, &made.id, &host).await.unwrap();
    aggregates::delete(&admin, &made.id).await.unwrap();
    aggregates::delete(&admin, &made.id).await.unwrap();
}

#[tokio::test]
async fn a_tenant_sees_no_hosts() {
    let Some(alice) = given::session("alice") else { return };
    let reported = services::find_compute(&alice, "x").await.unwrap_err();
    assert!(matches!(reported, CloudError::Forbidden(_)), "{reported:?}");
    let reported = aggregates::list(&alice).await.unwrap_err();
    assert!(matches!(reported, CloudError::Forbidden(_)), "{reported:?}");
}
