//! Firmware updates by the BMC: checked before anything is sent, asked for once, watched, and recorded.

use std::sync::Arc;

use baremetal_core::{
    ActionOutcome, ComponentKind, FirmwareSeen, FirmwareUpdate, Node, Problem, Reason, Step,
    StepKind, Task, UpdateInProgress, UpdateSeen, UpdateStage, Work, compute_host_name,
    parse_firmware_updates,
};
use bmc::{Bmc, BmcError, FirmwareImage, FirmwareUpdates, ImageTransfer};
use url::Url;

use crate::allowed::check_image_host;
use crate::context::TurnContext;
use crate::image_stream::download;
use crate::observations::ObservedPart;
use crate::problem::is_refusal;
use crate::problem::{Result, bad_request, cannot};

impl TurnContext {
    /// Checks that the machine can get all updates that `step` requests. Nothing is sent to the BMC.
    pub(crate) async fn check_firmware_updates(
        &self,
        node: &Node,
        bmc: &Bmc,
        step: &Step,
    ) -> Result<ActionOutcome> {
        let updates =
            parse_firmware_updates(&step.args).map_err(|why| bad_request(why.to_string()))?;
        for (number, update) in updates.iter().enumerate() {
            let url = parsed(&update.url)?;
            check_image_host(&self.settings.image_hosts, &format!("settings[{number}].url"), &url)
                .map_err(|refusal| bad_request(refusal.to_string()))?;
        }
        self.check_restart(node, step, "a firmware update")?;
        let firmware = updater(bmc)?;
        let noted = |error: BmcError| self.note_bmc(node, &error);
        firmware.transfer().await.map_err(noted)?;
        let inspection = bmc.inspection.clone().ok_or_else(|| cannot("list its firmware"))?;
        let listed = inspection.main_firmware().await.map_err(noted)?;
        let names: Vec<&str> = listed.iter().map(|it| it.component.as_str()).collect();
        let is_missing = |update: &FirmwareUpdate| !names.contains(&update.component.as_str());
        if let Some(number) = updates.iter().position(is_missing) {
            let problem = format!(
                "settings[{number}].component: the BMC lists no firmware of {}; it lists {}",
                updates[number].component,
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            );
            return Err(bad_request(problem).into());
        }
        Ok(ActionOutcome::FirmwareChecked(updates.len()))
    }

    /// Refuses a step of a machine that must not be restarted. `what` names what the step does.
    pub(crate) fn check_restart(
        &self,
        node: &Node,
        step: &Step,
        what: &str,
    ) -> Result<(), Problem> {
        let refuse = |why: String| Problem {
            reason: Reason::NeedsRestart,
            cause: format!("{what} restarts the machine, and {why}"),
            transient: false,
        };
        if node.disable_power_off {
            return Err(refuse("the node has disable_power_off set".to_owned()));
        }
        // With a clusterd, the host was drained before the service began.
        let host = compute_host_name(node).filter(|_| step.kind == StepKind::Service);
        match (host, &self.settings.clusters) {
            (Some(host), None) => Err(refuse(format!(
                "compute host {host} was not drained, because the service has no clusterd to drain it"
            ))),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Looks at the component and the task of an update, as far as its stage needs.
    pub(crate) async fn look_at_update(
        &self,
        node: &Node,
        update: &UpdateInProgress,
    ) -> FirmwareSeen {
        let bmc = match self.bmcs.of(node) {
            Ok(bmc) => bmc,
            Err(invalid) => return FirmwareSeen::Failed(invalid.into()),
        };
        let (firmware, wanted) = match (updater(&bmc), update.wanted()) {
            (Ok(firmware), Ok(wanted)) => (firmware, wanted),
            (Err(problem), _) => return FirmwareSeen::Failed(problem),
            (_, Err(why)) => return FirmwareSeen::Failed(bad_request(why.to_string())),
        };
        match seen(&*firmware, &wanted, &update.stage).await {
            Ok(seen) => {
                self.sightings.note(node.id, ObservedPart::Bmc, "answers during a firmware update");
                FirmwareSeen::Is(seen)
            }
            Err(error) => FirmwareSeen::Failed(self.note_bmc(node, &error)),
        }
    }

    /// Asks the BMC for the update of the current task. The intent was recorded.
    pub(crate) async fn update_firmware(&self, node: &Node, bmc: &Bmc) -> Result<ActionOutcome> {
        let task = node.work.as_ref().and_then(Work::task);
        let Some(Task::UpdateFirmware(update)) = task else {
            return Err(bad_request("the work is not at a firmware update".to_owned()).into());
        };
        let wanted = update.wanted().map_err(|why| bad_request(why.to_string()))?;
        let firmware = updater(bmc)?;
        let url = parsed(&wanted.url)?;
        check_image_host(&self.settings.image_hosts, "settings", &url)
            .map_err(|refusal| bad_request(refusal.to_string()))?;
        let transfer = match firmware.transfer().await {
            Ok(transfer) => transfer,
            Err(error) => return Ok(ActionOutcome::UpdateRefused(self.note_bmc(node, &error))),
        };
        let (image, download) = match transfer {
            ImageTransfer::Pull => (FirmwareImage::At(url), None),
            ImageTransfer::Push { largest } => {
                match download(&self.settings.image_hosts, url, largest).await {
                    Ok((image, download)) => (FirmwareImage::Stream(image), Some(download)),
                    Err(problem) => return Ok(ActionOutcome::UpdateRefused(problem)),
                }
            }
        };
        let answer = firmware.request(&wanted.component, image).await;
        let incomplete = match download {
            Some(download) => download.problem().await,
            None => None,
        };
        Ok(match (answer, incomplete) {
            (Ok(task), _) => ActionOutcome::UpdateAccepted(task),
            // A BMC drops an upload that is incomplete.
            (Err(_), Some(problem)) => ActionOutcome::UpdateRefused(problem),
            (Err(error), None) if is_refusal(&error) => {
                ActionOutcome::UpdateRefused(self.note_bmc(node, &error))
            }
            (Err(error), None) => ActionOutcome::Failed(self.note_bmc(node, &error)),
        })
    }

    /// Reads the versions of the firmware after updates.
    pub(crate) async fn read_updated_firmware(
        &self,
        node: &Node,
        bmc: &Bmc,
    ) -> Result<ActionOutcome> {
        let inspection = bmc.inspection.clone().ok_or_else(|| cannot("list its firmware"))?;
        let read = inspection.main_firmware().await.map_err(|error| self.note_bmc(node, &error))?;
        Ok(ActionOutcome::TaskDone(Box::new(node.with_firmware(&read, self.now()))))
    }
}

fn updater(bmc: &Bmc) -> Result<Arc<dyn FirmwareUpdates>, Problem> {
    bmc.firmware.clone().ok_or_else(|| cannot("update firmware"))
}

fn parsed(url: &str) -> Result<Url, Problem> {
    Url::parse(url)
        .map_err(|_| bad_request("settings: the URL of an image is malformed".to_owned()))
}

/// Reads what the stage of an update needs.
async fn seen(
    firmware: &dyn FirmwareUpdates,
    wanted: &FirmwareUpdate,
    stage: &UpdateStage,
) -> Result<UpdateSeen, BmcError> {
    let mut seen = UpdateSeen::default();
    match stage {
        UpdateStage::Ready => {
            seen.version = firmware.version(&wanted.component).await?;
            seen.tasks = firmware.tasks().await?;
        }
        UpdateStage::Asking { known, .. } => {
            seen.version = firmware.version(&wanted.component).await?;
            if let Some(known) = known {
                seen.new = firmware.update_since(known).await?;
            }
        }
        UpdateStage::Accepted(accepted) => {
            if let Some(task) = &accepted.task {
                seen.task = Some(firmware.task(task).await?);
            }
            if wanted.kind() == ComponentKind::Bmc {
                seen.version = firmware.version(&wanted.component).await?;
            }
        }
    }
    Ok(seen)
}
