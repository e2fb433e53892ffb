//! An emulated machine, an emulated conductor, and the real agent between them.

mod http;
pub(crate) mod images;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) use self::http::{Reply, Request, Server};

pub(crate) const TOKEN: &str = "a-token-of-this-very-boot-and-no-other";
const PATIENCE: Duration = Duration::from_secs(60);

/// The requests that the agent has posted, in order.
#[derive(Default)]
struct Posted {
    bodies: Mutex<VecDeque<(String, Value)>>,
    came: Condvar,
}

impl Posted {
    fn wait(&self, path: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        let mut bodies = self.bodies.lock().unwrap();
        loop {
            if let Some(at) = bodies.iter().position(|(to, _)| to.starts_with(path)) {
                return bodies.remove(at).unwrap().1;
            }
            let left = end.checked_duration_since(Instant::now());
            let left = left.unwrap_or_else(|| panic!("the agent posted nothing to {path}"));
            bodies = self.came.wait_timeout(bodies, left).unwrap().0;
        }
    }
}

/// An agent on a machine, and its conductor.
pub(crate) struct Started {
    folder: PathBuf,
    agent: Child,
    posted: Arc<Posted>,
}

impl Started {
    pub(crate) fn posted(&self, path: &str) -> Value {
        self.posted.wait(path)
    }

    /// The agent's exit status, if it ends within this time.
    pub(crate) fn ends_within(&mut self, time: Duration) -> Option<i32> {
        let end = Instant::now() + time;
        loop {
            let ended = self.agent.try_wait().unwrap();
            if ended.is_some() || Instant::now() > end {
                return ended.and_then(|status| status.code());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A machine under test.
pub(crate) struct Machine {
    started: Started,
    callback: String,
    certificate: String,
    client: reqwest::blocking::Client,
}

/// The properties of a machine.
pub(crate) struct Setup {
    pub(crate) disk_mib: u64,
    pub(crate) uefi: bool,
    pub(crate) arguments: String,
}

impl Default for Setup {
    fn default() -> Self {
        Setup { disk_mib: 32, uefi: false, arguments: String::new() }
    }
}

impl Machine {
    pub(crate) fn start() -> Machine {
        Machine::with(Setup::default())
    }

    /// Starts the agent with the parameters of Bedplate's conductor and waits for its first heartbeat.
    pub(crate) fn with(setup: Setup) -> Machine {
        let arguments = format!(
            "ipa-api-url=CONDUCTOR ipa-agent-token={TOKEN} bedplate.root-disk-minimum=1 {}",
            setup.arguments
        );
        let started = Machine::launch(&Setup { arguments, ..setup });
        // If there is an inspection, it precedes the first heartbeat and stays in the queue.
        let heartbeat = started.posted("/v1/heartbeat/");
        let _ = rustls::crypto::ring::default_provider().install_default();
        let pem = heartbeat["agent_verify_ca"].as_str().unwrap();
        let client = reqwest::blocking::Client::builder()
            .no_proxy()
            .tls_certs_only([reqwest::Certificate::from_pem(pem.as_bytes()).unwrap()])
            .timeout(PATIENCE)
            .build()
            .unwrap();
        assert_eq!(heartbeat["agent_token"], TOKEN);
        let callback = heartbeat["callback_url"].as_str().unwrap().to_owned();
        Machine { started, callback, certificate: pem.to_owned(), client }
    }

    /// Starts the agent with these kernel parameters alone.
    pub(crate) fn launch(setup: &Setup) -> Started {
        let folder = std::env::temp_dir().join(format!("agent-test-{}", uuid::Uuid::new_v4()));
        let put = |path: &str, text: &str| {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("sys/class/net/eth0/address", "52:54:00:78:00:01\n");
        put("sys/class/net/eth0/carrier", "1\n");
        put("sys/class/net/eth0/device/vendor", "0x1af4\n");
        put("sys/block/vda/size", &(setup.disk_mib * 2048).to_string());
        put("sys/block/vda/serial", "disk-1\n");
        put("sys/block/vda/queue/logical_block_size", "512\n");
        put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Pretended\n\nprocessor\t: 1\n");
        put("proc/meminfo", "MemTotal:        2048 kB\n");
        put("dev/vda", "");
        std::fs::write(folder.join("dev/vda"), vec![0xaa; (setup.disk_mib << 20) as usize])
            .unwrap();
        if setup.uefi {
            std::fs::create_dir_all(folder.join("sys/firmware/efi/efivars")).unwrap();
        }

        let posted = Arc::new(Posted::default());
        let conductor = conductor(posted.clone());
        let url = conductor.url("");
        let url = url.trim_end_matches('/');
        put("proc/cmdline", &setup.arguments.replace("CONDUCTOR", url));
        let agent = Command::new(env!("CARGO_BIN_EXE_ramdisk-agent"))
            .arg("--root")
            .arg(&folder)
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Started { folder, agent, posted }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.started.folder.join(path)
    }

    pub(crate) fn disk(&self) -> Vec<u8> {
        std::fs::read(self.path("dev/vda")).unwrap()
    }

    pub(crate) fn posted(&self, path: &str) -> Value {
        self.started.posted(path)
    }

    /// A URL that is served over TLS, and the certificate of its server.
    pub(crate) fn served_over_tls(&self) -> (String, &str) {
        (format!("{}/no-image", self.callback), &self.certificate)
    }

    /// `POST /v1/commands/`: returns status and body.
    pub(crate) fn post(&self, query: &str, name: &str, params: Value) -> (u16, Value) {
        let url = format!("{}/v1/commands/?{query}", self.callback);
        let body = json!({"name": name, "params": params});
        let answer = self.client.post(url).json(&body).send().unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.client.get(format!("{}{path}", self.callback)).send().unwrap();
        (answer.status().as_u16(), answer.json().unwrap())
    }

    /// Runs a command and waits for its end.
    pub(crate) fn run(&self, name: &str, params: Value) -> Value {
        let (status, body) = self.post(&format!("wait=true&agent_token={TOKEN}"), name, params);
        assert_eq!(status, 200, "{body}");
        body
    }

    pub(crate) fn command(&self, id: &str) -> Value {
        let (status, body) = self.get(&format!("/v1/commands/{id}?agent_token={TOKEN}"));
        assert_eq!(status, 200);
        body
    }

    pub(crate) fn write_image(&self, image_info: Value) -> Value {
        self.run("deploy.execute_deploy_step", write_image(image_info, Value::Null))
    }

    /// Waits for the agent to end, and returns its exit status.
    pub(crate) fn exit(mut self) -> i32 {
        self.started.agent.wait().unwrap().code().unwrap()
    }
}

/// The parameters of a `write_image` step.
pub(crate) fn write_image(image_info: Value, configdrive: Value) -> Value {
    let arguments = json!({"image_info": image_info, "configdrive": configdrive});
    json!({"step": {"interface": "deploy", "step": "write_image", "args": arguments}, "node": {}, "ports": []})
}

/// Checks that both ends of a disk are blank, so that the disk cannot be booted.
#[track_caller]
pub(crate) fn assert_unbootable(disk: &[u8]) {
    let (first, last) = (&disk[..1 << 20], &disk[disk.len() - (1 << 20)..]);
    assert!(first.iter().all(|byte| *byte == 0), "the first MiB is not blank");
    assert!(last.iter().all(|byte| *byte == 0), "the last MiB is not blank");
}

#[track_caller]
pub(crate) fn assert_failed(command: &Value, kind: &str, sentence: &str) {
    assert_eq!(command["command_status"], "FAILED", "{command}");
    assert_eq!(command["command_error"]["type"], kind, "{command}");
    let details = command["command_error"]["details"].as_str().unwrap();
    assert!(details.contains(sentence), "{details}");
}

fn conductor(posted: Arc<Posted>) -> Server {
    Server::start(move |request: Request| {
        let answer = |status, body: Value| Reply::new(status, body.to_string().into_bytes());
        match (request.method.as_str(), request.path.split('?').next().unwrap()) {
            ("GET", "/") => {
                answer(200, json!({"default_version": {"id": "v1", "version": "1.94"}}))
            }
            ("GET", "/v1/lookup") => {
                let known = request.path.contains("52%3A54%3A00%3A78%3A00%3A01");
                let node = json!({"uuid": "node-1", "properties": {}});
                // A short timeout, so that heartbeats follow each other quickly.
                let config = json!({"heartbeat_timeout": 3, "agent_token": "******"});
                match known {
                    true => answer(200, json!({"node": node, "config": config})),
                    false => answer(404, json!({})),
                }
            }
            ("POST", path) => {
                let body = serde_json::from_slice(&request.body).unwrap();
                posted.bodies.lock().unwrap().push_back((path.to_owned(), body));
                posted.came.notify_all();
                answer(202, json!({"uuid": "node-1"}))
            }
            _ => answer(404, json!({})),
        }
    })
}

/// Waits until `seen` returns a value.
pub(crate) fn until<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = seen() {
            return found;
        }
        assert!(Instant::now() < end, "timed out waiting until {what}");
        std::thread::yield_now();
    }
}
