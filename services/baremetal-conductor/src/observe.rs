//! Observes a node's machine: only as much as the current task needs.

use baremetal_core::{
    AgentSeen, Boot, BootSettingsSeen, ChildStep, FirmwareSeen, Node, NodeFilter, NodeIdent,
    NodeSort, Observed, PasswordSeen, PowerSeen, RaidSeen, StepRunner, Task, Work, WorkUuid,
    elapsed,
};
use baremetal_store::StoreError;
use hardware::{PowerAndBootSettings, PowerState};
use jiff::Timestamp;
use tracing::debug;

use crate::agents;
use crate::context::TurnContext;
use crate::observations::{FailedCalls, ObservedPart};
use crate::problem;
use crate::secrets::Purpose;

/// How soon the BMC gets another request after a look at the power state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowUp {
    Nothing,
    Request,
}

impl TurnContext {
    /// Observes the node's machine as far as the current task needs.
    pub(crate) async fn observe_machine(&self, node: &Node) -> Result<Observed, StoreError> {
        let mut seen = self.nothing_seen(node);
        match node.work.as_ref().and_then(Work::task) {
            Some(task @ (Task::TryBmc | Task::SetBoot(_) | Task::ConfirmBoot(_))) => {
                // A verification ends with this answer, so no session with the BMC has to stay open.
                let then =
                    if *task == Task::TryBmc { FollowUp::Nothing } else { FollowUp::Request };
                (seen.power, seen.boot_settings) = self.look_at_boot_settings(node, then).await;
            }
            Some(Task::UpdateFirmware(update)) => {
                seen.firmware = self.look_at_update(node, update).await;
            }
            Some(Task::ChangeRaid(change)) => seen.raid = self.look_at_raid(node, change).await,
            Some(Task::StepOnChildren(run)) => seen.children = self.children_of(node, run).await?,
            Some(Task::Power(wanted)) => self.look_at_switching(node, *wanted, &mut seen).await?,
            Some(Task::AwaitInventory | Task::AwaitAgent) => {
                if let Some(boot) = self.boot_of_work(node).await? {
                    seen.inventory = boot.inventory_at.is_some();
                    let reported = boot.callback_url.is_some();
                    seen.agent = if reported { AgentSeen::Present } else { AgentSeen::Absent };
                }
            }
            Some(Task::Step(step)) if step.runner == StepRunner::Conductor => {}
            Some(Task::Agent(_) | Task::Step(_)) => seen.agent = self.look_at_agent(node).await?,
            Some(
                Task::AskBmcForInventory
                | Task::BootRamdisk
                | Task::BootDisk
                | Task::BootOwnImage
                | Task::PlanSteps
                | Task::ReadBios
                | Task::BindVifs
                | Task::DetachVifs
                | Task::ReleaseVifs
                | Task::Connect(_)
                | Task::Disconnect
                | Task::ConfirmBios { .. }
                | Task::ReadFirmware { .. }
                | Task::ReadRaid { .. }
                | Task::Wait { .. }
                | Task::Hold,
            ) => {}
            None if node.power_request.is_some() => {
                seen.power = self.look_at_power(node, FollowUp::Request).await;
            }
            None if node.boot_setting_request.is_some() => {
                (seen.power, seen.boot_settings) =
                    self.look_at_boot_settings(node, FollowUp::Request).await;
            }
            None => seen.password = self.look_at_password(node).await,
        }
        Ok(seen)
    }

    fn nothing_seen(&self, node: &Node) -> Observed {
        Observed {
            power: PowerSeen::NotAsked,
            boot_settings: BootSettingsSeen::NotSeen,
            password: PasswordSeen::NotSeen,
            firmware: FirmwareSeen::NotSeen,
            raid: RaidSeen::NotSeen,
            agent: AgentSeen::Absent,
            idle_ramdisk: None,
            inventory: false,
            children: Vec::new(),
            boot_trail: self.sightings.of(node.id).boot_trail(),
            watching_since: self.watch.since(),
        }
    }

    /// Returns the child nodes of the node. Once the step has begun on some, returns these, whose parent may have changed.
    async fn children_of(&self, node: &Node, run: &ChildStep) -> Result<Vec<Node>, StoreError> {
        if let Some(asked) = &run.asked {
            let idents: Vec<NodeIdent> = asked.iter().copied().map(NodeIdent::Id).collect();
            return self.store.find_nodes(&idents).await;
        }
        let filter = NodeFilter { parent_node: Some(node.id), ..NodeFilter::default() };
        self.all_nodes(&filter, NodeSort::default()).await
    }

    /// Returns the newest boot of the node's machine, if the boot belongs to the current work.
    pub(crate) async fn boot_of_work(&self, node: &Node) -> Result<Option<Boot>, StoreError> {
        let Some(work) = &node.work else { return Ok(None) };
        let boot = self.store.find_boot(node.id).await?;
        Ok(boot.filter(|boot| boot.work == work.id))
    }

    /// Returns the token of the agent that reports from this boot.
    pub(crate) fn agent_token(&self, boot: &Boot) -> String {
        let parts = [&*boot.node.to_string(), &*boot.work.to_string(), &*boot.nonce];
        self.key.derive(Purpose::AgentToken, &parts)
    }

    async fn look_at_power(&self, node: &Node, then: FollowUp) -> PowerSeen {
        let bmc = match self.bmcs.of(node) {
            Ok(bmc) => bmc,
            Err(invalid) => return PowerSeen::Failed(invalid.into()),
        };
        let reported = match then {
            FollowUp::Nothing => bmc.power.state_once().await,
            FollowUp::Request => bmc.power.state().await,
        };
        match reported {
            Ok(state) => {
                self.sightings.note(node.id, ObservedPart::Bmc, state.as_str());
                PowerSeen::Is(state)
            }
            Err(error) => {
                let problem = problem::of_bmc(&error);
                debug!(problem = %problem.cause, "the BMC does not report the power state");
                self.sightings.note(node.id, ObservedPart::Bmc, &*problem.cause);
                PowerSeen::Failed(problem)
            }
        }
    }

    /// Observes the power of a machine that is switched on or off, and an agent that shows that the machine is on.
    async fn look_at_switching(
        &self,
        node: &Node,
        wanted: PowerState,
        seen: &mut Observed,
    ) -> Result<(), StoreError> {
        seen.power = self.look_at_power(node, FollowUp::Request).await;
        if seen.power == PowerSeen::Is(PowerState::On)
            && node.may_use_idle_ramdisk(self.settings.fast_track)
        {
            seen.idle_ramdisk = self.look_at_idle_ramdisk(node).await?;
        }
        if seen.power == PowerSeen::Is(PowerState::Off)
            && wanted == PowerState::Off
            && self.agent_answers(node).await?
        {
            seen.agent = AgentSeen::Present;
        }
        Ok(())
    }

    /// Reads power and boot settings together. A BMC without boot settings is asked for its power only.
    async fn look_at_boot_settings(
        &self,
        node: &Node,
        then: FollowUp,
    ) -> (PowerSeen, BootSettingsSeen) {
        let bmc = match self.bmcs.of(node) {
            Ok(bmc) => bmc,
            Err(invalid) => return (PowerSeen::Failed(invalid.into()), BootSettingsSeen::NotSeen),
        };
        let Some(settings) = &bmc.boot_settings else {
            return (self.look_at_power(node, then).await, BootSettingsSeen::NotSeen);
        };
        let reported = match then {
            FollowUp::Nothing => settings.read_once().await,
            FollowUp::Request => settings.read().await,
        };
        match reported {
            Ok(PowerAndBootSettings { power, settings, .. }) => {
                self.sightings.note(node.id, ObservedPart::Bmc, power.as_str());
                let settings = settings.map_or(BootSettingsSeen::NotSeen, BootSettingsSeen::Are);
                (PowerSeen::Is(power), settings)
            }
            Err(error) => {
                let problem = problem::of_bmc(&error);
                debug!(problem = %problem.cause, "the BMC does not report the boot settings");
                self.sightings.note(node.id, ObservedPart::Bmc, &*problem.cause);
                (PowerSeen::Failed(problem), BootSettingsSeen::NotSeen)
            }
        }
    }

    /// Returns the work that booted the ramdisk that still runs on the machine, if its agent has done all its commands.
    async fn look_at_idle_ramdisk(&self, node: &Node) -> Result<Option<WorkUuid>, StoreError> {
        let Some(boot) = self.recent_boot(node).await? else { return Ok(None) };
        match self.agents.commands(&boot, &self.agent_token(&boot)).await {
            Ok(commands) => Ok(agents::are_done(&commands).then_some(boot.work)),
            Err(error) => {
                debug!(problem = %error, "the agent of earlier work does not answer");
                Ok(None)
            }
        }
    }

    /// Returns whether the agent of the current work answers, although the BMC says that its machine is off.
    async fn agent_answers(&self, node: &Node) -> Result<bool, StoreError> {
        let Some(boot) = self.boot_of_work(node).await? else { return Ok(false) };
        let answers =
            node.driver.has_bmc() && self.agents.answers(&boot, &self.agent_token(&boot)).await;
        if answers {
            debug!("the BMC says that the machine is off, but its agent answers");
            let what = "answered, although the BMC says that the machine is off";
            self.sightings.note(node.id, ObservedPart::Agent, what);
        }
        Ok(answers)
    }

    /// Returns the newest boot of the node's machine, if its agent has reported lately.
    pub(crate) async fn recent_boot(&self, node: &Node) -> Result<Option<Boot>, StoreError> {
        let boot = self.store.find_boot(node.id).await?;
        let is_recent = |at: Timestamp| elapsed(at, self.now()) <= self.settings.timeouts.silence;
        Ok(boot.filter(|boot| boot.seen_at.is_some_and(is_recent)))
    }

    async fn look_at_agent(&self, node: &Node) -> Result<AgentSeen, StoreError> {
        let Some(boot) = self.boot_of_work(node).await? else { return Ok(AgentSeen::Absent) };
        if boot.callback_url.is_none() {
            return Ok(AgentSeen::Absent);
        }
        match self.agents.commands(&boot, &self.agent_token(&boot)).await {
            Ok(commands) => {
                self.sightings.forget_failed_calls(node.id);
                self.set_progress(node.id, agents::progress(&commands));
                let running = commands.last().map_or("idle", |command| &*command.command_name);
                self.sightings.note(
                    node.id,
                    ObservedPart::Agent,
                    format!("answered; last command: {running}"),
                );
                Ok(AgentSeen::Commands(commands.iter().map(agents::seen).collect()))
            }
            Err(error) => {
                debug!(problem = %error, "the agent does not answer");
                let (says_no, problem) = (error.is_answer(), error.problem());
                let FailedCalls { calls, since, is_told } = self.sightings.call_failed(node.id);
                // An agent that answers with an error, or that has reported since its calls began to fail, is not silent.
                let heard_at = boot.seen_at.unwrap_or(self.watch.since());
                if says_no || heard_at > since {
                    let cause = &problem.cause;
                    let what = format!("reports, but calls to it fail ({calls} so far): {cause}");
                    self.sightings.note(node.id, ObservedPart::Agent, what);
                    Ok(AgentSeen::Refuses { calls, since, problem, is_recorded: is_told })
                } else {
                    Ok(AgentSeen::Silent { since: heard_at.max(since), problem })
                }
            }
        }
    }
}
