//! The OpenStack that `openstack.sh` started, at an address that machines of a rack can reach.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The address of the API of a service that belongs to a cloud: that of the rack's uplink.
pub(crate) const API_IN_CLOUD: &str = "10.78.2.2:6385";

/// The timeout of each part of a story: machines and their servers are emulated, and two processors run a cloud as well.
const PATIENCE: Duration = Duration::from_mins(10);

/// A real OpenStack.
#[derive(Debug)]
pub struct Cloud {
    /// The accounts of the cloud: `admin`, and the tenants `alice` and `bob`.
    pub clouds_yaml: PathBuf,
    pub address: String,
    /// The URL of Keystone.
    pub keystone: String,
}

impl Cloud {
    /// The cloud that the environment names. `None` if it names none that a rack reaches.
    pub fn reported() -> Option<Self> {
        let clouds_yaml = env::var_os("BEDPLATE_TEST_OPENSTACK").map(PathBuf::from);
        let keystone = env::var("OS_AUTH_URL").ok();
        let reported = clouds_yaml.zip(keystone).and_then(|(clouds_yaml, keystone)| {
            let address = keystone.strip_prefix("http://")?.split(':').next()?.to_owned();
            Some(Cloud { clouds_yaml, address, keystone })
        });
        let reported = reported.filter(|cloud| !cloud.address.starts_with("127."));
        if reported.is_none() {
            peers::skip(
                "a rack and a cloud",
                "there is no cloud that a rack reaches; `make test-clouds` makes one",
            );
        }
        reported
    }

    /// The addresses that the cloud's name server returns for a name.
    #[track_caller]
    pub fn dig(&self, name: &str) -> Vec<String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("openstack/openstack.sh");
        let server = env::var("BEDPLATE_TEST_DNS").expect("openstack.sh env tells of it");
        let (address, port) = server.split_once(':').expect("it is ADDRESS:PORT");
        let mut run = Command::new(script);
        run.args(["inside", "dig", "+short", &format!("@{address}"), "-p", port, name]);
        let run = run.output().expect("openstack.sh can be started");
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(run.status.success(), "dig {name}: {said}");
        said.lines().map(ToOwned::to_owned).collect()
    }

    /// Adds the service that belongs to this cloud to its catalogue.
    #[track_caller]
    pub fn register(&self) {
        let mut command = Command::new(compat::program("bedplate"));
        command.env_clear().env("OS_CLIENT_CONFIG_FILE", &self.clouds_yaml);
        command.args(["--os-cloud", "admin", "setup", "keystone", "--region", "RegionOne"]);
        command.arg("--baremetald").arg(format!("http://{API_IN_CLOUD}"));
        let run = command.output().expect("bedplate can be started");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
}

/// Calls `look` until it returns a value, at long intervals because the test machine has few processors. Prints how long it took.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            eprintln!("{what} after {:.0?}", begun.elapsed());
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "timed out: {what}");
        thread::sleep(Duration::from_secs(3));
    }
}
