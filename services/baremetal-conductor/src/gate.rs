//! The gate before one BMC: a token bucket, and a pause after errors. BMCs are slow computers that fail under load.
//!
//! The bucket is four lines of `wait_for_permit`. The crate `governor` would wait by a timer of its own (`futures-timer`), which tests with
//! tokio's paused clock cannot advance.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use baremetal_store::Tripwire;
use bmc::{
    Bios, Bmc, BmcError, Boot, BootSettings, IdentifyLight, Inspection, LogEntry, Power, Reading,
    Sensors, SerialConsole, SerialSession, VirtualDrive, VirtualMedia,
};
use hardware::{
    BiosAttribute, BiosValue, BiosValues, BootDevice, BootOverride, BootSetting, Firmware,
    Inventory, PowerAndBootSettings, PowerChange, PowerState,
};
use tokio::time::{Instant, sleep_until};
use url::Url;

use crate::BmcSettings;

/// The longest pause after errors.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Delays requests to the pace that a BMC can handle.
pub(crate) struct Gate {
    tripwire: Tripwire,
    every: Duration,
    slack: Duration,
    pace: Mutex<Pace>,
}

struct Pace {
    /// When the bucket will be full again. This is the virtual scheduling form of a token bucket: one timestamp replaces the counter.
    full_at: Instant,
    /// The end of the pause after errors. No request is sent before.
    rest_until: Instant,
    /// The number of errors in a row.
    errors: u32,
}

impl Gate {
    pub(crate) fn new(settings: &BmcSettings, tripwire: Tripwire) -> Self {
        let every = Duration::from_secs(1) / settings.requests_per_second.max(1);
        let now = Instant::now();
        let pace = Mutex::new(Pace { full_at: now, rest_until: now, errors: 0 });
        Gate { tripwire, every, slack: every * settings.burst.max(1), pace }
    }

    /// Waits until the next request may be sent.
    async fn wait_for_permit(&self) {
        let due = {
            let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            pace.full_at = pace.full_at.max(now) + self.every;
            let earliest = pace.full_at.checked_sub(self.slack).unwrap_or(now);
            earliest.max(pace.rest_until)
        };
        sleep_until(due).await;
    }

    /// Adapts the pause to an answer: every transient error in a row doubles it.
    fn observe_answer<T>(&self, answer: &Result<T, BmcError>) {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.as_ref().is_err_and(BmcError::is_transient) {
            let rest = Duration::from_millis(250) * 2_u32.pow(pace.errors.min(7));
            pace.errors += 1;
            pace.rest_until = Instant::now() + rest.min(MAX_PAUSE);
        } else {
            pace.errors = 0;
        }
    }
}

/// Wraps `bmc` so that every request passes through `gate`.
pub(crate) fn gated(bmc: Bmc, gate: Arc<Gate>) -> Bmc {
    let through = |gate: &Arc<Gate>| gate.clone();
    Bmc {
        power: Arc::new(Gated { inner: bmc.power, gate: through(&gate) }),
        boot: Arc::new(Gated { inner: bmc.boot, gate: through(&gate) }),
        boot_settings: bmc
            .boot_settings
            .map(|inner| Arc::new(Gated { inner, gate: through(&gate) }) as Arc<dyn BootSettings>),
        bios: bmc
            .bios
            .map(|inner| Arc::new(Gated { inner, gate: through(&gate) }) as Arc<dyn Bios>),
        media: bmc
            .media
            .map(|inner| Arc::new(Gated { inner, gate: through(&gate) }) as Arc<dyn VirtualMedia>),
        inspection: bmc
            .inspection
            .map(|inner| Arc::new(Gated { inner, gate: through(&gate) }) as Arc<dyn Inspection>),
        sensors: bmc
            .sensors
            .map(|inner| Arc::new(Gated { inner, gate: through(&gate) }) as Arc<dyn Sensors>),
        serial: bmc
            .serial
            .map(|inner| Arc::new(Gated { inner, gate: through(&gate) }) as Arc<dyn SerialConsole>),
    }
}

struct Gated<T: ?Sized> {
    inner: Arc<T>,
    gate: Arc<Gate>,
}

impl<T: ?Sized> Gated<T> {
    async fn through<A>(
        &self,
        request: impl Future<Output = Result<A, BmcError>>,
    ) -> Result<A, BmcError> {
        self.gate.wait_for_permit().await;
        let answer = request.await;
        self.gate.observe_answer(&answer);
        answer
    }

    /// Sends a request that changes the machine, through the gate and the tripwire of the crash tests.
    async fn changing<A>(
        &self,
        effect: &'static str,
        request: impl Future<Output = Result<A, BmcError>>,
    ) -> Result<A, BmcError> {
        self.gate.tripwire.around(effect, self.through(request)).await
    }
}

#[async_trait]
impl Power for Gated<dyn Power> {
    async fn state(&self) -> Result<PowerState, BmcError> {
        self.through(self.inner.state()).await
    }

    async fn state_once(&self) -> Result<PowerState, BmcError> {
        self.through(self.inner.state_once()).await
    }

    async fn request(&self, change: PowerChange) -> Result<(), BmcError> {
        self.changing("bmc: power", self.inner.request(change)).await
    }
}

#[async_trait]
impl Boot for Gated<dyn Boot> {
    async fn get(&self) -> Result<Option<BootOverride>, BmcError> {
        self.through(self.inner.get()).await
    }

    async fn set(&self, wanted: BootOverride) -> Result<(), BmcError> {
        self.changing("bmc: boot device", self.inner.set(wanted)).await
    }

    async fn supported(&self) -> Result<Vec<BootDevice>, BmcError> {
        self.through(self.inner.supported()).await
    }
}

#[async_trait]
impl BootSettings for Gated<dyn BootSettings> {
    async fn read(&self) -> Result<PowerAndBootSettings, BmcError> {
        self.through(self.inner.read()).await
    }

    async fn read_once(&self) -> Result<PowerAndBootSettings, BmcError> {
        self.through(self.inner.read_once()).await
    }

    async fn request(&self, wanted: BootSetting) -> Result<(), BmcError> {
        self.changing("bmc: boot setting", self.inner.request(wanted)).await
    }
}

#[async_trait]
impl Bios for Gated<dyn Bios> {
    async fn values(&self) -> Result<BiosValues, BmcError> {
        self.through(self.inner.values()).await
    }

    async fn attributes(&self) -> Result<BTreeMap<String, BiosAttribute>, BmcError> {
        self.through(self.inner.attributes()).await
    }

    async fn request(&self, values: &BTreeMap<String, BiosValue>) -> Result<(), BmcError> {
        self.changing("bmc: bios settings", self.inner.request(values)).await
    }

    async fn request_reset(&self) -> Result<(), BmcError> {
        self.changing("bmc: bios reset", self.inner.request_reset()).await
    }
}

#[async_trait]
impl VirtualMedia for Gated<dyn VirtualMedia> {
    async fn insert(&self, url: &Url) -> Result<(), BmcError> {
        self.changing("bmc: insert medium", self.inner.insert(url)).await
    }

    async fn eject(&self) -> Result<(), BmcError> {
        self.changing("bmc: eject medium", self.inner.eject()).await
    }

    async fn content(&self) -> Result<VirtualDrive, BmcError> {
        self.through(self.inner.content()).await
    }
}

#[async_trait]
impl Inspection for Gated<dyn Inspection> {
    async fn inventory(&self) -> Result<Inventory, BmcError> {
        self.through(self.inner.inventory()).await
    }

    async fn main_firmware(&self) -> Result<Vec<Firmware>, BmcError> {
        self.through(self.inner.main_firmware()).await
    }
}

#[async_trait]
impl Sensors for Gated<dyn Sensors> {
    async fn readings(&self) -> Result<Vec<Reading>, BmcError> {
        self.through(self.inner.readings()).await
    }

    async fn event_log(&self, limit: usize) -> Result<Vec<LogEntry>, BmcError> {
        self.through(self.inner.event_log(limit)).await
    }

    async fn identify(&self, light: IdentifyLight) -> Result<(), BmcError> {
        self.through(self.inner.identify(light)).await
    }
}

/// Only the opening passes through the gate; the data of the console then has a session of its own.
#[async_trait]
impl SerialConsole for Gated<dyn SerialConsole> {
    async fn open(&self) -> Result<SerialSession, BmcError> {
        self.through(self.inner.open()).await
    }
}

#[cfg(test)]
mod tests {
    use bmc_emulator::Request;
    use hardware::{AllowedHosts, Persistence};

    use super::*;
    use crate::samples::SampleMachine;

    fn gate(requests_per_second: u32, burst: u32) -> Gate {
        let settings = BmcSettings {
            allowed: Default::default(),
            request_timeout: Duration::from_secs(1),
            requests_per_second,
            burst,
            allow_unverified: false,
            authorities: Vec::new(),
        };
        Gate::new(&settings, Tripwire::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_immediately_and_the_rest_at_the_pace() {
        let gate = gate(10, 5);
        let begun = Instant::now();
        for _ in 0..5 {
            gate.wait_for_permit().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            gate.wait_for_permit().await;
        }
        assert_eq!(begun.elapsed().as_millis() / 100, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn consecutive_errors_lengthen_the_pause() {
        let gate = gate(1000, 100);
        let busy = || {
            Err::<(), _>(BmcError::Busy { host: "bmc".to_owned(), reason: "slow down".to_owned() })
        };
        let mut rests = Vec::new();
        for _ in 0..3 {
            gate.observe_answer(&busy());
            let begun = Instant::now();
            gate.wait_for_permit().await;
            rests.push(begun.elapsed().as_millis());
        }
        assert_eq!(rests, [250, 500, 1000]);
        gate.observe_answer(&Ok(()));
        gate.observe_answer(&busy());
        let begun = Instant::now();
        gate.wait_for_permit().await;
        assert_eq!(begun.elapsed().as_millis(), 250);
    }

    #[tokio::test]
    async fn every_request_reaches_the_bmc() {
        let SampleMachine { machine, target, .. } = &SampleMachine::start().await;
        let connector = redfish::Connector::new(b"", AllowedHosts::anywhere()).unwrap();
        let direct = connector.bmc(target.clone());
        let bmc = gated(connector.bmc(target.clone()), Arc::new(gate(1000, 100)));

        bmc.power.request(PowerChange::On).await.unwrap();
        machine.power().wait_for(|power| power.on).await.unwrap();
        assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
        assert_eq!(bmc.power.state_once().await.unwrap(), PowerState::On);

        let supported = bmc.boot.supported().await.unwrap();
        assert!(supported.contains(&BootDevice::Disk), "{supported:?}");
        let wanted =
            BootOverride { device: BootDevice::Pxe, persistence: Persistence::Once, mode: None };
        bmc.boot.set(wanted).await.unwrap();
        let set = bmc.boot.get().await.unwrap().unwrap();
        assert_eq!((set.device, set.persistence), (BootDevice::Pxe, Persistence::Once));

        let image: Url = "http://10.0.0.1/boot.iso".parse().unwrap();
        let media = bmc.media.unwrap();
        media.insert(&image).await.unwrap();
        assert_eq!(machine.media(), Some(image.clone()));
        let drive = media.content().await.unwrap();
        assert_eq!((drive.inserted, drive.image), (true, Some(image.to_string())));
        media.eject().await.unwrap();
        assert_eq!(machine.media(), None);

        let inventory = bmc.inspection.unwrap().inventory().await.unwrap();
        assert_ne!(inventory, Inventory::default());
        assert_eq!(inventory, direct.inspection.unwrap().inventory().await.unwrap());

        let (sensors, direct) = (bmc.sensors.unwrap(), direct.sensors.unwrap());
        let names = |readings: Vec<Reading>| {
            readings.into_iter().map(|reading| reading.name).collect::<Vec<_>>()
        };
        let readings = names(sensors.readings().await.unwrap());
        assert!(!readings.is_empty());
        assert_eq!(readings, names(direct.readings().await.unwrap()));
        let log = sensors.event_log(1).await.unwrap();
        assert_eq!(log.len(), 1, "the start of the machine is an event");
        sensors.identify(IdentifyLight::On).await.unwrap();
        assert_eq!(machine.log().pop().unwrap().request, Request::Identify(true));
    }
}
