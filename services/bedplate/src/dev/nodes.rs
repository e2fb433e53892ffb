//! Lists a cluster's nodes from the cluster's own API, as `kubectl get nodes` does.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Certificate, Client, Identity};
use serde_json::Value;

use crate::output::{plain, table};

/// Writes a kubeconfig that only its owner can read.
pub(super) fn keep(kubeconfig: &str, path: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    super::files::remove_file(path)?;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.with_context(cannot)?.write_all(kubeconfig.as_bytes()).with_context(cannot)
}

/// Prints the nodes. Returns an error if a node is not ready, or if their number differs from `number`.
pub(super) async fn show(kubeconfig: &str, number: usize) -> anyhow::Result<()> {
    let nodes = list(kubeconfig).await.context("cannot list the nodes of the cluster")?;
    let rows = nodes.iter().map(|node| {
        let ready = if is_ready(node) { "Ready" } else { "NotReady" };
        vec![plain(name(node)), ready.to_owned(), role(node).to_owned()]
    });
    table(&["Node", "Status", "Role"], rows)?;
    let ready = nodes.iter().filter(|node| is_ready(node)).count();
    ensure!(
        ready == number && nodes.len() == number,
        "{ready} of {} nodes are ready; {number} were requested",
        nodes.len()
    );
    Ok(())
}

/// Sends `GET /api/v1/nodes` with the credentials of the kubeconfig.
async fn list(kubeconfig: &str) -> anyhow::Result<Vec<Value>> {
    // The error must not quote the kubeconfig, because it contains a key.
    let config: Value = serde_saphyr::from_str(kubeconfig)
        .map_err(|_| anyhow::anyhow!("the kubeconfig is not YAML"))?;
    let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
    let authority = decoded(cluster, "certificate-authority-data")?;
    let mut identity = decoded(user, "client-key-data")?;
    identity.extend(decoded(user, "client-certificate-data")?);
    let client = Client::builder()
        .no_proxy()
        .tls_certs_only([Certificate::from_pem(&authority)?])
        .identity(Identity::from_pem(&identity)?)
        .build()
        .context("cannot set up an HTTP client")?;
    let server = cluster["server"].as_str().context("the kubeconfig has no server")?;
    let answer = client.get(format!("{server}/api/v1/nodes")).send().await?.error_for_status()?;
    let mut body: Value = answer.json().await?;
    let mut nodes: Vec<Value> = serde_json::from_value(body["items"].take())
        .context("the response has no list of nodes")?;
    nodes.sort_by(|one, other| name(one).cmp(name(other)));
    Ok(nodes)
}

fn decoded(part: &Value, field: &str) -> anyhow::Result<Vec<u8>> {
    let text = part[field].as_str().with_context(|| format!("the kubeconfig has no {field}"))?;
    STANDARD.decode(text).map_err(|_| anyhow::anyhow!("the kubeconfig's {field} is not base64"))
}

fn name(node: &Value) -> &str {
    node["metadata"]["name"].as_str().unwrap_or("")
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn role(node: &Value) -> &'static str {
    let label = &node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"];
    if label.is_string() { "control-plane" } else { "worker" }
}
