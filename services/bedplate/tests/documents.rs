//! Checks the commands in the documents: all parse, and all run on an environment that `bedplate dev` started, or as root on a Debian
//! machine.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

const BEDPLATE: &str = env!("CARGO_BIN_EXE_bedplate");

/// The programs whose command lines are checked.
const PROGRAMS: [&str; 3] = ["bedplate", "baremetald", "clusterd"];

/// The environment in which a block is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Environment {
    /// The environment that `bedplate dev` started.
    OnLaptop,
    /// A Debian machine without any part of Bedplate installed, as root.
    OnHost,
    /// The same machine after all other blocks, where the services move to PostgreSQL.
    OnPostgres,
    /// Not run: a `make` command that builds the programs, which the build of this test has already done.
    Before,
}

/// A block of shell commands in a document.
struct Block {
    /// The file name and the line of the block, for failure messages.
    place: String,
    runs: Environment,
    text: String,
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").canonicalize().unwrap()
}

/// Returns all blocks of shell commands of all documents, in the order of the file names.
fn blocks() -> Vec<Block> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(deploy().join("docs")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut blocks = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        let mut open: Option<(String, Block)> = None;
        for (at, line) in text.lines().enumerate() {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(kind)) => {
                    let place = format!("{name}:{}", at + 1);
                    let runs = match kind {
                        "sh" => Environment::OnLaptop,
                        "sh system" => Environment::OnHost,
                        "sh postgres" => Environment::OnPostgres,
                        _ => Environment::Before,
                    };
                    open = Some((kind.to_owned(), Block { place, runs, text: String::new() }));
                }
                (Some(_), Some(_)) => {
                    let (kind, block) = open.take().unwrap();
                    assert!(
                        [
                            "sh",
                            "sh system",
                            "sh postgres",
                            "sh unrun",
                            "toml",
                            "yaml",
                            "mermaid",
                            "text"
                        ]
                        .contains(&kind.as_str()),
                        "{}: {kind:?}",
                        block.place
                    );
                    if kind.starts_with("sh") {
                        blocks.push(block);
                    }
                }
                (Some((_, block)), None) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{name}: a block has no end");
    }
    blocks
}

/// Returns the words of each command of our programs in a line: the part before a redirection, a pipe or a condition.
fn commands(line: &str) -> Vec<Vec<String>> {
    let ours = |part: &str| {
        let part = part.split(" > ").next().unwrap_or_default();
        let words: Vec<String> = part
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'', ')']).to_owned())
            .collect();
        let begins =
            words.iter().position(|word| PROGRAMS.contains(&word.trim_start_matches("head=$(")))?;
        // `apt-get install … bedplate` names a program without running the program.
        let is_run = words[..begins].iter().all(|word| ["timeout", "3"].contains(&word.as_str()));
        let mut words = words[begins..].to_vec();
        words[0] = words[0].trim_start_matches("head=$(").to_owned();
        is_run.then_some(words)
    };
    line.split("||").flat_map(|part| part.split('|')).filter_map(ours).collect()
}

#[test]
fn every_command_can_be_read() {
    let programs = Path::new(BEDPLATE).parent().unwrap();
    let mut tried = 0;
    for block in blocks() {
        let read = Command::new("bash").args(["-n", "-c", &block.text]).output().unwrap();
        assert!(
            read.status.success(),
            "{}: {}",
            block.place,
            String::from_utf8_lossy(&read.stderr)
        );
        if block.runs == Environment::Before {
            // With `MAKEFLAGS=n`, make only checks that its targets exist.
            let mut made = Command::new("bash");
            made.env("MAKEFLAGS", "n").args(["-c", &block.text]);
            let made = made.current_dir(deploy().join("..")).output().unwrap();
            let error = String::from_utf8_lossy(&made.stderr);
            assert!(block.text.starts_with("make "), "{}: who runs it?", block.place);
            assert!(made.status.success(), "{}: {error}", block.place);
        }
        for words in block.text.lines().flat_map(commands) {
            // The value of a variable is known only where the block is run.
            if block.runs != Environment::Before && words.iter().any(|word| word.contains('$')) {
                continue;
            }
            // With `--help`, clap parses the words before the flag, and runs nothing.
            let mut command = Command::new(programs.join(&words[0]));
            let output = command.args(&words[1..]).arg("--help").output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {}: {error}", block.place, words.join(" "));
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried} commands");
}

#[test]
fn every_program_tells_its_version() {
    for name in ["bedplate", "baremetald", "clusterd", "consoled"] {
        let program = Path::new(BEDPLATE).with_file_name(name);
        let output = Command::new(program).arg("--version").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with(&format!("{name} {} (", env!("CARGO_PKG_VERSION"))), "{said}");
    }
}

#[test]
fn commands_are_found_in_lines() {
    let found = |line| commands(line).iter().map(|words| words.join(" ")).collect::<Vec<_>>();
    assert_eq!(
        found("bedplate node explain nobody || test $? = 4"),
        ["bedplate node explain nobody"]
    );
    assert_eq!(
        found("head=$(bedplate audit verify clusters | sed 's/.* //')"),
        ["bedplate audit verify clusters"]
    );
    assert_eq!(found("timeout 3 bedplate rack list --watch > x"), ["bedplate rack list --watch"]);
    assert!(found("cp bedplate /usr/bin").is_empty());
}

/// Returns the folder with the programs of the public OpenStack clients, which are installed on first use.
fn clients() -> PathBuf {
    let tests = deploy().join("../tests");
    let mut command = Command::new(tests.join("real/venv.sh"));
    command.arg(tests.join("compat/requirements.txt")).stderr(Stdio::inherit());
    let made = command.output().unwrap();
    assert!(made.status.success(), "python3 with venv and PyPI are needed");
    Path::new(String::from_utf8(made.stdout).unwrap().trim()).join("bin")
}

/// Enrolls the rack of the guide that repairs a failed node; and, in the service that stands for Ironic, the nodes of the guide that moves
/// them, with passwords that the service masks.
const NODES: &str = r#"
printf 'name,mac,bmc_type,bmc_address\nr8u2,52:54:00:aa:08:02,fake,127.0.0.1\n' > r8.csv
bedplate rack enroll r8.csv
for node in r7u1 r7u2; do
  openstack --os-cloud ironic baremetal node create --driver fake-hardware --name $node --driver-info redfish_password=calvin
done
"#;

/// The template of the guide that moves them, in the service that stands for Magnum.
const TEMPLATE: &str = r#"
curl -sS --fail-with-body -H 'Content-Type: application/json' "$MAGNUM/v1/clustertemplates" -d '{
  "name": "web", "coe": "kubernetes", "image_id": "fedora-coreos", "external_network_id": "public", "flavor_id": "m1.small",
  "master_flavor_id": "m1.medium", "labels": {"kube_tag": "v1.34.1"}}'
"#;

/// A second baremetald in place of the Ironic whose nodes are moved, or a second clusterd in place of the Magnum whose templates are.
/// `Drop` ends the process.
struct Replaced {
    child: Child,
    url: String,
}

impl Replaced {
    fn start(program: &str, folder: &Path) -> Replaced {
        let config = folder.join(format!("replaced-{program}.toml"));
        let state = folder.join(format!("replaced-{program}"));
        let text = format!("state_dir = '{}'\n[api]\nlisten = '127.0.0.1:0'\n", state.display());
        fs::write(&config, text).unwrap();
        let mut command = Command::new(Path::new(BEDPLATE).with_file_name(program));
        let child = command.arg("--config").arg(config).stderr(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        let listener = loop {
            let text = fs::read(state.join("listeners.json")).unwrap_or_default();
            let listeners: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            if let Some(address) = listeners["api"].as_str() {
                break address.to_owned();
            }
            assert!(Instant::now() < end, "{program} does not listen");
            std::thread::sleep(Duration::from_millis(50));
        };
        Replaced { child, url: format!("http://{listener}") }
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `bedplate dev`. `Drop` ends the process.
struct Dev {
    child: Child,
    folder: tempfile::TempDir,
    /// The folder with the public OpenStack clients.
    clients: PathBuf,
    /// The SHA-256 of the demo image.
    image: String,
    ironic: Replaced,
    magnum: Replaced,
}

impl Dev {
    /// Starts `bedplate dev`, and waits until the demo is complete.
    fn start() -> Dev {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(BEDPLATE);
        command.args(["dev", "--from"]).arg(deploy().join("dev")).current_dir(folder.path());
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut reported = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        while !reported.contains("stays up until Ctrl-C") {
            let read = out.read_line(&mut reported).unwrap();
            assert!(read > 0, "bedplate dev ended:\n{reported}");
        }
        // The output is read until the end, because a closed pipe would end `bedplate dev`.
        std::thread::spawn(move || out.lines().for_each(drop));
        let image = fs::read(folder.path().join(".state/dev/files/images/demo.raw.gz")).unwrap();
        let image = hex::encode(Sha256::digest(image));
        let ironic = Replaced::start("baremetald", folder.path());
        let magnum = Replaced::start("clusterd", folder.path());
        let dev = Dev { child, folder, clients: clients(), image, ironic, magnum };
        dev.name_clouds();
        let (place, text) = ("the nodes of the guides".to_owned(), format!("{NODES}{TEMPLATE}"));
        dev.runs(&Block { place, runs: Environment::OnLaptop, text });
        dev
    }

    /// Writes the clouds.yaml of the emulated cloud with the cloud names used in the documents: `ironic` and `magnum` for the services that
    /// are replaced, and `bedplate` for the replacement. All three names stand for the same cloud, except that `ironic` has another bare
    /// metal service, and `magnum` another service of clusters.
    fn name_clouds(&self) {
        let reported = fs::read(self.folder.path().join(".state/dev/clouds.yaml")).unwrap();
        let mut reported: serde_json::Value = serde_json::from_slice(&reported).unwrap();
        for name in ["ironic", "magnum", "bedplate"] {
            reported["clouds"][name] = reported["clouds"]["clusterd"].clone();
        }
        let clouds = &mut reported["clouds"];
        clouds["ironic"]["baremetal_endpoint_override"] = self.ironic.url.clone().into();
        clouds["magnum"]["container_infra_endpoint_override"] = self.magnum.url.clone().into();
        fs::write(self.folder.path().join("clouds.yaml"), reported.to_string()).unwrap();
    }

    fn runs(&self, block: &Block) {
        let ours = Path::new(BEDPLATE).parent().unwrap();
        let others = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{others}", ours.display(), self.clients.display());
        let mut command = Command::new("bash");
        command.env_clear().env("PATH", path).env("DEPLOY", deploy());
        command.env("OS_CLIENT_CONFIG_FILE", self.folder.path().join("clouds.yaml"));
        command.env("IMAGE", "http://127.0.0.1:6386/images/demo.raw.gz").env("SHA256", &self.image);
        command.env("MAGNUM", &self.magnum.url);
        // The addresses that the catalogue already has.
        command.env("BAREMETALD", "http://127.0.0.1:6385").env("CLUSTERD", "http://127.0.0.1:9511");
        command.args(["-euo", "pipefail", "-c", &block.text]).current_dir(self.folder.path());
        let output = command.output().unwrap();
        let (out, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}:\n{}\n{out}\n{error}", block.place, block.text);
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // A signal lets `bedplate dev` end its child processes.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

#[test]
fn every_block_for_a_laptop_runs() {
    let blocks = blocks();
    let run: Vec<&Block> =
        blocks.iter().filter(|block| block.runs == Environment::OnLaptop).collect();
    assert!(run.len() >= 15, "{} blocks", run.len());
    let dev = Dev::start();
    for block in run {
        dev.runs(block);
    }
}

/// A Debian machine with systemd, an emulated cloud on that machine, and a checkout in which the packages are built.
struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    const CHECKOUT: &str = "/srv/bedplate";

    fn script() -> Command {
        Command::new(deploy().join("../tests/real/host.sh"))
    }

    /// Boots the machine, and starts the emulated cloud.
    fn start(packages: &Path) -> Host {
        let host = Host { folder: tempfile::tempdir().unwrap() };
        let programs = Path::new(BEDPLATE).parent().unwrap();
        let mut up = Host::script();
        up.arg("up").arg(host.folder.path());
        for (place, folder) in [
            ("deploy", deploy().as_path()),
            ("target/debug", programs),
            ("target/packages", packages),
        ] {
            up.arg(format!("{}/{place}={}", Host::CHECKOUT, folder.display()));
        }
        let up = up.output().unwrap();
        assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
        host.runs("a cloud", CLOUD);
        host
    }

    fn runs(&self, what: &str, text: &str) {
        let mut command = Host::script();
        command.arg("run").arg(self.folder.path()).arg(Host::CHECKOUT);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let (out, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{what}:\n{text}\n{out}\n{error}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Host::script().arg("down").arg(self.folder.path()).status();
    }
}

/// Starts a cloud with an administrator and without clusterd's user, which the guide creates, and sets the guide's variables.
const CLOUD: &str = r#"
install -d /root/.config/openstack
systemd-run --quiet --unit=cloud target/debug/openstack-emulator --listen 127.0.0.1:5000 --clouds-out /root/.config/openstack/clouds.yaml
until [ -s /root/.config/openstack/clouds.yaml ]; do sleep 0.1; done
openstack --os-cloud admin user delete clusterd
keystone=$(openstack --os-cloud admin endpoint list --service identity --interface public -f value -c URL)
echo "export KEYSTONE=$keystone BAREMETALD=http://127.0.0.1:6385 CLUSTERD=http://127.0.0.1:9511" >> /root/.profile
"#;

const ENROLLED: &str = r#"
printf 'name,mac,bmc_type,bmc_address\nkept,52:54:00:aa:01:01,fake,127.0.0.1\n' > /tmp/r1.csv
bedplate rack enroll /tmp/r1.csv
"#;

const LOST: &str = r#"
curl -sS --fail-with-body -X DELETE -H 'X-OpenStack-Ironic-API-Version: 1.95' -H "X-Auth-Token: $(openstack token issue -f value -c id)" $BAREMETALD/v1/nodes/kept
if bedplate node explain kept; then exit 1; fi
"#;

/// Checks the state of the machine after all guides were followed.
const FOLLOWED: &str = r#"
set -x
for unit in baremetald clusterd consoled; do
  test "$(systemctl show --property NRestarts --value $unit)" = 0
  test "$(ps -o user= -p "$(systemctl show --property MainPID --value $unit)")" = $unit
  if journalctl --quiet --unit $unit | grep -E 'panicked|ERROR'; then exit 1; fi
done
openstack --os-cloud alice catalog show container-infra -f value -c type | grep -x container-infra >/dev/null
bedplate node explain kept
curl -sf http://127.0.0.1:9510/login | grep password >/dev/null
test "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:6385/v1/nodes)" = 401
"#;

/// Checks that both services write to their databases in PostgreSQL.
const ON_POSTGRES: &str = r#"
set -x
bedplate quota set p nodes=5
holds() { test "$(sudo -u postgres psql -At "$1" -c "$2")" = "$3"; }
holds baremetald "SELECT name FROM nodes" kept
holds clusterd "SELECT count(*) > 0 FROM quotas" t
for service in baremetald clusterd; do
  holds $service "SELECT count(*) > 0 FROM audit" t
  bedplate audit verify "$([ $service = clusterd ] && echo clusters || echo machines)"
  holds $service "SELECT count(DISTINCT usename) FROM pg_stat_activity WHERE datname = '$service' AND usename = '$service'" 1
done
"#;

/// Checks that both services answer without PostgreSQL, and need no restart when it is back.
const POSTGRES_AWAY: &str = r#"
set -x
status() { curl -s -o /dev/null -w '%{http_code}' -H "X-Auth-Token: $token" "$1"; }
token=$(openstack token issue -f value -c id)
systemctl stop postgresql 'postgresql@*'
test "$(status $BAREMETALD/v1/nodes)" = 503
test "$(status $CLUSTERD/v1/clusters)" = 503
systemctl start postgresql
bedplate node explain kept
test "$(status $CLUSTERD/v1/clusters)" = 200
for unit in baremetald clusterd; do test "$(systemctl show --property NRestarts --value $unit)" = 0; done
"#;

/// Makes the certificate of haproxy and of baremetald, which is its own CA.
const CERTIFICATE: &str = r#"
install -d /etc/haproxy
openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=site -addext subjectAltName=IP:10.1.0.5,IP:10.1.0.11 \
  -keyout /etc/bedplate/api.key -out /etc/bedplate/api.pem
chmod 600 /etc/bedplate/api.key
chmod 644 /etc/bedplate/api.pem
cat /etc/bedplate/api.pem /etc/bedplate/api.key | install -m 600 /dev/stdin /etc/haproxy/bedplate.pem
install -m 644 /etc/bedplate/api.pem /etc/haproxy/services.pem
"#;

/// Checks the sample configuration of haproxy, unchanged, before the first of its three baremetald and of its three PostgreSQL servers: TLS on both
/// sides, and the addresses of the client and of haproxy in the audit trail.
const BEHIND_HAPROXY: &str = r#"
set -x
for address in 10.1.0.5 10.0.0.5 10.2.0.5 10.1.0.11 10.1.0.21; do ip address add $address/32 dev lo; done
install -m 644 /dev/stdin /etc/systemd/system/baremetald.service.d/30-tls.conf <<END
[Service]
LoadCredential=api.key:/etc/bedplate/api.key
END
tls='certificate = "/etc/bedplate/api.pem"\nkey = "/run/credentials/baremetald.service/api.key"'
sed -i "s|^listen = \"127.0.0.1:6385\"|listen = \"10.1.0.11:6385\"\n$tls\ntrusted_proxies = [\"10.1.0.0/24\"]|" /etc/bedplate/baremetald.toml
sudo -u postgres psql -c "ALTER SYSTEM SET listen_addresses = 'localhost, 10.1.0.21'"
systemctl daemon-reload
systemctl restart postgresql 'postgresql@*'
systemctl restart baremetald haproxy
within() { for _ in $(seq 100); do if "$@"; then return; fi; sleep 0.2; done; exit 1; }
writes() { test "$(psql -h 10.1.0.5 -U haproxy -At -c 'SELECT pg_is_in_recovery()' postgres)" = f; }
within writes
token=$(openstack token issue -f value -c id)
ask() { curl -sS --fail --cacert /etc/bedplate/api.pem -H "X-Auth-Token: $token" -H 'X-OpenStack-Ironic-API-Version: 1.95' "$@" >/dev/null; }
within ask https://10.1.0.5:6385/v1/nodes/kept
ask -X PUT https://10.1.0.5:6385/v1/nodes/kept/maintenance
test "$(sudo -u postgres psql -At -c "SELECT DISTINCT source FROM audit WHERE source LIKE '10.1.0.%'" baremetald)" = '10.1.0.5, 10.1.0.11'
"#;

impl Host {
    /// Runs these blocks in order.
    fn follows<'a>(&self, blocks: impl Iterator<Item = &'a Block>) {
        for block in blocks {
            // The backup guide needs a node that exists when the backup is made and is lost before the restore.
            if [".backup", "pg_dump"].iter().any(|word| block.text.contains(word)) {
                self.runs("a node", ENROLLED);
            }
            if block.text.contains("haproxy.cfg") {
                self.runs("a certificate", CERTIFICATE);
            }
            if block.text.contains("systemctl stop") {
                self.runs("a node's loss", LOST);
            }
            self.runs(&block.place, &block.text);
        }
    }
}

#[test]
fn every_block_for_a_machine_of_ones_own_runs() {
    let blocks = blocks();
    let of = |runs: Environment| blocks.iter().filter(move |block| block.runs == runs);
    assert!(of(Environment::OnHost).count() >= 10, "{} blocks", of(Environment::OnHost).count());
    assert!(
        of(Environment::OnPostgres).count() >= 3,
        "{} blocks",
        of(Environment::OnPostgres).count()
    );
    let packages = Path::new(BEDPLATE).ancestors().nth(2).unwrap().join("packages-of-tests");
    if !rustix::process::geteuid().is_root() {
        return peers::skip("guides", "a Debian machine of namespaces needs root");
    }
    if !peers::installed("mmdebstrap") || !packages.is_dir() {
        return peers::skip("guides", "mmdebstrap or target/packages-of-tests is not there");
    }
    let host = Host::start(&packages);
    host.follows(of(Environment::OnHost));
    host.runs("afterwards", FOLLOWED);
    host.follows(of(Environment::OnPostgres));
    host.runs("afterwards, on PostgreSQL", FOLLOWED);
    host.runs("what PostgreSQL holds", ON_POSTGRES);
    host.runs("while PostgreSQL is away", POSTGRES_AWAY);
    host.runs("behind haproxy", BEHIND_HAPROXY);
}
