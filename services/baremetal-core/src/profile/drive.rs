//! Builds the parts of a hypervisor's config drive from its profile.

use hardware::MacAddress;
use ignition::build;
use serde_json::{Map, Value, json};

use super::files::{MachineFile, TARGET, bridge_commands, files};
use super::kernel::{arguments, grub_file};
use super::{HypervisorSettings, Profile, ProfileKind};
use crate::NodeUuid;

/// The machine that becomes a hypervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HypervisorMachine<'a> {
    pub id: NodeUuid,
    /// The name of the compute host in the cloud.
    pub host: &'a str,
    /// The MAC addresses of the machine's ports, the one it boots from first.
    pub macs: &'a [MacAddress],
}

/// Returns the parts of the machine's config drive: `meta_data`, `network_data`, `user_data`. The parts contain secrets.
pub fn config_drive(profile: &Profile, guest: &HypervisorMachine<'_>) -> Map<String, Value> {
    let meta = json!({"uuid": guest.id, "name": guest.host, "hostname": guest.host});
    let files = files(&profile.settings, guest.id, guest.host);
    let user_data = match profile.kind {
        ProfileKind::CloudInit => cloud_config(&profile.settings, guest, &files),
        ProfileKind::Ignition => ignition_config(&profile.settings, guest, files),
    };
    let mut parts = Map::new();
    parts.insert("meta_data".to_owned(), meta);
    if !guest.macs.is_empty() {
        parts.insert("network_data".to_owned(), network_data(guest.macs));
    }
    parts.insert("user_data".to_owned(), Value::String(user_data));
    parts
}

/// Returns OpenStack's `network_data.json`: all ports have names, and the first port uses DHCP.
fn network_data(macs: &[MacAddress]) -> Value {
    let link = |(at, mac): (usize, &MacAddress)| json!({"id": format!("port{at}"), "type": "phy", "ethernet_mac_address": mac.to_string()});
    let links: Vec<Value> = macs.iter().enumerate().map(link).collect();
    json!({
        "links": links,
        "networks": [{"id": "network0", "type": "ipv4_dhcp", "link": "port0"}],
        "services": [],
    })
}

/// Returns cloud-init's `#cloud-config`. The document is JSON, which is also YAML, so that no value needs YAML's own quoting.
fn cloud_config(
    settings: &HypervisorSettings,
    guest: &HypervisorMachine<'_>,
    files: &[MachineFile],
) -> String {
    let mut written: Vec<Value> = files
        .iter()
        .map(|file| {
            json!({
                "path": file.path, "owner": format!("root:{}", file.group),
                "permissions": format!("0{:o}", file.mode), "content": file.contents,
            })
        })
        .collect();
    let arguments = arguments(settings);
    if !arguments.is_empty() {
        written.push(json!({
            "path": "/boot/efi/EFI/debian/arguments.cfg", "content": grub_file(&arguments),
        }));
    }
    let mut commands = bridge_commands(settings);
    let start = ["systemctl", "start", "--no-block", TARGET];
    commands.push(start.map(str::to_owned).to_vec());
    let mut config = json!({
        "hostname": guest.host,
        "preserve_hostname": false,
        "write_files": written,
        "runcmd": commands,
    });
    if !settings.ssh_keys.is_empty() {
        config["ssh_authorized_keys"] = json!(settings.ssh_keys);
    }
    format!("#cloud-config\n{config}\n")
}

fn ignition_config(
    settings: &HypervisorSettings,
    guest: &HypervisorMachine<'_>,
    files: Vec<MachineFile>,
) -> String {
    let mut all = vec![build::file(
        "/etc/hostname",
        0o644,
        build::inline(format!("{}\n", guest.host).as_bytes()),
    )];
    all.extend(files.into_iter().map(|file| {
        build::owned_by_group(
            build::file(file.path, file.mode, build::inline(file.contents.as_bytes())),
            file.group,
        )
    }));
    let mut units = vec![build::enabled(TARGET)];
    let bridges = bridge_commands(settings);
    if !bridges.is_empty() {
        units.push(build::unit("bedplate-bridges.service", &bridges_unit(&bridges)));
    }
    let mut config = build::config(Vec::new(), all, units);
    build::kernel_arguments(&mut config, arguments(settings));
    if let Some(base) = &settings.base_ignition {
        build::merge_from(&mut config, build::remote(&base.url, &base.sha256));
    }
    if !settings.ssh_keys.is_empty() {
        build::authorized_keys(&mut config, "core", &settings.ssh_keys);
    }
    ignition::json(&config)
}

/// Returns the unit that creates the bridges before the services start. No word of the commands has a blank, a quote or a `%`, so none
/// needs quoting.
fn bridges_unit(commands: &[Vec<String>]) -> String {
    let lines: Vec<String> =
        commands.iter().map(|words| format!("ExecStart=/usr/bin/{}", words.join(" "))).collect();
    format!(
        "[Unit]\nDescription=Bridges to the physical networks\nBefore={TARGET}\nAfter=openvswitch.service\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\n{}\n\n[Install]\nRequiredBy={TARGET}\n",
        lines.join("\n")
    )
}
