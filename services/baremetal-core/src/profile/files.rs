//! Writes the configuration files of a hypervisor's services.
//!
//! Paths and groups have to match the image, see `images/hypervisor`. oslo.config reads `NAME.conf.d` after `NAME.conf`.

use std::fmt::Write;

use serde_json::json;

use crate::NodeUuid;

use super::{CpuMode, HypervisorSettings, KeystoneSettings, Storage, Virtualization};

pub(super) struct MachineFile {
    pub(super) path: &'static str,
    pub(super) group: &'static str,
    /// The permission bits.
    pub(super) mode: u16,
    pub(super) contents: String,
}

/// The systemd target that starts the image's services after their settings were written.
pub(super) const TARGET: &str = "bedplate-hypervisor.target";

/// Returns the configuration files of Nova and Neutron for the host of this name. The services find the machine's addresses themselves.
///
/// The hypervisor keeps the node's id in every installation: a nova-compute whose host is known under another id does not start (Nova's
/// manual, "Compute service node identification").
pub(super) fn files(settings: &HypervisorSettings, id: NodeUuid, host: &str) -> Vec<MachineFile> {
    vec![
        MachineFile {
            path: "/etc/nova/nova.conf.d/50-bedplate.conf",
            group: "nova",
            mode: 0o640,
            contents: nova(settings, host),
        },
        MachineFile {
            path: "/etc/neutron/neutron.conf.d/50-bedplate.conf",
            group: "neutron",
            mode: 0o640,
            contents: neutron(settings, host),
        },
        MachineFile {
            path: "/var/lib/nova/compute_id",
            group: "nova",
            mode: 0o644,
            contents: format!("{id}\n"),
        },
    ]
}

/// Returns the commands that create the bridges and add their interfaces. Every command may be repeated without harm.
pub(super) fn bridge_commands(settings: &HypervisorSettings) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut all = Vec::new();
    for bridge in settings.neutron.bridge_mappings.values() {
        all.push(words(&["ovs-vsctl", "--may-exist", "add-br", &bridge.bridge]));
        if let Some(interface) = &bridge.interface {
            all.push(words(&["ovs-vsctl", "--may-exist", "add-port", &bridge.bridge, interface]));
        }
    }
    all
}

fn nova(settings: &HypervisorSettings, host: &str) -> String {
    let mut ini = Ini::default();
    ini.section("DEFAULT").set("host", host);
    ini.set("transport_url", settings.message_bus.transport_url.expose());
    let keystone = &settings.keystone;
    ini.section("service_user").set("send_service_user_token", "true").credentials(keystone);
    ini.section("placement").credentials(keystone);
    ini.section("neutron").credentials(keystone);
    if let Some(region) = &keystone.region {
        for (section, key) in [
            ("placement", "region_name"),
            ("neutron", "region_name"),
            ("glance", "region_name"),
            ("cinder", "os_region_name"),
        ] {
            ini.section(section).set(key, region);
        }
    }
    ini.section("libvirt").set(
        "virt_type",
        match settings.compute.virtualization {
            Virtualization::Kvm => "kvm",
            Virtualization::Qemu => "qemu",
        },
    );
    if let Some(mode) = settings.compute.cpu_mode {
        let mode = match mode {
            CpuMode::HostModel => "host-model",
            CpuMode::HostPassthrough => "host-passthrough",
            CpuMode::None => "none",
        };
        ini.set("cpu_mode", mode);
    }
    match &settings.storage {
        Storage::Qcow2 => ini.set("images_type", "qcow2"),
        Storage::Raw => ini.set("images_type", "raw"),
        Storage::Lvm(group) => ini.set("images_type", "lvm").set("images_volume_group", group),
    };
    if !settings.passthrough.is_empty() {
        ini.section("pci");
        for device in &settings.passthrough {
            let (vendor, product) = (&device.vendor_id, &device.product_id);
            let spec = json!({"vendor_id": vendor, "product_id": product});
            let alias = json!({
                "vendor_id": vendor, "product_id": product, "device_type": "type-PCI", "name": device.alias,
            });
            ini.set("device_spec", &spec.to_string()).set("alias", &alias.to_string());
        }
    }
    ini.0
}

fn neutron(settings: &HypervisorSettings, host: &str) -> String {
    let mut ini = Ini::default();
    ini.section("DEFAULT").set("host", host);
    ini.set("transport_url", settings.message_bus.transport_url.expose());
    let mappings = &settings.neutron.bridge_mappings;
    if !mappings.is_empty() {
        let pairs: Vec<String> =
            mappings.iter().map(|(network, to)| format!("{network}:{}", to.bridge)).collect();
        ini.section("ovs").set("bridge_mappings", &pairs.join(","));
    }
    if settings.neutron.tunnels {
        ini.section("agent").set("tunnel_types", "vxlan");
    }
    ini.0
}

/// A file in the format of oslo.config. A section may occur twice; oslo.config merges its options.
#[derive(Default)]
struct Ini(String);

impl Ini {
    fn section(&mut self, name: &str) -> &mut Self {
        let blank = if self.0.is_empty() { "" } else { "\n" };
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.0, "{blank}[{name}]");
        self
    }

    /// Adds an option. A `$` starts a reference to another option and therefore has to be doubled (oslo.config, "Option Value
    /// Interpolation").
    fn set(&mut self, key: &str, value: &str) -> &mut Self {
        let _ = writeln!(self.0, "{key} = {}", value.replace('$', "$$"));
        self
    }

    fn credentials(&mut self, keystone: &KeystoneSettings) -> &mut Self {
        self.set("auth_type", "password")
            .set("auth_url", &keystone.auth_url)
            .set("username", &keystone.username)
            .set("password", keystone.password.expose())
            .set("user_domain_name", &keystone.user_domain)
            .set("project_name", &keystone.project)
            .set("project_domain_name", &keystone.project_domain)
    }
}
