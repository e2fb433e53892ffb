//! `bedplate dev`: runs all services with an emulated rack and an emulated cloud, and demonstrates them.
//!
//! The services and the emulators are child processes: the same programs that an administrator runs. None of them is linked into this
//! program.

mod children;
mod clusters;
mod console;
mod files;
mod logins;
mod machines;
mod nodes;
mod options;
mod state_folder;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use crate::api::Api;
use crate::output::line;

use children::Children;
use options::Command;
pub(crate) use options::Options;
use state_folder::Folder;

/// Runs the demonstration, and keeps everything running until interrupted. No child process outlives this process.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    match &options.command {
        Some(Command::Reset { state }) => {
            if state.exists() {
                Folder::take(state).await?.clear()?;
            }
            return line(&format!("the state in {} is removed", state.display()));
        }
        Some(Command::Child(ward)) => return children::become_program(ward),
        None => {}
    }
    files::are_there(&options.from)?;
    let folder = Folder::take(&options.state).await?;
    let mut children = Children::new(folder.lock()?);
    let outcome = tokio::select! {
        interrupted = interrupted() => interrupted,
        ended = run_story(options, &folder, &mut children) => ended,
    };
    children.end().await;
    outcome
}

async fn run_story(
    options: &Options,
    folder: &Folder,
    children: &mut Children,
) -> anyhow::Result<()> {
    if options.reset {
        folder.clear()?;
    }
    if !folder.is_new()? {
        let state = options.state.display();
        line(&format!(
            "Continuing the last run, whose state is in {state}. To start from the beginning: bedplate dev --reset\n"
        ))?;
    }
    let image = files::make(&options.state)?;
    clusters::start_cloud(options, children).await?;
    let api = machines::start(options, children).await?;
    console::start(options, children).await?;
    tokio::select! {
        done = machines::story(&api, options, folder, &image) => done?,
        ended = children.ended() => return ended,
    }
    line("")?;
    let api = clusters::start(options, children).await?;
    tokio::select! {
        done = clusters_and_machine(&api, options, folder) => done?,
        ended = children.ended() => return ended,
    }
    if options.once {
        return Ok(());
    }
    whats_next(options)?;
    children.ended().await
}

/// The tenant's part of the demonstration: a cluster and a VM.
async fn clusters_and_machine(api: &Api, options: &Options, folder: &Folder) -> anyhow::Result<()> {
    clusters::story(api, options, folder).await?;
    clusters::own_machine(api, folder).await
}

/// Waits for the signal to end: Ctrl-C, a closed terminal or `kill`.
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

fn whats_next(options: &Options) -> anyhow::Result<()> {
    logins::show(options)?;
    let state = options.state.display();
    line(&format!(
        "\nThe machines of the rack are hypervisors of the cloud. Everything stays up until Ctrl-C. In a browser: http://{}/\n\
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
         \n  target/debug/bedplate drain dev-1 --wait\
         \n  openstack --os-auth-type none --os-endpoint http://127.0.0.1:6385 baremetal node undeploy dev-1\
         \n  export OS_CLIENT_CONFIG_FILE={state}/clouds.yaml\
         \n  openstack --os-cloud admin hypervisor list\
         \n  openstack --os-cloud clusterd server list\
         \n  openstack --os-cloud clusterd coe cluster resize tenant 4\
         \n\nLogs and state are in {state}: the next `bedplate dev` continues with them, and `bedplate dev reset` removes them. The APIs are described at\
         \nhttp://127.0.0.1:6385/openapi.json and http://127.0.0.1:9511/openapi.json.",
        console::ADDRESS
    ))
}
