//! A machine of ours is a compute host, and on it is a person's machine: found by `bedplate where`, moved away by `bedplate drain`, and not
//! switched off before.
//!
//! baremetald, clusterd and `bedplate` are the programs themselves, the cloud is emulated.

use std::path::PathBuf;
use std::process::Stdio;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::own_machine::{Said, until};
use crate::site::Site;

/// A cloud, and both services as processes, of which clusterd's user is an administrator of the cloud.
struct Given {
    site: Site,
    machines: String,
    clusters: String,
    _daemons: Vec<Child>,
}

impl Given {
    async fn start() -> Given {
        let site = Site::start("clusterd", "service").await;
        let folder = &site.folder;
        let clusterd = format!(
            "state_dir = 'STATE'\n[api]\nlisten = '127.0.0.1:0'\n\
             [cloud]\nclouds_yaml = '{}/clouds.yaml'\nname = 'clusterd'\n[conductor]\nlook_every = '1s'\n\
             [machines]\nnetwork = 'lab'\nimages = [{{ name = 'cirros' }}]\n",
            folder.path().display()
        );
        let (one, clusters) = daemon(folder, "clusterd", &clusterd).await;
        let baremetald = format!(
            "state_dir = 'STATE'\n[api]\nlisten = '127.0.0.1:0'\n[clusters]\nurl = '{clusters}'\n"
        );
        let (other, machines) = daemon(folder, "baremetald", &baremetald).await;
        let daemons = vec![one, other];
        Given { site, machines, clusters, _daemons: daemons }
    }

    /// Runs `bedplate …`.
    async fn bedplate(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(compat::program("bedplate"));
        command.env_clear().args(["--url", &self.machines, "--clusters-url", &self.clusters]);
        let output = command.args(arguments).output().await.expect("bedplate starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Said { done: output.status.success(), out: text(output.stdout), error: text(output.stderr) }
    }

    /// What baremetald answers: the status, and its text.
    async fn machine(&self, method: Method, path: &str, body: &Value) -> (u16, String) {
        let request = self.site.client.request(method, format!("{}{path}", self.machines));
        let request = request.header("x-openstack-ironic-api-version", "1.95");
        let request = if body.is_null() { request } else { request.json(body) };
        let answer = request.send().await.expect("baremetald answers");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    }

    /// An installed node that is this compute host.
    async fn node(&self, name: &str, host: &str) {
        let body = json!({
            "name": name, "driver": "fake-hardware",
            "instance_info": {"hypervisor_hostname": host, "image_source": "http://images.example/disk.raw", "image_checksum": "0"},
        });
        let (status, said) = self.machine(Method::POST, "/v1/nodes", &body).await;
        assert_eq!(status, 201, "{said}");
        for (target, state) in [("manage", "manageable"), ("adopt", "active")] {
            let path = format!("/v1/nodes/{name}/states/provision");
            let (status, said) = self.machine(Method::PUT, &path, &json!({"target": target})).await;
            assert_eq!(status, 202, "{said}");
            until(state, async || {
                let path = format!("/v1/nodes/{name}?fields=provision_state");
                let (_, shown) = self.machine(Method::GET, &path, &Value::Null).await;
                shown.contains(&format!("\"{state}\"")).then_some(())
            })
            .await;
        }
    }

    /// The host that `bedplate where` finds a thing on.
    async fn host_of(&self, thing: &str) -> String {
        let told = self.bedplate(&["where", thing, "-o", "json"]).await.json();
        let host = &told["racks"][0]["nodes"][0]["host"]["host"];
        host.as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    }
}

/// Starts a service with this configuration, and waits until it listens.
async fn daemon(folder: &TempDir, name: &str, config: &str) -> (Child, String) {
    let state = folder.path().join(name);
    let file = folder.path().join(format!("{name}.toml"));
    let config = config.replace("STATE", &state.display().to_string());
    std::fs::write(&file, config).expect("a file");
    let child = Command::new(compat::program(name))
        .arg("--config")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.path().join(format!("{name}.log"))).expect("a log"))
        .kill_on_drop(true)
        .spawn();
    let child = child.unwrap_or_else(|why| panic!("{name} does not start: {why}"));
    let listeners: PathBuf = state.join("listeners.json");
    until(name, async || listeners.is_file().then_some(())).await;
    let url = until(name, async || {
        let told: Value = serde_json::from_slice(&std::fs::read(&listeners).ok()?).ok()?;
        Some(format!("http://{}", told["api"].as_str()?))
    });
    (child, url.await)
}

impl Drop for Given {
    fn drop(&mut self) {
        for name in ["clusterd", "baremetald"] {
            let folder = self.site.folder.path();
            // What they stored and said is looked through for secrets.
            left::keep(&folder.join(name), &format!("taken-out-{name}"));
            let log = folder.join(format!("{name}.log"));
            let said = std::fs::read_to_string(log).unwrap_or_default();
            left::note("children", said.as_bytes());
            if std::thread::panicking() {
                let lines: Vec<&str> = said.lines().collect();
                let last = &lines[lines.len().saturating_sub(40)..];
                eprintln!("{name}:\n{}", last.join("\n"));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_emptied_before_its_machine_is_switched_off() {
    let given = Given::start().await;
    let request = ["vm", "request", "lab-1", "--image", "cirros", "--flavor", "m1.nano", "--wait"];
    given.bedplate(&request).await.done();
    let host = given.host_of("lab-1").await;
    given.node("r1u07", &host).await;

    // Up from the machine and down from the node it is the same chain.
    for thing in ["lab-1", "r1u07", host.as_str()] {
        let told = given.bedplate(&["where", thing]).await.done();
        for part in ["node r1u07 (active)", &format!("host {host}"), "machine lab-1 of a person"] {
            assert!(told.contains(part), "where {thing}: {part:?} in {told}");
        }
    }
    given.bedplate(&["where", "nobody-knows"]).await.refused(&["nobody-knows"]);

    // What would switch it off has it emptied first, and is refused meanwhile; who names the host may do so anyway.
    let power = "/v1/nodes/r1u07/states/power";
    let off = json!({"target": "power off"});
    let (status, said) = given.machine(Method::PUT, power, &off).await;
    assert!(status == 409 && said.contains("is being emptied"), "{status} {said}");
    let told = given.bedplate(&["drain", &host, "--wait"]).await.done();
    assert!(told.contains("is drained"), "{told}");
    let moved = given.host_of("lab-1").await;
    assert_ne!(moved, host);
    let (status, said) = given.machine(Method::PUT, power, &off).await;
    assert_eq!(status, 202, "{said}");

    given.bedplate(&["undrain", &host, "--wait"]).await.done();
    given.bedplate(&["drain", "no-such-host"]).await.refused(&["no-such-host could not be found"]);

    // Where the machine is now, only who names the host gets by without asking.
    given.node("r1u08", &moved).await;
    let path = "/v1/nodes/r1u08/states/provision";
    let undeploy = json!({"target": "deleted"});
    let (status, said) = given.machine(Method::PUT, path, &undeploy).await;
    assert!(status == 409 && said.contains("is being emptied"), "{status} {said}");
    let forced = format!("{path}?force={moved}");
    let (status, said) = given.machine(Method::PUT, &forced, &undeploy).await;
    assert_eq!(status, 202, "{said}");
}
