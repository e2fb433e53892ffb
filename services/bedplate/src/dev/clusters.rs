//! The second half of the demonstration: a Kubernetes cluster in the cloud.

use std::path::Path;

use anyhow::Context;
use api_client::clusterd::Cluster;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::api::{Api, Service, nearby};
use crate::output::{Format, line};
use crate::wait_options::Deadline;
use crate::{cluster, vm};

use super::children::{Children, START_TIMEOUT};
use super::files::remove_file;
use super::nodes;
use super::options::Options;
use super::state_folder::{DemoStep, Folder};

/// The address of the cloud's APIs. The address is the same in each run, because the state folder of earlier runs contains it.
const CLOUD: &str = "127.0.0.1:9513";

/// Starts the emulated cloud without hypervisors: the rack's nodes become its hypervisors.
pub(super) async fn start_cloud(options: &Options, children: &mut Children) -> anyhow::Result<()> {
    line("Starting an emulated OpenStack cloud with realistic delays")?;
    let clouds = options.state.join("clouds.yaml");
    remove_file(&clouds)?;
    let (machines, clusters) = (nearby(Service::Baremetald)?, nearby(Service::Clusterd)?);
    children.start("openstack-emulator", &options.log("openstack-emulator"), |command| {
        command.args(["--realistic", "--no-hosts", "--listen", CLOUD]);
        command.arg("--clouds-out").arg(&clouds).arg("--speed").arg(options.speed.to_string());
        command.arg("--state").arg(options.state.join("cloud.json"));
        command.arg("--shared-network").arg("lab=10.7.0.0/24");
        command.arg("--endpoint").arg(format!("container-infra={clusters}v1"));
        command.arg("--endpoint").arg(format!("baremetal={machines}"));
    })?;
    children.ready(START_TIMEOUT, || std::future::ready(clouds.is_file())).await
}

pub(super) async fn start(options: &Options, children: &mut Children) -> anyhow::Result<Api> {
    line("Starting clusterd, with SQLite in its state folder")?;
    children.start("clusterd", &options.log("clusterd"), |command| {
        command.arg("--config").arg(options.from.join("clusterd.toml"));
    })?;
    let api = Api::nearby(Service::Clusterd)?;
    children.ready(START_TIMEOUT, || async { api.get::<IgnoredAny>("/v1").await.is_ok() }).await?;
    Ok(api)
}

/// Creates a cluster as a tenant, and lists its nodes.
pub(super) async fn story(api: &Api, options: &Options, folder: &Folder) -> anyhow::Result<()> {
    if folder.is_complete(DemoStep::Cluster)? {
        line("\nbedplate cluster list")?;
        return cluster::list(api).await?.write(Format::Table);
    }
    post::<IgnoredAny>(api, "/v1/clustertemplates", &options.from.join("template.json")).await?;
    let made: Cluster = post(api, "/v1/clusters", &options.from.join("cluster.json")).await?;
    let Cluster { name, master_count: masters, node_count: workers, .. } = &made;
    line(&format!(
        "cluster {name}: {masters} control-plane members and {workers} workers requested"
    ))?;

    line(&format!("\nbedplate cluster show {name} --wait"))?;
    cluster::settled(api, name, Deadline::after(None), Format::Table).await?;

    let file = options.state.join(format!("{name}.kubeconfig"));
    line(&format!("\nbedplate cluster kubeconfig {name} > {}", file.display()))?;
    let kubeconfig = cluster::kubeconfig(api, name).await?;
    nodes::keep(&kubeconfig, &file)?;

    line(&format!("\nkubectl --kubeconfig {} get nodes", file.display()))?;
    nodes::show(&kubeconfig, usize::try_from(masters + workers)?).await?;
    folder.mark_complete(DemoStep::Cluster)
}

/// Creates a VM as a tenant.
pub(super) async fn own_machine(api: &Api, folder: &Folder) -> anyhow::Result<()> {
    if folder.is_complete(DemoStep::Machine)? {
        line("\nbedplate vm list")?;
        return vm::list(api).await?.write(Format::Table);
    }
    line("\nbedplate vm request lab-1 --image cirros --flavor m1.tiny --lease 1d --wait")?;
    vm::request(api, "lab-1", ("cirros", "m1.tiny"), "1d").await?;
    folder.mark_complete(DemoStep::Machine)
}

/// Sends a file as a request body and prints the equivalent `curl` command, unless a resource with that name exists. Returns the resource.
async fn post<T: DeserializeOwned>(api: &Api, path: &str, file: &Path) -> anyhow::Result<T> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let body: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    let name = body["name"].as_str().with_context(|| format!("{} has no name", file.display()))?;
    let own = format!("{path}/{name}");
    if let Some(there) = api.find(&own).await? {
        return Ok(there);
    }
    let json = "-H 'Content-Type: application/json'";
    line(&format!("\ncurl {json} -d @{} {}", file.display(), api.url(path)?))?;
    api.post::<IgnoredAny>(path, &body).await?;
    api.get(&own).await
}
