//! Answers `GET /servers/{id}/diagnostics`: the hypervisor's counters of a server.

use serde_json::{Value, json};

use super::server::{ports, ready, server};
use crate::object::Kind;
use crate::request::{Answer, ApiAnswer, ApiRequest};
use crate::world::World;

/// By Nova's default policy only administrators may read diagnostics. The server must run.
pub(super) fn show(world: &World, asked: &ApiRequest, id: &str) -> ApiAnswer {
    asked.admin("os_compute_api:os-server-diagnostics")?;
    let one = server(world, asked, id)?;
    ready(one, "get_diagnostics", &["ACTIVE", "PAUSED", "SUSPENDED"])?;
    let flavor = world.store.get(Kind::Flavor, one.note("flavor"));
    let number = |field: &str| flavor.map(|flavor| flavor.number(field)).unwrap_or_default();
    // Guests use no CPU time.
    if !asked.since(48) {
        return Ok(Answer::ok(json!({
            "cpu0_time": 0, "memory": number("ram") << 10, "vda_errors": -1,
            "vda_read": 262_144, "vda_read_req": 112, "vda_write": 5_778_432, "vda_write_req": 488,
        })));
    }
    let cpu = |at| json!({"id": at, "time": 0, "utilisation": null});
    let cpus: Vec<Value> = (0..number("vcpus")).map(cpu).collect();
    let nics: Vec<Value> = ports(world, one)
        .map(|port| json!({
            "mac_address": port.text("mac_address"), "rx_octets": 2_070_139, "rx_errors": 0, "rx_drop": 0, "rx_packets": 26_701, "rx_rate": null,
            "tx_octets": 140_208, "tx_errors": 0, "tx_drop": 0, "tx_packets": 662, "tx_rate": null,
        }))
        .collect();
    Ok(Answer::ok(json!({
        "state": "running", "driver": "libvirt", "hypervisor": "kvm", "hypervisor_os": "linux", "uptime": one.born.elapsed().as_secs(),
        "config_drive": one.text("config_drive") == "True",
        "num_cpus": cpus.len(), "cpu_details": cpus, "num_nics": nics.len(), "nic_details": nics, "num_disks": 1,
        "disk_details": [{"read_bytes": 262_144, "read_requests": 112, "write_bytes": 5_778_432, "write_requests": 488, "errors_count": 0}],
        "memory_details": {"maximum": number("ram"), "used": number("ram")},
    })))
}
