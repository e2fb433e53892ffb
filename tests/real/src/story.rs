//! The start of every story: a rack, a daemon, an image to install and an operator's client.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use compat::CommandLine;
use compat::wait::wait_for;
use serde_json::Value;

use crate::daemon::{API, last_lines};
use crate::ironic::{self, Ironic};
use crate::{Daemon, Firmware, Machine, Network, Rack, RackOptions, Replicas};

/// The port of the image server.
const IMAGES_PORT: u16 = 8000;

/// A running rack, with a service that manages it.
pub struct Story {
    pub client: CommandLine,
    // Dropped in this order: the rack is last, because the others run in its network.
    service: Service,
    _images: Images,
    pub rack: Rack,
}

/// The service that manages the rack. It ends when the value is dropped.
#[expect(dead_code, reason = "most values are only kept")]
enum Service {
    Ours(Daemon),
    Replicas(Replicas),
    Ironic(Ironic),
}

struct Images(Child);

impl Story {
    /// Begins a story of this name, which is also the rack's; `None` if the environment does not ask for real machines.
    #[track_caller]
    pub fn begin(name: &str, firmware: &[Firmware]) -> Option<Self> {
        Story::begin_given(name, firmware, &RackOptions::default())
    }

    /// Begins a story with further options for the rack.
    #[track_caller]
    pub fn begin_given(name: &str, firmware: &[Firmware], given: &RackOptions<'_>) -> Option<Self> {
        let start = |rack: &Rack| Service::Ours(Daemon::start(rack, given));
        Story::begin_under(name, firmware, given, API, start)
    }

    /// Begins a story in which three baremetald manage the rack.
    #[track_caller]
    pub fn begin_with_replicas(name: &str, firmware: &[Firmware]) -> Option<Self> {
        let start = |rack: &Rack| Service::Replicas(Replicas::start(rack));
        Story::begin_under(name, firmware, &RackOptions::default(), API, start)
    }

    /// Begins a story in which a real Ironic manages the rack, and the machines boot our ramdisk.
    #[track_caller]
    pub fn begin_under_ironic(name: &str, firmware: &[Firmware]) -> Option<Self> {
        let start = |rack: &Rack| Service::Ironic(Ironic::start(rack));
        Story::begin_under(name, firmware, &RackOptions::default(), &ironic::api(), start)
    }

    #[track_caller]
    fn begin_under(
        name: &str,
        firmware: &[Firmware],
        given: &RackOptions<'_>,
        api: &str,
        start: impl FnOnce(&Rack) -> Service,
    ) -> Option<Self> {
        if env::var_os("BEDPLATE_REAL").is_none() {
            peers::skip(name, "it needs a rack; `make test-rack` brings one up");
            return None;
        }
        let rack = Rack::up(name, firmware, given);
        let images = Images::serve(&rack, given.network);
        let service = start(&rack);
        let launcher = rack.launcher();
        let launcher: Vec<&str> = launcher.iter().map(String::as_str).collect();
        let client = match given.cloud {
            Some(cloud) => CommandLine::baremetal_in_cloud(&cloud.clouds_yaml, "admin"),
            None => CommandLine::start_within(&launcher, api),
        };
        Some(Story { client, service, _images: images, rack })
    }

    /// The three baremetald of the story.
    pub fn replicas(&mut self) -> &mut Replicas {
        match &mut self.service {
            Service::Replicas(replicas) => replicas,
            Service::Ours(_) | Service::Ironic(_) => panic!("the story has one service"),
        }
    }

    /// Returns the machine with this number.
    pub fn machine(&self, number: usize) -> Machine {
        self.rack.machines[number].clone()
    }

    /// Reads one field of a node.
    #[track_caller]
    pub fn field(&mut self, node: &str, field: &str) -> Value {
        self.client.json(&["node", "show", node, "--fields", field])[field].take()
    }

    /// Runs `bedplate WORDS`, which must succeed; returns the output.
    #[track_caller]
    pub fn bedplate(&self, words: &[&str]) -> String {
        let mut command = self.rack.command(compat::program("bedplate"));
        let run =
            command.args(words).env("BEDPLATE_URL", API).output().expect("bedplate can be started");
        let printed = String::from_utf8_lossy(&run.stdout).into_owned();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "bedplate {}\n{printed}{said}", words.join(" "));
        printed
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for machine in &self.rack.machines {
                eprintln!("{} printed last:\n{}", machine.name, last_lines(&machine.console, 25));
            }
        }
    }
}

/// An image to install, and its URL for the machines.
#[derive(Clone, Debug)]
pub struct Image {
    pub url: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The value of `instance_info.image_disk_format`.
    pub format: &'static str,
}

/// Returns an image from the cache: `tiny.raw`, `tiny.raw.gz`, `tiny.qcow2`, `tiny-gpt.qcow2`, `tiny-signed.qcow2`,
/// `tiny-mirror.qcow2` and `tiny-partition.raw` of `tiny-image.sh`, `hypervisor.qcow2` of `images/hypervisor`.
#[track_caller]
pub fn image(file: &str) -> Image {
    image_over(Network::V4, file)
}

/// Returns an image whose URL has the rack's address in this network.
#[track_caller]
pub fn image_over(network: Network, file: &str) -> Image {
    let path = images_folder().join(file);
    let sum = Command::new("sha256sum").arg(&path).output().expect("sha256sum can be started");
    let sum = String::from_utf8_lossy(&sum.stdout).into_owned();
    let sha256 = sum.split(' ').next().filter(|sum| sum.len() == 64);
    let sha256 =
        sha256.unwrap_or_else(|| panic!("no {}: nobody made it", path.display())).to_owned();
    let format = if file.ends_with(".qcow2") { "qcow2" } else { "raw" };
    let server = SocketAddr::new(network.gateway(), IMAGES_PORT);
    Image { url: format!("http://{server}/{file}"), sha256, format }
}

impl Images {
    #[track_caller]
    fn serve(rack: &Rack, network: Network) -> Self {
        let folder = images_folder();
        fs::create_dir_all(&folder).expect("a folder can be made");
        let mut command = rack.command("python3");
        command
            .args(["-m", "http.server", "--bind", &network.gateway().to_string(), "--directory"])
            .arg(folder)
            .arg(IMAGES_PORT.to_string());
        let process = rack.spawn("images", &mut command);
        wait_for("the image server", Duration::from_secs(30), || {
            let mut ask = rack.command("curl");
            let server = SocketAddr::new(network.gateway(), IMAGES_PORT);
            ask.args(["-s", "-o", "/dev/null", &format!("http://{server}/")]);
            ask.stderr(Stdio::null()).status().is_ok_and(|status| status.success()).then_some(())
        });
        Images(process)
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the directory in which make puts the images.
pub fn images_folder() -> PathBuf {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache =
        env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(|| home.join(".cache"));
    env::var_os("BEDPLATE_CACHE")
        .map(PathBuf::from)
        .unwrap_or_else(|| cache.join("bedplate"))
        .join("images")
}
