//! The second half of the story: a cloud has a Kubernetes cluster.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::api::{Api, Service};
use crate::output::{Format, line};
use crate::patience::Deadline;
use crate::{cluster, vm};

use super::children::Children;
use super::{Options, START_TIMEOUT, nodes, remove_file};

/// Starts the emulated cloud. It has no hosts: the rack becomes them.
pub(super) async fn start_cloud(options: &Options, children: &mut Children) -> anyhow::Result<()> {
    line("Starting an emulated OpenStack cloud that takes as long as a real one")?;
    let clouds = options.state.join("clouds.yaml");
    remove_file(&clouds)?;
    let (machines, clusters) = (Service::Machines.nearby()?, Service::Clusters.nearby()?);
    children.start("openstack-emulator", &options.log("openstack-emulator"), |command| {
        command.args(["--realistic", "--no-hosts"]).arg("--clouds-out").arg(&clouds);
        command.arg("--shared-network").arg("lab=10.7.0.0/24");
        command.arg("--endpoint").arg(format!("container-infra={clusters}v1"));
        command.arg("--endpoint").arg(format!("baremetal={machines}"));
    })?;
    children.ready(START_TIMEOUT, || std::future::ready(clouds.is_file())).await
}

/// Starts clusterd.
pub(super) async fn start(options: &Options, children: &mut Children) -> anyhow::Result<Api> {
    // The cloud forgets all when it ends; a clusterd that remembered clusters of it would repair what never was.
    let remembered = options.state.join("clusterd");
    if remembered.exists() {
        std::fs::remove_dir_all(&remembered).context("cannot remove clusterd's state folder")?;
    }
    line("Starting clusterd, with SQLite in its state folder")?;
    children.start("clusterd", &options.log("clusterd"), |command| {
        command.arg("--config").arg(options.from.join("clusterd.toml"));
    })?;
    let api = Api::nearby(Service::Clusters)?;
    children.ready(START_TIMEOUT, || async { api.get("/v1").await.is_ok() }).await?;
    Ok(api)
}

/// A tenant asks for a cluster, and reaches it.
pub(super) async fn story(api: &Api, options: &Options) -> anyhow::Result<()> {
    post(api, "/v1/clustertemplates", &options.from.join("template.json")).await?;
    let asked = post(api, "/v1/clusters", &options.from.join("cluster.json")).await?;
    let id = asked["uuid"].as_str().context("the API's answer has no id")?;
    let made = api.get(&format!("/v1/clusters/{id}")).await?;
    let name = made["name"].as_str().context("the cluster has no name")?;
    let count = |field: &str| made[field].as_u64().unwrap_or(0);
    let (masters, workers) = (count("master_count"), count("node_count"));
    line(&format!(
        "cluster {name}: {masters} control-plane nodes and {workers} workers asked for"
    ))?;

    line(&format!("\nbedplate cluster show {name} --wait"))?;
    cluster::settled(api, name, Deadline::after(None), Format::Table).await?;

    let file = options.state.join(format!("{name}.kubeconfig"));
    line(&format!("\nbedplate cluster kubeconfig {name} > {}", file.display()))?;
    let kubeconfig = cluster::kubeconfig(api, name).await?;
    nodes::keep(&kubeconfig, &file)?;

    line(&format!("\nkubectl --kubeconfig {} get nodes", file.display()))?;
    nodes::show(&kubeconfig, usize::try_from(masters + workers)?).await
}

/// Somebody asks for a machine of their own.
pub(super) async fn own_machine(api: &Api) -> anyhow::Result<()> {
    line("\nbedplate vm request lab-1 --image cirros --flavor m1.tiny --lease 1d --wait")?;
    vm::request(api, "lab-1", ("cirros", "m1.tiny"), "1d").await
}

/// Sends a file as it is, and says how anybody else would.
async fn post(api: &Api, path: &str, file: &Path) -> anyhow::Result<Value> {
    let json = "-H 'Content-Type: application/json'";
    line(&format!("\ncurl {json} -d @{} {}", file.display(), api.url(path)?))?;
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let body: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    api.post(path, &body).await
}
