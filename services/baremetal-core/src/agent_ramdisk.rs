//! The ramdisk of a single node: the kernel, the ramdisk or the ISO image with an agent that replace the configured ones, and the kernel
//! parameters of its boots.
//!
//! The keys are Ironic's: `deploy_kernel`, `deploy_ramdisk` and `deploy_iso` of `driver_info`, and the same with `rescue` for a rescue
//! system. iPXE boots a kernel and a ramdisk, a virtual CD drive boots an ISO image.

use hardware::CpuArchitecture;
use serde_json::{Map, Value};

use crate::image_url::{check_ipxe_url, check_url};
use crate::unheeded::{check_medium_keys, check_network_boot_keys};
use crate::{BootInterface, Node, RequestRefused, State};

/// The kernel parameters of a node, in `driver_info` and in `instance_info`.
const PARAMETERS: &str = "kernel_append_params";

/// The key of `driver_info` with the URL at which the BMC reaches the listener for machines.
const EXTERNAL_URL: &str = "external_http_url";

/// The word in the kernel parameters of a node that stands for the configured parameters.
const DEFAULT: &str = "%default%";

/// The keys of `driver_info` that nodes of every driver with a machine have, with their descriptions. None of them is required.
pub const BOOT_PROPERTIES: [(&str, &str); 9] = [
    (
        "deploy_kernel",
        "URL of a kernel that iPXE boots with deploy_ramdisk instead of the configured one.",
    ),
    ("deploy_ramdisk", "URL of a ramdisk with an agent, which iPXE boots with deploy_kernel."),
    ("deploy_iso", "URL of an ISO image with an agent that redfish-virtual-media boots."),
    ("rescue_kernel", "Like deploy_kernel, for a rescue system."),
    ("rescue_ramdisk", "Like deploy_ramdisk, for a rescue system."),
    ("rescue_iso", "Like deploy_iso, for a rescue system."),
    (
        EXTERNAL_URL,
        "URL at which the BMC reaches the service for the virtual CD, instead of the configured one.",
    ),
    (
        PARAMETERS,
        "Kernel parameters instead of the configured ones, for which %default% stands among them.",
    ),
    (
        "force_persistent_boot_device",
        "Always or Never makes each boot device last for all boots or for one; Default leaves it to the service.",
    ),
];

/// A kernel and a ramdisk with an agent, as http URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentKernel {
    pub kernel: String,
    pub ramdisk: String,
}

/// A word of the kernel parameters of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelWord {
    /// All parameters of the service's configuration.
    Configured,
    /// A parameter with or without a value.
    Parameter { key: String, value: Option<String> },
}

impl Node {
    /// Returns whether the agent gets its token when it looks up its node: somebody else boots the ramdisk, or the node has an ISO image of
    /// its own, into which the service writes nothing.
    pub fn is_booted_by_others(&self) -> bool {
        match self.boot_interface() {
            BootInterface::Fake => true,
            BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia => {
                self.agent_iso().is_some()
            }
            BootInterface::Ipxe | BootInterface::HttpIpxe => false,
        }
    }

    /// Returns the URL of the node's own ISO image with an agent.
    pub fn agent_iso(&self) -> Option<&str> {
        text(&self.driver_info, &self.agent_key("iso"))
    }

    /// Returns the URL at which the node's BMC reaches the listener for machines, if it is another one than the machine's.
    pub fn external_url(&self) -> Option<&str> {
        text(&self.driver_info, EXTERNAL_URL)
    }

    /// Returns the node's own kernel and ramdisk with an agent, if the node has both.
    pub fn agent_kernel(&self) -> Option<AgentKernel> {
        let of = |part| text(&self.driver_info, &self.agent_key(part)).map(str::to_owned);
        Some(AgentKernel { kernel: of("kernel")?, ramdisk: of("ramdisk")? })
    }

    /// Returns the architecture of the node's processors, if it is known and machines of it can be booted.
    pub fn cpu_architecture(&self) -> Option<CpuArchitecture> {
        CpuArchitecture::from_name(text(&self.properties, "cpu_arch")?)
    }

    /// Returns the node's own kernel parameters, or `None` if the node uses the configured ones. Those of `instance_info` come first, as in
    /// Ironic.
    pub fn kernel_words(&self) -> Option<Vec<KernelWord>> {
        let given = [&self.instance_info, &self.driver_info].map(|info| info.get(PARAMETERS));
        let line = given.into_iter().flatten().find_map(Value::as_str)?;
        Some(line.split_ascii_whitespace().map(word).collect())
    }

    /// Returns the key of `driver_info` with a part of the ramdisk that the node boots in its state.
    fn agent_key(&self, part: &str) -> String {
        let use_of = match self.provision_state {
            State::Rescuing | State::RescueWait => "rescue",
            State::Enroll
            | State::Verifying
            | State::Manageable
            | State::Inspecting
            | State::InspectWait
            | State::InspectFailed
            | State::Cleaning
            | State::CleanWait
            | State::CleanFailed
            | State::CleanHold
            | State::Available
            | State::Deploying
            | State::DeployWait
            | State::DeployFailed
            | State::DeployHold
            | State::Active
            | State::Servicing
            | State::ServiceWait
            | State::ServiceFailed
            | State::ServiceHold
            | State::Rescued
            | State::RescueFailed
            | State::Unrescuing
            | State::UnrescueFailed
            | State::Deleting
            | State::Error
            | State::Adopting
            | State::AdoptFailed => "deploy",
        };
        format!("{use_of}_{part}")
    }
}

/// Checks that the node's own ramdisk, if it has one, can be booted by its boot interface.
pub fn check_agent_ramdisk(node: &Node) -> Result<(), RequestRefused> {
    let find = |part| {
        let key = node.agent_key(part);
        let value = node.driver_info.get(&key).filter(|value| !value.is_null()).cloned();
        (key, value)
    };
    match node.boot_interface() {
        BootInterface::Fake => Ok(()),
        boot @ (BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia) => {
            check_medium_keys(node)?;
            if let Some(url) = node.driver_info.get(EXTERNAL_URL).filter(|url| !is_empty(url)) {
                checked(EXTERNAL_URL, url, check_url)?;
            }
            match (find("iso"), find("kernel"), find("ramdisk")) {
                ((key, Some(_)), _, _) if !node.network_data.is_empty() => {
                    let problem = format!("the ISO image of {key} takes no configuration");
                    Err(RequestRefused::Field { field: "network_data".to_owned(), problem })
                }
                ((key, Some(iso)), _, _) => checked(&key, &iso, check_url),
                ((iso, None), (key, Some(_)), _) | ((iso, None), _, (key, Some(_))) => {
                    let problem =
                        format!("{} boots an ISO image; set {iso} instead", boot.as_str());
                    Err(refuse(&key, problem))
                }
                _ => Ok(()),
            }
        }
        BootInterface::Ipxe | BootInterface::HttpIpxe => {
            check_network_boot_keys(node)?;
            match (find("kernel"), find("ramdisk")) {
                ((_, None), (_, None)) => Ok(()),
                ((kernel_key, Some(kernel)), (ramdisk_key, Some(ramdisk))) => {
                    checked(&kernel_key, &kernel, check_ipxe_url)?;
                    checked(&ramdisk_key, &ramdisk, check_ipxe_url)
                }
                ((missing, None), (given, Some(_))) | ((given, Some(_)), (missing, None)) => {
                    Err(refuse(&missing, format!("missing, because the node has a {given}")))
                }
            }
        }
    }
}

fn checked(
    key: &str,
    value: &Value,
    check: fn(&str) -> Result<(), &'static str>,
) -> Result<(), RequestRefused> {
    let url = value.as_str().ok_or_else(|| refuse(key, "must be text".to_owned()))?;
    check(url).map_err(|problem| refuse(key, problem.to_owned()))
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == ""
}

fn refuse(key: &str, problem: String) -> RequestRefused {
    RequestRefused::Field { field: format!("driver_info.{key}"), problem }
}

fn text<'a>(info: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    info.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn word(word: &str) -> KernelWord {
    if word == DEFAULT {
        return KernelWord::Configured;
    }
    match word.split_once('=') {
        Some((key, value)) => {
            KernelWord::Parameter { key: key.to_owned(), value: Some(value.to_owned()) }
        }
        None => KernelWord::Parameter { key: word.to_owned(), value: None },
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid};

    fn node(boot: BootInterface, info: Value) -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.interfaces.boot = Some(boot);
        node.driver_info = info.as_object().expect("an object").clone();
        node
    }

    #[track_caller]
    fn check(boot: BootInterface, info: Value, want: Option<&str>) {
        let checked = check_agent_ramdisk(&node(boot, info)).err().map(|why| why.to_string());
        assert_eq!(checked.as_deref(), want);
    }

    #[test]
    fn ipxe_boots_a_kernel_with_its_ramdisk() {
        use BootInterface::{HttpIpxe, Ipxe};

        let (kernel, ramdisk) = ("http://h/k", "http://h/r");
        let both = json!({"deploy_kernel": kernel, "deploy_ramdisk": ramdisk});
        check(Ipxe, both.clone(), None);
        check(HttpIpxe, json!({}), None);
        let own = node(Ipxe, both).agent_kernel();
        let want = AgentKernel { kernel: kernel.to_owned(), ramdisk: ramdisk.to_owned() };
        assert_eq!(own, Some(want));
        let missing = "driver_info.deploy_ramdisk: missing, because the node has a deploy_kernel";
        check(Ipxe, json!({"deploy_kernel": kernel}), Some(missing));
        let missing = "driver_info.deploy_kernel: missing, because the node has a deploy_ramdisk";
        check(Ipxe, json!({"deploy_ramdisk": ramdisk}), Some(missing));
        let https = json!({"deploy_kernel": "https://h/k", "deploy_ramdisk": ramdisk});
        let refused = "driver_info.deploy_kernel: must be an http URL, because iPXE loads the file";
        check(Ipxe, https, Some(refused));
        let id = json!({"deploy_kernel": kernel, "deploy_ramdisk": "8f2a"});
        check(Ipxe, id, Some("driver_info.deploy_ramdisk: must be an http or https URL"));
        check(Ipxe, json!({"deploy_iso": "http://h/i"}), None);
        let refused = "driver_info.pxe_template: must be empty: the boot script is not made of a template; set kernel_append_params";
        check(Ipxe, json!({"pxe_template": "/etc/ironic/boot.ipxe"}), Some(refused));
    }

    #[test]
    fn a_virtual_cd_drive_boots_an_iso_image() {
        use BootInterface::VirtualMedia;

        check(VirtualMedia, json!({"deploy_iso": "https://h/i"}), None);
        check(VirtualMedia, json!({}), None);
        let refused = "driver_info.deploy_kernel: redfish-virtual-media boots an ISO image; set deploy_iso instead";
        let kernel = json!({"deploy_kernel": "http://h/k", "deploy_ramdisk": "http://h/r"});
        check(VirtualMedia, kernel, Some(refused));
        check(VirtualMedia, json!({"deploy_iso": 7}), Some("driver_info.deploy_iso: must be text"));
        let url = json!({"external_http_url": "https://[2001:db8::1]:6183"});
        assert_eq!(
            node(VirtualMedia, url.clone()).external_url(),
            url["external_http_url"].as_str()
        );
        check(VirtualMedia, url, None);
        check(VirtualMedia, json!({"external_http_url": null}), None);
        let refused = "driver_info.external_http_url: must be an http or https URL";
        check(VirtualMedia, json!({"external_http_url": "nfs://h"}), Some(refused));
        check(VirtualMedia, json!({"vmedia_transport_protocol": "HTTPS"}), None);
        let refused = "driver_info.vmedia_transport_protocol: must be HTTP or HTTPS: the service offers no other protocol";
        check(VirtualMedia, json!({"vmedia_transport_protocol": "NFS"}), Some(refused));
        check(BootInterface::Ipxe, json!({"vmedia_transport_protocol": "NFS"}), None);
        let mut own = node(VirtualMedia, json!({"deploy_iso": "http://h/i"}));
        own.network_data.insert("links".to_owned(), json!([]));
        let refused = check_agent_ramdisk(&own).unwrap_err().to_string();
        assert_eq!(refused, "network_data: the ISO image of deploy_iso takes no configuration");
        own.network_data.clear();
        assert!(own.is_booted_by_others());
        own.provision_state = State::Rescuing;
        assert!(!own.is_booted_by_others(), "a rescue has an image of its own");
        own.driver_info.insert("rescue_iso".to_owned(), "http://h/r".into());
        assert_eq!(own.agent_iso(), Some("http://h/r"));
    }

    #[test]
    fn parameters_of_the_instance_come_before_those_of_the_driver() {
        let mut own = node(BootInterface::Ipxe, json!({PARAMETERS: "%default% nofb a=b=c"}));
        let word = |key: &str, value: Option<&str>| KernelWord::Parameter {
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        let want = vec![KernelWord::Configured, word("nofb", None), word("a", Some("b=c"))];
        assert_eq!(own.kernel_words(), Some(want));
        own.instance_info.insert(PARAMETERS.to_owned(), "quiet".into());
        assert_eq!(own.kernel_words(), Some(vec![word("quiet", None)]));
        assert_eq!(node(BootInterface::Ipxe, json!({})).kernel_words(), None);
    }
}
