//! Thousands of machines in one process, certificates, and invalid specs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bmc_emulator::{BmcKind, Machine, serve};
use futures::StreamExt;
use serde_json::Value;

use crate::rack::{PASSWORD, PROFILES, TestMachine, USER, client, spec};

const MACHINES: usize = 2000;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[tokio::test]
async fn two_thousand_machines_fit_in_one_process() {
    let before = resident_kib();
    let machines: Vec<Machine> = (0..MACHINES)
        .map(|number| {
            let kind = if number % 2 == 0 { BmcKind::Redfish } else { BmcKind::Ipmi };
            Machine::new(spec(&format!("m{number}"), kind, PROFILES[number % PROFILES.len()]))
        })
        .collect();
    let served = serve(machines).await.unwrap();
    let idle = resident_kib();

    // One client without kept connections, so that little of its memory is counted.
    let client = client(None);
    let redfish: Vec<SocketAddr> =
        served.machines.iter().filter_map(|machine| machine.redfish).collect();
    assert_eq!(redfish.len(), MACHINES / 2);
    let answered = futures::stream::iter(redfish)
        .map(|address| {
            let request = client
                .get(format!("http://{address}/redfish/v1/Systems"))
                .basic_auth(USER, Some(PASSWORD));
            async move {
                let systems: Value = request
                    .header("connection", "close")
                    .send()
                    .await
                    .unwrap()
                    .json()
                    .await
                    .unwrap();
                usize::from(systems["Members@odata.count"] == 1)
            }
        })
        .buffer_unordered(64)
        .fold(0, async |sum, one| sum + one)
        .await;
    assert_eq!(answered, MACHINES / 2);

    let after = resident_kib();
    println!(
        "{MACHINES} machines: {before} KiB before, {idle} KiB idle, {after} KiB after each was asked"
    );
    assert!(idle - before < MACHINES as u64 * 12, "more than 12 KiB each: {} KiB", idle - before);
    assert!(threads() < 16, "{} threads", threads());
}

#[tokio::test]
async fn one_certificate_covers_every_address() {
    let machines: Vec<Machine> = (1..=300u16)
        .map(|number| {
            let mut spec = spec(&format!("m{number}"), BmcKind::Redfish, "generic");
            let [high, low] = number.to_be_bytes();
            spec.bmc.address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 77, high, low)), 0);
            spec.bmc.tls = true;
            Machine::new(spec)
        })
        .collect();
    let served = serve(machines).await.unwrap();
    for machine in [&served.machines[0], &served.machines[299]] {
        let client = client(machine.certificate_pem.as_deref());
        let url = format!("https://{}/redfish/v1/", machine.redfish.unwrap());
        assert_eq!(client.get(url).send().await.unwrap().status(), 200);
    }
    assert_eq!(served.certificate_pem.matches("BEGIN CERTIFICATE").count(), 2);
}

#[tokio::test]
async fn a_machine_may_have_a_certificate_of_its_own() {
    let with_own = |name: &str, own| {
        let mut spec = spec(name, BmcKind::Redfish, "generic");
        spec.bmc.tls = true;
        spec.bmc.own_certificate = own;
        Machine::new(spec)
    };
    let served =
        serve(vec![with_own("a", false), with_own("b", true), with_own("c", true)]).await.unwrap();
    let pem = |index: usize| served.machines[index].certificate_pem.clone().unwrap();
    assert!(pem(0) != pem(1) && pem(1) != pem(2) && pem(0) != pem(2));
    let wrong = client(Some(&pem(1)));
    let url = format!("https://{}/redfish/v1/", served.machines[2].redfish.unwrap());
    assert!(wrong.get(url).send().await.unwrap_err().is_connect());
}

#[tokio::test]
async fn an_invalid_spec_is_named() {
    let refused =
        serve(vec![Machine::new(spec("r9", BmcKind::Redfish, "acme"))]).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("machine r9: unknown profile \"acme\"; known profiles: generic, "),
        "{refused}"
    );
    let mut long = spec("r9", BmcKind::Ipmi, "generic");
    long.bmc.password = "a password of more than twenty bytes".to_owned();
    let refused = serve(vec![Machine::new(long)]).await.unwrap_err();
    assert!(refused.to_string().contains("20 at most"), "{refused}");
}

#[tokio::test]
async fn nothing_answers_after_served_is_dropped() {
    let bench = TestMachine::redfish("generic").await;
    let (url, client) = (bench.url("/redfish/v1/"), bench.client.clone());
    assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
    drop(bench);
    tokio::task::yield_now().await;
    assert!(client.get(&url).send().await.is_err());
}
