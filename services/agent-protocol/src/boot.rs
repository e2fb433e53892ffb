//! What the conductor tells the agent on the kernel command line.

/// The names of kernel parameters.
pub mod parameter {
    /// Base URL of the API the agent calls, without `/v1`.
    pub const API_URL: &str = "ipa-api-url";
    /// Where to post the inventory; absent unless the boot is for inspection.
    pub const INSPECTION_CALLBACK_URL: &str = "ipa-inspection-callback-url";
    /// The secret shared with the conductor for this boot.
    pub const AGENT_TOKEN: &str = "ipa-agent-token";
    /// The port of the agent's own API; 9999 unless told.
    pub const LISTEN_PORT: &str = "ipa-listen-port";
    /// The network interface that booted: dashes or colons between octets, perhaps with a leading `01-`.
    pub const BOOT_INTERFACE: &str = "BOOTIF";
    /// What to look for beyond the inventory, by name and comma: `pci-devices,lldp,logs`.
    pub const INSPECTION_COLLECTORS: &str = "ipa-inspection-collectors";
    /// `1`: the API's certificate is not checked.
    pub const INSECURE: &str = "ipa-insecure";
    /// Ours: `ADDRESS/PREFIX[,GATEWAY]` for a boot without DHCP.
    pub const STATIC_ADDRESS: &str = "bedplate.address";
    /// Ours: the least size in MiB of a root disk that no hint names; 4096 unless told.
    pub const ROOT_DISK_MINIMUM: &str = "bedplate.root-disk-minimum";
}

/// The parameters an agent takes from its kernel command line. Unknown words are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelParameters {
    /// `ipa-api-url`.
    pub api_url: Option<String>,
    /// `ipa-inspection-callback-url`.
    pub inspection_callback_url: Option<String>,
    /// `ipa-agent-token`.
    pub agent_token: Option<String>,
    /// `ipa-listen-port`.
    pub listen_port: Option<u16>,
    /// `BOOTIF`.
    pub boot_interface: Option<hardware::MacAddress>,
    /// `ipa-inspection-collectors`.
    pub inspection_collectors: Vec<String>,
    /// `ipa-insecure`.
    pub insecure: bool,
    /// `bedplate.address`.
    pub static_address: Option<String>,
    /// `bedplate.root-disk-minimum`, in MiB.
    pub root_disk_minimum_mib: Option<u64>,
}

impl KernelParameters {
    /// Reads a kernel command line. Later words win.
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
                parameter::INSECURE => found.insecure = matches!(value, "1" | "true" | "True"),
                parameter::STATIC_ADDRESS => found.static_address = Some(value.to_owned()),
                parameter::ROOT_DISK_MINIMUM => found.root_disk_minimum_mib = value.parse().ok(),
                _ => {}
            }
        }
        found
    }
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
        assert!(found.insecure);
        assert_eq!(found.root_disk_minimum_mib, Some(64));
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
