//! `bedplate dev`: everything here, with an emulated rack and an emulated cloud, and their story.
//!
//! The services and the emulators are child processes: the same programs an administrator runs, and nothing of them is linked into
//! this one.

mod children;
mod clusters;
mod console;
mod files;
mod machines;
mod nodes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::api::Api;
use crate::output::line;

use children::Children;

/// How long a child may take to be ready.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// What `bedplate dev` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder with baremetald.toml, machines.yaml, rack.yaml, clusterd.toml, template.json, cluster.json and console.toml.
    #[arg(long, default_value = "deploy/dev")]
    from: PathBuf,
    /// The folder for logs, disks and databases, as baremetald.toml and clusterd.toml name it.
    #[arg(long, default_value = ".state/dev")]
    state: PathBuf,
    /// Begins anew: removes the state folder first.
    #[arg(long)]
    reset: bool,
    /// Ends when the story is told, instead of staying up.
    #[arg(long)]
    once: bool,
}

impl Options {
    fn log(&self, name: &str) -> PathBuf {
        self.state.join(format!("{name}.log"))
    }
}

/// Tells the story, then stays up until interrupted. Nothing that was started outlives it.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let mut children = Children::default();
    let outcome = tokio::select! {
        interrupted = interrupted() => interrupted,
        told = tell(options, &mut children) => told,
    };
    children.end().await;
    outcome
}

async fn tell(options: &Options, children: &mut Children) -> anyhow::Result<()> {
    if options.reset && options.state.exists() {
        std::fs::remove_dir_all(&options.state).context("cannot remove the state folder")?;
    }
    let image = files::make(&options.state)?;
    clusters::start_cloud(options, children).await?;
    let api = machines::start(options, children).await?;
    console::start(options, children).await?;
    tokio::select! {
        told = machines::story(&api, options, &image) => told?,
        ended = children.ended() => return ended,
    }
    line("")?;
    let api = clusters::start(options, children).await?;
    tokio::select! {
        told = clusters_and_machine(&api, options) => told?,
        ended = children.ended() => return ended,
    }
    if options.once {
        return Ok(());
    }
    whats_next(options)?;
    children.ended().await
}

/// What a tenant of the cloud gets: a cluster, and a machine.
async fn clusters_and_machine(api: &Api, options: &Options) -> anyhow::Result<()> {
    clusters::story(api, options).await?;
    clusters::own_machine(api).await
}

/// Waits for whoever ends us: by Ctrl-C, by a closed terminal, or by `kill`.
async fn interrupted() -> anyhow::Result<()> {
    let cannot = "cannot listen for signals";
    let mut hang_up = signal(SignalKind::hangup()).context(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).context(cannot)?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context(cannot),
        _ = hang_up.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

/// Removes what an earlier run left, so that what is there was written by this one.
fn remove_file(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn whats_next(options: &Options) -> anyhow::Result<()> {
    let state = options.state.display();
    line(&format!(
        "\nThe rack's machines are the cloud's hypervisors, the cluster on them is ready, and all of it stays up until Ctrl-C. In a browser: http://{}/\n\
         \nIn another terminal:\n\
         \n  target/debug/bedplate rack status dev\
         \n  target/debug/bedplate node explain dev-1\
         \n  target/debug/bedplate profile show kvm\
         \n  target/debug/bedplate cluster show tenant\
         \n  target/debug/bedplate vm show lab-1 --events\
         \n  target/debug/bedplate vm extend lab-1 --for 7d\
         \n  kubectl --kubeconfig {state}/tenant.kubeconfig get nodes\
         \n  curl http://127.0.0.1:6385/v1/nodes\
         \n  pip install python-openstackclient python-ironicclient python-magnumclient\
         \n  openstack --os-auth-type none --os-endpoint http://127.0.0.1:6385 baremetal node list\
         \n  openstack --os-auth-type none --os-endpoint http://127.0.0.1:6385 baremetal node undeploy dev-1\
         \n  export OS_CLIENT_CONFIG_FILE={state}/clouds.yaml\
         \n  openstack --os-cloud admin hypervisor list\
         \n  openstack --os-cloud clusterd server list\
         \n  openstack --os-cloud clusterd coe cluster resize tenant 4\
         \n\nLogs and state are in {state}; the APIs describe themselves at http://127.0.0.1:6385/openapi.json\
         \nand http://127.0.0.1:9511/openapi.json.",
        console::ADDRESS
    ))
}
