//! The contract that every BMC must fulfil, tested over UDP on BMCs that share none of our code.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod emulated;
mod emulator;
mod endpoint;
mod faults;
mod ipmi_sim;
mod relay;
mod serial;
mod sessions;
mod simulated;

use std::time::Duration;

use bmc::{Bmc, BmcError, IdentifyLight};
use hardware::{BootDevice, BootMode, BootOverride, Persistence, PowerChange, PowerState};
use ipmi::{Client, Connector};
use tokio::time::timeout;

use endpoint::Endpoint;
use ipmi_sim::IpmiSim;

#[tokio::test]
async fn ipmi_sim_passes_the_contract() {
    let Some(sim) = IpmiSim::start() else { return };
    keeps_the_contract(&sim.endpoint()).await;
}

/// The minimum that a usable BMC must do.
async fn keeps_the_contract(endpoint: &Endpoint) {
    eprintln!("trying {}", endpoint.name);
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(endpoint.target());
    let bmc = connector.bmc(endpoint.target());

    assert!(ipmi::answers_ping(endpoint.address, Duration::from_secs(5)).await.unwrap());
    it_says_what_it_is(&client).await;
    power_goes_on_and_off(&bmc).await;
    an_interrupt_is_taken_or_unsupported(&bmc).await;
    a_boot_device_is_taken(&bmc).await;
    the_light_is_switched(&bmc).await;
    bad_requests_are_refused(&client, &bmc).await;

    client.close().await;
    assert!(client.device_id().await.is_ok(), "a closed session is opened again");
    connector.close().await;
}

async fn it_says_what_it_is(client: &Client) {
    let device = client.device_id().await.unwrap();
    assert_eq!(device.ipmi, (2, 0));
    let raw = client.raw(0x06, 0x01, &[]).await.unwrap();
    assert_eq!(raw[0], device.device_id);
}

async fn power_goes_on_and_off(bmc: &Bmc) {
    use PowerChange::{ForceOff, ForceRestart, On};
    for change in [ForceOff, On, On, ForceRestart, ForceOff, ForceOff, ForceRestart, ForceOff] {
        bmc.power.request(change).await.unwrap();
        reaches(bmc, change.leads_to()).await;
    }
    let soft = bmc.power.request(PowerChange::SoftRestart).await;
    assert!(matches!(soft, Err(BmcError::Unsupported { .. })));
}

/// Reads the state until the machine is in `wanted`.
async fn reaches(bmc: &Bmc, wanted: PowerState) {
    let asking = async { while bmc.power.state().await.unwrap() != wanted {} };
    timeout(Duration::from_secs(20), asking).await.unwrap();
}

async fn an_interrupt_is_taken_or_unsupported(bmc: &Bmc) {
    bmc.power.request(PowerChange::On).await.unwrap();
    reaches(bmc, PowerState::On).await;
    match bmc.interrupt.as_ref().unwrap().inject_nmi().await {
        Ok(()) | Err(BmcError::Unsupported { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    bmc.power.request(PowerChange::ForceOff).await.unwrap();
}

async fn a_boot_device_is_taken(bmc: &Bmc) {
    for device in [BootDevice::Pxe, BootDevice::Disk, BootDevice::Cdrom] {
        let (persistence, mode) = (Persistence::Once, Some(BootMode::Uefi));
        bmc.boot.set(BootOverride { device, persistence, mode }).await.unwrap();
        // A simulator that accepts the device may not report it back.
        let reported = bmc.boot.get().await.unwrap();
        assert!(reported.is_none_or(|reported| reported.device == device), "{reported:?}");
    }
    let supported = bmc.boot.supported().await.unwrap();
    assert!(supported.contains(&BootDevice::Pxe) && !supported.contains(&BootDevice::Http));

    let (persistence, mode) = (Persistence::Once, None);
    let wanted = BootOverride { device: BootDevice::Http, persistence, mode };
    let refused = bmc.boot.set(wanted).await.unwrap_err();
    assert_eq!(refused.to_string(), "this BMC cannot boot from uefihttp over IPMI");
}

async fn the_light_is_switched(bmc: &Bmc) {
    let sensors = bmc.sensors.as_ref().unwrap();
    for light in [IdentifyLight::On, IdentifyLight::Off] {
        match sensors.identify(light).await {
            Ok(()) | Err(BmcError::Unsupported { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

async fn bad_requests_are_refused(client: &Client, bmc: &Bmc) {
    // No such command exists in the application netfn.
    let unknown = client.raw(0x06, 0xee, &[]).await;
    assert!(matches!(unknown, Err(BmcError::Unsupported { .. })), "{unknown:?}");
    // The netfn of an answer.
    let impossible = client.raw(0x07, 0x01, &[]).await;
    assert!(matches!(impossible, Err(BmcError::Unsupported { .. })), "{impossible:?}");
    assert!(bmc.power.state().await.is_ok(), "the session survives");
}
