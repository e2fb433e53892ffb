//! Changes of RAID volumes by the BMC: planned before anything is sent, asked for once, watched, and recorded.

use std::sync::Arc;

use baremetal_core::{
    ActionOutcome, Node, Problem, RaidChange, RaidChangeSeen, RaidSeen, RaidStage, Step, Task,
    VolumeChange, Work, plan_raid, raid_request,
};
use bmc::{Bmc, BmcError, RaidVolumes};

use crate::context::TurnContext;
use crate::observations::ObservedPart;
use crate::problem::{Result, bad_request, cannot, is_refusal};

/// The number of characters of the work's id in the name of a volume. Controllers of Dell take names of 15 characters.
const ID_CHARACTERS: usize = 8;

impl TurnContext {
    /// Plans all changes that `step` requests. Nothing is sent to the BMC but reads.
    pub(crate) async fn check_raid_step(
        &self,
        node: &Node,
        bmc: &Bmc,
        step: &Step,
    ) -> Result<ActionOutcome> {
        let request = raid_request(node, step).map_err(|why| bad_request(why.to_string()))?;
        self.check_restart(node, step, "a change of RAID volumes")?;
        let raid = volumes_of(bmc)?;
        let read = raid.controllers().await;
        let controllers = read.map_err(|error| self.note_bmc(node, &error))?;
        let work = node.work.as_ref().map_or_else(String::new, |work| work.id.to_string());
        let prefix = format!("bp{}", work.chars().take(ID_CHARACTERS).collect::<String>());
        let changes = plan_raid(&controllers, &request, &prefix);
        Ok(ActionOutcome::RaidChecked(changes.map_err(|why| bad_request(why.to_string()))?))
    }

    /// Looks at the volumes and the task of a change, as far as its stage needs.
    pub(crate) async fn look_at_raid(&self, node: &Node, change: &RaidChange) -> RaidSeen {
        let bmc = match self.bmcs.of(node) {
            Ok(bmc) => bmc,
            Err(invalid) => return RaidSeen::Failed(invalid.into()),
        };
        let raid = match volumes_of(&bmc) {
            Ok(raid) => raid,
            Err(problem) => return RaidSeen::Failed(problem),
        };
        match seen(&*raid, change).await {
            Ok(seen) => {
                let part = ObservedPart::Bmc;
                self.sightings.note(node.id, part, "answers during a change of RAID volumes");
                RaidSeen::Is(seen)
            }
            Err(error) => RaidSeen::Failed(self.note_bmc(node, &error)),
        }
    }

    /// Asks the BMC for the change of the current task. The intent was recorded.
    pub(crate) async fn change_raid(&self, node: &Node, bmc: &Bmc) -> Result<ActionOutcome> {
        let task = node.work.as_ref().and_then(Work::task);
        let Some(Task::ChangeRaid(current)) = task else {
            return Err(bad_request("the work changes no RAID volume".to_owned()).into());
        };
        let raid = volumes_of(bmc)?;
        let answer = match &current.change {
            VolumeChange::Delete { volume, applies, .. } => raid.delete(volume, *applies).await,
            VolumeChange::Create { volume, .. } => raid.create(volume).await,
        };
        Ok(match answer {
            Ok(task) => ActionOutcome::RaidChangeAccepted(task),
            Err(error) if is_refusal(&error) => {
                ActionOutcome::RaidChangeRefused(self.note_bmc(node, &error))
            }
            Err(error) => ActionOutcome::Failed(self.note_bmc(node, &error)),
        })
    }

    /// Reads the volumes after a step has changed them.
    pub(crate) async fn read_raid(&self, node: &Node, bmc: &Bmc) -> Result<ActionOutcome> {
        let task = node.work.as_ref().and_then(Work::task);
        let root = if let Some(Task::ReadRaid { root, .. }) = task { root.clone() } else { None };
        let read = volumes_of(bmc)?.controllers().await;
        let controllers = read.map_err(|error| self.note_bmc(node, &error))?;
        let recorded = node.with_raid_volumes(&controllers, root.as_deref(), self.now());
        Ok(ActionOutcome::TaskDone(Box::new(recorded)))
    }
}

fn volumes_of(bmc: &Bmc) -> Result<Arc<dyn RaidVolumes>, Problem> {
    bmc.raid.clone().ok_or_else(|| cannot("make RAID volumes"))
}

/// Reads what the stage of a change needs.
async fn seen(raid: &dyn RaidVolumes, current: &RaidChange) -> Result<RaidChangeSeen, BmcError> {
    let storage = current.change.storage();
    let mut seen = RaidChangeSeen::default();
    // The task is read before the volumes: a task that has ended is then visible in the volumes.
    match &current.stage {
        RaidStage::Ready => seen.tasks = raid.tasks().await?,
        RaidStage::Asking { tasks, .. } => {
            if let Some(known) = tasks {
                seen.new = raid.change_since(storage, known).await?;
            }
        }
        RaidStage::Accepted(accepted) => {
            if let Some(task) = &accepted.task {
                seen.task = Some(raid.task(task).await?);
            }
        }
    }
    seen.volumes = raid.volumes(storage).await?;
    Ok(seen)
}
