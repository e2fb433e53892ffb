//! The renewal of a member's certificates on a cluster that is in use. The member renews with its own unit, as soon as it is permitted.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use cluster_bootstrap::Member;
use compat::wait::wait_for;

use crate::{Claims, Network};

/// How long a renewal may take on one machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// The ports of a control-plane member, each with the certificate that its server shows.
const CONTROL_PLANE: &[(&str, u16)] =
    &[("apiserver", 6443), ("etcd/server", 2379), ("etcd/peer", 2380), ("kubelet-server", 10250)];
const WORKER: &[(&str, u16)] = &[("kubelet-server", 10250)];

/// Permits a member to renew its certificates, and waits until all of them are new and its servers show them.
#[track_caller]
pub fn renew(network: &Network, claims: &Claims, machine: &Member) {
    let begun = Instant::now();
    let name = machine.name.as_str();
    let before = wait_for(&format!("the certificates of {name}"), PATIENCE, || {
        thread::sleep(Duration::from_secs(1));
        claims.reported(name).map(|text| certificates(&text)).filter(|all| !all.is_empty())
    });
    claims.permit_renewal(name);
    let after = wait_for(&format!("new certificates of {name}"), PATIENCE, || {
        thread::sleep(Duration::from_secs(1));
        let reported = claims.reported(name).filter(|text| text.starts_with("stage idle\n"))?;
        let now = certificates(&reported);
        let is_new = |(name, pem): (&String, &String)| now.get(name).is_some_and(|it| it != pem);
        before.iter().all(is_new).then_some(now)
    });
    let is_control_plane = after.contains_key("apiserver");
    let ports = if is_control_plane { CONTROL_PLANE } else { WORKER };
    for (certificate, port) in ports {
        wait_for(&format!("{name} to show its new {certificate}"), PATIENCE, || {
            thread::sleep(Duration::from_millis(500));
            (served(network, machine.address, *port)? == after[*certificate]).then_some(())
        });
    }
    eprintln!("{name} has {} new certificates after {:.1?}", after.len(), begun.elapsed());
}

/// The certificates in a report, by their names. Of a chain this is the first one.
fn certificates(report: &str) -> BTreeMap<String, String> {
    const END: &str = "-----END CERTIFICATE-----";
    let parts = report.split("\ncertificate ").skip(1);
    let read = |part: &str| {
        let (head, pem) = part.split_once('\n')?;
        let (name, _) = head.split_once(' ')?;
        let end = pem.find(END)? + END.len();
        Some((name.to_owned(), format!("{}\n", &pem[..end])))
    };
    parts.filter_map(read).collect()
}

/// The certificate that a server of a machine shows, without a certificate of the client.
fn served(network: &Network, address: IpAddr, port: u16) -> Option<String> {
    let command =
        format!("openssl s_client -connect {address}:{port} </dev/null 2>/dev/null | openssl x509");
    network.try_here(&["sh", "-c", &command])
}
