//! A CA rotation of a cluster that is in use. Each machine takes each step with its own unit, over the connection it asks by. The steps and
//! their order are clusterd's.

use std::thread;
use std::time::{Duration, Instant};

use cluster_bootstrap::{CaRotationStep, ClusterSettings, MemberRole, Pki, rotation_archive};
use cluster_pki::{Kubeconfig, Validity, admin_kubeconfig, make_pki};
use compat::wait::wait_for;
use serde_json::{Value, json};

use crate::{Claims, Kubectl, Network};

/// How long one step may take on one machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Rotates the CAs of a cluster with these workers and stores the new CAs in its settings. Returns `kubectl` of the administrator, signed
/// by
/// the new CA.
#[track_caller]
pub fn rotate(
    network: &Network,
    claims: &Claims,
    cluster: &mut ClusterSettings,
    workers: &[&str],
    validity: Validity,
) -> Kubectl {
    let begun = Instant::now();
    let old = cluster.pki.clone();
    let new = make_pki(&cluster.name, 1, validity).expect("authorities can be made");
    // A CA rotation keeps the key that signs service account tokens.
    let new = Pki { service_account: old.service_account.clone(), ..new };
    let masters: Vec<String> = cluster.control_plane.iter().map(|it| it.name.to_string()).collect();
    let before = admin_kubeconfig(&cluster.name, &cluster.endpoint, &old.cluster, validity);
    let before = before.expect("a kubeconfig can be made");
    let after = |trusted: &Pki| {
        let made = admin_kubeconfig(&cluster.name, &cluster.endpoint, &trusted.cluster, validity);
        Kubectl::named(network, "rotated.conf", made.expect("a kubeconfig can be made").expose())
    };
    claims.rotate();
    for (revision, step, signs, also) in [
        (1, CaRotationStep::TrustBoth, &old, Some(&new)),
        (2, CaRotationStep::SignWithNew, &new, Some(&old)),
        (3, CaRotationStep::RenewKubelets, &new, Some(&old)),
        (4, CaRotationStep::TrustNew, &new, None),
    ] {
        for worker in workers {
            let archive = rotation_archive(revision, step, signs, also, MemberRole::Worker);
            claims.give(worker, revision, &archive);
        }
        for master in &masters {
            let archive = rotation_archive(revision, step, signs, also, MemberRole::ControlPlane);
            claims.give(master, revision, &archive);
            until_held(claims, master, revision);
        }
        workers.iter().for_each(|worker| until_held(claims, worker, revision));
        eprintln!("all hold revision {revision}, {step:?}, after {:?}", begun.elapsed());
        if matches!(step, CaRotationStep::TrustBoth | CaRotationStep::TrustNew) {
            let trusted = also.map_or_else(|| signs.clone(), |also| signs.with_trusted(also));
            restart_workloads(&after(&trusted), &trusted);
        }
    }
    let kubectl = after(&new);
    write_cluster_info(&kubectl, &new);
    old_credentials_are_refused(network, &before, &new);
    cluster.pki = new;
    eprintln!("the CA rotation took {:?}", begun.elapsed());
    kubectl
}

#[track_caller]
fn until_held(claims: &Claims, machine: &str, revision: u32) {
    wait_for(&format!("{machine} to hold revision {revision}"), PATIENCE, || {
        thread::sleep(Duration::from_millis(500));
        (claims.held(machine) == Some(revision)).then_some(())
    });
}

/// Restarts kube-proxy, because pods read the trusted CAs only once, at their start.
#[track_caller]
fn restart_workloads(kubectl: &Kubectl, trusted: &Pki) {
    wait_for("pods to be told whom to believe", PATIENCE, || {
        thread::sleep(Duration::from_millis(500));
        let reported = kubectl.get(&["configmap", "kube-root-ca.crt", "-n", "kube-system"])?;
        (reported["data"]["ca.crt"].as_str()?.trim() == trusted.cluster.certificate.trim())
            .then_some(())
    });
    let proxy = ["-n", "kube-system", "rollout"];
    let ask = |words: &[&str]| kubectl.ask(&[&proxy[..], words].concat());
    ask(&["restart", "daemonset/kube-proxy"]).expect("kube-proxy is restarted");
    ask(&["status", "daemonset/kube-proxy", "--timeout=240s", "--request-timeout=0"])
        .expect("kube-proxy is rolled out");
}

/// Writes the new CA to `cluster-info`: machines that join trust the CA named there.
#[track_caller]
fn write_cluster_info(kubectl: &Kubectl, pki: &Pki) {
    let found = kubectl.get(&["configmap", "cluster-info", "-n", "kube-public"]);
    let found = found.expect("there is one");
    let text = found["data"]["kubeconfig"].as_str().expect("it holds a kubeconfig");
    let line = text.lines().find(|it| it.contains("certificate-authority-data"));
    let line = line.expect("it names an authority");
    let data = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        &pki.cluster.certificate,
    );
    let wanted = text.replace(line, &format!("    certificate-authority-data: {data}"));
    let patch = json!({"data": {"kubeconfig": wanted}}).to_string();
    kubectl
        .ask(&[
            "patch",
            "configmap",
            "cluster-info",
            "-n",
            "kube-public",
            "--type=merge",
            "-p",
            &patch,
        ])
        .expect("it is changed");
}

/// The old kubeconfig does not trust the cluster any more, and the cluster refuses its client certificate.
#[track_caller]
fn old_credentials_are_refused(network: &Network, old: &Kubeconfig, new: &Pki) {
    let said = Kubectl::named(network, "old.conf", old.expose()).objection(&["get", "nodes"]);
    assert!(said.contains("certificate signed by unknown authority"), "{said}");
    let mut mixed: Value = serde_json::from_str(old.expose()).expect("it is JSON");
    let data = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        &new.cluster.certificate,
    );
    mixed["clusters"][0]["cluster"]["certificate-authority-data"] = json!(data);
    let said = Kubectl::named(network, "old.conf", &mixed.to_string()).objection(&["get", "nodes"]);
    assert!(said.contains("Unauthorized") || said.contains("must be logged in"), "{said}");
}
