//! Tests of a machine's serial port over the network, on BMCs that share none of our code.

use std::time::Duration;

use bmc::{BmcError, Power, SerialSession};
use bmc_emulator::{FaultSet, Machine};
use bytes::Bytes;
use hardware::PowerChange;
use ipmi::{CipherSuite, Client, Connector, SessionLifetimes, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::emulator::Emulator;
use crate::endpoint::Endpoint;
use crate::ipmi_sim::IpmiSim;
use crate::relay::{DatagramOutcome, Direction, Relay};
use crate::sessions::{OPENING, counting, reach};

/// Longer than every step of these tests takes.
const PATIENCE: Duration = Duration::from_secs(100);

/// The machine's side of its serial port.
enum Guest {
    Simulated(TcpStream),
    Emulated(Machine),
}

impl Guest {
    async fn says(&mut self, text: &[u8]) {
        match self {
            Guest::Simulated(port) => port.write_all(text).await.unwrap(),
            Guest::Emulated(machine) => machine.serial().say_all(text).await,
        }
    }

    /// Waits until exactly `want` was typed.
    async fn is_told(&mut self, want: &[u8]) {
        let mut typed = Vec::new();
        while typed.len() < want.len() {
            match self {
                Guest::Simulated(port) => assert_ne!(port.read_buf(&mut typed).await.unwrap(), 0),
                Guest::Emulated(machine) => typed.extend(machine.serial().typed().await),
            }
        }
        assert_eq!(String::from_utf8_lossy(&typed), String::from_utf8_lossy(want));
    }
}

/// Starts a simulator with a machine.
async fn simulated() -> Option<(IpmiSim, Guest)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sim = tokio::task::spawn_blocking(move || IpmiSim::start_with(Some(address)));
    let sim = sim.await.unwrap()?;
    let (port, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    Some((sim, Guest::Simulated(port)))
}

/// Starts an emulator with a running machine.
async fn emulated(suite: Option<CipherSuite>) -> (Emulator, Endpoint, Guest) {
    let emulator = Emulator::start("generic", 1).await;
    let endpoint = emulator.endpoint(suite);
    let connector = Connector::bind().await.unwrap();
    connector.client(endpoint.target()).request(PowerChange::On).await.unwrap();
    connector.close().await;
    let guest = Guest::Emulated(emulator.machine().clone());
    (emulator, endpoint, guest)
}

async fn open(client: &Client) -> Result<SerialSession, BmcError> {
    client.clone().into_bmc().serial.unwrap().open().await
}

/// Reads `count` bytes of output.
async fn hear(session: &mut SerialSession, count: usize) -> Vec<u8> {
    let mut heard = Vec::new();
    let reading = async {
        while heard.len() < count {
            heard.extend(session.output.recv().await.unwrap().unwrap());
        }
    };
    timeout(PATIENCE, reading).await.unwrap();
    heard
}

/// 100 KiB in which every position is distinguishable.
fn burst() -> Vec<u8> {
    (0..100 << 10 >> 3).flat_map(|line| format!("{line:06}\r\n").into_bytes()).collect()
}

/// Sends a burst from the machine, and compares the bytes that arrive.
async fn a_burst_arrives(session: &mut SerialSession, guest: &mut Guest) {
    let burst = burst();
    let (heard, ()) = tokio::join!(hear(session, burst.len()), guest.says(&burst));
    assert!(heard == burst, "{} of {} bytes", heard.len(), burst.len());
}

/// The minimum that a usable serial port must do.
async fn passes_on(target: Target, guest: &mut Guest) {
    let (connector, other) = (Connector::bind().await.unwrap(), Connector::bind().await.unwrap());
    let (client, other_client) = (connector.client(target.clone()), other.client(target.clone()));
    let mut session = open(&client).await.unwrap();

    guest.says(b"r1u7 login: ").await;
    assert_eq!(hear(&mut session, 12).await, b"r1u7 login: ");
    session.input.send(Bytes::from_static(b"root\r")).await.unwrap();
    guest.is_told(b"root\r").await;
    // Longer than a packet.
    let long: Vec<u8> = (b'a'..=b'z').cycle().take(700).collect();
    session.input.send(Bytes::from(long.clone())).await.unwrap();
    guest.is_told(&long).await;
    a_burst_arrives(&mut session, guest).await;

    let refused = open(&other_client).await.unwrap_err();
    let address = target.address;
    let want = format!("the serial port behind the BMC at {address} is in use by another session");
    assert!(matches!(refused, BmcError::InUse { .. }), "{refused:?}");
    assert_eq!(refused.to_string(), want);

    // A dropped session frees the port, for the same client at once.
    drop(session);
    drop(open(&client).await.unwrap());
    connector.close().await;
    let mut session = open(&other_client).await.unwrap();
    session.input.send(Bytes::from_static(b"a\r")).await.unwrap();
    guest.is_told(b"a\r").await;
    guest.says(b"again").await;
    assert_eq!(hear(&mut session, 5).await, b"again");
    other.close().await;
    assert!(session.output.recv().await.is_none(), "everything is closed");
}

#[tokio::test]
async fn ipmi_sim_passes_on_a_serial_port() {
    let Some((sim, mut guest)) = simulated().await else { return };
    passes_on(sim.endpoint().target(), &mut guest).await;
}

#[tokio::test]
async fn the_emulator_passes_on_a_serial_port_with_both_suites() {
    for suite in [Some(CipherSuite::Three), Some(CipherSuite::Seventeen)] {
        let (_emulator, endpoint, mut guest) = emulated(suite).await;
        passes_on(endpoint.target(), &mut guest).await;
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_by_a_bad_network() {
    let (emulator, endpoint, mut guest) = emulated(None).await;
    emulator.machine().faults().set(FaultSet {
        lose_every: std::num::NonZeroU32::new(23),
        duplicate_replies: true,
        ..FaultSet::default()
    });
    is_unharmed(endpoint.target(), &mut guest).await;

    // ipmi_sim waits a second before it sends again, and gives up after five repetitions in one burst.
    let Some((sim, mut guest)) = simulated().await else { return };
    let fate = |way, number| match (way, number) {
        (Direction::ToClient, 100) | (Direction::ToBmc, 160) => DatagramOutcome::Lose,
        (Direction::ToClient, 220) | (Direction::ToBmc, 280) => DatagramOutcome::Late,
        (Direction::ToBmc | Direction::ToClient, number) if number % 3 == 0 => {
            DatagramOutcome::Double
        }
        (Direction::ToBmc | Direction::ToClient, _) => DatagramOutcome::Pass,
    };
    let relay = Relay::start(sim.endpoint().address, fate).await;
    let target = Target { address: relay.address, ..sim.endpoint().target() };
    is_unharmed(target, &mut guest).await;
    assert!(relay.harmed() > 100, "the network was not bad at all");
}

async fn is_unharmed(target: Target, guest: &mut Guest) {
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(target);
    let mut session = open(&client).await.unwrap();
    a_burst_arrives(&mut session, guest).await;
    let typed = burst()[..1000].to_vec();
    session.input.send(Bytes::from(typed.clone())).await.unwrap();
    timeout(PATIENCE, guest.is_told(&typed)).await.unwrap();
}

#[tokio::test]
async fn a_port_opens_although_the_answer_to_activation_was_lost() {
    // Presence, Open Session, RAKP 2, RAKP 4, Set Session Privilege Level: then Activate Payload.
    const ACTIVATION: usize = 5;
    let fate = |way, number| match (way, number) {
        (Direction::ToClient, ACTIVATION) => DatagramOutcome::Lose,
        (Direction::ToBmc | Direction::ToClient, _) => DatagramOutcome::Pass,
    };
    let (_emulator, endpoint, mut guest) = emulated(None).await;
    let relay = Relay::start(endpoint.address, fate).await;
    is_unharmed(Target { address: relay.address, ..endpoint.target() }, &mut guest).await;
    // ipmi_sim answers "already active" even to the session that has the port.
    let Some((sim, mut guest)) = simulated().await else { return };
    let relay = Relay::start(sim.endpoint().address, fate).await;
    is_unharmed(Target { address: relay.address, ..sim.endpoint().target() }, &mut guest).await;
    assert_eq!(relay.harmed(), 1);
}

#[tokio::test]
async fn a_slow_reader_misses_nothing() {
    let (_emulator, endpoint, mut guest) = emulated(None).await;
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(endpoint.target());
    let mut session = open(&client).await.unwrap();
    let burst = burst();
    let want = burst.clone();
    let saying = tokio::spawn(async move { guest.says(&burst).await });
    // All places except the reserved one are taken, and the machine has more output.
    let most = session.output.max_capacity() - 1;
    let full = async {
        while session.output.len() < most {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, full).await.unwrap();
    assert!(!saying.is_finished());
    assert!(hear(&mut session, want.len()).await == want);
    saying.await.unwrap();
}

/// Sends keep-alive requests often.
fn impatient() -> SessionLifetimes {
    SessionLifetimes { keep_alive_every: Duration::from_millis(300), ..SessionLifetimes::default() }
}

#[tokio::test]
async fn a_session_that_the_bmc_forgot_ends_with_an_error() {
    let (emulator, endpoint, _guest) = emulated(None).await;
    let connector = Connector::bind_with(impatient()).await.unwrap();
    let client = connector.client(endpoint.target());
    let mut session = open(&client).await.unwrap();
    emulator.machine().faults().forget_sessions();

    let last = timeout(PATIENCE, session.output.recv()).await.unwrap().unwrap();
    assert!(matches!(last, Err(BmcError::Unreachable { .. })), "{last:?}");
    assert!(session.output.recv().await.is_none());
    assert!(session.input.send(Bytes::from_static(b"a")).await.is_err());
    // A new session is independent of the lost one.
    assert!(open(&client).await.is_ok());
}

#[tokio::test]
async fn a_port_that_another_client_frees_ends_the_session() {
    let (_emulator, endpoint, _guest) = emulated(None).await;
    ends_when_freed(endpoint.target()).await;
    let Some((sim, _guest)) = simulated().await else { return };
    ends_when_freed(sim.endpoint().target()).await;
}

async fn ends_when_freed(target: Target) {
    let (relay, mut sent) = counting(target.address).await;
    let connector = Connector::bind_with(impatient()).await.unwrap();
    let client = connector.client(Target { address: relay.address, ..target.clone() });
    let mut session = open(&client).await.unwrap();
    // ipmi_sim notifies no client. The client must have asked before, and a second time before the answer is certainly here.
    const ACTIVATION_AND_FIRST_PACKET: usize = 2;
    reach(&mut sent, OPENING + ACTIVATION_AND_FIRST_PACKET + 2).await;
    let other = Connector::bind().await.unwrap();
    other.client(target).raw(0x06, 0x49, &[1, 1, 0, 0, 0, 0]).await.unwrap();
    let last = timeout(PATIENCE, session.output.recv()).await.unwrap();
    assert!(last.is_none(), "{last:?}");
}

#[tokio::test]
async fn a_bmc_without_serial_over_lan_says_so() {
    let emulator = Emulator::start("poor", 1).await;
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(emulator.endpoint(None).target());
    // Failed openings do not use up the BMC's two session slots.
    for _ in 0..4 {
        let error = open(&client).await.unwrap_err();
        assert_eq!(error.to_string(), "this BMC cannot pass on the serial port over IPMI");
    }
}

#[tokio::test]
async fn an_aborted_opening_leaves_the_port_free() {
    let (emulator, endpoint, _guest) = emulated(None).await;
    let connector = Connector::bind().await.unwrap();
    let client = connector.client(endpoint.target());
    emulator.machine().faults().update(|faults| faults.slow = Some(Duration::from_millis(20)));
    for _ in 0..3 {
        let given_up = timeout(Duration::from_millis(130), open(&client)).await;
        drop(given_up);
    }
    emulator.machine().faults().clear();
    connector.close().await;
    assert!(open(&client).await.is_ok());
}
