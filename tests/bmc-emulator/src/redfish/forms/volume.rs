//! RAID volumes: POST to a collection of volumes, and DELETE of a volume (DSP0268 `Volume`), at once or at the next start of the machine
//! (DSP0266 §7.11).

use http::StatusCode;
use http::request::Parts;
use serde_json::{Map, Value};

use crate::profile::VolumeAnswer;
use crate::redfish::answer::Answer;
use crate::redfish::face::RedfishFace;
use crate::redfish::forms::read_form;
use crate::redfish::problem::{Message, Problem};
use crate::redfish::resource::Resource;
use crate::redfish::schema::VOLUME_TYPES;
use crate::redfish::task::TaskKind;
use crate::updates::UpdateState;
use crate::volumes::{Volume, VolumeChange, data_drives};

const APPLY_TIME: &str = "@Redfish.OperationApplyTime";

impl RedfishFace {
    pub(super) fn create_volume(
        &self,
        collection: &Resource,
        form: &Map<String, Value>,
    ) -> Result<Answer, Problem> {
        let rules = &self.profile.raid;
        let kind = if rules.has_volume_types { "VolumeType" } else { "RAIDType" };
        for name in form.keys() {
            match name.as_str() {
                "Name" if !rules.takes_names => {
                    return Err(Problem::property(Message::PROPERTY_NOT_WRITABLE, name));
                }
                "Name" | "CapacityBytes" | "Links" | APPLY_TIME => {}
                name if name == kind => {}
                _ => return Err(Problem::property(Message::PROPERTY_UNKNOWN, name)),
            }
        }
        let waits = self.waits_for_start(form)?;
        let level = self.level(kind, form)?;
        let drives = self.drives(form)?;
        let unfit = || Problem::of(Message::DRIVES_UNFIT);
        let data = data_drives(&level, drives.len()).ok_or_else(unfit)? as u64;
        let least = drives.iter().map(|at| self.free_space(*at)).min().unwrap_or(0);
        let largest = least * data;
        let size_bytes = match form.get("CapacityBytes") {
            None => largest,
            Some(size) => {
                let wrong = |message| Problem::value(message, "CapacityBytes", size);
                size.as_u64().ok_or_else(|| wrong(Message::PROPERTY_TYPE))?
            }
        };
        if size_bytes == 0 || size_bytes > largest {
            return Err(unfit());
        }
        self.check_queue()?;
        let id = self.machine.chassis().volumes.free_id();
        let name = form.get("Name").and_then(Value::as_str).map(str::to_owned);
        let name = name.unwrap_or_else(|| format!("Virtual Disk {id}"));
        let volume = Volume { id: id.clone(), name, level, size_bytes, drives };
        let job = self.machine.begin_volume_change(VolumeChange::Create(volume), waits);
        if let Some(task) = self.task_of_change(job, &collection.path, "POST") {
            return Ok(task);
        }
        let path = format!("{}/{id}", collection.path.trim_end_matches('/'));
        let made = Resource::find(&path, self).and_then(|made| made.document(self));
        Ok(Answer::json(StatusCode::CREATED, made.unwrap_or_default()).with("location", path))
    }

    pub(in crate::redfish) fn delete_volume(
        &self,
        volume: &Resource,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Answer, Problem> {
        let form = read_form(parts, body)?;
        if let Some(name) = form.keys().find(|name| *name != APPLY_TIME) {
            return Err(Problem::property(Message::PROPERTY_UNKNOWN, name));
        }
        let waits = self.waits_for_start(&form)?;
        self.check_queue()?;
        let id = volume.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let change = VolumeChange::Delete(id.to_owned());
        let job = self.machine.begin_volume_change(change, waits);
        let task = self.task_of_change(job, &volume.path, "DELETE");
        Ok(task.unwrap_or_else(|| Answer::empty(StatusCode::NO_CONTENT)))
    }

    /// The answer with the task of a change; `None` if the change has happened and the service makes no task of it.
    fn task_of_change(&self, job: u32, target: &str, method: &'static str) -> Option<Answer> {
        let state = self.machine.chassis().volumes.state(job);
        let is_done = state.is_none_or(|state| state == UpdateState::Completed);
        let needs_task = !is_done || self.profile.raid.answer == VolumeAnswer::Task;
        let kind = TaskKind::Volume { id: job, target: target.to_owned(), method };
        needs_task.then(|| self.start_task(kind))
    }

    /// Whether the change waits for the next start of the machine.
    fn waits_for_start(&self, form: &Map<String, Value>) -> Result<bool, Problem> {
        let times = &self.profile.raid.apply_times;
        let Some(time) = form.get(APPLY_TIME) else {
            return Ok(times.first().is_some_and(|first| first == "OnReset"));
        };
        if times.is_empty() {
            return Err(Problem::property(Message::PROPERTY_UNKNOWN, APPLY_TIME));
        }
        if !times.iter().any(|known| time == known) {
            return Err(Problem::value(Message::PROPERTY_NOT_IN_LIST, APPLY_TIME, time));
        }
        Ok(time == "OnReset")
    }

    fn level(&self, kind: &str, form: &Map<String, Value>) -> Result<String, Problem> {
        let told =
            form.get(kind).ok_or_else(|| Problem::property(Message::PROPERTY_MISSING, kind))?;
        let word = told.as_str().unwrap_or_default();
        let known = VOLUME_TYPES.iter().find(|(_, volume_type)| *volume_type == word);
        let level =
            if self.profile.raid.has_volume_types { known.map(|it| it.0) } else { Some(word) };
        let made = self.profile.raid.levels.iter().find(|made| Some(made.as_str()) == level);
        made.cloned().ok_or_else(|| Problem::value(Message::PROPERTY_NOT_IN_LIST, kind, told))
    }

    /// The places of the drives that a request links to.
    fn drives(&self, form: &Map<String, Value>) -> Result<Vec<usize>, Problem> {
        let missing = || Problem::property(Message::PROPERTY_MISSING, "Links/Drives");
        let links = form.get("Links").and_then(|links| links["Drives"].as_array());
        let mut drives = Vec::new();
        for link in links.ok_or_else(missing)? {
            let wrong = || Problem::value(Message::PROPERTY_NOT_IN_LIST, "Links/Drives", link);
            let found = link["@odata.id"].as_str().and_then(|path| Resource::find(path, self));
            let drive = found.filter(|it| it.row.each.as_deref() == Some("disks"));
            let place = drive.ok_or_else(wrong)?.index;
            if drives.contains(&place) {
                return Err(wrong());
            }
            drives.push(place);
        }
        Ok(drives)
    }

    /// The space of a drive that no volume takes, in bytes.
    fn free_space(&self, drive: usize) -> u64 {
        let chassis = self.machine.chassis();
        let volumes = chassis.volumes.volumes.iter().filter(|it| it.drives.contains(&drive));
        let taken: u64 = volumes.map(Volume::space_per_drive).sum();
        let size = self.machine.spec().disks.get(drive).map_or(0, |disk| disk.size_bytes);
        size.saturating_sub(taken)
    }

    /// A controller works on one change at a time.
    fn check_queue(&self) -> Result<(), Problem> {
        let full = self.machine.faults().with(|faults| faults.job_queue_full);
        let never = self.machine.faults().with(|faults| faults.volumes_never_end);
        if full || (self.machine.chassis().volumes.are_changing() && !never) {
            return Err(Problem::busy(Message::JOB_QUEUE_FULL, 1));
        }
        Ok(())
    }
}
