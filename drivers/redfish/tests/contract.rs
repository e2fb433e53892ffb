//! Runs one story against an emulated BMC of each vendor, and against every BMC whose address is given: sushy-tools, or hardware. The
//! README describes the form of `BEDPLATE_TEST_REDFISH`.
//!
//! At the end the machine is off, the drive is empty, and the disk is the boot device.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

use std::future::Future;
use std::net::Ipv4Addr;
use std::time::Duration;

use bmc::{Bmc, BmcError, FirmwareImage, IdentifyLight, ImageStream, ImageTransfer};
use bmc_emulator::{
    BmcKind, BmcSpec, DiskSpec, Firmware, Mac, Machine, MachineSpec, NicSpec, serve,
};
use hardware::{
    ApplyTime, BiosValue, BiosValues, BmcTask, BootDevice, BootMode, BootOverride, BootSetting,
    BootSettings, Health, IndicatorState, MacAddress, NewSubscription, NewVolume, Persistence,
    PowerChange, PowerState, RaidLevel, StorageController,
};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use redfish::{Auth, Connector, Target, Trust};
use tokio::time::{interval, timeout};
use url::Url;

/// How long a machine may take to reach a state.
const STATE_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A BMC to test, as the environment variable describes it.
struct Candidate {
    target: Target,
    image: Option<Url>,
    /// An image of firmware for the BIOS.
    firmware: Option<Url>,
    mac: Option<MacAddress>,
    /// Whether the drives of the machine may lose their data.
    may_erase: bool,
}

/// Reads the environment variable: `address user password [media=url] [mac=address] [system=path] [erase=yes]`, several separated by `;`.
fn candidates() -> Vec<Candidate> {
    let given = std::env::var("BEDPLATE_TEST_REDFISH").unwrap_or_default();
    let lines = given.split(';').map(str::trim).filter(|line| !line.is_empty());
    lines.map(candidate).collect()
}

/// The vendors whose BMCs are emulated.
const FAMILIES: [&str; 7] =
    ["generic", "dell-idrac", "hpe-ilo", "supermicro", "lenovo-xcc", "ami-megarac", "poor"];

/// Makes a machine with a BMC of this vendor.
fn emulated(family: &str) -> Machine {
    Machine::new(MachineSpec {
        name: family.to_owned(),
        uuid: uuid::Uuid::from_u128(1),
        serial: "SN0001".to_owned(),
        manufacturer: "Acme Servers".to_owned(),
        model: "R650 Clone".to_owned(),
        firmware: Firmware::Uefi,
        nics: vec![NicSpec { mac: Mac([2, 0, 0, 0, 0, 1]), speed_mbps: 10_000 }],
        disks: ["sda", "sdb"].map(disk).to_vec(),
        cpus: 8,
        memory_mib: 8192,
        bmc: BmcSpec {
            kind: BmcKind::Redfish,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            tls: true,
            username: "admin".to_owned(),
            password: "secret".to_owned(),
            profile: family.to_owned(),
            also_ipmi: None,
            own_certificate: false,
        },
    })
}

fn disk(name: &str) -> DiskSpec {
    DiskSpec {
        name: name.to_owned(),
        serial: format!("SN-{name}"),
        size_bytes: 100 << 30,
        model: "Acme Disk".to_owned(),
        rotational: false,
    }
}

fn candidate(line: &str) -> Candidate {
    let mut words = line.split_whitespace();
    let mut next = |what: &str| words.next().unwrap_or_else(|| panic!("no {what} in {line:?}"));
    let (address, user, password) = (next("address"), next("user"), next("password"));
    let named = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name));
    Candidate {
        target: Target {
            address: address.parse().expect("an address"),
            system: named("system=").map(str::to_owned),
            username: user.to_owned(),
            password: password.into(),
            auth: Auth::Auto,
            trust: Trust::Unverified,
            timeout: Duration::from_secs(30),
        },
        firmware: named("firmware=").map(|url| url.parse().expect("an image's address")),
        image: named("media=").map(|url| url.parse().expect("an image's address")),
        may_erase: named("erase=") == Some("yes"),
        mac: named("mac=").map(|mac| mac.parse().expect("a MAC address")),
    }
}

/// Runs `story` with every candidate.
async fn with_each<F: Future<Output = ()>>(
    candidates: Vec<Candidate>,
    story: impl Fn(Bmc, Candidate) -> F,
) {
    for candidate in candidates {
        let connector = Connector::new(b"", hardware::AllowedHosts::anywhere()).unwrap();
        let Target { address, timeout, .. } = &candidate.target;
        eprintln!("trying {address}");
        let service = connector.probe(address, *timeout).await.unwrap();
        assert!(service.is_some(), "the crawl for BMCs does not see {address}");
        story(connector.bmc(candidate.target.clone()), candidate).await;
        connector.close().await;
    }
}

async fn reaches(bmc: &Bmc, wanted: PowerState) {
    let reached = async {
        let mut looks = interval(LOOK_EVERY);
        while bmc.power.state().await.unwrap() != wanted {
            looks.tick().await;
        }
    };
    timeout(STATE_TIMEOUT, reached).await.unwrap_or_else(|_| panic!("never reaches {wanted}"));
}

/// Requests `change`, again and again while the BMC is busy with the previous change.
async fn asks(bmc: &Bmc, change: PowerChange) {
    let accepted = async {
        let mut tries = interval(LOOK_EVERY);
        loop {
            match bmc.power.request(change).await {
                Ok(()) => break,
                Err(error) if error.is_transient() => tries.tick().await,
                Err(error) => panic!("{change:?}: {error}"),
            };
        }
    };
    timeout(STATE_TIMEOUT, accepted).await.unwrap_or_else(|_| panic!("never accepts {change:?}"));
}

/// Returns the result of a call, or `None` if the BMC does not support the call.
fn if_supported<T>(outcome: Result<T, BmcError>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(BmcError::Unsupported { what }) => {
            eprintln!("cannot {what}");
            None
        }
        Err(error) => panic!("{error}: {error:?}"),
    }
}

/// All parts are in one test, because they would disturb each other on the same machine.
#[tokio::test]
async fn every_given_bmc_passes_the_story() {
    honours_the_contract(candidates()).await;
}

#[tokio::test]
async fn an_emulated_bmc_of_each_vendor_passes_the_story() {
    let served = serve(FAMILIES.map(emulated).to_vec()).await.unwrap();
    let candidates = served.machines.iter().map(|machine| {
        let address = machine.redfish.unwrap();
        // The BMC of the profile `poor` lists no network cards.
        let mac = if machine.name == "poor" { "" } else { "mac=02:00:00:00:00:01" };
        let firmware = "firmware=http://10.0.0.1/bios-9.9.bin";
        candidate(&format!("https://{address} admin secret {mac} {firmware} erase=yes"))
    });
    honours_the_contract(candidates.collect()).await;
}

#[tokio::test]
async fn an_emulated_bmc_of_each_vendor_changes_the_password() {
    let machines = FAMILIES.map(emulated);
    let served = serve(machines.to_vec()).await.unwrap();
    for (machine, at) in machines.iter().zip(&served.machines) {
        let (address, family) = (at.redfish.unwrap(), &at.name);
        let target = candidate(&format!("https://{address} admin secret")).target;
        let connector = Connector::new(b"", hardware::AllowedHosts::anywhere()).unwrap();
        let account = connector.bmc(target.clone()).account.unwrap();
        assert!(account.try_password().await.unwrap(), "{family}");
        let Some(length) = if_supported(account.password_length().await) else {
            assert_eq!(family, "poor");
            continue;
        };
        let new = "Aa1-Bb2-Cc3-Dd4-Ee5-";
        assert!(length.contains(&new.len()), "{family}: {length:?}");
        account.set_password(new).await.unwrap();
        assert_eq!(machine.password(), new, "{family}");
        assert!(!account.try_password().await.unwrap(), "{family} takes the old password");

        let account = connector.bmc(Target { password: new.into(), ..target }).account.unwrap();
        assert!(account.try_password().await.unwrap(), "{family}");
        let refused = account.set_password("short").await.unwrap_err();
        let is_final = matches!(refused, BmcError::Refused { transient: false, .. });
        assert!(is_final, "{family}: {refused:?}");
        assert_eq!(machine.password(), new, "{family}");
    }
}

async fn honours_the_contract(candidates: Vec<Candidate>) {
    with_each(candidates, async |bmc: Bmc, candidate| {
        machine_is_known(&bmc, candidate.mac).await;
        power_follows(&bmc).await;
        boot_override_holds(&bmc).await;
        if let Some(image) = &candidate.image {
            media_goes_in_and_out(&bmc, image).await;
        }
        boot_mode_changes(&bmc).await;
        secure_boot_changes(&bmc).await;
        bios_settings_change(&bmc).await;
        if let Some(image) = candidate.firmware {
            firmware_is_updated(&bmc, image).await;
        }
        let controllers = if_supported(bmc.raid.as_ref().unwrap().controllers().await);
        eprintln!("{controllers:#?}");
        if let Some(controllers) = controllers.filter(|_| candidate.may_erase) {
            volumes_are_made_and_deleted(&bmc, &controllers).await;
        }
        clock_is_set(&bmc).await;
        indicators_change(&bmc).await;
        a_subscription_is_made_and_deleted(&bmc).await;
        health_is_told(&bmc).await;
        password_is_known(&bmc).await;
        wrong_password_is_refused(candidate.target).await;
    })
    .await;
}

/// Checks only the MAC address that the candidate names, because a poor BMC knows almost nothing else.
async fn machine_is_known(bmc: &Bmc, mac: Option<MacAddress>) {
    let inventory = bmc.inspection.as_ref().unwrap().inventory().await.unwrap();
    eprintln!("{inventory:#?}");
    if let Some(mac) = mac {
        assert!(inventory.nics.iter().any(|nic| nic.mac == mac), "{mac} is not listed");
    }
}

/// The password of a BMC that is not emulated stays as it is. sushy-tools has no AccountService.
async fn password_is_known(bmc: &Bmc) {
    let account = bmc.account.as_ref().unwrap();
    assert!(account.try_password().await.unwrap());
    let length = if_supported(account.password_length().await);
    eprintln!("takes passwords of {length:?} characters");
}

async fn power_follows(bmc: &Bmc) {
    asks(bmc, PowerChange::ForceOff).await;
    reaches(bmc, PowerState::Off).await;
    asks(bmc, PowerChange::ForceOff).await;
    reaches(bmc, PowerState::Off).await;

    asks(bmc, PowerChange::On).await;
    reaches(bmc, PowerState::On).await;
    asks(bmc, PowerChange::On).await;

    asks(bmc, PowerChange::ForceRestart).await;
    reaches(bmc, PowerState::On).await;

    if_supported(bmc.interrupt.as_ref().unwrap().inject_nmi().await);

    // The BMC must accept the request even if no operating system acts on it.
    if_supported(bmc.power.request(PowerChange::SoftOff).await);
    asks(bmc, PowerChange::ForceOff).await;
    reaches(bmc, PowerState::Off).await;

    // A restart switches on a machine that is off.
    asks(bmc, PowerChange::ForceRestart).await;
    reaches(bmc, PowerState::On).await;
    asks(bmc, PowerChange::ForceOff).await;
    reaches(bmc, PowerState::Off).await;
}

async fn boot_override_holds(bmc: &Bmc) {
    let supported = bmc.boot.supported().await.unwrap();
    eprintln!("boots from {supported:?}");
    for device in [BootDevice::Pxe, BootDevice::Disk] {
        assert!(supported.contains(&device), "cannot boot from {device}");
        for persistence in [Persistence::Once, Persistence::Continuous] {
            let mode = bmc.boot.get().await.unwrap().and_then(|now| now.mode);
            let wanted = BootOverride { device, persistence, mode };
            let Some(()) = if_supported(bmc.boot.set(wanted).await) else { continue };
            let found = bmc.boot.get().await.unwrap().expect("an override");
            assert_eq!(found.device, device);
            // sushy-tools makes every override continuous.
            if found.persistence != persistence {
                eprintln!("{persistence:?} reads back {:?}", found.persistence);
            }
        }
    }
}

async fn media_goes_in_and_out(bmc: &Bmc, image: &Url) {
    let media = bmc.media.as_ref().unwrap();
    let Some(()) = if_supported(media.eject().await) else { return };
    media.insert(image).await.unwrap();
    media.insert(image).await.unwrap();
    let cdrom =
        BootOverride { device: BootDevice::Cdrom, persistence: Persistence::Once, mode: None };
    bmc.boot.set(cdrom).await.unwrap();
    assert_eq!(bmc.boot.get().await.unwrap().map(|now| now.device), Some(BootDevice::Cdrom));
    let disk = BootOverride { device: BootDevice::Disk, ..cdrom };
    bmc.boot.set(disk).await.unwrap();
    media.eject().await.unwrap();
    media.eject().await.unwrap();
}

async fn boot_settings(bmc: &Bmc) -> BootSettings {
    let read = bmc.boot_settings.as_ref().unwrap().read().await.unwrap();
    assert_eq!(read.health, Some(Health::Ok));
    read.settings.expect("settings with every answer")
}

/// Requests a boot setting, restarts the machine unless the change is in force at once, and waits until it is.
async fn takes(bmc: &Bmc, wanted: BootSetting) -> Option<()> {
    let settings = bmc.boot_settings.as_ref().unwrap();
    if_supported(settings.request(wanted).await)?;
    // Idempotent.
    settings.request(wanted).await.unwrap();
    if !boot_settings(bmc).await.has(wanted) {
        eprintln!("the {wanted} needs a restart");
        restarts(bmc).await;
    }
    let taken = async {
        let mut looks = interval(LOOK_EVERY);
        while !boot_settings(bmc).await.has(wanted) {
            looks.tick().await;
        }
    };
    timeout(STATE_TIMEOUT, taken).await.unwrap_or_else(|_| panic!("never takes the {wanted}"));
    Some(())
}

/// Starts the machine, which is off, and switches it off again.
async fn restarts(bmc: &Bmc) {
    asks(bmc, PowerChange::On).await;
    reaches(bmc, PowerState::On).await;
    asks(bmc, PowerChange::ForceOff).await;
    reaches(bmc, PowerState::Off).await;
}

async fn boot_mode_changes(bmc: &Bmc) {
    let Some(before) = boot_settings(bmc).await.mode else { return eprintln!("no boot mode") };
    let other = match before {
        BootMode::Bios => BootMode::Uefi,
        BootMode::Uefi => BootMode::Bios,
    };
    if takes(bmc, BootSetting::Mode(other)).await.is_some() {
        takes(bmc, BootSetting::Mode(before)).await.expect("the mode before");
    }
}

async fn secure_boot_changes(bmc: &Bmc) {
    let before = boot_settings(bmc).await;
    let Some(was_on) = before.secure_boot else { return eprintln!("no secure boot") };
    if before.mode == Some(BootMode::Uefi) {
        takes(bmc, BootSetting::SecureBoot(!was_on)).await.expect("secure boot");
        takes(bmc, BootSetting::SecureBoot(was_on)).await.expect("secure boot");
    }
}

/// The driver reads each time back. The last is the present.
async fn clock_is_set(bmc: &Bmc) {
    let clock = bmc.clock.as_ref().unwrap();
    let (now, utc) = (Timestamp::now(), Some(Offset::UTC));
    let Some(()) = if_supported(clock.set_clock(now, utc).await) else { return };
    clock.set_clock(now - SignedDuration::from_hours(24), utc).await.unwrap();
    clock.set_clock(Timestamp::now(), utc).await.unwrap();
}

/// A lamp that is set to be lit may be shown as one that blinks. In the end each lamp is off.
async fn indicators_change(bmc: &Bmc) {
    let lamps = bmc.indicators.as_ref().unwrap();
    let found = lamps.indicators().await.unwrap();
    eprintln!("{found:#?}");
    for it in &found {
        for state in [IndicatorState::On, IndicatorState::Off] {
            if !it.states.contains(&state) {
                continue;
            }
            lamps.set_indicator(it.component, &it.id, state).await.unwrap();
            let now = lamps.indicators().await.unwrap();
            let now = now.iter().find(|now| now.name() == it.name()).unwrap();
            let is_off = now.state == IndicatorState::Off;
            assert_eq!(is_off, state == IndicatorState::Off, "{now:?}");
        }
    }
}

async fn a_subscription_is_made_and_deleted(bmc: &Bmc) {
    let events = bmc.events.as_ref().unwrap();
    let Some(before) = if_supported(events.list().await) else { return };
    let wanted = NewSubscription {
        destination: "https://192.0.2.1/events".to_owned(),
        context: "contract".to_owned(),
        event_types: events.event_types().await.unwrap().into_iter().take(1).collect(),
        headers: Vec::new(),
    };
    let made = events.create(&wanted).await.unwrap();
    assert_eq!(made.destination.as_ref(), Some(&wanted.destination));
    let id = made.id.as_deref().expect("an id");
    assert_eq!(events.find(id).await.unwrap().as_ref(), Some(&made));
    assert_eq!(events.list().await.unwrap().members.len(), before.members.len() + 1);
    assert!(events.delete(id).await.unwrap());
    assert!(!events.delete(id).await.unwrap());
    assert_eq!(events.list().await.unwrap(), before);
}

/// Changes an enumeration that both sushy-tools and the emulator have, and another setting of each BMC stays as it is.
async fn bios_settings_change(bmc: &Bmc) {
    const NAME: &str = "ProcTurboMode";
    let bios = bmc.bios.as_ref().unwrap();
    let Some(before) = if_supported(bios.values().await) else { return };
    let attributes = bios.attributes().await.unwrap();
    let Some(current) = before.current.get(NAME) else { return eprintln!("no {NAME}") };
    let attribute = &attributes[NAME];
    assert_eq!(attribute.attribute_type.as_deref(), Some("Enumeration"));
    assert_eq!(attribute.read_only, Some(false));
    let words = attribute.allowable_values.iter().map(|word| BiosValue::Text(word.clone()));
    let other = words.into_iter().find(|word| !word.is(current)).expect("another value");
    for wanted in [&other, current] {
        let values = [(NAME.to_owned(), wanted.clone())].into();
        bios.request(&values).await.unwrap();
        bios.request(&values).await.unwrap();
        restarts(bmc).await;
        let after = bios.values().await.unwrap();
        assert!(after.current[NAME].is(wanted), "{:?}", after.current[NAME]);
        assert!(after.pending.get(NAME).is_none_or(|pending| pending.is(wanted)));
        let others = |values: &BiosValues| {
            let mut others = values.current.clone();
            others.remove(NAME);
            others
        };
        assert_eq!(others(&after), others(&before));
    }
    if_supported(bios.request_reset().await).expect("a reset of the settings");
    restarts(bmc).await;
    assert_eq!(bios.values().await.unwrap().current.len(), before.current.len());
}

/// Updates the BIOS of a machine, which starts for it. sushy-tools and the emulator fetch no image.
async fn firmware_is_updated(bmc: &Bmc, image: Url) {
    let firmware = bmc.firmware.as_ref().unwrap();
    let Some(transfer) = if_supported(firmware.transfer().await) else { return };
    let listed = bmc.inspection.as_ref().unwrap().main_firmware().await.unwrap();
    let listed = listed.into_iter().find(|listed| listed.component == "bios");
    let before = firmware.version("bios").await.unwrap();
    assert_eq!(before, listed.map(|listed| listed.version));
    let known = firmware.tasks().await.unwrap();
    let image = match transfer {
        ImageTransfer::Pull => FirmwareImage::At(image),
        ImageTransfer::Push { largest } => {
            let content = bytes::Bytes::from_static(b"an image");
            assert!(largest.is_none_or(|largest| largest > content.len() as u64));
            let (parts, bytes) = tokio::sync::mpsc::channel(2);
            let length = content.len() as u64;
            parts.send(Ok(content)).await.unwrap();
            FirmwareImage::Stream(ImageStream { name: "bios-9.9.bin".to_owned(), length, bytes })
        }
    };
    let task = firmware.request("bios", image).await.unwrap();
    if let Some(known) = known {
        assert_eq!(firmware.update_since(&known).await.unwrap(), task);
        let all = firmware.tasks().await.unwrap().expect("a list of tasks");
        assert_eq!(firmware.update_since(&all).await.unwrap(), None);
    }
    restarts(bmc).await;
    if let Some(task) = task {
        let ended = async {
            let mut looks = interval(LOOK_EVERY);
            while !firmware.task(&task).await.unwrap().has_ended_well() {
                looks.tick().await;
            }
        };
        timeout(STATE_TIMEOUT, ended).await.expect("the task ends");
    }
    assert_ne!(firmware.version("bios").await.unwrap(), before);
}

/// Makes a mirror of the first two drives, and deletes it. The machine starts for both if the controller needs that.
async fn volumes_are_made_and_deleted(bmc: &Bmc, controllers: &[StorageController]) {
    let raid = bmc.raid.as_ref().unwrap();
    let makes = |it: &&StorageController| {
        it.drives.len() > 1 && it.levels.as_ref().is_none_or(|all| all.contains(&RaidLevel::Raid1))
    };
    let Some(controller) = controllers.iter().find(makes) else {
        return eprintln!("no controller makes a mirror");
    };
    let wanted = NewVolume {
        storage: controller.path.clone(),
        level: RaidLevel::Raid1,
        drives: controller.drives[..2].iter().map(|drive| drive.path.clone()).collect(),
        size_bytes: Some(10 << 30),
        name: "contract".to_owned(),
        name_is_optional: true,
        applies: controller.applies,
    };
    let known = raid.tasks().await.unwrap();
    let before = raid.volumes(&wanted.storage).await.unwrap();
    let task = raid.create(&wanted).await.unwrap();
    if let Some(known) = known {
        assert_eq!(raid.change_since(&wanted.storage, &known).await.unwrap(), task);
    }
    change_ends(bmc, controller.applies, task).await;
    let after = raid.volumes(&wanted.storage).await.unwrap();
    let made = after.iter().find(|it| before.iter().all(|old| old.path != it.path));
    let made = made.expect("a new volume");
    assert!(made.is_raid && made.is_made_of(&wanted), "{made:?}");
    assert_eq!((made.level, made.size_bytes), (Some(RaidLevel::Raid1), Some(10 << 30)));
    let task = raid.delete(&made.path, controller.applies).await.unwrap();
    change_ends(bmc, controller.applies, task).await;
    assert_eq!(raid.volumes(&wanted.storage).await.unwrap(), before);
    // Idempotent.
    assert_eq!(raid.delete(&made.path, controller.applies).await.unwrap(), None);
}

async fn change_ends(bmc: &Bmc, applies: ApplyTime, task: Option<String>) {
    if applies == ApplyTime::OnReset {
        restarts(bmc).await;
    }
    let Some(task) = task else { return };
    let ended = async {
        let mut looks = interval(LOOK_EVERY);
        loop {
            match bmc.raid.as_ref().unwrap().task(&task).await.unwrap() {
                BmcTask::Failed(why) => panic!("{why}"),
                BmcTask::Done | BmcTask::Gone => break,
                BmcTask::New | BmcTask::Waiting | BmcTask::Running => looks.tick().await,
            };
        }
    };
    timeout(STATE_TIMEOUT, ended).await.expect("the task ends");
}

async fn health_is_told(bmc: &Bmc) {
    let sensors = bmc.sensors.as_ref().unwrap();
    eprintln!("{:?}", if_supported(sensors.readings().await));
    eprintln!("{:?}", if_supported(sensors.event_log(5).await));
    if_supported(sensors.identify(IdentifyLight::On).await);
    if_supported(sensors.identify(IdentifyLight::Off).await);
}

async fn wrong_password_is_refused(target: Target) {
    let wrong = Target { password: "not the password".into(), ..target };
    let bmc = Connector::new(b"", hardware::AllowedHosts::anywhere()).unwrap().bmc(wrong);
    let refused = bmc.power.state().await;
    assert!(matches!(refused, Err(BmcError::Unauthorized { .. })), "{refused:?}");
    assert!(!bmc.account.unwrap().try_password().await.unwrap());
}
