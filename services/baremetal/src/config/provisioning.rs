//! The section `[provisioning]`: the listener on the provisioning network, and network boot.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use baremetal_conductor::UnknownMachines;
use daemon::ConnectionLimits;
use hardware::CpuArchitecture;
use jiff::SignedDuration;
use pxe::Loader;
use serde::Deserialize;
use url::Url;

use super::DhcpConfig;

/// The listener on the provisioning network, and network boot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvisioningConfig {
    /// The IP address and port of the listener for boot scripts, kernels, images and the agents' reports.
    pub listen: SocketAddr,
    /// The URL by which machines reach the listener; by default `http://LISTEN/`.
    #[serde(default)]
    pub url: Option<Url>,
    pub kernel: PathBuf,
    pub ramdisk: PathBuf,
    /// The ramdisk as a CD, for boots from virtual media.
    #[serde(default)]
    pub iso: Option<PathBuf>,
    /// The folder with iPXE's binaries.
    #[serde(default = "loaders")]
    pub loaders: PathBuf,
    /// A folder of images that machines can fetch as `/images/NAME`. Symbolic links in the folder are not followed.
    #[serde(default)]
    pub images: Option<PathBuf>,
    /// The boot files of machines with 64-bit ARM; absent if no such machine is booted.
    #[serde(default)]
    pub aarch64: Option<Aarch64Config>,
    /// Additional kernel parameters of the ramdisk, such as `console=ttyS0`.
    #[serde(default)]
    pub kernel_parameters: Vec<String>,
    /// The answer to machines that nobody has enrolled.
    #[serde(default)]
    pub unknown_machines: UnknownMachines,
    /// The longest interval between two reports of an agent.
    #[serde(default = "heartbeat_timeout")]
    pub heartbeat_timeout: SignedDuration,
    /// The DHCP server; absent if machines boot from virtual media only.
    #[serde(default)]
    pub dhcp: Option<DhcpConfig>,
    /// The address and port for TFTP; absent if TFTP is not served.
    #[serde(default)]
    pub tftp: Option<SocketAddr>,
    /// The interface on which IPv6 router solicitations are answered. iPXE waits for an answer before it boots. With a DHCPv6 server, the
    /// answer tells machines to use it.
    #[serde(default)]
    pub router_advertisements: Option<String>,
    /// The listener from which firmware loads iPXE by HTTPS; absent if it loads iPXE by HTTP.
    #[serde(default)]
    pub https: Option<HttpsConfig>,
    /// The maximum number of connections, and the timeouts for slow machines.
    #[serde(default = "default_connections")]
    pub connections: ConnectionLimits,
}

/// The boot files of machines with 64-bit ARM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aarch64Config {
    /// The ramdisk's kernel.
    pub kernel: PathBuf,
    pub ramdisk: PathBuf,
    /// The ramdisk as a CD, for boots from virtual media.
    #[serde(default)]
    pub iso: Option<PathBuf>,
    /// iPXE for UEFI, by default of Debian's package `ipxe` since Debian 13.
    #[serde(default = "arm_loader")]
    pub loader: PathBuf,
}

/// The listener from which firmware loads iPXE by HTTPS.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpsConfig {
    pub listen: SocketAddr,
    /// The URL by which machines reach the listener; by default `https://LISTEN/`. The certificate has to be valid for its host.
    #[serde(default)]
    pub url: Option<Url>,
    /// The certificate, followed by the intermediate certificates, as PEM.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl HttpsConfig {
    /// Returns the URL by which machines reach the listener at the address `bound`.
    pub fn base_url(&self, bound: SocketAddr) -> Url {
        let reported = self.url.clone();
        reported.unwrap_or_else(|| {
            Url::parse(&format!("https://{bound}/")).expect("an address makes a URL")
        })
    }
}

impl ProvisioningConfig {
    /// Returns the URL by which machines reach the listener at the address `bound`.
    pub fn base_url(&self, bound: SocketAddr) -> Url {
        let reported = self.url.clone();
        reported.unwrap_or_else(|| {
            Url::parse(&format!("http://{bound}/")).expect("an address makes a URL")
        })
    }

    /// Returns the builds of iPXE and their files.
    pub fn loader_files(&self) -> Vec<(Loader, PathBuf)> {
        let x86 = Loader::X86.map(|loader| (loader, self.loaders.join(loader.file_name())));
        let arm = self.aarch64.as_ref().map(|files| (Loader::Arm64, files.loader.clone()));
        x86.into_iter().chain(arm).collect()
    }

    /// Returns the architectures that have boot files.
    pub fn architectures(&self) -> Vec<CpuArchitecture> {
        let arm = self.aarch64.as_ref().map(|_| CpuArchitecture::Aarch64);
        [CpuArchitecture::X86_64].into_iter().chain(arm).collect()
    }

    /// Returns the architectures that have a virtual CD.
    pub fn media(&self) -> Vec<CpuArchitecture> {
        let x86 = self.iso.as_ref().map(|_| CpuArchitecture::X86_64);
        let arm = self.aarch64.as_ref().and_then(|files| files.iso.as_ref());
        x86.into_iter().chain(arm.map(|_| CpuArchitecture::Aarch64)).collect()
    }

    /// Returns the additional kernel parameters, each split at its first `=`.
    pub fn kernel_parameters(&self) -> Vec<(String, Option<String>)> {
        let split = |word: &String| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word.clone(), None),
        };
        self.kernel_parameters.iter().map(split).collect()
    }
}

fn arm_loader() -> PathBuf {
    PathBuf::from(Loader::Arm64.debian_path())
}

fn loaders() -> PathBuf {
    PathBuf::from("/usr/lib/ipxe")
}

/// A BMC that presents an image as a CD reads the image only as fast as the machine does, and a machine may pause for minutes.
fn default_connections() -> ConnectionLimits {
    ConnectionLimits { answer_timeout: Duration::from_mins(15), ..ConnectionLimits::default() }
}

fn heartbeat_timeout() -> SignedDuration {
    SignedDuration::from_secs(60)
}
