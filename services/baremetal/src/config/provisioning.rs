//! The listener on the provisioning network, and network boot.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use baremetal_conductor::UnknownMachines;
use daemon::Connections;
use jiff::SignedDuration;
use serde::Deserialize;
use url::Url;

use super::DhcpConfig;

/// The listener on the provisioning network, and network boot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvisioningConfig {
    /// Address and port of the listener: boot scripts, kernels, images, the agents' reports.
    pub listen: SocketAddr,
    /// How machines reach it, when that is not `http://LISTEN/`.
    #[serde(default)]
    pub url: Option<Url>,
    /// The ramdisk's kernel.
    pub kernel: PathBuf,
    /// The ramdisk.
    pub ramdisk: PathBuf,
    /// The ramdisk as a CD, for boots by virtual media.
    #[serde(default)]
    pub iso: Option<PathBuf>,
    /// The folder with iPXE's binaries.
    #[serde(default = "loaders")]
    pub loaders: PathBuf,
    /// A folder of images that machines may fetch as `/images/NAME`. Symbolic links in it are not followed.
    #[serde(default)]
    pub images: Option<PathBuf>,
    /// Further kernel parameters of the ramdisk, such as `console=ttyS0`.
    #[serde(default)]
    pub kernel_parameters: Vec<String>,
    /// What to do with machines nobody enrolled.
    #[serde(default)]
    pub unknown_machines: UnknownMachines,
    /// How often agents have to report at least.
    #[serde(default = "heartbeat_timeout")]
    pub heartbeat_timeout: SignedDuration,
    /// The DHCP server; absent where machines boot by virtual media alone.
    #[serde(default)]
    pub dhcp: Option<DhcpConfig>,
    /// Where TFTP is served; absent where it is not.
    #[serde(default)]
    pub tftp: Option<SocketAddr>,
    /// The interface on which IPv6 router solicitations are answered: iPXE waits for that.
    #[serde(default)]
    pub router_advertisements: Option<String>,
    /// How many machines are connected, and how long the slow are waited for.
    #[serde(default = "of_machines")]
    pub connections: Connections,
}

impl ProvisioningConfig {
    /// How machines reach the listener, given where it listens.
    pub fn base_url(&self, bound: SocketAddr) -> Url {
        let told = self.url.clone();
        told.unwrap_or_else(|| {
            Url::parse(&format!("http://{bound}/")).expect("an address makes a URL")
        })
    }

    /// The extra kernel parameters, split at their first `=`.
    pub fn kernel_parameters(&self) -> Vec<(String, Option<String>)> {
        let split = |word: &String| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word.clone(), None),
        };
        self.kernel_parameters.iter().map(split).collect()
    }
}

fn loaders() -> PathBuf {
    PathBuf::from("/usr/lib/ipxe")
}

/// A BMC that shows an image as a CD reads it as the machine does, which may be busy with other things for minutes.
fn of_machines() -> Connections {
    Connections { answer_timeout: Duration::from_mins(15), ..Connections::default() }
}

fn heartbeat_timeout() -> SignedDuration {
    SignedDuration::from_secs(60)
}
