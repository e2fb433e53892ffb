//! Tests against bmc-emulator and its faults: suite 17, forgotten sessions, refusals, thousands of BMCs.

use std::time::{Duration, Instant};

use bmc::{Account, BmcError, Interrupt, Power};
use bmc_emulator::{CompletionFault, FaultSet, PowerRequest, Request};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hardware::{PowerChange, PowerState};
use ipmi::{CipherSuite, Client, Connector, Privilege, Target};

use crate::emulator::Emulator;
use crate::endpoint::Endpoint;
use crate::keeps_the_contract;

const FAMILIES: [&str; 7] =
    ["generic", "dell-idrac", "hpe-ilo", "supermicro", "lenovo-xcc", "ami-megarac", "poor"];

/// With both suites, each; and so does every BMC that `BEDPLATE_TEST_IPMI` names.
#[tokio::test]
async fn every_family_passes_the_contract() {
    for endpoint in Endpoint::from_environment() {
        keeps_the_contract(&endpoint).await;
    }
    for family in FAMILIES {
        for suite in [Some(CipherSuite::Three), Some(CipherSuite::Seventeen), None] {
            let emulator = Emulator::start(family, 1).await;
            eprintln!("family {family}");
            keeps_the_contract(&emulator.endpoint(suite)).await;
        }
    }
}

#[tokio::test]
async fn every_family_reports_its_inventory_sensors_and_events() {
    for family in FAMILIES {
        let emulator = Emulator::start(family, 1).await;
        let connector = Connector::bind().await.unwrap();
        let bmc = connector.bmc(emulator.endpoint(None).target());
        let inventory = bmc.inspection.unwrap().inventory().await.unwrap();
        assert_eq!(inventory.manufacturer.as_deref(), Some("Acme Servers"), "{family}");
        assert_eq!(inventory.serial_number.as_deref(), Some("SN0000"), "{family}");

        let sensors = bmc.sensors.unwrap();
        let readings = sensors.readings().await.unwrap();
        assert!(readings.iter().any(|reading| reading.unit == "degrees C"), "{readings:?}");
        bmc.power.request(PowerChange::On).await.unwrap();
        assert!(!sensors.event_log(10).await.unwrap().is_empty(), "{family}");
    }
}

/// A machine with a fault, and a client of its BMC.
async fn faulty(faults: FaultSet) -> (Emulator, Connector, Client) {
    let emulator = Emulator::start("generic", 1).await;
    emulator.machine().faults().set(faults);
    let connector = Connector::bind().await.unwrap();
    let timeout = Duration::from_secs(5);
    let target = Target { timeout, ..emulator.endpoint(None).target() };
    let client = connector.client(target);
    (emulator, connector, client)
}

#[tokio::test]
async fn the_password_is_changed_unless_the_bmc_refuses() {
    let (emulator, connector, operator) = faulty(FaultSet::default()).await;
    let refused = operator.set_password("Aa1-Bb2-Cc3-Dd4-").await.unwrap_err();
    assert!(matches!(refused, BmcError::Refused { .. }), "no administrator: {refused:?}");

    let target = emulator.endpoint(None).target();
    let target = Target { privilege: Privilege::Administrator, ..target };
    let mut client = connector.client(target.clone());
    for new in ["Aa1-Bb2-Cc3-Dd4-", "Aa1-Bb2-Cc3-Dd4-Ee5-"] {
        client.set_password(new).await.unwrap();
        assert_eq!(emulator.machine().password(), new);
        client.device_id().await.expect("the session outlives its password");
        assert!(!client.try_password().await.unwrap());
        client = connector.client(Target { password: new.into(), ..target.clone() });
        assert!(client.try_password().await.unwrap());
    }
    let before = emulator.machine().password();
    let refused = client.set_password("short").await.unwrap_err();
    assert!(matches!(refused, BmcError::Refused { transient: false, .. }), "{refused:?}");
    let long = client.set_password("more-than-twenty-bytes").await.unwrap_err();
    assert!(matches!(long, BmcError::Unsupported { .. }), "{long:?}");
    assert_eq!(emulator.machine().password(), before);
}

#[tokio::test]
async fn an_interrupt_reaches_the_machine_unless_the_bmc_lacks_the_control() {
    let (emulator, _connector, client) = faulty(FaultSet::default()).await;
    let refused = client.inject_nmi().await.unwrap_err();
    assert!(matches!(refused, BmcError::Refused { .. }), "the machine is off: {refused:?}");
    client.request(PowerChange::On).await.unwrap();
    client.inject_nmi().await.unwrap();
    let last = emulator.machine().log().pop().unwrap().request;
    assert_eq!(last, Request::Power(PowerRequest::Interrupt));

    for code in [0xc9, 0xcc] {
        let lacking = FaultSet {
            completion: vec![CompletionFault {
                code,
                net_fn: Some(0),
                command: Some(2),
                times: None,
            }],
            ..FaultSet::default()
        };
        let (_emulator, _connector, client) = faulty(lacking).await;
        let refused = client.inject_nmi().await.unwrap_err();
        assert_eq!(refused.to_string(), "this BMC cannot inject an NMI");
    }
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again() {
    let (emulator, _connector, client) = faulty(FaultSet::default()).await;
    assert_eq!(client.state().await.unwrap(), PowerState::Off);
    emulator.machine().faults().forget_sessions();
    assert_eq!(client.state().await.unwrap(), PowerState::Off);
}

#[tokio::test]
async fn doubled_and_reordered_replies_are_survived() {
    for faults in [
        FaultSet { duplicate_replies: true, ..FaultSet::default() },
        FaultSet { reorder_replies: true, ..FaultSet::default() },
    ] {
        let (emulator, connector, _) = faulty(faults).await;
        let timeout = Duration::from_secs(60);
        let target = Target { timeout, ..emulator.endpoint(None).target() };
        let client = connector.client(target);
        client.request(PowerChange::On).await.unwrap();
        assert_eq!(client.state().await.unwrap(), PowerState::On);
        assert_eq!(client.device_id().await.unwrap().ipmi, (2, 0));
    }
}

#[tokio::test]
async fn a_busy_bmc_is_retried_until_the_timeout() {
    let busy = |times| FaultSet {
        completion: vec![CompletionFault { code: 0xc0, net_fn: Some(0), command: Some(1), times }],
        ..FaultSet::default()
    };
    let (_emulator, _connector, client) = faulty(busy(Some(3))).await;
    assert_eq!(client.state().await.unwrap(), PowerState::Off);

    let (_emulator, _connector, client) = faulty(busy(None)).await;
    let error = client.state().await.unwrap_err();
    assert!(matches!(error, BmcError::Busy { .. }), "{error:?}");
}

#[tokio::test]
async fn a_bmc_without_a_free_session_is_busy() {
    let (_emulator, _connector, client) =
        faulty(FaultSet { sessions_full: true, ..FaultSet::default() }).await;
    let error = client.state().await.unwrap_err();
    assert!(matches!(error, BmcError::Busy { .. }) && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn refused_credentials_leave_no_session_behind() {
    let (emulator, _connector, client) =
        faulty(FaultSet { refuse_credentials: true, ..FaultSet::default() }).await;
    // More tries than the BMC has session slots.
    for _ in 0..20 {
        let error = client.state().await.unwrap_err();
        assert!(matches!(error, BmcError::Unauthorized { .. }), "{error:?}");
    }
    emulator.machine().faults().clear();
    assert!(client.state().await.is_ok());
}

#[tokio::test]
async fn a_silent_bmc_is_unreachable() {
    let (emulator, _connector, client) =
        faulty(FaultSet { drop: true, ..FaultSet::default() }).await;
    let error = client.state().await.unwrap_err();
    assert!(matches!(error, BmcError::Unreachable { .. }), "{error:?}");
    emulator.machine().faults().clear();
    assert!(client.state().await.is_ok());
}

#[tokio::test]
async fn a_machine_that_cannot_be_reset_goes_off_and_on() {
    let (emulator, _connector, client) = faulty(FaultSet::default()).await;
    client.request(PowerChange::On).await.unwrap();
    let fault = CompletionFault { code: 0xc1, net_fn: Some(0), command: Some(2), times: Some(1) };
    emulator.machine().faults().update(|faults| faults.completion.push(fault));
    client.request(PowerChange::ForceRestart).await.unwrap();

    let powers: Vec<_> = emulator.machine().log().into_iter().map(|entry| entry.request).collect();
    let last_two = &powers[powers.len() - 2..];
    let want = [Request::Power(PowerRequest::ForceOff), Request::Power(PowerRequest::On)];
    assert_eq!(last_two, want);
}

#[tokio::test]
async fn many_bmcs_are_asked_at_once_over_one_socket() {
    let count = 300;
    let emulator = Emulator::start("generic", count).await;
    let connector = Connector::bind().await.unwrap();
    let timeout = Duration::from_secs(60);
    let clients: Vec<Client> =
        emulator.targets().map(|target| connector.client(Target { timeout, ..target })).collect();

    // The first round opens the sessions, the second uses them.
    for round in ["opening sessions", "in open sessions"] {
        let started = Instant::now();
        let asked: FuturesUnordered<_> = clients.iter().map(Power::state).collect();
        let states: Vec<_> = asked.collect().await;
        eprintln!("{count} BMCs told their power {round} in {:?}", started.elapsed());
        assert!(states.iter().all(|state| matches!(state, Ok(PowerState::Off))), "{states:?}");
    }
    connector.close().await;
}
