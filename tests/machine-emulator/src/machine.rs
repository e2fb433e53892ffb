//! One pretend machine, as those see it who watch it or misuse it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bmc_emulator::{BootChoice, MachineSpec, ServedMachine};
use tokio::sync::watch;
use tracing::info;

use crate::agent::AgentKind;
use crate::config_drive::ConfigDrive;
use crate::console;
use crate::disk::{Content, Disk};
use crate::event::{BootSource, Event, Stage};
use crate::fault::FaultSet;
use crate::kept::{Before, Keeper, Kept, KeptDisk};

/// How many events a machine keeps; the oldest go first.
const KEPT: usize = 512;

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
    /// What its firmware chose to boot, since power came.
    boots: Mutex<Option<BootChoice>>,
    keeper: Option<Arc<Keeper>>,
}

impl Machine {
    pub(crate) fn new(
        chassis: bmc_emulator::Machine,
        bmc: ServedMachine,
        agent: AgentKind,
        keeper: Option<Arc<Keeper>>,
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
            keeper,
        }))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.spec().name
    }

    /// What it is made of.
    pub fn spec(&self) -> &MachineSpec {
        self.0.chassis.spec()
    }

    /// Its chassis, with what its BMC was asked and how that misbehaves.
    pub fn chassis(&self) -> &bmc_emulator::Machine {
        &self.0.chassis
    }

    /// Where its BMC answers.
    pub fn bmc(&self) -> &ServedMachine {
        &self.0.bmc
    }

    /// What it is doing, to be watched.
    pub fn stage(&self) -> watch::Receiver<Stage> {
        self.0.stage.subscribe()
    }

    /// Where the system came from that runs now, if one does.
    pub fn booted_from(&self) -> Option<BootSource> {
        match &*self.0.stage.borrow() {
            Stage::Ramdisk(source) => Some(*source),
            Stage::Installed => Some(BootSource::Disk),
            Stage::Off | Stage::Booting | Stage::Hung(_) => None,
        }
    }

    /// What is on its disks, in bay order.
    pub fn disks(&self) -> Vec<Content> {
        self.lock_disks().iter().map(Disk::content).collect()
    }

    /// Whether there is nothing on any disk.
    pub fn disks_are_blank(&self) -> bool {
        self.disks().iter().all(|content| *content == Content::Blank)
    }

    /// Puts something on a disk, as an earlier owner would have. A disk that is a file keeps what it has.
    pub fn put_on_disk(&self, bay: usize, content: Content) {
        let whole = !matches!(content, Content::Broken { .. });
        if let Some(disk) = self.lock_disks().get_mut(bay) {
            disk.set(content);
        }
        // What is half there is as good as another half.
        if whole {
            self.keep();
        }
    }

    /// Puts an image on a disk, and a config drive beside it.
    pub(crate) fn install(&self, bay: usize, image: Content, drive: Option<String>) {
        if let Some(disk) = self.lock_disks().get_mut(bay) {
            disk.set(image);
            disk.set_drive(drive);
        }
        self.keep();
    }

    /// The config drive beside the image on one of its disks.
    pub fn config_drive(&self) -> Option<ConfigDrive> {
        self.lock_disks().iter().find_map(|disk| ConfigDrive::read(disk.drive()?))
    }

    /// What happened to it, oldest first.
    pub fn events(&self) -> Vec<Event> {
        lock(&self.0.events).iter().cloned().collect()
    }

    /// What is wrong with it now.
    pub fn faults(&self) -> FaultSet {
        lock(&self.0.faults).clone()
    }

    /// Changes what is wrong with it; its BMC has faults of its own.
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
        self.0.chassis.serial().say(console::line(self.spec(), &event));
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

    /// The firmware has chosen what to boot; none while it has not.
    pub(crate) fn boots(&self, choice: Option<BootChoice>) {
        *lock(&self.0.boots) = choice;
        self.keep();
    }

    /// Keeps what it is now, where machines are kept.
    pub(crate) fn keep(&self) {
        let Some(keeper) = &self.0.keeper else { return };
        let before = match &*self.0.stage.borrow() {
            Stage::Installed => Before::Installed,
            Stage::Off | Stage::Booting | Stage::Ramdisk(_) | Stage::Hung(_) => {
                Before::Boots(lock(&self.0.boots).clone())
            }
        };
        let disks = self.lock_disks();
        let disk = |disk: &Disk| KeptDisk {
            content: disk.content(),
            drive: disk.drive().map(str::to_owned),
        };
        let disks = disks.iter().map(disk).collect();
        keeper.keep(self.name(), Kept { chassis: self.0.chassis.kept(), before, disks });
    }

    /// What it did when it was kept, if it is on since then.
    pub(crate) fn before(&self) -> Option<Before> {
        let kept = self.0.keeper.as_ref()?.find(self.name())?;
        kept.chassis.on.then_some(kept.before)
    }

    /// Stays as it is until power changes.
    pub(crate) async fn hang(&self, why: &str) -> std::convert::Infallible {
        self.tell(Event::Hangs(why.to_owned()));
        self.now(Stage::Hung(why.to_owned()));
        std::future::pending().await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
