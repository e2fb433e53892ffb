//! A server that a user requests of Nova runs as a machine: it boots with its user data and answers at the addresses of Neutron and
//! Octavia.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use compat::wait::wait_for;
use real_clusters::{Cloud, fetch};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_server_is_a_machine_behind_real_addresses() {
    let Some(mut cloud) = Cloud::with_machines("alice") else { return };
    cloud.done("network create lan");
    cloud.done("subnet create lan --network lan --subnet-range 10.20.0.0/24");
    cloud.done("router create way-out");
    cloud.done("router set way-out --external-gateway public");
    cloud.done("router add subnet way-out lan");

    // Two equal servers, which differ only in the host name that Nova gives them.
    let user_data = Path::new(env!("CARGO_TARGET_TMPDIR")).join("servers.ign");
    fs::write(&user_data, ignition()).unwrap();
    let create = format!(
        "server create --flavor m1.tiny --image tiny --network lan --wait --user-data {}",
        user_data.display()
    );
    let first = cloud.value(&format!("{create} first"), "id");
    let second = cloud.value(&format!("{create} second"), "id");
    assert_eq!(
        cloud.machines().into_iter().collect::<BTreeSet<_>>(),
        BTreeSet::from([first.clone(), second.clone()])
    );

    let address = cloud.value("floating ip create public", "floating_ip_address");
    cloud.done(&format!("server add floating ip first {address}"));
    let url = format!("http://{address}:8080/");
    answers(&url, "first 1");

    cloud.done("server stop first");
    becomes(&mut cloud, "SHUTOFF");
    assert_eq!(fetch(&url), None);
    cloud.done("server start first");
    // The disk was kept, and Ignition did not run again.
    answers(&url, "first 2");

    balanced(&mut cloud, &first);

    cloud.done("loadbalancer delete --cascade --wait front");
    cloud.done("server delete --wait first second");
    let addresses = cloud.done("floating ip list -f value -c ID");
    cloud.done(&format!("floating ip delete {}", addresses.replace('\n', " ")));
    cloud.done("router remove subnet way-out lan");
    cloud.done("router delete way-out");
    cloud.done("network delete lan");
    assert_eq!(cloud.machines(), Vec::<String>::new());
    assert_eq!(cloud.json("port list"), json!([]));
}

/// Both servers answer in turns behind a load balancer. After one loses its power, Nova notices, and the other answers alone.
fn balanced(cloud: &mut Cloud, first: &str) {
    let vip =
        cloud.value("loadbalancer create --name front --vip-subnet-id lan --wait", "vip_port_id");
    cloud.done(
        "loadbalancer listener create --name http --protocol TCP --protocol-port 80 --wait front",
    );
    cloud.done(
        "loadbalancer pool create --name both --listener http --protocol TCP --lb-algorithm ROUND_ROBIN --wait",
    );
    cloud.done(
        "loadbalancer healthmonitor create --type TCP --delay 1 --timeout 1 --max-retries 1 --max-retries-down 1 --wait both",
    );
    for server in ["first", "second"] {
        let shown = cloud.json(&format!("server show {server}"));
        let address = shown["addresses"]["lan"][0].as_str().expect("it has an address");
        cloud.done(&format!(
            "loadbalancer member create --address {address} --protocol-port 8080 --wait both"
        ));
    }
    let address =
        cloud.value(&format!("floating ip create public --port {vip}"), "floating_ip_address");
    let url = format!("http://{address}/");
    let mut missing = BTreeSet::from(["first 2", "second 1"]);
    wait_for("both to answer", PATIENCE, || {
        let answer = fetch(&url)?;
        missing.remove(answer.trim());
        missing.is_empty().then_some(())
    });
    cloud.crash(first);
    let alone = |_| fetch(&url).is_some_and(|answer| answer.trim() == "second 1");
    wait_for("the second to answer alone", PATIENCE, || (0..6).all(alone).then_some(()));
    becomes(cloud, "SHUTOFF");
}

fn becomes(cloud: &mut Cloud, status: &str) {
    wait_for(status, PATIENCE, || {
        thread::sleep(Duration::from_secs(1));
        (cloud.value("server show first", "status") == status).then_some(())
    });
}

fn answers(url: &str, what: &str) {
    wait_for("an answer", PATIENCE, || (fetch(url)?.trim() == what).then_some(()));
}

/// A config for a machine that counts its boots and answers with its name and the count.
fn ignition() -> String {
    let serve =
        "read request; echo HTTP/1.0 200 OK; echo; echo $$(hostname) $$(wc -l </var/lib/boots)";
    json!({
        "ignition": {"version": "3.3.0"},
        "systemd": {"units": [
            {"name": "boot.service", "enabled": true, "contents": "[Service]\nType=oneshot\n\
                ExecStart=/bin/sh -c 'echo boot >>/var/lib/boots'\n[Install]\nWantedBy=multi-user.target\n"},
            {"name": "web.service", "enabled": true, "contents": format!("[Unit]\nAfter=boot.service\n[Service]\n\
                ExecStart=/usr/bin/socat TCP-LISTEN:8080,fork,reuseaddr SYSTEM:'{serve}'\nRestart=always\n\
                [Install]\nWantedBy=multi-user.target\n")},
        ]},
    })
    .to_string()
}
