//! `bedplate vm`: VMs of the caller.

mod outcome;
mod request;
mod route;
mod show;
mod wait;

use api_client::clusterd::{ConsoleUrl, Snapshot, Vm};
use api_client::{WithJson, element_path};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::api::Api;
use crate::confirmation::Confirmation;
use crate::output::{Answer, Format, line, plain};
use crate::wait_options::WaitOptions;
use crate::watch::Watch;

use outcome::show_outcome;
use route::{MACHINES, SNAPSHOTS, path};
use wait::Goal;

/// The subcommands of `bedplate vm`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a VM.
    Request(request::Options),
    /// List VMs: the caller's own; managers see those of the project, administrators see all.
    List {
        #[command(flatten)]
        filter: show::Filter,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show a VM: state, addresses, and the stages of its lease.
    Show {
        /// Name or id of the VM.
        vm: String,
        /// Also show its events.
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        watch: Watch,
    },
    /// Extend the lease of a VM, counted from now.
    Extend {
        /// Name or id of the VM.
        vm: String,
        #[command(flatten)]
        term: LeaseEnd,
    },
    /// Undo the end of a lease before the VM is deleted: the VM is switched on again and gets a short lease.
    Undo {
        /// Name or id of the VM.
        vm: String,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// Power on a VM.
    Start {
        /// Name or id of the VM.
        vm: String,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// Shut down a VM.
    Stop {
        /// Name or id of the VM.
        vm: String,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// Reboot a VM.
    Reboot {
        /// Name or id of the VM.
        vm: String,
        /// Hard reboot: power cycle without a shutdown of the operating system.
        #[arg(long)]
        hard: bool,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// Resize a VM to another flavor; the VM reboots. The disk cannot shrink.
    Resize {
        /// Name or id of the VM.
        vm: String,
        /// New flavor, by name or id.
        #[arg(long)]
        flavor: String,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// Create a snapshot: an image of the disk that outlives the VM.
    Snapshot {
        /// Name or id of the VM.
        vm: String,
        /// Name of the snapshot, a DNS label; default: a generated name.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// List snapshots of one VM, or of all VMs including deleted ones.
    Snapshots {
        /// Name or id of the VM.
        vm: Option<String>,
        #[command(flatten)]
        watch: Watch,
    },
    /// Delete a snapshot.
    DeleteSnapshot {
        /// Name or id of the VM.
        snapshot: String,
        #[command(flatten)]
        consent: Confirmation,
    },
    /// Print a temporary URL of a VM's console; anyone with the URL can use the console.
    Console {
        /// Name or id of the VM.
        vm: String,
        /// Type of console.
        #[arg(long, value_enum, default_value_t = Console::Novnc)]
        kind: Console,
    },
    /// Delete a VM with all its cloud objects.
    Delete {
        /// Name or id of the VM.
        vm: String,
        #[command(flatten)]
        consent: Confirmation,
        #[command(flatten)]
        patience: WaitOptions,
    },
    /// List images for VMs with their minimum RAM and disk.
    Images,
    /// List idle VMs with a lease: switched off, or without requests for a long time.
    Idle {
        #[command(flatten)]
        filter: show::IdleFilter,
        #[command(flatten)]
        watch: Watch,
    },
}

/// The new end of a lease.
#[derive(Args)]
pub(crate) struct LeaseEnd {
    /// Lease duration from now, for example 14d, 36h or 1d12h; default: the configured duration.
    #[arg(long = "for", value_name = "LENGTH", conflicts_with = "until")]
    length: Option<String>,
    /// End of the lease, for example 2026-12-01T18:00:00Z.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// The kind of a console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Console {
    /// Graphical console in a browser.
    Novnc,
    /// Serial console over a WebSocket.
    Serial,
}

impl LeaseEnd {
    fn body(&self) -> Value {
        match (&self.length, &self.until) {
            (Some(length), _) => json!({"for": length}),
            (None, Some(until)) => json!({"until": until}),
            (None, None) => json!({}),
        }
    }
}

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    let act = async |vm: &str, body: Value, goal: Goal, patience: WaitOptions| {
        let asked = api.post(&path(vm, "/actions")?, &body).await?;
        show_outcome(api, asked, goal, patience, format).await
    };
    match command {
        Command::Request(options) => request::run(options, api, format).await,
        Command::List { filter, watch } => {
            watch.show(format, async || show::list(api, &filter).await).await
        }
        Command::Show { vm, events, watch } => {
            watch.show(format, async || show::one(api, &vm, events).await).await
        }
        Command::Extend { vm, term } => {
            let vm = api.put(&path(&vm, "/lease")?, &term.body()).await?;
            show::answer(vm).write(format)
        }
        Command::Undo { vm, patience } => {
            let vm = api.post(&path(&vm, "/lease/undo")?, &json!({})).await?;
            show_outcome(api, vm, Goal::Settled, patience, format).await
        }
        Command::Start { vm, patience } => {
            act(&vm, json!({"action": "start"}), Goal::Is("ACTIVE"), patience).await
        }
        Command::Stop { vm, patience } => {
            act(&vm, json!({"action": "stop"}), Goal::Is("STOPPED"), patience).await
        }
        Command::Reboot { vm, hard, patience } => {
            let body = json!({"action": "reboot", "hard": hard});
            act(&vm, body, Goal::Is("ACTIVE"), patience).await
        }
        Command::Resize { vm, flavor, patience } => {
            let body = json!({"action": "resize", "flavor": flavor});
            act(&vm, body, Goal::Settled, patience).await
        }
        Command::Snapshot { vm, name, patience } => {
            snapshot(api, &vm, name, patience, format).await
        }
        Command::Snapshots { vm, watch } => {
            watch.show(format, async || show::snapshots(api, vm.as_deref()).await).await
        }
        Command::DeleteSnapshot { snapshot, consent } => {
            consent.to(&format!("snapshot {snapshot} is deleted"), &snapshot)?;
            api.delete(&element_path(SNAPSHOTS, &snapshot, "")?).await?;
            line(&plain(&format!("snapshot {snapshot} is being deleted")))
        }
        Command::Console { vm, kind } => console(api, &vm, kind, format).await,
        Command::Delete { vm, consent, patience } => delete(api, &vm, consent, patience).await,
        Command::Images => show::images(api).await?.write(format),
        Command::Idle { filter, watch } => {
            watch.show(format, async || show::idle(api, &filter).await).await
        }
    }
}

/// Lists the VMs that the caller may see.
pub(crate) async fn list(api: &Api) -> anyhow::Result<Answer> {
    show::list(api, &show::Filter::default()).await
}

/// Creates a VM with this image and flavor unless one with that name exists, and shows the VM once it runs.
pub(crate) async fn request(
    api: &Api,
    name: &str,
    (image, flavor): (&str, &str),
    lease: &str,
) -> anyhow::Result<()> {
    let body = json!({"name": name, "image": image, "flavor": flavor, "lease": lease});
    let asked = match api.find::<WithJson<Vm>>(&path(name, "")?).await? {
        Some(there) => there,
        None => api.post(MACHINES, &body).await?,
    };
    show_outcome(api, asked, Goal::Is("ACTIVE"), WaitOptions::ENDLESS, Format::Table).await
}

async fn snapshot(
    api: &Api,
    vm: &str,
    name: Option<String>,
    patience: WaitOptions,
    format: Format,
) -> anyhow::Result<()> {
    let asked: WithJson<Snapshot> =
        api.post(&path(vm, "/snapshots")?, &json!({"name": name})).await?;
    let kept = if patience.wait {
        wait::for_snapshot(api, &asked.uuid, patience.begin(), format).await?
    } else {
        asked
    };
    show::snapshot_row(kept).write(format)
}

async fn console(api: &Api, vm: &str, kind: Console, format: Format) -> anyhow::Result<()> {
    let kind = match kind {
        Console::Novnc => "novnc",
        Console::Serial => "serial",
    };
    let answer: WithJson<ConsoleUrl> =
        api.post(&path(vm, "/console")?, &json!({"kind": kind})).await?;
    Answer::sentence(answer.json, plain(&answer.read.url)).write(format)
}

async fn delete(
    api: &Api,
    vm: &str,
    consent: Confirmation,
    patience: WaitOptions,
) -> anyhow::Result<()> {
    // From here on the VM is identified by its id, because another one may get its name.
    let Vm { uuid, .. } = api.get(&path(vm, "")?).await?;
    consent.to(&format!("VM {vm} is deleted with its disk"), vm)?;
    api.delete(&path(&uuid, "")?).await?;
    if patience.wait {
        wait::for_deletion(api, &uuid, patience.begin()).await?;
        return line(&plain(&format!("VM {vm} is deleted")));
    }
    line(&plain(&format!("{vm} is being deleted")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_segment_of_the_path() {
        let path = |vm| path(vm, "/actions").unwrap();
        assert_eq!(path("lab"), "/bedplate/v1/machines/lab/actions");
        assert_eq!(path("a/b?c"), "/bedplate/v1/machines/a%2Fb%3Fc/actions");
    }
}
