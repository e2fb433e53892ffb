//! Tests of sessions: shared, kept alive, closed when idle, opened again after the BMC forgot them.

use std::net::SocketAddr;
use std::time::Duration;

use ipmi::{Connector, SessionLifetimes, Target};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::ipmi_sim::IpmiSim;
use crate::relay::{DatagramOutcome, Direction, Relay};

/// A relay, and the number of datagrams to the BMC.
pub(crate) async fn counting(bmc: SocketAddr) -> (Relay, watch::Receiver<usize>) {
    let (counter, sent) = watch::channel(0);
    let count = move |way, number| {
        if way == Direction::ToBmc {
            counter.send_replace(number + 1);
        }
        DatagramOutcome::Pass
    };
    (Relay::start(bmc, count).await, sent)
}

/// Waits until `count` datagrams were sent to the BMC.
pub(crate) async fn reach(sent: &mut watch::Receiver<usize>, count: usize) {
    let reached = sent.wait_for(|sent| *sent >= count);
    timeout(Duration::from_secs(20), reached).await.unwrap().unwrap();
}

/// Presence, Open Session, RAKP 1, RAKP 3, Set Session Privilege Level.
pub(crate) const OPENING: usize = 5;

#[tokio::test]
async fn a_bmc_that_restarted_is_asked_in_a_new_session() {
    let Some(mut sim) = IpmiSim::start() else { return };
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(sim.endpoint().target());
    assert!(client.device_id().await.is_ok());
    sim.restart();
    assert!(client.device_id().await.is_ok());
}

#[tokio::test]
async fn all_handles_of_a_bmc_share_one_session() {
    let Some(sim) = IpmiSim::start() else { return };
    let (relay, sent) = counting(sim.endpoint().address).await;
    let target = Target { address: relay.address, ..sim.endpoint().target() };
    let connector = Connector::bind().await.unwrap();
    for _ in 0..3 {
        assert!(connector.client(target.clone()).device_id().await.is_ok());
    }
    assert_eq!(*sent.borrow(), OPENING + 3);
}

/// A duration longer than the test.
const NEVER: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn an_idle_session_is_kept_alive() {
    let Some(sim) = IpmiSim::start() else { return };
    let (relay, mut sent) = counting(sim.endpoint().address).await;
    let target = Target { address: relay.address, ..sim.endpoint().target() };
    let pace =
        SessionLifetimes { keep_alive_every: Duration::from_millis(200), close_after: NEVER };
    let connector = Connector::bind_with(pace).await.unwrap();
    let client = connector.client(target);
    assert!(client.device_id().await.is_ok());
    reach(&mut sent, OPENING + 1 + 3).await;
}

#[tokio::test]
async fn an_idle_session_is_closed_then_opened_on_demand() {
    let Some(sim) = IpmiSim::start() else { return };
    let (relay, mut sent) = counting(sim.endpoint().address).await;
    let target = Target { address: relay.address, ..sim.endpoint().target() };
    let pace =
        SessionLifetimes { keep_alive_every: NEVER, close_after: Duration::from_millis(200) };
    let connector = Connector::bind_with(pace).await.unwrap();
    let client = connector.client(target);
    // Each time: the opening, the command and Close Session.
    for sessions in 1..=2 {
        assert!(client.device_id().await.is_ok());
        reach(&mut sent, sessions * (OPENING + 2)).await;
    }
}

#[tokio::test]
async fn a_closed_connector_leaves_no_session_behind() {
    let Some(sim) = IpmiSim::start() else { return };
    // The account may have ten sessions; an eleventh would be refused.
    for _ in 0..12 {
        let connector = Connector::bind().await.unwrap();
        assert!(connector.client(sim.endpoint().target()).device_id().await.is_ok());
        connector.close().await;
    }
}
