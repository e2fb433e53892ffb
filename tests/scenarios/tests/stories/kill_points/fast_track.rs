//! A cleaning and a deployment by the ramdisk of an inspection, while baremetald is killed: the machine boots nothing in between.

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine, Settings};

use super::{CLEANING, DEPLOYMENT, ERASES, WRITES, anywhere, outlived, part, settings};
use crate::fast_track::inspected;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_by_a_ramdisk_that_runs_already_survives_kills() {
    let lab = Lab::with_mortal(Settings { fast_track: true, ..settings() }).await;
    let machine = lab.rack(Machine::redfish("r1u1").without_tls()).await;
    let node = inspected(&lab, &machine).await;
    let cleaning = part("provide", CLEANING, &[], ERASES);
    let points = outlived(&lab, node, &machine, &cleaning, (1, |_| false)).await;
    assert!(points.len() >= 8, "{points:#?}");
    let deployment = part("active", DEPLOYMENT, &[ForceOff, On], WRITES);
    let points = outlived(&lab, node, &machine, &deployment, anywhere()).await;
    assert!(points.len() >= 6, "{points:#?}");
}
