//! Tests of the client on a bad network.

use std::time::Duration;

use hardware::{PowerChange, PowerState};
use ipmi::{Connector, Target};

use crate::ipmi_sim::IpmiSim;
use crate::relay::{DatagramOutcome, Direction, Relay};

/// Switches power through a network in which `fate` happens to datagrams.
async fn survives(fate: impl Fn(Direction, usize) -> DatagramOutcome + Send + Sync + 'static) {
    let Some(sim) = IpmiSim::start() else { return };
    let relay = Relay::start(sim.endpoint().address, fate).await;
    let timeout = Duration::from_secs(60);
    let target = Target { address: relay.address, timeout, ..sim.endpoint().target() };
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(target.clone());
    let power = connector.bmc(target).power;

    for (change, state) in
        [(PowerChange::On, PowerState::On), (PowerChange::ForceOff, PowerState::Off)]
    {
        power.request(change).await.unwrap();
        assert_eq!(power.state().await.unwrap(), state);
        // An answer to another command would not decode as a device id.
        assert_eq!(client.device_id().await.unwrap().product, 0x0100);
    }
    assert!(relay.harmed() > 0, "the network was not bad at all");
}

#[tokio::test]
async fn a_lost_request_is_sent_again() {
    survives(|way, number| match (way, number % 5) {
        (Direction::ToBmc, 2) => DatagramOutcome::Lose,
        _ => DatagramOutcome::Pass,
    })
    .await;
}

#[tokio::test]
async fn a_request_with_a_lost_answer_is_sent_again() {
    survives(|way, number| match (way, number % 6) {
        (Direction::ToClient, 4) => DatagramOutcome::Lose,
        _ => DatagramOutcome::Pass,
    })
    .await;
}

#[tokio::test]
async fn the_first_answer_of_every_step_may_be_lost() {
    survives(|way, number| match (way, number % 2) {
        (Direction::ToClient, 0) if number < 12 => DatagramOutcome::Lose,
        _ => DatagramOutcome::Pass,
    })
    .await;
}

#[tokio::test]
async fn doubled_answers_do_not_shift_the_next_ones() {
    survives(|way, _| {
        if way == Direction::ToClient { DatagramOutcome::Double } else { DatagramOutcome::Pass }
    })
    .await;
}

#[tokio::test]
async fn duplicated_requests_have_one_effect() {
    survives(|way, number| match (way, number) {
        (Direction::ToBmc, 5..) => DatagramOutcome::Double,
        _ => DatagramOutcome::Pass,
    })
    .await;
}

#[tokio::test]
async fn late_answers_are_not_mistaken_for_others() {
    survives(|way, number| match (way, number % 7) {
        (Direction::ToClient, 6) => DatagramOutcome::Late,
        _ => DatagramOutcome::Pass,
    })
    .await;
}

#[tokio::test]
async fn changed_packets_are_dropped() {
    survives(|way, number| match (way, number) {
        // The packets are authenticated from the answer to Set Session Privilege Level on.
        (Direction::ToClient, 4..) => DatagramOutcome::Change,
        _ => DatagramOutcome::Pass,
    })
    .await;
}
