//! PCI devices, including graphics processors.

use agent_protocol::PciDevice;

use crate::root::Root;

pub(super) fn devices(root: &Root) -> Vec<PciDevice> {
    let device = |bus: String| {
        let field = |name: &str| {
            let text = root.text(format!("/sys/bus/pci/devices/{bus}/{name}")).unwrap_or_default();
            text.strip_prefix("0x").unwrap_or(&text).to_owned()
        };
        PciDevice {
            vendor_id: field("vendor"),
            product_id: field("device"),
            class: field("class"),
            revision: field("revision"),
            numa_node_id: field("numa_node").parse().ok().filter(|node| *node >= 0),
            bus,
        }
    };
    root.names("/sys/bus/pci/devices").into_iter().map(device).collect()
}

/// Returns the last PCI address in a sysfs path: `0000:01:00.0`.
pub(super) fn address_in(path: &str) -> Option<&str> {
    path.rsplit('/').find(|part| {
        let bytes = part.as_bytes();
        bytes.len() == 12
            && bytes[4] == b':'
            && bytes[7] == b':'
            && bytes[10] == b'.'
            && bytes.iter().filter(|byte| byte.is_ascii_hexdigit()).count() == 9
    })
}
