//! The RAID volumes of a machine's storage controller, and the changes of them that its BMC remembers.

use serde::{Deserialize, Serialize};

use crate::updates::UpdateState;

/// How many changes a BMC remembers.
const KEPT: usize = 16;

/// A RAID volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    pub id: String,
    pub name: String,
    /// `RAIDType` of the Volume schema (DSP8010).
    pub level: String,
    pub size_bytes: u64,
    /// The places of the drives among the disks of the machine.
    pub drives: Vec<usize>,
}

/// A change that a BMC accepted.
#[derive(Clone, Debug)]
pub(crate) enum VolumeChange {
    Create(Volume),
    Delete(String),
}

#[derive(Clone, Debug)]
struct Job {
    id: u32,
    change: VolumeChange,
    state: UpdateState,
}

/// The volumes of one machine, and the changes of them, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    pub(crate) volumes: Vec<Volume>,
    jobs: Vec<Job>,
    last_id: u32,
}

impl Volumes {
    pub(crate) fn of(volumes: Vec<Volume>) -> Volumes {
        Volumes { volumes, ..Volumes::default() }
    }

    pub(crate) fn state(&self, job: u32) -> Option<UpdateState> {
        self.jobs.iter().find(|it| it.id == job).map(|it| it.state.clone())
    }

    /// Whether a change has not ended yet.
    pub(crate) fn are_changing(&self) -> bool {
        let is_open = |state: &UpdateState| match state {
            UpdateState::Running | UpdateState::Starting => true,
            UpdateState::Completed | UpdateState::Failed(_) => false,
        };
        self.jobs.iter().any(|job| is_open(&job.state))
    }

    /// The smallest number that is no volume's id. The ids of deleted volumes are used again.
    pub(crate) fn free_id(&self) -> String {
        let is_free = |id: &String| self.volumes.iter().all(|volume| volume.id != *id);
        (1..).map(|number: u32| number.to_string()).find(is_free).unwrap_or_default()
    }

    /// Adds a change that begins, and returns its id. The oldest is forgotten.
    pub(crate) fn add(&mut self, change: VolumeChange) -> u32 {
        self.last_id += 1;
        if self.jobs.len() == KEPT {
            self.jobs.remove(0);
        }
        self.jobs.push(Job { id: self.last_id, change, state: UpdateState::Running });
        self.last_id
    }

    /// The change ends, or waits, in this state. A change that is completed is made.
    pub(crate) fn become_state(&mut self, job: u32, state: UpdateState) {
        let Some(job) = self.jobs.iter_mut().find(|it| it.id == job) else { return };
        if state == UpdateState::Completed {
            match &job.change {
                VolumeChange::Create(volume) => self.volumes.push(volume.clone()),
                VolumeChange::Delete(id) => self.volumes.retain(|volume| volume.id != *id),
            }
        }
        job.state = state;
    }

    /// The machine starts, which carries out the changes that wait for a start.
    pub(crate) fn start(&mut self) {
        let waits = |job: &&Job| job.state == UpdateState::Starting;
        let waiting: Vec<u32> = self.jobs.iter().filter(waits).map(|job| job.id).collect();
        waiting.into_iter().for_each(|job| self.become_state(job, UpdateState::Completed));
    }
}

/// How many of `drives` drives hold the data of a volume of this `RAIDType`; `None` if the level cannot have so many drives.
pub(crate) fn data_drives(level: &str, drives: usize) -> Option<usize> {
    let even = drives.is_multiple_of(2);
    match level {
        "RAID0" if drives > 0 => Some(drives),
        "RAID1" if drives == 2 => Some(1),
        "RAID5" if drives > 2 => Some(drives - 1),
        "RAID6" if drives > 3 => Some(drives - 2),
        "RAID10" if drives > 3 && even => Some(drives / 2),
        "RAID50" if drives > 5 && even => Some(drives - 2),
        "RAID60" if drives > 7 && even => Some(drives - 4),
        _ => None,
    }
}

impl Volume {
    /// The space that the volume takes on each of its drives, in bytes.
    pub(crate) fn space_per_drive(&self) -> u64 {
        let data = data_drives(&self.level, self.drives.len()).unwrap_or(1);
        self.size_bytes.div_ceil(data as u64)
    }
}
