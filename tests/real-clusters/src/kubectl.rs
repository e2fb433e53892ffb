//! `kubectl` with the administrator's kubeconfig: a user's view of the cluster.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cluster_pki::Kubeconfig;
use serde_json::Value;

use crate::Network;
use crate::network::cache;

/// `kubectl` and what it needs.
#[derive(Debug)]
pub struct Kubectl {
    /// The network namespace where it runs; none is the host's own.
    namespace: Option<String>,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// The administrator's, on the network's host.
    pub fn new(network: &Network, kubeconfig: &Kubeconfig) -> Self {
        Kubectl::named(network, "admin.conf", kubeconfig.expose())
    }

    /// Of whoever has the kubeconfig of this text, which is kept in a file of this name, on the network's host.
    pub fn named(network: &Network, name: &str, kubeconfig: &str) -> Self {
        let path = network.state().join(name);
        fs::write(&path, kubeconfig).expect("a file can be written");
        Kubectl { namespace: Some(network.namespace()), kubeconfig: path }
    }

    /// Of whoever has this kubeconfig, from outside of the cloud.
    pub fn outside(kubeconfig: PathBuf) -> Self {
        Kubectl { namespace: None, kubeconfig }
    }

    /// What a command prints; none if it fails.
    pub fn ask(&self, words: &[&str]) -> Option<String> {
        let run = self.command(words).stderr(Stdio::null()).output().ok()?;
        run.status.success().then(|| String::from_utf8_lossy(&run.stdout).into_owned())
    }

    /// What a command says that fails.
    #[track_caller]
    pub fn objection(&self, words: &[&str]) -> String {
        let run = self.command(words).output().expect("kubectl can be started");
        assert!(!run.status.success(), "{words:?} is done");
        String::from_utf8_lossy(&run.stderr).into_owned()
    }

    /// Some objects, as JSON; none if they cannot be read.
    pub fn get(&self, words: &[&str]) -> Option<Value> {
        let words: Vec<&str> =
            ["get", "-o", "json"].into_iter().chain(words.iter().copied()).collect();
        serde_json::from_str(&self.ask(&words)?).ok()
    }

    /// Applies a manifest.
    #[track_caller]
    pub fn apply(&self, manifest: &Value) {
        let mut run = self
            .command(&["apply", "-f", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("kubectl can be started");
        let text = manifest.to_string();
        run.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("kubectl reads");
        assert!(run.wait().expect("kubectl ends").success(), "kubectl apply failed");
    }

    /// The names of nodes that are ready.
    pub fn ready_nodes(&self) -> Vec<String> {
        let nodes = self.get(&["nodes"]).unwrap_or_default();
        let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
        let ready = |node: &&Value| {
            let conditions = node["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
        };
        let name = |node: &Value| node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        nodes.iter().filter(ready).map(name).collect()
    }

    /// How many nodes there are, ready or not.
    pub fn nodes(&self) -> usize {
        let nodes = self.get(&["nodes"]).unwrap_or_default();
        nodes["items"].as_array().map_or(0, Vec::len)
    }

    /// Prints which pods there are and what happened last: for who has to find out why a story failed.
    pub fn tell(&self) {
        for words in [
            &["get", "pods", "--all-namespaces", "--output=wide"][..],
            &["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"],
        ] {
            let told = self.ask(words).unwrap_or_default();
            let lines: Vec<&str> = told.lines().collect();
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
