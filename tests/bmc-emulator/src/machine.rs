//! The chassis: one machine as its BMC changes it and as its firmware and operating system see it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

use crate::boot::{BootChoice, BootDevice, BootOverride, OverrideDuration};
use crate::events::{EventKind, Events};
use crate::faults::{Faults, ReportedPower};
use crate::kept::{Boot, PersistedState};
use crate::log::{BmcLogEntry, Log, Outcome, PowerRequest, Protocol, Request};
use crate::profile::{MediaDrive, Profile};
use crate::serial::SerialPort;
use crate::session_use::SessionUse;
use crate::setup::{ChangeTime, Setup};
use crate::spec::{Firmware, MachineSpec};
use crate::subscriptions::{Subscription, Subscriptions};
use crate::updates::Updates;
use crate::volumes::Volumes;

/// A machine. Clones refer to the same machine.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Inner>);

/// The power of a machine, as the operating system sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Power {
    pub on: bool,
    /// Counts power-ons and resets. A new value means that the contents of memory are lost.
    pub generation: u64,
    /// Whether the operating system has been asked to shut down and has not done so yet.
    pub soft_off_requested: bool,
}

/// The request needs a machine that is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotWhileOff;

#[derive(Debug)]
struct Inner {
    spec: MachineSpec,
    power: watch::Sender<Power>,
    chassis: Mutex<Chassis>,
    faults: Faults,
    sessions: SessionUse,
    serial: SerialPort,
}

/// The state behind the machine's lock.
#[derive(Debug, Default)]
pub(crate) struct Chassis {
    boot: Option<BootOverride>,
    /// How long the virtual CD is the first boot device, before any override.
    virtual_cd: Option<OverrideDuration>,
    /// The machine switches on again after the operating system has shut down.
    restart_after_soft_off: bool,
    identify: Identify,
    /// The password that a request has set in place of the first one.
    pub(crate) password: Option<String>,
    /// Images and the virtual drives that hold them.
    media: Vec<(&'static MediaDrive, Url)>,
    pub(crate) setup: Setup,
    pub(crate) updates: Updates,
    pub(crate) volumes: Volumes,
    pub(crate) events: Events,
    pub(crate) subscriptions: Subscriptions,
    log: Log,
}

/// The identify light on the front of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Identify {
    #[default]
    Off,
    Until(Instant),
    On,
}

impl Machine {
    /// A machine that is off, has no boot override and an empty virtual drive.
    pub fn new(spec: MachineSpec) -> Machine {
        Machine::resumed(spec, PersistedState::default())
    }

    /// A machine in the state that [`Machine::kept`] returned. Images of drives that the profile does not have are dropped.
    pub fn resumed(spec: MachineSpec, kept: PersistedState) -> Machine {
        let power = Power { on: kept.on, ..Power::default() };
        let rules = Profile::find(&spec.bmc.profile).and_then(|profile| profile.media.as_ref());
        let drives = rules.map(|rules| rules.drives.as_slice()).unwrap_or_default();
        let media = kept
            .media
            .into_iter()
            .filter_map(|(id, image)| Some((drives.iter().find(|drive| drive.id == id)?, image)));
        let chassis = Chassis {
            boot: kept.boot.map(|boot| boot.held_from(Instant::now())),
            virtual_cd: kept.virtual_cd,
            password: kept.password,
            media: media.collect(),
            setup: kept.setup,
            volumes: Volumes::of(kept.volumes),
            subscriptions: Subscriptions::of(kept.subscriptions),
            ..Chassis::default()
        };
        Machine(Arc::new(Inner {
            spec,
            power: watch::Sender::new(power),
            chassis: Mutex::new(chassis),
            faults: Faults::default(),
            sessions: SessionUse::default(),
            serial: SerialPort::default(),
        }))
    }

    /// The state to store for a restart of the emulator: power, next boot, virtual media, firmware settings, RAID volumes,
    /// subscriptions and the password.
    pub fn kept(&self) -> PersistedState {
        let mut chassis = self.chassis();
        let boot = chassis.boot_override().map(|boot| Boot::of(boot, Instant::now()));
        let media = chassis.media.iter().map(|(drive, image)| (drive.id.clone(), image.clone()));
        let media = media.collect();
        let setup = chassis.setup.clone();
        let volumes = chassis.volumes.volumes.clone();
        let subscriptions = chassis.subscriptions.all.clone();
        let virtual_cd = chassis.virtual_cd;
        let on = self.power_now().on;
        let password = chassis.password.clone();
        PersistedState { on, boot, virtual_cd, media, setup, volumes, subscriptions, password }
    }

    /// The hardware of the machine.
    pub fn spec(&self) -> &MachineSpec {
        &self.0.spec
    }

    /// The mode in which the firmware boots.
    pub fn boot_mode(&self) -> Firmware {
        self.chassis().setup.boot_mode(self.spec())
    }

    /// Whether the firmware starts only signed programs.
    pub fn secure_boot(&self) -> bool {
        self.chassis().setup.secure_boot
    }

    /// Whether the firmware has keys of secure boot.
    pub fn has_secure_boot_keys(&self) -> bool {
        !self.chassis().setup.lacks_keys
    }

    /// The time that the BMC shows.
    pub fn clock(&self) -> Timestamp {
        self.chassis().setup.clock.now()
    }

    /// Makes the clock of the BMC wrong by this many seconds.
    pub fn misset_clock(&self, ahead_s: i64) {
        self.chassis().setup.clock.ahead_s = ahead_s;
    }

    /// The BIOS attributes in force.
    pub fn bios(&self) -> Map<String, Value> {
        self.chassis().setup.attributes(self.spec())
    }

    /// The version of a component that an update changed: `bios`, `bmc`, or `nic:` with a serial number.
    pub fn updated_firmware(&self, component: &str) -> Option<String> {
        self.chassis().setup.firmware.get(component).cloned()
    }

    /// Watches the power of the machine.
    pub fn power(&self) -> watch::Receiver<Power> {
        self.0.power.subscribe()
    }

    /// The device that the firmware boots now. Uses up an override for one boot.
    pub fn take_boot_device(&self) -> BootChoice {
        let mut chassis = self.chassis();
        if let Some(lasting) = chassis.virtual_cd {
            chassis.virtual_cd = (lasting == OverrideDuration::Always).then_some(lasting);
            return BootChoice { device: Some(BootDevice::Cdrom), ..BootChoice::default() };
        }
        let found = chassis.boot_override();
        if found.as_ref().is_some_and(|boot| boot.lasting == OverrideDuration::Once) {
            chassis.boot = None;
        }
        match found {
            // The drive in the machine is empty, so the firmware goes on in its own order.
            Some(boot) if boot.device == BootDevice::Cdrom && self.has_physical_cd() => {
                BootChoice { mode: boot.mode, ..BootChoice::default() }
            }
            Some(boot) => {
                BootChoice { device: Some(boot.device), mode: boot.mode, http_uri: boot.http_uri }
            }
            None => BootChoice::default(),
        }
    }

    /// The image in the virtual CD drive.
    pub fn media(&self) -> Option<Url> {
        self.chassis().media.iter().find(|(drive, _)| drive.is_cd()).map(|(_, image)| image.clone())
    }

    /// Pushes the power button on the front. The BMC sees the change but logs no request.
    pub fn push_power_button(&self) {
        self.apply(PowerRequest::PushButton);
    }

    /// The operating system switches the machine off.
    pub fn guest_power_off(&self) {
        let mut chassis = self.chassis();
        if !self.power_now().on {
            return;
        }
        match std::mem::take(&mut chassis.restart_after_soft_off) {
            true => self.restart(&mut chassis),
            false => self.switch_off(&mut chassis),
        }
    }

    /// The operating system restarts the machine.
    pub fn guest_reboot(&self) {
        let mut chassis = self.chassis();
        if self.power_now().on {
            self.restart(&mut chassis);
        }
    }

    /// All requests to change the machine that the BMC accepted or refused, oldest first.
    pub fn log(&self) -> Vec<BmcLogEntry> {
        self.chassis().log.entries()
    }

    /// The faults of the BMC.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// How the session slots of the BMC were used.
    pub fn sessions(&self) -> &SessionUse {
        &self.0.sessions
    }

    /// The serial port, as firmware and operating system use it.
    pub fn serial(&self) -> &SerialPort {
        &self.0.serial
    }

    pub(crate) fn power_now(&self) -> Power {
        *self.0.power.borrow()
    }

    /// The power state that the BMC reports.
    pub(crate) fn reported_on(&self) -> bool {
        match self.faults().with(|faults| faults.reported_power) {
            Some(ReportedPower::On) => true,
            Some(ReportedPower::Off) => false,
            None => self.power_now().on,
        }
    }

    /// Changes the power, at once or after the delay of a fault. Returns how long the change takes.
    ///
    /// The caller logs a refusal in the words of its protocol.
    pub(crate) fn request_power(
        &self,
        face: Protocol,
        request: PowerRequest,
    ) -> Result<Duration, NotWhileOff> {
        use PowerRequest::{Cycle, ForceRestart, Interrupt, SoftRestart};
        let (delay, ignored) =
            self.faults().with(|faults| (faults.power_delay, faults.ignore_power_on));
        let on = self.power_now().on;

        if !on && matches!(request, Cycle | ForceRestart | Interrupt | SoftRestart) {
            return Err(NotWhileOff);
        }
        self.record(face, Request::Power(request), Outcome::Accepted);
        self.chassis().keep_boot_override();
        let switches_on = !on && matches!(request, PowerRequest::On | PowerRequest::PushButton);
        match delay {
            _ if ignored && switches_on => {}
            None => self.apply(request),
            Some(delay) => {
                let machine = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    machine.apply(request);
                });
            }
        }
        Ok(delay.unwrap_or_default())
    }

    /// Sets or clears the boot override.
    pub(crate) fn set_boot(&self, face: Protocol, boot: Option<BootOverride>) {
        let request = boot
            .as_ref()
            .map_or(Request::ClearBoot, |boot| Request::Boot(boot.device, boot.lasting));
        let mut chassis = self.chassis();
        chassis.boot = boot;
        chassis.log.record(face, request, Outcome::Accepted);
    }

    /// Makes the virtual CD the first boot device.
    pub(crate) fn boot_virtual_cd(&self, face: Protocol, lasting: OverrideDuration) {
        let mut chassis = self.chassis();
        chassis.virtual_cd = Some(lasting);
        chassis.log.record(face, Request::Boot(BootDevice::Cdrom, lasting), Outcome::Accepted);
    }

    fn has_physical_cd(&self) -> bool {
        let profile = Profile::find(&self.spec().bmc.profile);
        profile.is_some_and(|profile| profile.boot.cd_is_physical)
    }

    pub(crate) fn boot_override(&self) -> Option<BootOverride> {
        self.chassis().boot_override()
    }

    pub(crate) fn change_boot_mode(&self, face: Protocol, mode: Firmware, time: ChangeTime) {
        let mut chassis = self.chassis();
        chassis.setup.change_boot_mode(mode, time);
        chassis.log.record(face, Request::BootMode(mode), Outcome::Accepted);
    }

    pub(crate) fn change_secure_boot(&self, face: Protocol, on: bool, time: ChangeTime) {
        let mut chassis = self.chassis();
        chassis.setup.change_secure_boot(on, time);
        chassis.log.record(face, Request::SecureBoot(on), Outcome::Accepted);
    }

    /// The keys of the maker in place of all others, or no keys.
    pub(crate) fn reset_secure_boot_keys(&self, face: Protocol, wanted: bool, time: ChangeTime) {
        let mut chassis = self.chassis();
        chassis.setup.change_keys(wanted, time);
        chassis.log.record(face, Request::SecureBootKeys(wanted), Outcome::Accepted);
    }

    pub(crate) fn set_clock(
        &self,
        face: Protocol,
        time: Option<Timestamp>,
        offset: Option<Offset>,
    ) {
        let mut chassis = self.chassis();
        chassis.setup.clock.set(time, offset);
        let now = chassis.setup.clock.now();
        chassis.log.record(face, Request::SetClock(now), Outcome::Accepted);
    }

    pub(crate) fn change_bios(&self, face: Protocol, values: Map<String, Value>) {
        let mut chassis = self.chassis();
        let names = values.keys().cloned().collect();
        chassis.setup.change_attributes(values);
        chassis.log.record(face, Request::ChangeBios(names), Outcome::Accepted);
    }

    pub(crate) fn reset_bios(&self, face: Protocol) {
        let mut chassis = self.chassis();
        chassis.setup.reset_attributes();
        chassis.log.record(face, Request::ResetBios, Outcome::Accepted);
    }

    pub(crate) fn insert_media(&self, face: Protocol, drive: &'static MediaDrive, image: Url) {
        let mut chassis = self.chassis();
        chassis.media.retain(|(other, _)| other.id != drive.id);
        chassis.media.push((drive, image.clone()));
        chassis.log.record(face, Request::InsertMedia(image), Outcome::Accepted);
    }

    pub(crate) fn eject_media(&self, face: Protocol, drive: &MediaDrive) {
        let mut chassis = self.chassis();
        chassis.media.retain(|(other, _)| other.id != drive.id);
        chassis.log.record(face, Request::EjectMedia, Outcome::Accepted);
    }

    pub(crate) fn media_in(&self, drive: &MediaDrive) -> Option<Url> {
        self.chassis()
            .media
            .iter()
            .find(|(other, _)| other.id == drive.id)
            .map(|(_, image)| image.clone())
    }

    /// The subscriptions to events, oldest first.
    pub fn subscriptions(&self) -> Vec<Subscription> {
        self.chassis().subscriptions.all.clone()
    }

    /// Adds a subscription and returns its id.
    pub(crate) fn subscribe(&self, face: Protocol, subscription: Subscription) -> u32 {
        let mut chassis = self.chassis();
        let request = Request::Subscribe(subscription.destination.clone());
        chassis.log.record(face, request, Outcome::Accepted);
        chassis.subscriptions.add(subscription)
    }

    pub(crate) fn unsubscribe(&self, face: Protocol, id: u32) {
        let mut chassis = self.chassis();
        chassis.subscriptions.all.retain(|one| one.id != id);
        chassis.log.record(face, Request::Unsubscribe(id), Outcome::Accepted);
    }

    pub(crate) fn identify(&self) -> Identify {
        match self.chassis().identify {
            Identify::Until(end) if end <= Instant::now() => Identify::Off,
            lit @ (Identify::Until(_) | Identify::On | Identify::Off) => lit,
        }
    }

    pub(crate) fn set_identify(&self, face: Protocol, identify: Identify) {
        let mut chassis = self.chassis();
        chassis.identify = identify;
        chassis.log.record(face, Request::Identify(identify != Identify::Off), Outcome::Accepted);
    }

    pub(crate) fn clear_events(&self, face: Protocol) {
        let mut chassis = self.chassis();
        chassis.events.clear();
        chassis.log.record(face, Request::ClearEventLog, Outcome::Accepted);
    }

    pub(crate) fn record(&self, face: Protocol, request: Request, outcome: Outcome) {
        self.chassis().log.record(face, request, outcome);
    }

    pub(crate) fn chassis(&self) -> MutexGuard<'_, Chassis> {
        self.0.chassis.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, request: PowerRequest) {
        let mut chassis = self.chassis();
        let on = self.power_now().on;
        match request {
            PowerRequest::On | PowerRequest::PushButton if !on => self.switch_on(&mut chassis),
            PowerRequest::ForceOff if on => self.switch_off(&mut chassis),
            PowerRequest::ForceRestart | PowerRequest::Cycle if on => self.restart(&mut chassis),
            PowerRequest::SoftOff | PowerRequest::PushButton if on => {
                chassis.restart_after_soft_off = false;
                self.0.power.send_modify(|power| power.soft_off_requested = true);
            }
            PowerRequest::SoftRestart if on => {
                chassis.restart_after_soft_off = true;
                self.0.power.send_modify(|power| power.soft_off_requested = true);
            }
            PowerRequest::Interrupt if on => chassis.events.add(EventKind::Interrupted),
            PowerRequest::On
            | PowerRequest::ForceOff
            | PowerRequest::ForceRestart
            | PowerRequest::Cycle
            | PowerRequest::SoftOff
            | PowerRequest::PushButton
            | PowerRequest::SoftRestart
            | PowerRequest::Interrupt => {}
        }
    }

    fn switch_on(&self, chassis: &mut Chassis) {
        chassis.events.add(EventKind::PoweredOn);
        self.begin_generation(chassis);
    }

    fn restart(&self, chassis: &mut Chassis) {
        chassis.events.add(EventKind::Restarted);
        self.begin_generation(chassis);
    }

    fn begin_generation(&self, chassis: &mut Chassis) {
        chassis.restart_after_soft_off = false;
        chassis.setup.start(self.faults().with(|faults| faults.ignore_settings));
        chassis.updates.start();
        chassis.volumes.start();
        self.0.power.send_modify(|power| {
            *power =
                Power { on: true, generation: power.generation + 1, soft_off_requested: false };
        });
    }

    fn switch_off(&self, chassis: &mut Chassis) {
        chassis.restart_after_soft_off = false;
        chassis.events.add(EventKind::PoweredOff);
        self.0.power.send_modify(|power| {
            *power = Power { on: false, generation: power.generation, soft_off_requested: false };
        });
    }
}

impl Chassis {
    /// The override, unless it has expired.
    fn boot_override(&mut self) -> Option<BootOverride> {
        let now = Instant::now();
        self.boot = self.boot.take().filter(|boot| boot.holds(now));
        self.boot.clone()
    }

    /// Stops the expiry of the override, because a power command came in time.
    fn keep_boot_override(&mut self) {
        self.boot = self.boot_override().map(|boot| BootOverride { lapses_at: None, ..boot });
    }
}
