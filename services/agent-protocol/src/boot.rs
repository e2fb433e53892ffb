//! Kernel parameters by which the conductor configures the agent.

/// The names of kernel parameters.
pub mod parameter {
    /// Base URL of the API that the agent calls, without `/v1`.
    pub const API_URL: &str = "ipa-api-url";
    /// URL for posting the inventory; absent unless the boot is for inspection.
    pub const INSPECTION_CALLBACK_URL: &str = "ipa-inspection-callback-url";
    /// The secret that agent and conductor share for this boot.
    pub const AGENT_TOKEN: &str = "ipa-agent-token";
    /// The port of the agent's own API; 9999 by default.
    pub const LISTEN_PORT: &str = "ipa-listen-port";
    /// MAC address of the network interface that booted: dashes or colons between octets, perhaps with a leading `01-`.
    pub const BOOT_INTERFACE: &str = "BOOTIF";
    /// Collectors to run beyond the inventory, separated by commas: `pci-devices,lldp,logs`.
    pub const INSPECTION_COLLECTORS: &str = "ipa-inspection-collectors";
    /// `1` makes the inventory contain the values that each interface's neighbour sends by LLDP.
    pub const COLLECT_LLDP: &str = "ipa-collect-lldp";
    /// `1` switches off the check of the API's certificate.
    pub const INSECURE: &str = "ipa-insecure";
    /// `0` makes the agent erase also the file systems of clusters, such as VMFS.
    pub const GUARD_SPECIAL_FILE_SYSTEMS: &str = "ipa-guard-special-filesystems";
    /// Bedplate only: `ADDRESS/PREFIX[,GATEWAY]` for a boot without DHCP.
    pub const STATIC_ADDRESS: &str = "bedplate.address";
    /// Bedplate only: `NETWORK/PREFIX-GATEWAY`, separated by commas, for a boot without DHCP.
    pub const STATIC_ROUTES: &str = "bedplate.routes";
    /// Bedplate only: addresses of DNS servers, separated by commas.
    pub const DNS: &str = "bedplate.dns";
    /// Bedplate only: the largest size of a packet in bytes.
    pub const MTU: &str = "bedplate.mtu";
    /// Bedplate only: the smallest size in MiB of a root disk that no hint names; 4096 by default.
    pub const ROOT_DISK_MINIMUM: &str = "bedplate.root-disk-minimum";
}

/// The parameters that an agent takes from its kernel command line. Unknown parameters are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelParameters {
    pub api_url: Option<String>,
    pub inspection_callback_url: Option<String>,
    pub agent_token: Option<String>,
    pub listen_port: Option<u16>,
    pub boot_interface: Option<hardware::MacAddress>,
    pub inspection_collectors: Vec<String>,
    pub collect_lldp: bool,
    pub insecure: bool,
    /// Whether the file systems of clusters are erased.
    pub erases_clusters: bool,
    pub static_address: Option<String>,
    /// Size of the disk in MiB.
    pub root_disk_minimum_mib: Option<u64>,
}

impl KernelParameters {
    /// Reads a kernel command line. If a parameter occurs twice, the last value counts.
    pub fn parse(line: &str) -> Self {
        let mut found = KernelParameters::default();
        for (key, value) in line.split_ascii_whitespace().filter_map(|word| word.split_once('=')) {
            match key {
                parameter::API_URL => found.api_url = Some(value.to_owned()),
                parameter::INSPECTION_CALLBACK_URL => {
                    found.inspection_callback_url = Some(value.to_owned())
                }
                parameter::AGENT_TOKEN => found.agent_token = Some(value.to_owned()),
                parameter::LISTEN_PORT => found.listen_port = value.parse().ok(),
                parameter::BOOT_INTERFACE => {
                    // pxelinux puts the ARP hardware type before the address: 01-52-54-…
                    let bare =
                        if value.len() == 20 { value.get(3..).unwrap_or(value) } else { value };
                    found.boot_interface = bare.parse().ok();
                }
                parameter::INSPECTION_COLLECTORS => {
                    found.inspection_collectors = value.split(',').map(str::to_owned).collect()
                }
                parameter::COLLECT_LLDP => found.collect_lldp = is_true(value),
                parameter::INSECURE => found.insecure = is_true(value),
                parameter::GUARD_SPECIAL_FILE_SYSTEMS => found.erases_clusters = is_false(value),
                parameter::STATIC_ADDRESS => found.static_address = Some(value.to_owned()),
                parameter::ROOT_DISK_MINIMUM => found.root_disk_minimum_mib = value.parse().ok(),
                _ => {}
            }
        }
        found
    }
}

/// Whether ironic-python-agent reads the value of a switch as true.
fn is_true(value: &str) -> bool {
    matches!(value, "1" | "true" | "True")
}

/// Whether ironic-python-agent reads the value of a switch as false.
fn is_false(value: &str) -> bool {
    matches!(&*value.to_ascii_lowercase(), "0" | "false" | "no" | "off")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_parameters_of_a_deployment_boot_are_read() {
        let line = "console=ttyS0 ipa-api-url=http://10.0.0.1:6386 ipa-agent-token=s3cret BOOTIF=01-52-54-00-78-00-01 quiet";
        let found = KernelParameters::parse(line);
        assert_eq!(found.api_url.as_deref(), Some("http://10.0.0.1:6386"));
        assert_eq!(found.agent_token.as_deref(), Some("s3cret"));
        assert_eq!(
            found.boot_interface.map(|mac| mac.to_string()).as_deref(),
            Some("52:54:00:78:00:01")
        );
        assert_eq!(found.inspection_callback_url, None);
    }

    #[test]
    fn the_parameters_of_an_inspection_boot_are_read() {
        let found = KernelParameters::parse(
            "ipa-inspection-collectors=default,lldp ipa-insecure=1 bedplate.root-disk-minimum=64",
        );
        assert_eq!(found.inspection_collectors, ["default", "lldp"]);
        assert!(found.insecure && !found.erases_clusters);
        assert_eq!(found.root_disk_minimum_mib, Some(64));
    }

    #[test]
    fn every_parameter_has_its_own_field() {
        let found = KernelParameters::parse(
            "ipa-api-url=http://10.0.0.1:6386 ipa-inspection-callback-url=http://10.0.0.1:6386/v1/continue_inspection \
             ipa-agent-token=s3cret ipa-listen-port=9998 BOOTIF=52:54:00:78:00:01 ipa-inspection-collectors=lldp \
             ipa-collect-lldp=1 ipa-insecure=True ipa-guard-special-filesystems=False bedplate.address=10.0.0.20/24,10.0.0.254 bedplate.root-disk-minimum=64",
        );
        assert_eq!(
            found,
            KernelParameters {
                api_url: Some("http://10.0.0.1:6386".to_owned()),
                inspection_callback_url: Some(
                    "http://10.0.0.1:6386/v1/continue_inspection".to_owned()
                ),
                agent_token: Some("s3cret".to_owned()),
                listen_port: Some(9998),
                boot_interface: Some(hardware::MacAddress::new([0x52, 0x54, 0, 0x78, 0, 1])),
                inspection_collectors: vec!["lldp".to_owned()],
                collect_lldp: true,
                insecure: true,
                erases_clusters: true,
                static_address: Some("10.0.0.20/24,10.0.0.254".to_owned()),
                root_disk_minimum_mib: Some(64),
            }
        );
    }

    proptest! {
        #[test]
        fn no_line_panics(line: String) {
            KernelParameters::parse(&line);
        }

        #[test]
        fn no_boot_interface_panics(value in "\\PC{0,24}") {
            KernelParameters::parse(&format!("BOOTIF={value}"));
        }
    }
}
