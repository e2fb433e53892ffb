//! Thousands of servers in one process.

use std::time::{Duration, Instant};

use openstack_emulator::{Hypervisor, Kind, Settings, Times};
use serde_json::{Value, json};

use crate::somebody::alice;

const SERVERS: usize = 3000;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn three_thousand_servers_boot_in_one_process() {
    let host = |number| Hypervisor {
        name: format!("h{number}"),
        zone: "nova".into(),
        vcpus: 64,
        memory_mb: 1 << 20,
        disk_gb: 10_000,
        gpus: 0,
    };
    let mut settings = Settings {
        hypervisors: (0..20).map(host).collect(),
        times: Times { server_build: 10, ..Times::default() },
        ..Settings::default()
    };
    for name in ["instances", "cores", "ram", "port"] {
        settings.quotas.insert(name.into(), -1);
    }
    let (emulator, alice) = alice(settings).await;
    let (network, _) = alice.network("10.0.0.0/16").await;
    let before = resident_kib();
    let begun = Instant::now();
    for batch in 0..SERVERS / 100 {
        let server = json!({
            "name": format!("b{batch}"), "flavorRef": "1", "imageRef": alice.image(), "networks": [{"uuid": network}], "min_count": 100,
            "user_data": "eyJpZ25pdGlvbiI6IHsidmVyc2lvbiI6ICIzLjMuMCJ9fQ==", "tags": ["many"],
        });
        alice.make("/compute/v2.1/servers", json!({"server": server})).await;
    }
    let asked = begun.elapsed();
    let joined =
        |cloud: &openstack_emulator::Cloud| (cloud.guests().len() == SERVERS).then_some(());
    tokio::time::timeout(Duration::from_secs(120), emulator.cloud.wait_until(joined))
        .await
        .expect("all boot");
    let booted = begun.elapsed();
    let each = (resident_kib() - before) / u64::try_from(SERVERS).unwrap();
    println!(
        "{SERVERS} servers with a port each: asked for in {asked:.1?}, booted in {booted:.1?}, {each} KiB each"
    );
    assert!(each < 40, "{each} KiB for a server");

    let mut path = "/compute/v2.1/servers/detail?tags=many".to_owned();
    let (mut seen, mut pages) = (0, 0);
    loop {
        let page: Value = alice.get(&path).await;
        let servers = page["servers"].as_array().unwrap();
        seen += servers.iter().filter(|server| server["status"] == "ACTIVE").count();
        pages += 1;
        let Some(next) = page["servers_links"][0]["href"].as_str() else { break };
        path = next.strip_prefix(&emulator.cloud.url()).unwrap().to_owned();
    }
    assert_eq!((seen, pages), (SERVERS, 3));
    assert_eq!(
        emulator.cloud.count_of(Kind::Port, &alice.project),
        SERVERS + 1,
        "and the network's own"
    );
}
