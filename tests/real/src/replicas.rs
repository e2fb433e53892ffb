//! Three `baremetald` on one PostgreSQL in the rack's network namespace, each with an address of its own on the provisioning network, behind
//! haproxy at the rack's address.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use compat::program;
use compat::wait::wait_for;

use crate::Rack;
use crate::daemon::{last_lines, ramdisk_folder};
use crate::rack::GATEWAY;

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The host names, in the order of the replicas' addresses.
const HOSTNAMES: [&str; 3] = ["one", "two", "three"];

/// The port of PostgreSQL, which the replicas reach by its socket.
const DATABASE_PORT: &str = "15432";

/// Three baremetald, which end when the value is dropped.
pub struct Replicas {
    // Dropped in this order.
    all: Vec<Replica>,
    _haproxy: Proxy,
    _database: Database,
}

/// One of the baremetald.
struct Replica {
    hostname: &'static str,
    /// The words that run it.
    words: Vec<String>,
    folder: PathBuf,
    process: Option<Child>,
}

/// haproxy before the replicas.
struct Proxy(Child);

/// A PostgreSQL server with its data in a folder that its own user can reach.
struct Database(PathBuf);

impl Replicas {
    /// Starts everything, and waits until the replicas listen.
    #[track_caller]
    pub(crate) fn start(rack: &Rack) -> Replicas {
        let database = Database::start(rack);
        let (mut all, mut keys): (Vec<Replica>, Option<PathBuf>) = (Vec::new(), None);
        for (hostname, number) in HOSTNAMES.into_iter().zip(1..) {
            rack.add_interface(number);
            let state = rack.folder.join(format!("state-{hostname}"));
            fs::create_dir(&state).expect("a folder can be made");
            for key in ["service.key", "seal.keys"] {
                if let Some(first) = &keys {
                    fs::copy(first.join(key), state.join(key)).expect("a key can be copied");
                }
            }
            let replica = Replica::start(rack, hostname, &configuration(rack, &database, number));
            all.push(replica);
            keys.get_or_insert(state);
        }
        Replicas { all, _haproxy: Proxy::start(rack), _database: database }
    }

    /// Kills (SIGKILL) the replica with this host name.
    #[track_caller]
    pub fn kill(&mut self, hostname: &str) {
        self.replica(hostname).kill();
    }

    /// Starts the replica with this host name again.
    #[track_caller]
    pub fn start_again(&mut self, hostname: &str) {
        self.replica(hostname).run();
    }

    #[track_caller]
    fn replica(&mut self, hostname: &str) -> &mut Replica {
        let found = self.all.iter_mut().find(|replica| replica.hostname == hostname);
        found.unwrap_or_else(|| panic!("no baremetald has the host name {hostname:?}"))
    }
}

impl Replica {
    #[track_caller]
    fn start(rack: &Rack, hostname: &'static str, config: &str) -> Replica {
        let file = rack.folder.join(format!("{hostname}.toml"));
        fs::write(&file, config).expect("a file can be written");
        let mut words = rack.launcher();
        words.extend([program("baremetald"), "--config".into(), file].map(|word| {
            word.into_os_string().into_string().expect("the paths of a test are text")
        }));
        let folder = rack.folder.clone();
        let mut replica = Replica { hostname, words, folder, process: None };
        replica.run();
        replica
    }

    fn log(&self) -> PathBuf {
        self.folder.join(format!("baremetald-{}.log", self.hostname))
    }

    /// Starts the program, and waits until it listens.
    #[track_caller]
    fn run(&mut self) {
        let listeners = self.folder.join(format!("state-{}/listeners.json", self.hostname));
        // An earlier life of the program may have left the file.
        let _ = fs::remove_file(&listeners);
        let log = File::options().create(true).append(true).open(self.log());
        let log = log.expect("a log can be written");
        let process = Command::new(&self.words[0])
            .args(&self.words[1..])
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.process = Some(process.expect("baremetald can be started"));
        let what = format!("baremetald {} to listen", self.hostname);
        wait_for(&what, START_TIMEOUT, || listeners.is_file().then_some(()));
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("baremetald {} said last:\n{}", self.hostname, last_lines(&self.log(), 50));
        }
    }
}

impl Proxy {
    #[track_caller]
    fn start(rack: &Rack) -> Proxy {
        let numbers = 1..=HOSTNAMES.len();
        let apis: Vec<String> = numbers.clone().map(api).collect();
        let boots: Vec<String> = numbers.map(provisioning).collect();
        let mut command = rack.command(script("haproxy.sh"));
        command.arg("run").arg(&rack.folder);
        command.arg(format!("baremetal=127.0.0.1:6385={}", apis.join(",")));
        command.arg(format!("provisioning={GATEWAY}:6386={}", boots.join(",")));
        let process = rack.spawn("haproxy", &mut command);
        wait_for("haproxy to pass requests on", START_TIMEOUT, || {
            let mut ask = rack.command("curl");
            ask.args(["-s", "-f", "-o", "/dev/null", "http://127.0.0.1:6385/"]);
            ask.stderr(Stdio::null()).status().is_ok_and(|status| status.success()).then_some(())
        });
        Proxy(process)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Database {
    #[track_caller]
    fn start(rack: &Rack) -> Database {
        let folder = std::env::temp_dir().join(format!("bedplate-{}-database", rack.name));
        // A story that was killed may have left it.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder can be made");
        let mut up = rack.command(script("postgres.sh"));
        up.arg("--up").arg(&folder).args([DATABASE_PORT, "baremetald"]);
        let done = up.status().expect("postgres.sh can be started");
        assert!(done.success(), "PostgreSQL does not start");
        Database(folder)
    }

    fn url(&self) -> String {
        let folder = self.0.display();
        format!("postgres://postgres@localhost:{DATABASE_PORT}/baremetald?host={folder}")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = Command::new(script("postgres.sh")).arg("--down").arg(&self.0).status();
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The address of a replica's API.
fn api(number: usize) -> String {
    format!("127.0.0.1:{}", 7000 + number)
}

/// The address of a replica's provisioning listener.
fn provisioning(number: usize) -> String {
    format!("{}:6386", address(number))
}

/// The address of a replica on the provisioning network.
fn address(number: usize) -> String {
    format!("10.78.0.{}", 1 + number)
}

fn configuration(rack: &Rack, database: &Database, number: usize) -> String {
    let hostname = HOSTNAMES[number - 1];
    format!(
        r#"
state_dir = "{state}"

[api]
listen = "{api}"

[database]
url = "{url}"

[conductor]
hostname = "{hostname}"

[bmc]
ca_file = "{authority}"

[provisioning]
listen = "{listen}"
url = "http://{GATEWAY}:6386/"
# haproxy runs on the same host, so its connections come from the address that they go to.
connections = {{ proxy_protocol_from = ["{address}"], answer_timeout = "15m" }}
kernel = "{ramdisk}/kernel"
ramdisk = "{ramdisk}/ramdisk"
# QEMU without hardware virtualisation loses ticks on a busy host, and Linux then panics in its check of the timer.
kernel_parameters = ["console=ttyS0", "no_timer_check"]
tftp = "{address}:69"
router_advertisements = "p{number}"

[provisioning.dhcp]
interface = "p{number}"
server = "{address}"
prefix = 24
range = "10.78.0.100-10.78.0.199"
"#,
        state = rack.folder.join(format!("state-{hostname}")).display(),
        api = api(number),
        url = database.url(),
        authority = rack.machines[0].ca.display(),
        listen = provisioning(number),
        ramdisk = ramdisk_folder().display(),
        address = address(number),
    )
}
