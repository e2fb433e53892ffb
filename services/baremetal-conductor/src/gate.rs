//! The gate before one BMC: a token bucket, a pause after errors, and a stop after rejected credentials. BMCs are slow computers that fail
//! under load, and lock accounts after wrong passwords.

mod calls;
mod pace;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use async_trait::async_trait;
use baremetal_store::Tripwire;
use bmc::{
    Account, Bios, Bmc, BmcError, Boot, BootSettings, Clock, EventSubscriptions, FirmwareImage,
    FirmwareUpdates, IdentifyLight, ImageTransfer, Indicators, Inspection, Interrupt, LogEntry,
    Power, RaidVolumes, Reading, Sensors, SerialConsole, SerialSession, VirtualDrive, VirtualMedia,
};
use hardware::{
    ApplyTime, BiosAttribute, BiosValue, BiosValues, BmcTask, BootDevice, BootOverride,
    BootSetting, Firmware, Indicator, IndicatorComponent, IndicatorState, Inventory, MediaKind,
    NewSubscription, NewVolume, PowerAndBootSettings, PowerChange, PowerState, RaidVolume,
    SecureBootKeys, StorageController, Subscription, SubscriptionList,
};
use jiff::Timestamp;
use jiff::tz::Offset;
use replicas::{Fence, LeasePassed};
use url::Url;

use crate::BmcSettings;
pub(crate) use calls::CallCounter;
use pace::Pace;

/// Delays requests to the pace that a BMC can handle.
pub(crate) struct Gate {
    tripwire: Tripwire,
    fence: Fence,
    pace: Pace,
    calls: CallCounter,
}

impl Gate {
    pub(crate) fn new(
        settings: &BmcSettings,
        tripwire: Tripwire,
        fence: Fence,
        calls: CallCounter,
    ) -> Self {
        let pace = Pace::new(settings.requests_per_second, settings.burst);
        Gate { tripwire, fence, pace, calls }
    }
}

/// Wraps `bmc` so that every request passes through `gate`.
pub(crate) fn gated(bmc: Bmc, gate: Arc<Gate>) -> Bmc {
    let gate = &gate;
    Bmc {
        power: Arc::new(Gated::over(bmc.power, gate, "power")),
        interrupt: bmc
            .interrupt
            .map(|inner| Arc::new(Gated::over(inner, gate, "interrupt")) as Arc<dyn Interrupt>),
        boot: Arc::new(Gated::over(bmc.boot, gate, "boot")),
        boot_settings: bmc.boot_settings.map(|inner| {
            Arc::new(Gated::over(inner, gate, "boot_settings")) as Arc<dyn BootSettings>
        }),
        bios: bmc.bios.map(|inner| Arc::new(Gated::over(inner, gate, "bios")) as Arc<dyn Bios>),
        clock: bmc.clock.map(|inner| Arc::new(Gated::over(inner, gate, "clock")) as Arc<dyn Clock>),
        firmware: bmc.firmware.map(|inner| {
            Arc::new(Gated::over(inner, gate, "firmware")) as Arc<dyn FirmwareUpdates>
        }),
        raid: bmc
            .raid
            .map(|inner| Arc::new(Gated::over(inner, gate, "raid")) as Arc<dyn RaidVolumes>),
        media: bmc.media.map(|inner| {
            Arc::new(Gated::over(inner, gate, "virtual_media")) as Arc<dyn VirtualMedia>
        }),
        inspection: bmc
            .inspection
            .map(|inner| Arc::new(Gated::over(inner, gate, "inspection")) as Arc<dyn Inspection>),
        sensors: bmc
            .sensors
            .map(|inner| Arc::new(Gated::over(inner, gate, "sensors")) as Arc<dyn Sensors>),
        indicators: bmc
            .indicators
            .map(|inner| Arc::new(Gated::over(inner, gate, "indicators")) as Arc<dyn Indicators>),
        events: bmc.events.map(|inner| {
            Arc::new(Gated::over(inner, gate, "events")) as Arc<dyn EventSubscriptions>
        }),
        serial: bmc.serial.map(|inner| {
            Arc::new(Gated::over(inner, gate, "serial_console")) as Arc<dyn SerialConsole>
        }),
        account: bmc
            .account
            .map(|inner| Arc::new(Gated::over(inner, gate, "account")) as Arc<dyn Account>),
    }
}

struct Gated<T: ?Sized> {
    inner: Arc<T>,
    gate: Arc<Gate>,
    /// The word under which the requests are counted.
    capability: &'static str,
}

impl<T: ?Sized> Gated<T> {
    fn over(inner: Arc<T>, gate: &Arc<Gate>, capability: &'static str) -> Self {
        Gated { inner, gate: gate.clone(), capability }
    }

    async fn through<A>(
        &self,
        request: impl Future<Output = Result<A, BmcError>>,
    ) -> Result<A, BmcError> {
        self.gate.pace.wait_for_permit().await;
        // Another request may have been rejected meanwhile.
        self.gate.pace.check_login()?;
        let call = self.gate.calls.begin(self.capability);
        let answer = request.await;
        call.end(&answer);
        self.gate.pace.observe_answer(&answer);
        answer
    }

    /// Sends a request through the gate, unless the lease of this conductor has passed.
    async fn fenced<A>(
        &self,
        request: impl Future<Output = Result<A, BmcError>>,
    ) -> Result<A, BmcError> {
        self.gate.pace.wait_for_permit().await;
        self.gate.pace.check_login()?;
        let call = self.gate.calls.begin(self.capability);
        let stopped = |why: LeasePassed| BmcError::Stopped { reason: why.to_string() };
        let permitted = self.gate.fence.permit(request).await.map_err(stopped);
        if let Ok(answer) = &permitted {
            self.gate.pace.observe_answer(answer);
        }
        let answer = permitted.flatten();
        call.end(&answer);
        answer
    }

    /// Sends a request that changes the machine, through the gate and the tripwire of the crash tests, unless the lease of this conductor has
    /// passed.
    async fn changing<A>(
        &self,
        effect: &'static str,
        request: impl Future<Output = Result<A, BmcError>>,
    ) -> Result<A, BmcError> {
        self.gate.tripwire.around(effect, self.fenced(request)).await
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
impl Interrupt for Gated<dyn Interrupt> {
    async fn inject_nmi(&self) -> Result<(), BmcError> {
        self.changing("bmc: nmi", self.inner.inject_nmi()).await
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

    async fn read_power_once(&self) -> Result<PowerAndBootSettings, BmcError> {
        self.through(self.inner.read_power_once()).await
    }

    async fn request(&self, wanted: BootSetting) -> Result<(), BmcError> {
        self.changing("bmc: boot setting", self.inner.request(wanted)).await
    }

    async fn request_keys(&self, wanted: SecureBootKeys) -> Result<(), BmcError> {
        self.changing("bmc: secure boot keys", self.inner.request_keys(wanted)).await
    }
}

#[async_trait]
impl Clock for Gated<dyn Clock> {
    async fn set_clock(&self, time: Timestamp, offset: Option<Offset>) -> Result<(), BmcError> {
        self.changing("bmc: clock", self.inner.set_clock(time, offset)).await
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
impl FirmwareUpdates for Gated<dyn FirmwareUpdates> {
    async fn transfer(&self) -> Result<ImageTransfer, BmcError> {
        self.through(self.inner.transfer()).await
    }

    async fn version(&self, component: &str) -> Result<Option<String>, BmcError> {
        self.through(self.inner.version(component)).await
    }

    async fn tasks(&self) -> Result<Option<Vec<String>>, BmcError> {
        self.through(self.inner.tasks()).await
    }

    async fn update_since(&self, known: &[String]) -> Result<Option<String>, BmcError> {
        self.through(self.inner.update_since(known)).await
    }

    async fn request(
        &self,
        component: &str,
        image: FirmwareImage,
    ) -> Result<Option<String>, BmcError> {
        self.changing("bmc: firmware update", self.inner.request(component, image)).await
    }

    async fn task(&self, task: &str) -> Result<BmcTask, BmcError> {
        self.through(self.inner.task(task)).await
    }
}

#[async_trait]
impl RaidVolumes for Gated<dyn RaidVolumes> {
    async fn controllers(&self) -> Result<Vec<StorageController>, BmcError> {
        self.through(self.inner.controllers()).await
    }

    async fn volumes(&self, storage: &str) -> Result<Vec<RaidVolume>, BmcError> {
        self.through(self.inner.volumes(storage)).await
    }

    async fn tasks(&self) -> Result<Option<Vec<String>>, BmcError> {
        self.through(self.inner.tasks()).await
    }

    async fn change_since(
        &self,
        storage: &str,
        known: &[String],
    ) -> Result<Option<String>, BmcError> {
        self.through(self.inner.change_since(storage, known)).await
    }

    async fn create(&self, volume: &NewVolume) -> Result<Option<String>, BmcError> {
        self.changing("bmc: new volume", self.inner.create(volume)).await
    }

    async fn delete(&self, volume: &str, applies: ApplyTime) -> Result<Option<String>, BmcError> {
        self.changing("bmc: delete volume", self.inner.delete(volume, applies)).await
    }

    async fn task(&self, task: &str) -> Result<BmcTask, BmcError> {
        self.through(self.inner.task(task)).await
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

    async fn eject_all(&self, kind: Option<MediaKind>) -> Result<(), BmcError> {
        self.changing("bmc: eject media", self.inner.eject_all(kind)).await
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

    async fn monitored(&self) -> Result<Vec<Reading>, BmcError> {
        self.through(self.inner.monitored()).await
    }

    async fn event_log(&self, limit: usize) -> Result<Vec<LogEntry>, BmcError> {
        self.through(self.inner.event_log(limit)).await
    }

    async fn identify(&self, light: IdentifyLight) -> Result<(), BmcError> {
        self.changing("bmc: identify light", self.inner.identify(light)).await
    }
}

#[async_trait]
impl Indicators for Gated<dyn Indicators> {
    async fn indicators(&self) -> Result<Vec<Indicator>, BmcError> {
        self.through(self.inner.indicators()).await
    }

    async fn set_indicator(
        &self,
        component: IndicatorComponent,
        id: &str,
        state: IndicatorState,
    ) -> Result<(), BmcError> {
        self.changing("bmc: indicator", self.inner.set_indicator(component, id, state)).await
    }
}

#[async_trait]
impl EventSubscriptions for Gated<dyn EventSubscriptions> {
    async fn event_types(&self) -> Result<Vec<String>, BmcError> {
        self.through(self.inner.event_types()).await
    }

    async fn list(&self) -> Result<SubscriptionList, BmcError> {
        self.through(self.inner.list()).await
    }

    async fn find(&self, id: &str) -> Result<Option<Subscription>, BmcError> {
        self.through(self.inner.find(id)).await
    }

    async fn create(&self, wanted: &NewSubscription) -> Result<Subscription, BmcError> {
        self.changing("bmc: new subscription", self.inner.create(wanted)).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BmcError> {
        self.changing("bmc: delete subscription", self.inner.delete(id)).await
    }
}

#[async_trait]
impl Account for Gated<dyn Account> {
    async fn try_password(&self) -> Result<bool, BmcError> {
        // A wrong password counts at the BMC, which may lock the account.
        self.fenced(self.inner.try_password()).await
    }

    async fn password_length(&self) -> Result<RangeInclusive<usize>, BmcError> {
        self.through(self.inner.password_length()).await
    }

    async fn set_password(&self, wanted: &str) -> Result<(), BmcError> {
        self.changing("bmc: password", self.inner.set_password(wanted)).await
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
    use std::time::Duration;

    use bmc_emulator::{PowerRequest, Request};
    use hardware::{AllowedHosts, Persistence};
    use tokio::time::Instant;

    use super::*;
    use crate::samples::SampleMachine;

    fn gate(requests_per_second: u32, burst: u32) -> Gate {
        let settings = BmcSettings {
            allowed: Default::default(),
            event_hosts: Default::default(),
            request_timeout: Duration::from_secs(1),
            requests_per_second,
            burst,
            allow_unverified: false,
            authorities: Vec::new(),
        };
        Gate::new(&settings, Tripwire::default(), Fence::default(), CallCounter::default())
    }

    #[tokio::test]
    async fn nothing_is_changed_without_a_lease() {
        let SampleMachine { machine, target, .. } = &SampleMachine::start().await;
        let connector = redfish::Connector::new(b"", AllowedHosts::anywhere()).unwrap();
        let (fence, before) = (Fence::closed(), machine.log().len());
        let gate = Gate { fence: fence.clone(), ..gate(1000, 100) };
        let bmc = gated(connector.bmc(target.clone()), Arc::new(gate));
        let refused = bmc.power.request(PowerChange::On).await.unwrap_err();
        assert!(matches!(refused, BmcError::Stopped { .. }), "{refused:?}");
        let indicators = bmc.indicators.unwrap();
        let system = IndicatorComponent::System;
        let refused = indicators.set_indicator(system, "led", IndicatorState::On).await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, BmcError::Stopped { .. }), "{refused:?}");
        assert_eq!(machine.log().len(), before);
        bmc.power.state().await.unwrap();
        fence.open(Instant::now() + Duration::from_secs(60));
        bmc.power.request(PowerChange::On).await.unwrap();
        assert_eq!(machine.log().len(), before + 1);
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

        bmc.interrupt.unwrap().inject_nmi().await.unwrap();
        assert_eq!(machine.log().pop().unwrap().request, Request::Power(PowerRequest::Interrupt));

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
        media.insert(&image).await.unwrap();
        media.eject_all(Some(MediaKind::Cd)).await.unwrap();
        assert_eq!(machine.media(), None);

        let firmware = bmc.firmware.unwrap();
        assert_eq!(firmware.transfer().await.unwrap(), ImageTransfer::Pull);
        let before = firmware.tasks().await.unwrap().unwrap();
        let update = FirmwareImage::At("http://10.0.0.1/bmc-9.bin".parse().unwrap());
        let task = firmware.request("bmc", update).await.unwrap().unwrap();
        assert_eq!(firmware.update_since(&before).await.unwrap().as_ref(), Some(&task));
        assert!(firmware.tasks().await.unwrap().unwrap().contains(&task));
        assert_eq!(firmware.task(&task).await.unwrap(), BmcTask::Done);
        assert_eq!(firmware.version("bmc").await.unwrap().as_deref(), Some("9"));

        let (inspection, other) = (bmc.inspection.unwrap(), direct.inspection.unwrap());
        let inventory = inspection.inventory().await.unwrap();
        assert_ne!(inventory, Inventory::default());
        assert_eq!(inventory, other.inventory().await.unwrap());
        let firmware = inspection.main_firmware().await.unwrap();
        assert!(!firmware.is_empty());
        assert_eq!(firmware, other.main_firmware().await.unwrap());

        let (sensors, direct) = (bmc.sensors.unwrap(), direct.sensors.unwrap());
        let names = |readings: Vec<Reading>| {
            readings.into_iter().map(|reading| reading.name).collect::<Vec<_>>()
        };
        let readings = names(sensors.readings().await.unwrap());
        assert!(!readings.is_empty());
        assert_eq!(readings, names(direct.readings().await.unwrap()));
        let monitored = names(sensors.monitored().await.unwrap());
        assert!(monitored.len() > 1);
        assert_eq!(monitored, names(direct.monitored().await.unwrap()));
        let log = sensors.event_log(1).await.unwrap();
        assert_eq!(log.len(), 1, "the start of the machine is an event");
        sensors.identify(IdentifyLight::On).await.unwrap();
        assert_eq!(machine.log().pop().unwrap().request, Request::Identify(true));

        let indicators = bmc.indicators.unwrap();
        let found = indicators.indicators().await.unwrap();
        let system = found.iter().find(|it| it.component == IndicatorComponent::System).unwrap();
        assert_eq!(system.state, IndicatorState::Blinking);
        indicators.set_indicator(system.component, &system.id, IndicatorState::Off).await.unwrap();
        assert_eq!(machine.log().pop().unwrap().request, Request::Identify(false));
    }

    #[tokio::test]
    async fn every_request_of_a_turn_is_a_span() {
        let connector = redfish::Connector::new(b"", AllowedHosts::anywhere()).unwrap();
        let SampleMachine { target, .. } = &SampleMachine::start().await;
        let address = "http://127.0.0.1:1".parse().unwrap();
        let away = redfish::Target { address, ..target.clone() };
        let calls = CallCounter { driver: "redfish", vendor: "hpe", ..CallCounter::default() };
        let bmc = gated(connector.bmc(away), Arc::new(Gate { calls, ..gate(1000, 100) }));
        let kept = spans::KeptSpans::default();
        let turn = kept.tracer(1.0).begin(None, spans::SpanKind::Consumer, || "turn");
        turn.run(bmc.power.state()).await.unwrap_err();
        let span = kept.take_all().pop().unwrap();
        assert_eq!((&*span.name, span.is_failed), ("BMC power", true));
        let want: [(&str, spans::AttributeValue); 3] = [
            ("bedplate.bmc.driver", "redfish".into()),
            ("bedplate.bmc.vendor", "hpe".into()),
            ("error.type", "unreachable".into()),
        ];
        assert_eq!(span.attributes, want);
    }

    #[tokio::test]
    async fn every_request_is_counted_with_its_outcome() {
        let SampleMachine { target, .. } = &SampleMachine::start().await;
        let connector = redfish::Connector::new(b"", AllowedHosts::anywhere()).unwrap();
        let mut page = metrics::Metrics::new("test", "0");
        let metrics = page.bmc_calls();
        let calls = CallCounter { metrics, driver: "redfish", vendor: "dell" };
        let gate = Arc::new(Gate { calls, ..gate(1000, 100) });
        let bmc = gated(connector.bmc(target.clone()), gate.clone());
        bmc.power.state().await.unwrap();
        bmc.power.request(PowerChange::On).await.unwrap();
        let address = "http://127.0.0.1:1".parse().unwrap();
        let away = redfish::Target { address, ..target.clone() };
        gated(connector.bmc(away), gate).boot.get().await.unwrap_err();
        let text = page.text().unwrap();
        let counted = |line: &str| text.lines().any(|it| it == line);
        let calls = "bedplate_bmc_calls_total{driver=\"redfish\",vendor=\"dell\",capability=";
        assert!(counted(&format!("{calls}\"power\",outcome=\"ok\"}} 2")), "{text}");
        assert!(counted(&format!("{calls}\"boot\",outcome=\"unreachable\"}} 1")), "{text}");
    }

    #[tokio::test]
    async fn subscriptions_reach_the_bmc() {
        let SampleMachine { machine, target, .. } = &SampleMachine::start().await;
        let connector = redfish::Connector::new(b"", AllowedHosts::anywhere()).unwrap();
        let bmc = gated(connector.bmc(target.clone()), Arc::new(gate(1000, 100)));
        let events = bmc.events.unwrap();
        let wanted = NewSubscription {
            destination: "https://events.example/".to_owned(),
            context: String::new(),
            event_types: events.event_types().await.unwrap(),
            headers: Vec::new(),
        };
        let made = events.create(&wanted).await.unwrap();
        assert_eq!(machine.subscriptions()[0].destination, wanted.destination);
        let id = made.id.as_deref().unwrap();
        assert_eq!(events.find(id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(events.list().await.unwrap().members.len(), 1);
        assert!(events.delete(id).await.unwrap());
        assert!(machine.subscriptions().is_empty());
    }

    #[tokio::test]
    async fn a_change_of_the_password_reaches_the_bmc() {
        let SampleMachine { machine, target, .. } = &SampleMachine::start().await;
        let connector = redfish::Connector::new(b"", AllowedHosts::anywhere()).unwrap();
        let account = gated(connector.bmc(target.clone()), Arc::new(gate(1000, 100))).account;
        let account = account.unwrap();
        assert!(account.try_password().await.unwrap());
        assert!(account.password_length().await.unwrap().contains(&20));
        account.set_password("Aa1-Bb2-Cc3-Dd4-Ee5-").await.unwrap();
        assert_eq!(machine.password(), "Aa1-Bb2-Cc3-Dd4-Ee5-");
        assert!(!account.try_password().await.unwrap());
    }

    #[tokio::test]
    async fn changes_of_settings_reach_the_bmc() {
        let SampleMachine { machine, target, .. } = &SampleMachine::start().await;
        let connector = redfish::Connector::new(b"", AllowedHosts::anywhere()).unwrap();
        let direct = connector.bmc(target.clone()).bios.unwrap();
        let bmc = gated(connector.bmc(target.clone()), Arc::new(gate(1000, 100)));
        let requested = || machine.log().pop().unwrap().request;

        let settings = bmc.boot_settings.unwrap();
        let secure = !machine.secure_boot();
        settings.request(BootSetting::SecureBoot(secure)).await.unwrap();
        assert_eq!(requested(), Request::SecureBoot(secure));
        settings.request_keys(SecureBootKeys::None).await.unwrap();
        assert!(matches!(requested(), Request::SecureBootKeys(_)));
        bmc.clock.unwrap().set_clock(Timestamp::from_second(1 << 30).unwrap(), None).await.unwrap();
        assert!(matches!(requested(), Request::SetClock(_)));

        let bios = bmc.bios.unwrap();
        let values = bios.values().await.unwrap();
        assert!(!values.current.is_empty());
        assert_eq!(values, direct.values().await.unwrap());
        let attributes = bios.attributes().await.unwrap();
        assert!(!attributes.is_empty());
        assert_eq!(attributes, direct.attributes().await.unwrap());
        let (name, value) = values.current.first_key_value().unwrap();
        bios.request(&BTreeMap::from([(name.clone(), value.clone())])).await.unwrap();
        assert_eq!(requested(), Request::ChangeBios(vec![name.clone()]));
        bios.request_reset().await.unwrap();
        assert_eq!(requested(), Request::ResetBios);
    }

    #[tokio::test]
    async fn changes_of_volumes_reach_the_bmc() {
        let SampleMachine { machine, target, .. } = &SampleMachine::start().await;
        let connector = redfish::Connector::new(b"", AllowedHosts::anywhere()).unwrap();
        let bmc = gated(connector.bmc(target.clone()), Arc::new(gate(1000, 100)));
        let raid = bmc.raid.unwrap();
        let controllers = raid.controllers().await.unwrap();
        let drives: Vec<String> =
            controllers[0].drives.iter().map(|drive| drive.path.clone()).collect();
        let volume = NewVolume {
            storage: controllers[0].path.clone(),
            level: hardware::RaidLevel::Raid0,
            drives,
            size_bytes: None,
            name: "data".to_owned(),
            name_is_optional: true,
            applies: ApplyTime::OnReset,
        };
        let before = raid.tasks().await.unwrap().unwrap();
        let task = raid.create(&volume).await.unwrap().unwrap();
        let found = raid.change_since(&volume.storage, &before).await.unwrap();
        assert_eq!(found.as_ref(), Some(&task));
        assert_eq!(raid.task(&task).await.unwrap(), BmcTask::Waiting);
        assert!(raid.tasks().await.unwrap().unwrap().contains(&task));
        bmc.power.request(PowerChange::On).await.unwrap();
        machine.power().wait_for(|power| power.on).await.unwrap();
        let made = raid.volumes(&volume.storage).await.unwrap();
        assert_eq!(raid.delete(&made[0].path, ApplyTime::Immediate).await.unwrap(), None);
        assert!(machine.volumes().is_empty());
    }
}
