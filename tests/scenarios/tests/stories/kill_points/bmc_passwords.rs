//! A change of the password of a BMC account, while the service is killed.

use lab::{Lab, Machine, Settings};
use reqwest::Method;

use super::settings;
use crate::bmc_passwords::{ends, rotation, works};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_over_redfish_survives_kills() {
    survives_kills(Machine::redfish("r1u65").without_tls()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_over_ipmi_survives_kills() {
    survives_kills(Machine::ipmi("r1u66")).await;
}

/// After each kill both passwords are tried, and the one that the BMC has is kept.
async fn survives_kills(blueprint: Machine) {
    // A BMC keeps the sessions of a service that died, and has few of them.
    let lab = Lab::with_mortal(Settings { bmc_timeout: "90s", ..settings() }).await;
    let machine = lab.rack(blueprint).await;
    let node = lab.manageable(&machine).await;
    let old = machine.chassis().password();
    let before = lab.history(node).await.len();
    let ask = async || {
        // An answer that a kill lost: the request is repeated, unless it was recorded.
        if lab.history(node).await.len() == before {
            lab.api().send(Method::POST, &rotation(node), None).await;
        }
    };
    let done = async || drop(ends(&lab, node, before).await);
    // Few writes, so each point is tried.
    let points = lab.kill_at_every_point(1, |_| false, ask, done).await;
    assert!(points.iter().any(|point| point.contains("bmc: password")), "{points:#?}");

    let events = ends(&lab, node, before).await;
    let told: Vec<&str> = events.iter().map(|it| it.event.as_str()).collect();
    let want = [
        "a new password of the BMC account requested",
        "the password of the BMC account was changed",
    ];
    assert_eq!(told, want, "killed at {points:#?}");
    assert_ne!(machine.chassis().password(), old);
    works(&lab, node, &machine).await;
}
