//! Stories about Placement.

use openstack::placement::candidates::{self, Need};
use openstack::{CloudError, Service};

use crate::given;

#[tokio::test]
async fn an_administrator_sees_candidates() {
    let Some(admin) = given::with("admin", Service::Placement).await else { return };
    let need = Need::of(1, 512, 1);
    let hosts = candidates::list(&admin, &need, 100).await.unwrap();
    assert!(!hosts.is_empty());
    assert!(hosts.iter().all(|host| host.holds(&need) >= 1), "{hosts:?}");
    assert_eq!(candidates::list(&admin, &Need::of(1_000_000, 512, 1), 100).await.unwrap(), []);
}

#[tokio::test]
async fn a_tenant_sees_no_candidates() {
    let Some(alice) = given::with("alice", Service::Placement).await else { return };
    let reported = candidates::list(&alice, &Need::of(1, 512, 1), 1).await.unwrap_err();
    assert!(matches!(reported, CloudError::Forbidden(_)), "{reported:?}");
}
