//! The part of a turn for a machine with work: performs actions through its BMC or its agent. Every action may be repeated without harm.

use agent_protocol::{ChecksumAlgorithm, Command, CommandRequest, ImageInfo, name, step};
use baremetal_core::{
    Action, ActionOutcome, AgentCommand, CommandSeen, DeployMethod, FILE_SCHEME,
    HASHED_RESCUE_PASSWORD, Image, ImageChecksum, Interface, Node, NodeUpdate, Observed, PlanRules,
    Problem, Reason, RequestRefused, State, StepKind, Task, Work, WorkUuid, after_action,
    bootable_container, check_raid_step, glance_image, image, layout_at_url, mirrored_root, plan,
};
use bmc::{Bmc, BmcError};
use decision::{Decision, Requeue};
use hardware::{BootMode, BootSetting, PowerChange};
use reconcile::{Decided, Turn};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tracing::{debug, info};
use url::Url;

use crate::agent_command::{CommandParams, StepArgs, StepParams, WriteImage, image_type};
use crate::agents;
use crate::allowed::check_image;
use crate::checksum_file::fetch_checksum;
use crate::config_drive::config_drive;
use crate::context::TurnContext;
use crate::image_folder::name_in_folder;
use crate::observations::ObservedPart;
use crate::problem::{self, ActionError, Result, bad_request, cannot};
use crate::record::TurnError;
use crate::served_image::only_host_of;

/// The key of `instance_info` with the hints for the root disk. They come before those of `properties`, as in Ironic.
const ROOT_DEVICE: &str = "root_device";
const CAPABILITIES: &str = "capabilities";

/// The part of a turn for a node whose machine has work, or a requested change of power.
pub(crate) struct MachineTurn<'a>(pub(crate) &'a TurnContext);

impl MachineTurn<'_> {
    fn rules(&self) -> PlanRules<'_> {
        PlanRules {
            timeouts: &self.0.settings.timeouts,
            new_work: WorkUuid::new_v4(),
            priorities: &self.0.settings.step_priorities,
            fast_track: self.0.settings.fast_track,
        }
    }
}

impl Turn for MachineTurn<'_> {
    type Record = Node;
    type Seen = Observed;
    type Change = NodeUpdate;
    type Action = Action;
    type Outcome = ActionOutcome;
    type Error = TurnError;

    async fn observe(&self, node: &Node) -> Result<Observed, TurnError> {
        Ok(self.0.observe_machine(node).await?)
    }

    fn decide(&self, node: &Node, seen: &Observed) -> Decided<Self> {
        Ok(plan(node, seen, &self.rules(), self.0.now())?)
    }

    async fn write(&self, node: Node, update: NodeUpdate) -> Result<Node, TurnError> {
        self.0.write(&node, update).await
    }

    async fn perform(&self, node: &Node, action: Action) -> Result<ActionOutcome, TurnError> {
        // The future has room for every action, and most turns perform none.
        match Box::pin(self.0.perform(node, action)).await {
            Ok(outcome) => Ok(outcome),
            Err(ActionError::Machine(problem)) => {
                debug!(problem = problem.cause, "{} failed", action.name());
                Ok(ActionOutcome::Failed(problem))
            }
            Err(ActionError::Store(error)) => Err(error.into()),
            Err(ActionError::LeasePassed(passed)) => Err(passed.into()),
        }
    }

    fn conclude(&self, node: &Node, outcomes: Vec<ActionOutcome>) -> Decided<Self> {
        let Some(outcome) = outcomes.first() else { return Ok(Decision::rest(Requeue::Now)) };
        let (since, now) = (self.0.watch.since(), self.0.now());
        Ok(after_action(node, outcome, since, &self.rules(), now)?.without_actions())
    }
}

impl TurnContext {
    async fn perform(&self, node: &Node, action: Action) -> Result<ActionOutcome> {
        let done = |node| Ok(ActionOutcome::TaskDone(Box::new(node)));
        info!(action.name = action.name(), "performing {} on node {}", action.name(), node.id);
        // Neutron and the agent do not need the BMC, whose address or password may have become unusable.
        let bmc = || self.bmcs.of(node).map_err(Problem::from);
        match action {
            Action::ChangeNetworks => {
                Ok(ActionOutcome::NetworksChanged(Box::new(self.change_networks(node).await?)))
            }
            Action::RequestPower(change) => self.request_power(node, &bmc()?, change).await,
            Action::Command(AgentCommand::FinalizeRescue) => self.finalize_rescue(node).await,
            Action::Command(command) => {
                self.command(node, self.request_of(node, command).await?).await
            }
            Action::Step => self.command(node, self.step_of_work(node).await?).await,
            Action::ConductorStep => self.conductor_step(node, &bmc()?).await,
            Action::ReadBios => done(self.read_firmware(node, &bmc()?).await?),
            Action::ConfirmBios => self.confirm_bios(node, &bmc()?).await,
            Action::UpdateFirmware => self.update_firmware(node, &bmc()?).await,
            Action::ReadFirmware => self.read_updated_firmware(node, &bmc()?).await,
            Action::ChangeRaid => self.change_raid(node, &bmc()?).await,
            Action::ReadRaid => self.read_raid(node, &bmc()?).await,
            Action::ChangeBootSetting(wanted) => {
                self.change_boot_setting(node, &bmc()?, wanted).await
            }
            Action::MakePassword => self.make_password(node).await,
            Action::ChangePassword => self.change_password(node).await,
            Action::ReadInventory => self.read_inventory(node, &bmc()?).await,
            Action::TakeInventory => self.take_inventory(node).await,
            Action::BindVifs => {
                self.bind_vifs(node).await?;
                done(node.clone())
            }
            Action::DetachVifs => done(self.detach_vifs(node).await?),
            Action::ReleaseVifs => {
                self.release_vifs(node).await?;
                done(node.clone())
            }
            Action::Connect(network) => done(self.connect(node, network).await?),
            Action::Disconnect => done(self.disconnect(node).await?),
            Action::BootRamdisk => {
                self.boot_ramdisk(node, &bmc()?).await?;
                done(node.clone())
            }
            Action::BootDisk => {
                self.boot_disk(node, &bmc()?).await?;
                done(node.clone())
            }
            Action::BootOwnImage => {
                self.boot_own_image(node, &bmc()?).await?;
                done(node.clone())
            }
        }
    }

    async fn request_power(
        &self,
        node: &Node,
        bmc: &Bmc,
        change: PowerChange,
    ) -> Result<ActionOutcome> {
        match bmc.power.request(change).await {
            Ok(()) => {
                self.sightings.note(
                    node.id,
                    ObservedPart::Bmc,
                    format!("accepted {}", Action::RequestPower(change).name()),
                );
                Ok(ActionOutcome::PowerRequested)
            }
            Err(error) => Err(self.note_bmc(node, &error).into()),
        }
    }

    async fn change_boot_setting(
        &self,
        node: &Node,
        bmc: &Bmc,
        wanted: BootSetting,
    ) -> Result<ActionOutcome> {
        let Some(settings) = &bmc.boot_settings else {
            return Err(cannot(&format!("change the {wanted}")).into());
        };
        match settings.request(wanted).await {
            Ok(()) => {
                let accepted = format!("accepted a change of the {wanted}");
                self.sightings.note(node.id, ObservedPart::Bmc, accepted);
                Ok(ActionOutcome::BootSettingAccepted)
            }
            Err(error @ BmcError::Unsupported { .. }) => {
                let problem = self.note_bmc(node, &error);
                Err(Problem { reason: Reason::Unsupported, ..problem }.into())
            }
            Err(error) => Err(self.note_bmc(node, &error).into()),
        }
    }

    /// Reads the BMC's inventory, and returns the node with its facts.
    async fn read_inventory(&self, node: &Node, bmc: &Bmc) -> Result<ActionOutcome> {
        let Some(inspection) = &bmc.inspection else {
            return Ok(ActionOutcome::TaskDone(Box::new(node.clone())));
        };
        // A BMC can answer each of hundreds of requests in time, so the whole inventory has a timeout of its own.
        let inventory = match timeout(self.settings.timeouts.bmc, inspection.inventory()).await {
            Ok(Ok(inventory)) => inventory,
            Ok(Err(error)) => return Err(self.note_bmc(node, &error).into()),
            Err(_) => {
                let cause = "the BMC did not send its inventory in time".to_owned();
                return Err(
                    Problem { reason: Reason::BmcUnreachable, cause, transient: true }.into()
                );
            }
        };
        self.take_bmc_inventory(node, &inventory).await
    }

    async fn command(
        &self,
        node: &Node,
        (name, params): (&'static str, CommandParams),
    ) -> Result<ActionOutcome> {
        match self.give(node, name, params).await? {
            Some(_) => Ok(ActionOutcome::CommandGiven),
            None => Ok(ActionOutcome::NoAgent),
        }
    }

    /// Gives the agent the rescue password. The answer tells the result, because the agent ends after this command and lists it to nobody.
    async fn finalize_rescue(&self, node: &Node) -> Result<ActionOutcome> {
        let (name, params) = self.request_of(node, AgentCommand::FinalizeRescue).await?;
        match self.give(node, name, params).await?.map(|command| agents::seen(&command)) {
            Some(CommandSeen::Succeeded | CommandSeen::BuiltRaid(_)) => {
                Ok(ActionOutcome::TaskDone(Box::new(node.clone())))
            }
            Some(CommandSeen::Failed(why)) => {
                let cause = format!("setting the rescue password failed: {why}");
                Err(Problem { reason: Reason::StepFailed, cause, transient: false }.into())
            }
            Some(CommandSeen::Running(_) | CommandSeen::Listed(_)) => {
                Ok(ActionOutcome::CommandGiven)
            }
            None => Ok(ActionOutcome::NoAgent),
        }
    }

    /// Gives the agent a command, and returns the command as the agent received it; `None` if there is no agent.
    async fn give(
        &self,
        node: &Node,
        name: &'static str,
        params: CommandParams,
    ) -> Result<Option<Command>> {
        let Some(boot) = self.boot_of_work(node).await? else { return Ok(None) };
        let (token, body) =
            (self.agent_token(&boot), CommandRequest { name: name.to_owned(), params });
        let giving = self.agents.give(&boot, &token, &body, node.version);
        let given = self.effect("agent: command", giving).await?;
        given.map(Some).map_err(|error| error.problem().into())
    }

    /// Returns the rescue password as parameters of a command: its hash, which the node's record contains until the rescue is over.
    fn rescue_password(&self, node: &Node) -> Result<Map<String, Value>> {
        let node = self.with_instance(node).map_err(|refusal| bad_request(refusal.to_string()))?;
        let Some(hash) = node.instance_info.get(HASHED_RESCUE_PASSWORD) else {
            let cause = format!("instance_info.{HASHED_RESCUE_PASSWORD}: missing");
            return Err(bad_request(cause).into());
        };
        Ok(Map::from_iter([
            ("rescue_password".to_owned(), hash.clone()),
            ("hashed".to_owned(), true.into()),
        ]))
    }

    /// Returns the name and parameters of a command in the agent's protocol.
    async fn request_of(
        &self,
        node: &Node,
        command: AgentCommand,
    ) -> Result<(&'static str, CommandParams)> {
        let mut params = CommandParams::of(self.machine_for_agent(node).await?);
        let name = match command {
            AgentCommand::ListSteps(StepKind::Clean) => name::GET_CLEAN_STEPS,
            AgentCommand::ListSteps(StepKind::Deploy) => name::GET_DEPLOY_STEPS,
            AgentCommand::ListSteps(StepKind::Service) => name::GET_SERVICE_STEPS,
            AgentCommand::WriteImage => {
                params.step = Some(match node.deploy_method() {
                    DeployMethod::Bootc => self.install_container(node).await?,
                    DeployMethod::Direct
                    | DeployMethod::CustomAgent
                    | DeployMethod::Ramdisk
                    | DeployMethod::Fake => self.write_image(node).await?,
                });
                params.more.insert("deploy_version".to_owned(), Value::Null);
                name::EXECUTE_DEPLOY_STEP
            }
            AgentCommand::ListPartitions => {
                params = CommandParams::default();
                name::GET_PARTITION_UUIDS
            }
            AgentCommand::SetNextBoot => {
                params = CommandParams::of(self.next_boot(node).await?);
                name::INSTALL_BOOTLOADER
            }
            AgentCommand::Sync => {
                params = CommandParams::default();
                name::SYNC
            }
            AgentCommand::FinalizeRescue => {
                params = CommandParams::of(self.rescue_password(node)?);
                name::FINALIZE_RESCUE
            }
            AgentCommand::PowerOff => {
                params = CommandParams::default();
                name::POWER_OFF
            }
        };
        Ok((name, params))
    }

    /// Returns the parameters of the command that makes the written disk the next boot. ironic-python-agent installs a boot loader for a
    /// partition image, and needs the ids of the partitions that it made.
    async fn next_boot(&self, node: &Node) -> Result<Map<String, Value>> {
        let mut params = Map::from_iter([
            ("root_uuid".to_owned(), Value::Null),
            ("target_boot_mode".to_owned(), node.boot_mode.map(BootMode::as_str).into()),
        ]);
        let mirrored = mirrored_root(node).map_err(|why| bad_request(why.to_string()))?;
        if let Some(root) = mirrored {
            params.insert("root_uuid".to_owned(), root.into());
        }
        if !node.may_have_partition_image() {
            return Ok(params);
        }
        let Some(boot) = self.boot_of_work(node).await? else { return Ok(params) };
        let given = self.agents.commands(&boot, &self.agent_token(&boot)).await;
        let given = given.map_err(|error| error.problem())?;
        if let Some((root, efi)) = agents::partition_ids(&given) {
            params.insert("root_uuid".to_owned(), root.into());
            params.insert("efi_system_part_uuid".to_owned(), efi.into());
        }
        Ok(params)
    }

    /// Returns the step that writes the image of the node, with its config drive.
    async fn write_image(&self, node: &Node) -> Result<StepParams> {
        let refuse = |refusal: RequestRefused| bad_request(refusal.to_string());
        let in_registry = self.oci_image(node).map_err(refuse)?;
        let node = &self.with_instance(node).map_err(refuse)?;
        let info = match (glance_image(node), in_registry) {
            (Some(id), _) => self.image_of_glance(node, id).await?,
            (None, Some(image)) => self.image_of_registry(node, &image).await?,
            (None, None) => self.image_at_url(node).await?,
        };
        let drive = config_drive(&self.settings.image_hosts, node).await?;
        let args = WriteImage { image_info: info, configdrive: drive };
        Ok(StepParams {
            interface: Interface::Deploy.as_str(),
            step: step::WRITE_IMAGE.to_owned(),
            args: StepArgs::WriteImage(Box::new(args)),
        })
    }

    /// Returns the image at the URL that `instance_info` names.
    async fn image_at_url(&self, node: &Node) -> Result<ImageInfo> {
        let checked =
            check_image(&self.settings.image_hosts, &node.instance_info).and_then(|()| image(node));
        let refuse = |refusal: RequestRefused| bad_request(refusal.to_string());
        let (mut image, layout) = (checked.map_err(refuse)?, layout_at_url(node).map_err(refuse)?);
        let mut image_hosts = self.settings.image_hosts.clone();
        if let Some(path) = image.url.strip_prefix(FILE_SCHEME) {
            let url = self.url_of_file(path)?;
            image_hosts = only_host_of(&url);
            image.url = url.into();
        }
        let (os_hash_algo, os_hash_value) = self.checksum_of(&image).await?;
        Ok(ImageInfo {
            id: name_in(&image.url),
            urls: vec![image.url],
            disk_format: image.format,
            os_hash_algo,
            os_hash_value,
            node_uuid: node.id.to_string(),
            image_type: image_type(layout.as_ref()),
            layout,
            stream_raw_images: true,
            image_ca: image.ca,
            image_hosts,
        })
    }

    /// Returns the URL at which the provisioning listener serves this file of the host.
    fn url_of_file(&self, path: &str) -> Result<Url, Problem> {
        let name = name_in_folder(self.settings.image_folder.as_deref(), path);
        let name = name.map_err(|refusal| bad_request(refusal.to_string()))?;
        self.provisioning(&format!("images/{name}"))
            .ok_or_else(|| bad_request("the image needs a provisioning address".to_owned()))
    }

    /// Returns the checksum of an image. The file of checksums is fetched if the node names one.
    async fn checksum_of(&self, image: &Image) -> Result<(ChecksumAlgorithm, String), Problem> {
        match &image.checksum {
            ImageChecksum::Value { algorithm, value } => Ok((*algorithm, value.clone())),
            ImageChecksum::File { url, algorithm } => {
                let fetched = fetch_checksum(&self.settings.image_hosts, image, url, *algorithm);
                self.store.tripwire().around("image: checksum", fetched).await
            }
        }
    }

    /// Returns the step of the current task as a command of the agent's protocol.
    async fn step_of_work(&self, node: &Node) -> Result<(&'static str, CommandParams)> {
        let opened = self.store.secrets().with_steps(node);
        let opened = opened.map_err(|why| bad_request(format!("the step's arguments: {why}")))?;
        let Some(Task::Step(step)) = opened.work.as_ref().and_then(Work::task) else {
            return Err(bad_request("the work is not at a step".to_owned()).into());
        };
        check_raid_step(node, step).map_err(|why| bad_request(why.to_string()))?;
        let (command, version) = match step.kind {
            StepKind::Clean => (name::EXECUTE_CLEAN_STEP, "clean_version"),
            StepKind::Deploy => (name::EXECUTE_DEPLOY_STEP, "deploy_version"),
            StepKind::Service => (name::EXECUTE_SERVICE_STEP, "service_version"),
        };
        let mut params = CommandParams::of(self.machine_for_agent(node).await?);
        params.step = Some(StepParams {
            interface: step.name.interface.as_str(),
            step: step.name.step.clone(),
            args: StepArgs::Requested(step.args.clone()),
        });
        params.more.insert(version.to_owned(), Value::Null);
        Ok((command, params))
    }

    /// Returns the parameters that describe the machine to the agent.
    async fn machine_for_agent(&self, node: &Node) -> Result<Map<String, Value>> {
        let ports = self.store.ports_of(node.id).await?;
        let ports: Vec<Value> =
            ports.iter().map(|port| json!({"uuid": port.id, "address": port.address})).collect();
        let known = json!({
            "uuid": node.id,
            "properties": node.properties,
            "instance_info": self.instance_for_agent(node).await?,
            "driver_internal_info": {},
        });
        let mut known: Map<String, Value> = known.as_object().cloned().unwrap_or_default();
        known.extend(node.raid_for_agent());
        Ok(Map::from_iter([("node".to_owned(), known.into()), ("ports".to_owned(), ports.into())]))
    }

    /// Returns the fields of `instance_info` that the agent gets: the hints for the root disk and the settings of a container, or everything
    /// for a custom agent, whose steps install the machine.
    async fn instance_for_agent(&self, node: &Node) -> Result<Map<String, Value>> {
        let refused = |why: RequestRefused| bad_request(why.to_string());
        let is_deploying = matches!(node.provision_state, State::Deploying | State::DeployWait);
        let hints = || {
            // ironic-python-agent reads the kind of partition table from the capabilities.
            let capabilities = Some(CAPABILITIES).filter(|_| node.may_have_partition_image());
            let known = [Some(ROOT_DEVICE), capabilities].into_iter().flatten();
            let known = known.filter_map(|key| node.instance_info.get_key_value(key));
            known.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>()
        };
        match node.deploy_method() {
            DeployMethod::CustomAgent if is_deploying => {}
            DeployMethod::Bootc if is_deploying => {
                let container = bootable_container(&self.with_instance(node).map_err(refused)?);
                let settings = container.map_err(refused)?.settings;
                return Ok(hints().into_iter().chain(settings).collect());
            }
            DeployMethod::CustomAgent
            | DeployMethod::Bootc
            | DeployMethod::Direct
            | DeployMethod::Ramdisk
            | DeployMethod::Fake => return Ok(hints()),
        }
        let opened = self.with_instance(node).map_err(refused)?;
        let drive = config_drive(&self.settings.image_hosts, &opened).await?;
        let mut info = opened.instance_info;
        if let Some(drive) = drive {
            info.insert("configdrive".to_owned(), drive.into());
        }
        Ok(info)
    }

    /// Converts a BMC's error, and remembers it for explanations.
    pub(crate) fn note_bmc(&self, node: &Node, error: &BmcError) -> Problem {
        let problem = problem::of_bmc(error);
        self.sightings.note(node.id, ObservedPart::Bmc, &*problem.cause);
        problem
    }
}

/// Returns the last part of an image's path, as a name for the image.
fn name_in(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("image").to_owned()
}

#[cfg(test)]
mod tests;
