//! One emulated machine, with the interface for observing it and for setting faults.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bmc_emulator::{BootChoice, MachineSpec, ServedMachine};
use serde_json::Value;
use tokio::sync::watch;
use tracing::info;

use crate::config_drive::ConfigDrive;
use crate::disk::{Content, Disk};
use crate::event::{BootSource, Event, Stage};
use crate::fault::FaultSet;
use crate::saved_state::{KeptDisk, SavedActivity, StateFile, StoredMachine};
use crate::serial_output;

/// The most events of a machine; the oldest are dropped.
const KEPT: usize = 512;

/// The agent in a machine's ramdisk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// The emulator's own agent, which does not store the data of an image.
    Light,
    /// A program with the options `--root FOLDER --listen ADDRESS:PORT`, run as a child process; the disks are files below the folder.
    Program { path: PathBuf, folder: PathBuf },
}

/// A machine; clones are the same machine.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    chassis: bmc_emulator::Machine,
    bmc: ServedMachine,
    agent: AgentKind,
    disks: Mutex<Vec<Disk>>,
    faults: Mutex<FaultSet>,
    stage: watch::Sender<Stage>,
    events: Mutex<VecDeque<Event>>,
    /// The firmware's choice since power-on.
    boots: Mutex<Option<BootChoice>>,
    raid: Mutex<Option<Value>>,
    keeper: Option<Arc<StateFile>>,
}

impl Machine {
    pub(crate) fn new(
        chassis: bmc_emulator::Machine,
        bmc: ServedMachine,
        agent: AgentKind,
        keeper: Option<Arc<StateFile>>,
    ) -> Machine {
        let name = &chassis.spec().name;
        let kept = keeper.as_ref().and_then(|keeper| keeper.find(name));
        let mut kept = kept.map(|kept| kept.disks).unwrap_or_default().into_iter();
        let disks = chassis.spec().disks.iter().cloned();
        let disks = disks.map(|spec| match &agent {
            AgentKind::Light => {
                let mut disk = Disk::remembered(spec);
                if let Some(kept) = kept.next() {
                    disk.set(kept.content);
                    disk.set_drive(kept.drive);
                }
                disk
            }
            AgentKind::Program { folder, .. } => {
                let path = folder.join("dev").join(&spec.name);
                Disk::file(spec, path)
            }
        });
        let disks = Mutex::new(disks.collect());
        let stage = watch::Sender::new(Stage::Off);
        Machine(Arc::new(Inner {
            chassis,
            bmc,
            agent,
            disks,
            faults: Mutex::default(),
            stage,
            events: Mutex::default(),
            boots: Mutex::default(),
            raid: Mutex::default(),
            keeper,
        }))
    }

    /// Returns the name under which a rack knows the machine.
    pub fn name(&self) -> &str {
        &self.spec().name
    }

    /// The hardware description.
    pub fn spec(&self) -> &MachineSpec {
        self.0.chassis.spec()
    }

    /// The chassis, with the requests to its BMC and the BMC's faults.
    pub fn chassis(&self) -> &bmc_emulator::Machine {
        &self.0.chassis
    }

    /// The addresses of the BMC.
    pub fn bmc(&self) -> &ServedMachine {
        &self.0.bmc
    }

    /// A receiver for the machine's activity.
    pub fn stage(&self) -> watch::Receiver<Stage> {
        self.0.stage.subscribe()
    }

    /// The source of the running system, if one runs.
    pub fn booted_from(&self) -> Option<BootSource> {
        match &*self.0.stage.borrow() {
            Stage::Ramdisk(source) | Stage::Rescue(source, _) | Stage::Live(source, _) => {
                Some(*source)
            }
            Stage::Installed => Some(BootSource::Disk),
            Stage::Off | Stage::Booting | Stage::Hung(_) => None,
        }
    }

    /// The content of the disks, in bay order.
    pub fn disks(&self) -> Vec<Content> {
        self.lock_disks().iter().map(Disk::content).collect()
    }

    /// The RAID configuration of the arrays on the disks.
    pub fn raid(&self) -> Option<Value> {
        self.lock_raid().clone()
    }

    pub(crate) fn lock_raid(&self) -> MutexGuard<'_, Option<Value>> {
        self.0.raid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all disks are blank.
    pub fn disks_are_blank(&self) -> bool {
        self.disks().iter().all(|content| *content == Content::Blank)
    }

    /// Puts content on a disk, like an earlier owner. A disk that is a file keeps its content.
    pub fn put_on_disk(&self, bay: usize, content: Content) {
        let whole = !matches!(content, Content::Broken { .. });
        if let Some(disk) = self.lock_disks().get_mut(bay) {
            disk.set(content);
        }
        // A partial image need not be stored: any partial state is equally good.
        if whole {
            self.keep();
        }
    }

    /// Puts an image on a disk, and a config drive next to it.
    pub(crate) fn install(&self, bay: usize, image: Content, drive: Option<String>) {
        if let Some(disk) = self.lock_disks().get_mut(bay) {
            disk.set(image);
            disk.set_drive(drive);
        }
        self.keep();
    }

    /// The id of the root partition of an image that has no boot loader yet.
    pub(crate) fn root_id(&self) -> Option<String> {
        self.disks().into_iter().find_map(|content| match content {
            Content::Partition { root_id, .. } => Some(root_id),
            Content::Blank | Content::Broken { .. } | Content::Image { .. } => None,
        })
    }

    /// Installs the boot loader of the image whose root partition has this id.
    pub(crate) fn install_boot_loader(&self, wanted: &str) {
        for disk in self.lock_disks().iter_mut() {
            if let Content::Partition { image, root_id } = disk.content()
                && root_id == wanted
            {
                let drive = disk.drive().map(str::to_owned);
                disk.set(*image);
                disk.set_drive(drive);
            }
        }
        self.keep();
    }

    /// The config drive next to the image on one of the disks.
    pub fn config_drive(&self) -> Option<ConfigDrive> {
        self.lock_disks().iter().find_map(|disk| ConfigDrive::read(disk.drive()?))
    }

    /// All events, oldest first.
    pub fn events(&self) -> Vec<Event> {
        lock(&self.0.events).iter().cloned().collect()
    }

    /// The current faults.
    pub fn faults(&self) -> FaultSet {
        lock(&self.0.faults).clone()
    }

    /// Changes the faults of the machine; its BMC has separate faults.
    pub fn misbehave(&self, change: impl FnOnce(&mut FaultSet)) {
        change(&mut lock(&self.0.faults));
    }

    pub(crate) fn agent(&self) -> &AgentKind {
        &self.0.agent
    }

    pub(crate) fn lock_disks(&self) -> MutexGuard<'_, Vec<Disk>> {
        lock(&self.0.disks)
    }

    pub(crate) fn tell(&self, event: Event) {
        info!(machine.name = self.name(), "{}: {event}", self.name());
        self.0.chassis.serial().say(serial_output::line(self.spec(), &event));
        let mut events = lock(&self.0.events);
        if events.len() == KEPT {
            events.pop_front();
        }
        events.push_back(event);
    }

    pub(crate) fn now(&self, stage: Stage) {
        self.0.stage.send_replace(stage);
        self.keep();
    }

    /// Records the firmware's choice; `None` before it has chosen.
    pub(crate) fn boots(&self, choice: Option<BootChoice>) {
        *lock(&self.0.boots) = choice;
        self.keep();
    }

    /// Stores the current state, if the rack stores machines.
    pub(crate) fn keep(&self) {
        let Some(keeper) = &self.0.keeper else { return };
        let before = match &*self.0.stage.borrow() {
            Stage::Installed => SavedActivity::Installed,
            Stage::Off
            | Stage::Booting
            | Stage::Ramdisk(_)
            | Stage::Rescue(..)
            | Stage::Live(..)
            | Stage::Hung(_) => SavedActivity::Boots(lock(&self.0.boots).clone()),
        };
        let disks = self.lock_disks();
        let disk = |disk: &Disk| KeptDisk {
            content: disk.content(),
            drive: disk.drive().map(str::to_owned),
        };
        let disks = disks.iter().map(disk).collect();
        keeper.keep(self.name(), StoredMachine { chassis: self.0.chassis.kept(), before, disks });
    }

    /// Returns the stored activity, if the machine was on.
    pub(crate) fn before(&self) -> Option<SavedActivity> {
        let kept = self.0.keeper.as_ref()?.find(self.name())?;
        kept.chassis.on.then_some(kept.before)
    }

    /// Hangs until the power changes.
    pub(crate) async fn hang(&self, why: &str) -> std::convert::Infallible {
        self.tell(Event::Hangs(why.to_owned()));
        self.now(Stage::Hung(why.to_owned()));
        std::future::pending().await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
