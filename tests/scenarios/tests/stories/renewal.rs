//! The certificates of a cluster live for seconds. Its members renew them unasked, and wait while a host with a control-plane member is
//! drained; a condition warns.
//!
//! clusterd and `bedplate` run as programs; the cloud and the members are emulated.

use std::collections::BTreeMap;

use api_client::clusterd::{Drain, Host};
use openstack::compute::services;
use openstack_emulator::Settings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::own_vm::until;
use crate::services::Clusters;

/// The lifetime of certificates in seconds. A renewal is due after eight of them, and overdue after ten.
const LIFE: u32 = 20;

/// How often each member has renewed its certificates, by the events of the cluster.
async fn renewals(given: &Clusters) -> BTreeMap<String, usize> {
    let path = "/bedplate/v1/clusters/blue/events?limit=1000";
    let events: Value = given.api.get(path).await;
    let mut renewals = BTreeMap::new();
    for event in events["events"].as_array().expect("a list") {
        if event["reason"] == "CertificatesRenewed" {
            let member = event["message"].as_str().and_then(|said| said.split(' ').nth(1));
            *renewals.entry(member.expect("a member").to_owned()).or_default() += 1;
        }
    }
    renewals
}

/// How often each control-plane member has renewed its certificates.
async fn renewals_of_masters(given: &Clusters) -> BTreeMap<String, usize> {
    let mut renewals = renewals(given).await;
    renewals.retain(|member, _| member.starts_with("default-master"));
    renewals
}

/// The message of the condition about certificates.
async fn warning(given: &Clusters) -> String {
    let shown: Value = given.api.get("/bedplate/v1/clusters/blue").await;
    let conditions = shown["conditions"].as_array().expect("a list");
    let found = conditions.iter().find(|it| it["type"] == "CertificatesValid");
    let condition = found.expect("the condition");
    assert_eq!(condition["status"], "True", "{condition}");
    condition["message"].as_str().expect("a text").to_owned()
}

/// A host with exactly one control-plane member.
async fn host_of_a_master(given: &Clusters) -> String {
    let all = services::list_compute(&given.site.user.session).await;
    for service in all.expect("the compute services") {
        let host: Host = given.api.get(&format!("/bedplate/v1/hosts/{}", service.host)).await;
        let members = host.clusters.iter().flat_map(|cluster| &cluster.machines);
        if members.filter(|member| member.is_etcd_member).count() == 1 {
            return service.host;
        }
    }
    panic!("no host has one control-plane member")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_renewed_unasked_but_not_while_a_host_is_drained() {
    let cloud = Settings { certificate_seconds: LIFE, ..Settings::default() };
    let given = Clusters::start_in(cloud, "").await;
    let template = json!({
        "name": "small", "coe": "kubernetes", "image_id": "fedora-coreos", "external_network_id": "public",
        "flavor_id": "m1.small", "master_flavor_id": "m1.small", "master_lb_enabled": true,
        "labels": {"kube_tag": "v1.34.1"},
    });
    let cluster =
        json!({"name": "blue", "cluster_template_id": "small", "master_count": 3, "node_count": 1});
    for (path, body) in [("/v1/clustertemplates", template), ("/v1/clusters", cluster)] {
        given.api.create(path, &body).await;
    }
    given.bedplate(&[], &["cluster", "show", "blue", "--wait"]).await.done();
    until("each member to renew its certificates", async || {
        (renewals(&given).await.len() == 4).then_some(())
    })
    .await;
    until("no warning", async || warning(&given).await.is_empty().then_some(())).await;

    // The member on the host cannot move, so the drain lasts until somebody ends it.
    given.disable_other_hosts("none").await;
    let drain = format!("/bedplate/v1/drains/{}", host_of_a_master(&given).await);
    // While another member renews, the drain is refused.
    until("the drain to be admitted", async || {
        let answer = given.api.send(Method::PUT, &drain, None).await;
        (answer.status == 202).then_some(())
    })
    .await;
    let before = renewals_of_masters(&given).await;
    let said = until("a warning", async || {
        Some(warning(&given).await).filter(|message| !message.is_empty())
    })
    .await;
    assert!(said.starts_with("not renewed in time: "), "{said}");
    assert!(said.contains(" of default-master-"), "{said}");
    assert_eq!(renewals_of_masters(&given).await, before, "a member restarted during the drain");

    let answer = given.api.send(Method::DELETE, &drain, None).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    until("the end of the drain", async || {
        given.api.find::<Drain>(&drain).await.is_none().then_some(())
    })
    .await;
    until("each control-plane member to renew its certificates again", async || {
        let now = renewals_of_masters(&given).await;
        now.iter().all(|(member, count)| *count > before[member]).then_some(())
    })
    .await;
    until("no warning", async || warning(&given).await.is_empty().then_some(())).await;
}
