//! `bedplate rack`: enrolls racks and brings them up.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use api_client::baremetald::{Enrolment, GoalProgress, Rack, RackMachine, RackSummary};
use api_client::{WithJson, element_path};
use clap::{Subcommand, ValueEnum};
use jiff::Timestamp;
use rack_manifest::{
    Manifest, ManifestError, Password, PasswordError, check, read_csv, read_yaml, request,
};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::confirmation::Confirmation;
use crate::image::ImageOptions;
use crate::node::DeletableNode;
use crate::output::{Answer, Format, counted, line, plain, text};
use crate::progress::{Display, Row};
use crate::rack_status::{doing, is_settled};
use crate::wait_options::{Deadline, WaitOptions, length};
use crate::watch::Watch;

/// The subcommands of `bedplate rack`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List racks.
    List {
        #[command(flatten)]
        watch: Watch,
    },
    /// Enroll the machines of a manifest, all or none; repeating the command changes nothing.
    Enroll {
        /// Rack manifest: .yaml, .yml or .csv.
        manifest: PathBuf,
        /// Name of the rack, for a CSV file; default: the name of the file.
        #[arg(long)]
        name: Option<String>,
    },
    /// Bring the machines of a rack to the target state and show the progress; failed machines are retried.
    Up {
        /// Name of the rack.
        rack: String,
        #[command(flatten)]
        image: ImageOptions,
        /// Hypervisor profile by which the machines join the cloud; the profile also selects the image.
        #[arg(long, conflicts_with_all = ["image", "reach"])]
        profile: Option<String>,
        /// Target state.
        #[arg(long, value_enum)]
        reach: Option<BringUpTarget>,
        /// Maximum number of machines in parallel.
        #[arg(long)]
        limit: Option<NonZeroU32>,
        /// Return at once; the service continues.
        #[arg(long)]
        detach: bool,
        /// Stop showing the progress after this time, for example 90s, 15m or 2h; the service continues.
        #[arg(long, value_name = "LENGTH", value_parser = length, conflicts_with = "detach")]
        timeout: Option<Duration>,
        #[command(flatten)]
        consent: Confirmation,
    },
    /// Delete a rack; its machines stay unchanged.
    Delete {
        /// Name of the rack.
        rack: String,
        /// Also delete the nodes of the rack with their ports and history.
        #[arg(long)]
        nodes: bool,
        #[command(flatten)]
        consent: Confirmation,
    },
    /// Pause a rack: start no more machines; operations in progress complete.
    Pause {
        /// Name of the rack.
        rack: String,
    },
    /// Show the progress of a rack.
    Status {
        /// Name of the rack.
        rack: String,
        #[command(flatten)]
        watch: Watch,
        #[command(flatten)]
        patience: WaitOptions,
    },
}

/// The goal of a bring-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BringUpTarget {
    /// Machines are inspected.
    Inspected,
    /// Machines are cleaned and available.
    Available,
    /// Machines are installed.
    Installed,
}

impl BringUpTarget {
    const fn as_str(self) -> &'static str {
        match self {
            BringUpTarget::Inspected => "inspected",
            BringUpTarget::Available => "available",
            BringUpTarget::Installed => "installed",
        }
    }
}

pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List { watch } => watch.show(format, async || list(api).await).await,
        Command::Enroll { manifest, name } => enroll(api, &manifest, name, format).await,
        Command::Up { rack, image, profile, reach, limit, detach, timeout, consent } => {
            let info = image.instance_info()?;
            let reach = reach.unwrap_or(if info.is_some() || profile.is_some() {
                BringUpTarget::Installed
            } else {
                BringUpTarget::Available
            });
            let goal = Goal { reach, instance_info: info, profile, limit };
            let erased = erased(&fetch(api, &rack).await?.read, reach);
            if erased > 0 {
                consent.to(
                    &format!("the disks of {erased} machines of rack {rack} are erased"),
                    &rack,
                )?;
            }
            set_goal(api, &rack, goal).await?;
            if detach {
                return Ok(());
            }
            settled(api, &rack, Deadline::after(timeout), format).await
        }
        Command::Delete { rack, nodes, consent } => delete(api, &rack, nodes, consent).await,
        Command::Pause { rack } => api.delete(&format!("/bedplate/v1/racks/{rack}/up")).await,
        Command::Status { rack, patience, .. } if patience.wait => {
            settled(api, &rack, patience.begin(), format).await
        }
        Command::Status { rack, watch, .. } => {
            watch.show(format, async || status(api, &rack).await).await
        }
    }
}

/// The number of nodes whose disks are erased on the way to `reach`: nodes in use stay unchanged, and available nodes are clean until an
/// image is installed.
fn erased(status: &Rack, reach: BringUpTarget) -> usize {
    let is_left = |machine: &RackMachine| match (reach, machine.provision_state.as_str()) {
        (BringUpTarget::Inspected, _) | (_, "active") | (BringUpTarget::Available, "available") => {
            true
        }
        (BringUpTarget::Available | BringUpTarget::Installed, _) => false,
    };
    status.machines.iter().filter(|machine| !is_left(machine)).count()
}

/// Deletes a rack, and its nodes with `--nodes`. A problem with any node is reported before the first node is deleted.
async fn delete(api: &Api, rack: &str, nodes: bool, consent: Confirmation) -> anyhow::Result<()> {
    let path = element_path("/bedplate/v1/racks", rack, "")?;
    let machines = fetch(api, rack).await?.read.machines;
    let (count, name) = (machines.len(), plain(rack));
    if count > 0 && !nodes {
        bail!(
            "rack {name} has {count} machines. Hint: `bedplate rack delete {name} --nodes` deletes their nodes, too"
        );
    }
    let mut leaving = Vec::new();
    for machine in &machines {
        leaving.push(DeletableNode::find(api, &machine.uuid).await?);
    }
    consent.to(&format!("rack {name} is deleted, with the nodes of its {count} machines"), rack)?;
    // The bring-up ends first, so that it does not work on nodes that are being deleted.
    api.delete(&format!("{path}/up")).await?;
    for node in &leaving {
        node.delete(api, &[]).await?;
        line(&format!("node {} is deleted", node.label))?;
    }
    api.delete(&path).await?;
    line(&format!("rack {name} is deleted"))
}

async fn list(api: &Api) -> anyhow::Result<Answer> {
    let racks = api.all("/bedplate/v1/racks").await?;
    let row = |rack: &RackSummary| {
        let reach = rack.goal.as_ref().map(|goal| goal.reach.as_str());
        vec![plain(&rack.name), text(rack.description.as_deref()), text(reach)]
    };
    Ok(Answer::list("racks", racks, &["Rack", "Description", "Target state"], row))
}

/// Reads, checks and sends a manifest.
pub(crate) async fn enroll(
    api: &Api,
    file: &Path,
    name: Option<String>,
    format: Format,
) -> anyhow::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let manifest = read(file, name)?;
    let mistakes = check(&manifest);
    if !mistakes.is_empty() {
        return Err(refused(file, &mistakes));
    }
    let asked = request(&manifest, |password| resolve(password, folder));
    let asked = asked.map_err(|mistakes| refused(file, &mistakes))?;
    let answer: WithJson<Enrolment> = api.post("/bedplate/v1/racks", &asked).await?;
    let count =
        |result: &str| answer.machines.iter().filter(|machine| machine.result == result).count();
    let words = format!(
        "rack {}: {} machines enrolled, {} updated, {} unchanged",
        asked.name,
        count("enrolled"),
        count("updated"),
        count("unchanged")
    );
    Answer::sentence(answer.json, words).write(format)
}

/// The error that names every mistake in a manifest.
fn refused(file: &Path, mistakes: &[ManifestError]) -> anyhow::Error {
    let lines = mistakes.iter().map(|mistake| format!("{}: {mistake}", file.display()));
    anyhow::anyhow!("{}\nnothing was enrolled", lines.collect::<Vec<_>>().join("\n"))
}

fn read(file: &Path, name: Option<String>) -> anyhow::Result<Manifest> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let manifest = match file.extension().and_then(|ending| ending.to_str()) {
        Some("yaml" | "yml") => read_yaml(&text),
        Some("csv") => {
            let own = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            read_csv(&name.or(own).unwrap_or_default(), &text)
        }
        Some(_) | None => {
            bail!("{}: the name of a manifest must end in .yaml, .yml or .csv", file.display())
        }
    };
    manifest.map_err(|mistakes| refused(file, &mistakes))
}

/// Looks up a password. A relative path starts at the folder of the manifest.
fn resolve(password: &Password, folder: &Path) -> Result<String, PasswordError> {
    match password {
        Password::Environment(variable) => std::env::var(variable)
            .map_err(|_| PasswordError(format!("the environment variable {variable} is not set"))),
        Password::File(file) => {
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path)
                .map_err(|why| PasswordError(format!("cannot read {}: {why}", path.display())))?;
            Ok(text.lines().next().unwrap_or_default().to_owned())
        }
    }
}

/// The goal of a bring-up.
pub(crate) struct Goal {
    pub(crate) reach: BringUpTarget,
    /// The image to install, as the `instance_info` of the Bare Metal API.
    pub(crate) instance_info: Option<Map<String, Value>>,
    /// The hypervisor profile, which replaces `instance_info`.
    pub(crate) profile: Option<String>,
    /// The maximum number of nodes in progress.
    pub(crate) limit: Option<NonZeroU32>,
}

impl Goal {
    /// Makes a goal without an image, profile or limit.
    pub(crate) fn of(reach: BringUpTarget) -> Goal {
        Goal { reach, instance_info: None, profile: None, limit: None }
    }
}

pub(crate) async fn set_goal(api: &Api, rack: &str, goal: Goal) -> anyhow::Result<()> {
    let Goal { reach, instance_info, profile, limit } = goal;
    let mut body = json!({"reach": reach.as_str(), "instance_info": instance_info.unwrap_or_default(), "limit": limit});
    // An older service does not know profiles, and refuses unknown fields.
    if let Some(profile) = profile {
        body["profile"] = json!(profile);
    }
    let path = format!("/bedplate/v1/racks/{rack}/up");
    api.put::<IgnoredAny>(&path, &body).await.map(drop)
}

/// Shows the rack until no node changes any more. Returns an error if a node failed.
pub(crate) async fn settled(
    api: &Api,
    rack: &str,
    deadline: Deadline,
    format: Format,
) -> anyhow::Result<()> {
    let begun = Timestamp::now();
    let mut display = format.is_for_people().then(Display::fitting);
    let settled = loop {
        let status = fetch(api, rack).await?;
        let rows = status.machines.iter().map(|machine| Row::of_machine(machine, begun));
        if let Some(display) = &mut display {
            display.show(rows.collect(), begun)?;
        }
        if status.machines.iter().all(|machine| is_settled(machine)) {
            break status;
        }
        deadline.pause(&format!("rack {rack}")).await?;
    };
    match display {
        Some(display) => display.finish(),
        None => status(api, rack).await?.write(format)?,
    }
    write_result(rack, &settled, begun, format)
}

/// Prints the result of a bring-up.
fn write_result(
    rack: &str,
    settled: &Rack,
    begun: Timestamp,
    format: Format,
) -> anyhow::Result<()> {
    let count = |way: GoalProgress| {
        settled.machines.iter().filter(|machine| machine.way == Some(way)).count()
    };
    let (there, stuck, left) =
        (count(GoalProgress::There), count(GoalProgress::Stuck), count(GoalProgress::LeftAlone));
    let elapsed = readable::duration(Timestamp::now().duration_since(begun));
    if format.is_for_people() {
        line(&format!(
            "rack {rack}: {} ready, {stuck} need attention, {left} skipped, after {elapsed}",
            counted(there, "node")
        ))?;
    }
    for machine in
        settled.machines.iter().filter(|machine| machine.way == Some(GoalProgress::Stuck))
    {
        let Some(failure) = &machine.failure else { continue };
        let failed =
            format!("{}: {}. Hint: {}.", machine.label(), failure.cause, failure.next_action);
        if format.is_for_people() {
            line(&plain(&failed))?;
        }
    }
    if stuck > 0 {
        let need = if stuck == 1 { "needs" } else { "need" };
        bail!("{} of rack {rack} {need} attention", counted(stuck, "node"));
    }
    Ok(())
}

async fn fetch(api: &Api, rack: &str) -> anyhow::Result<WithJson<Rack>> {
    api.get(&format!("/bedplate/v1/racks/{rack}")).await
}

/// Shows the present state of the rack's nodes.
pub(crate) async fn status(api: &Api, rack: &str) -> anyhow::Result<Answer> {
    let status = fetch(api, rack).await?;
    let rows = rows(&status, Timestamp::now());
    Ok(Answer::table(
        status.json,
        &["Unit", "Node", "State", "Power", "In state for", "Status detail"],
        rows,
    ))
}

fn rows(status: &Rack, now: Timestamp) -> Vec<Vec<String>> {
    let row = |machine: &RackMachine| {
        vec![
            machine.position.map_or(String::new(), |position| position.to_string()),
            plain(machine.label()),
            machine.provision_state.clone(),
            machine.power_state.clone().unwrap_or_default(),
            readable::duration(now.duration_since(machine.since)),
            plain(&doing(machine)),
        ]
    };
    status.machines.iter().map(|machine| row(machine)).collect()
}
