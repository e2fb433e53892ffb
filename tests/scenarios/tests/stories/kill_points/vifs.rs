//! VIFs are bound and released while baremetald is killed: a port of Neutron is bound to the machine when it is installed, and to nothing
//! when it is undeployed.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::Lab;

use super::{DEPLOYMENT, ERASES, UNDEPLOYMENT, WRITES, outlived, part, settings};
use crate::vifs::VifSite;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_binding_of_a_vif_and_its_end_survive_kills() {
    let site = VifSite::start(async |it| Lab::with_mortal(it).await, settings()).await;
    assert_eq!(site.attach(&site.vif).await, 204);
    let at_vifs: (usize, fn(&str) -> bool) =
        (1, |point| !point.contains("cloud: ") && !point.contains("update_vifs"));
    let deployment = part("active", DEPLOYMENT, &[On, ForceOff, On], WRITES);
    let points = outlived(&site.lab, site.node, &site.machine, &deployment, at_vifs).await;
    assert_eq!(points.len(), 2, "before the port is bound and after: {points:#?}");
    site.is_bound();

    let end = part("deleted", UNDEPLOYMENT, &[ForceOff, On, ForceOff], ERASES);
    let points = outlived(&site.lab, site.node, &site.machine, &end, at_vifs).await;
    assert_eq!(points.len(), 4, "around the release and the write: {points:#?}");
    site.is_released().await;
}
