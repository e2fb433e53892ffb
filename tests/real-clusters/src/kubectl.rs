//! `kubectl`, to see a cluster as its user does.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cluster_pki::Kubeconfig;
use serde_json::Value;

use crate::Network;
use crate::network::cache;

/// How to run `kubectl`: with this kubeconfig, in this network namespace.
#[derive(Debug)]
pub struct Kubectl {
    /// The network namespace to run in. `None` is the namespace of the host.
    namespace: Option<String>,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// `kubectl` of the cluster's administrator, on the host of the network.
    pub fn new(network: &Network, kubeconfig: &Kubeconfig) -> Self {
        Kubectl::named(network, "admin.conf", kubeconfig.expose())
    }

    /// `kubectl` with this kubeconfig, on the host of the network. The kubeconfig is written to a file of this name.
    pub fn named(network: &Network, name: &str, kubeconfig: &str) -> Self {
        let path = network.state().join(name);
        fs::write(&path, kubeconfig).expect("a file can be written");
        Kubectl { namespace: Some(network.namespace()), kubeconfig: path }
    }

    /// `kubectl` with this kubeconfig, outside of the cloud.
    pub fn outside(kubeconfig: PathBuf) -> Self {
        Kubectl { namespace: None, kubeconfig }
    }

    /// The output of a command. `None` if the command fails.
    pub fn ask(&self, words: &[&str]) -> Option<String> {
        let run = self.command(words).stderr(Stdio::null()).output().ok()?;
        run.status.success().then(|| String::from_utf8_lossy(&run.stdout).into_owned())
    }

    /// The error text of a command that has to fail.
    #[track_caller]
    pub fn objection(&self, words: &[&str]) -> String {
        let run = self.command(words).output().expect("kubectl can be started");
        assert!(!run.status.success(), "{words:?} is done");
        String::from_utf8_lossy(&run.stderr).into_owned()
    }

    /// The objects that `kubectl get` prints. `None` if the command fails.
    pub fn get(&self, words: &[&str]) -> Option<Value> {
        let words: Vec<&str> =
            ["get", "-o", "json"].into_iter().chain(words.iter().copied()).collect();
        serde_json::from_str(&self.ask(&words)?).ok()
    }

    /// Applies a manifest. `None` if the command fails.
    pub fn apply(&self, manifest: &Value) -> Option<()> {
        let mut run = self
            .command(&["apply", "-f", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("kubectl can be started");
        let text = manifest.to_string();
        let written = run.stdin.take().expect("it is piped").write_all(text.as_bytes());
        let ended = run.wait().expect("kubectl ends");
        (written.is_ok() && ended.success()).then_some(())
    }

    /// The names of the Kubernetes nodes, each with whether it is Ready.
    pub fn nodes(&self) -> BTreeMap<String, bool> {
        let nodes = self.get(&["nodes"]).unwrap_or_default();
        let ready = |node: &Value| {
            let conditions = node["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
        };
        let name = |node: &Value| node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let nodes = nodes["items"].as_array().into_iter().flatten();
        nodes.map(|node| (name(node), ready(node))).collect()
    }

    /// The names of the Kubernetes nodes that are Ready.
    pub fn ready_nodes(&self) -> Vec<String> {
        self.nodes().into_iter().filter_map(|(name, ready)| ready.then_some(name)).collect()
    }

    /// The names of the Kubernetes nodes with the versions of their kubelets. `None` if nothing answers.
    pub fn versions(&self) -> Option<BTreeMap<String, String>> {
        let version = |node: &Value| {
            let version = node["status"]["nodeInfo"]["kubeletVersion"].as_str()?.to_owned();
            Some((node["metadata"]["name"].as_str()?.to_owned(), version))
        };
        Some(self.get(&["nodes"])?["items"].as_array()?.iter().filter_map(version).collect())
    }

    /// Prints the pods and the last events, to show why a test failed.
    pub fn tell(&self) {
        for words in [
            &["get", "pods", "--all-namespaces", "--output=wide"][..],
            &["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"],
        ] {
            let reported = self.ask(words).unwrap_or_default();
            let lines: Vec<&str> = reported.lines().collect();
            let last = &lines[lines.len().saturating_sub(25)..];
            eprintln!("kubectl {}:\n{}", words.join(" "), last.join("\n"));
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let program = cache().join("kubernetes/mirror/kubectl");
        let mut command = match &self.namespace {
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.arg("--kubeconfig").arg(&self.kubeconfig).arg("--request-timeout=10s").args(words);
        command
    }
}
