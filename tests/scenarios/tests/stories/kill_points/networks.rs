//! Ports in Neutron are created, bound and deleted while baremetald is killed: a machine has one port in the network of its work, and none
//! afterwards.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::Lab;

use super::{DEPLOYMENT, ERASES, UNDEPLOYMENT, WRITES, outlived, part, settings};
use crate::networks::NetworkSite;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ports_of_a_machine_in_the_networks_of_the_service_survive_kills() {
    let site = NetworkSite::start(async |it| Lab::with_mortal(it).await, settings()).await;
    site.link().await;
    assert_eq!(site.attach().await, 204);
    let at_cloud: (usize, fn(&str) -> bool) = (1, |point| !point.contains("cloud: "));
    let deployment = part("active", DEPLOYMENT, &[On, ForceOff, On], WRITES);
    let points = outlived(&site.lab, site.node, &site.machine, &deployment, at_cloud).await;
    assert_eq!(points.len(), 8, "release, create, delete, bind; before and after: {points:#?}");
    assert!(site.is_bound());
    assert_eq!(site.networks(), [""; 0]);

    let end = part("deleted", UNDEPLOYMENT, &[ForceOff, On, ForceOff], ERASES);
    let points = outlived(&site.lab, site.node, &site.machine, &end, at_cloud).await;
    assert_eq!(points.len(), 6, "release, create, delete: {points:#?}");
    assert!(!site.is_bound());
    assert_eq!(site.networks(), [""; 0]);
}
