//! The fixture of these tests: a baremetald and a clusterd without authentication, and `bedplate` as their client.

use api_client::baremetald::Node;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The path of the program under test.
pub(crate) const BEDPLATE: &str = env!("CARGO_BIN_EXE_bedplate");

/// A running baremetald and a running clusterd, and a folder for files.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) machines: String,
    pub(crate) clusters: String,
    _running: [AbortOnDropHandle<()>; 2],
}

/// Runs `bedplate` with pipes as output, beside a service at `url` that answers as baremetald and as clusterd.
pub(crate) async fn run_beside(url: &str, arguments: &[&str]) -> CommandOutput {
    CommandOutput::of(command(url, url).args(arguments)).await
}

/// Returns a `bedplate` command with only `PATH` and the addresses of the services in the environment.
fn command(machines: &str, clusters: &str) -> Command {
    let mut command = Command::new(BEDPLATE);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("BEDPLATE_URL", machines).env("BEDPLATE_CLUSTERS_URL", clusters);
    command
}

/// The output and the exit status of one run of `bedplate`.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Fixture {
    pub(crate) async fn start() -> Fixture {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let config = |name: &str| {
            let state = folder.path().join(name);
            std::fs::create_dir(&state).unwrap();
            format!("state_dir = {state:?}\n[api]\nlisten = '127.0.0.1:0'\n")
        };
        // The BMCs and images of these tests are on loopback, which the services refuse by default.
        let here = "[bmc]\nnetworks = ['127.0.0.0/8']\n[images]\nhosts = ['127.0.0.0/8', 'images.example']\n";
        let machines = toml::from_str(&format!("{}{here}", config("baremetald"))).unwrap();
        let machines = baremetal::Service::start(machines).await.unwrap();
        let clusters = toml::from_str(&config("clusterd")).unwrap();
        let clusters = cluster::Service::start(clusters).await.unwrap();
        let urls = [machines.listeners().api, clusters.listeners().api];
        let [machines_url, clusters_url] = urls.map(|address| format!("http://{address}"));
        let machines = async { machines.run(CancellationToken::new()).await.unwrap() };
        let clusters = async { clusters.run(CancellationToken::new()).await.unwrap() };
        let running = [
            AbortOnDropHandle::new(tokio::spawn(machines)),
            AbortOnDropHandle::new(tokio::spawn(clusters)),
        ];
        Fixture { folder, machines: machines_url, clusters: clusters_url, _running: running }
    }

    /// Returns a `bedplate` command with only `PATH` and the addresses of the services in the environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.machines, &self.clusters);
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    /// Runs `bedplate` with pipes as output.
    pub(crate) async fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::of(&mut self.command(arguments)).await
    }

    /// Enrolls a node, and returns its id. The conductor sends no request to a node's BMC while the node is in `enroll`.
    pub(crate) async fn node(&self, name: &str) -> String {
        let body = json!({"name": name, "driver": "redfish"});
        let made = self.send_json(Method::POST, &format!("{}/v1/nodes", self.machines), body).await;
        serde_json::from_value::<Node>(made).unwrap().id().to_owned()
    }

    /// Sends a JSON request, checks that the request succeeded, and returns the body of the answer.
    pub(crate) async fn send_json(&self, method: Method, url: &str, body: Value) -> Value {
        let client = Client::builder().no_proxy().build().unwrap();
        let request = client.request(method, url).json(&body);
        let request = request.header("X-OpenStack-Ironic-API-Version", "1.95");
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl CommandOutput {
    async fn of(command: &mut Command) -> CommandOutput {
        let output = command.output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandOutput {
            status: output.status.code().unwrap(),
            out: text(output.stdout),
            error: text(output.stderr),
        }
    }

    /// Returns the standard output. Fails if the status was not 0 or standard error was not empty.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!((self.status, self.error.as_str()), (0, ""), "{}", self.out);
        assert!(!self.out.contains('\x1b'), "it drives a terminal in a pipe: {:?}", self.out);
        self.out
    }

    /// Checks the exit status, and that standard error contains the words and no escape sequence.
    #[track_caller]
    pub(crate) fn failed_with(self, status: i32, words: &[&str]) {
        assert_eq!(self.status, status, "{}{}", self.out, self.error);
        for word in words {
            assert!(self.error.contains(word), "{word:?} in {}", self.error);
        }
        assert!(!self.error.contains('\x1b'), "{:?}", self.error);
    }
}
