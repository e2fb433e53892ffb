//! Tests of graphical consoles. The tests play the VNC server of the BMC and the program of the viewer.

use std::time::Duration;

use baremetal_core::{ConsoleInterface, Driver};
use hardware::AllowedHosts;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::consoles::{ConsoleError, ConsoleSettings, Consoles};

/// The bytes that a viewer gets before the screen: version, security types, result.
const GREETING: &[u8] = b"RFB 003.008\n\x01\x01\0\0\0\0";

/// A VNC server that asks for no password.
struct Bmc(TcpListener);

impl Bmc {
    async fn start() -> Bmc {
        Bmc(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn server(&self) -> Server {
        server(self.0.local_addr().unwrap().port())
    }

    /// Accepts a session and logs it in.
    async fn session(&self) -> TcpStream {
        let (mut session, _) = self.0.accept().await.unwrap();
        session.write_all(b"RFB 003.008\n\x01\x01").await.unwrap();
        session.read_exact(&mut [0; 13]).await.unwrap();
        session.write_all(&[0; 4]).await.unwrap();
        assert_eq!(session.read_u8().await.unwrap(), 1, "the session is shared");
        session
    }
}

fn server(port: u16) -> Server {
    Server {
        host: "127.0.0.1".to_owned(),
        port,
        password: String::new().into(),
        allowed: AllowedHosts::anywhere(),
        timeout: Duration::from_secs(30),
    }
}

fn consoles(viewers_per_node: usize, sessions: usize) -> Consoles {
    Consoles::new(ConsoleSettings { viewers_per_node, sessions, linger: Duration::ZERO })
}

fn node(number: u128) -> Node {
    let id = uuid::Uuid::from_u128(number).to_string().parse().unwrap();
    let mut node = Node::new(id, Driver::Redfish, Timestamp::UNIX_EPOCH);
    node.interfaces.console = Some(ConsoleInterface::BmcVnc);
    node.console_enabled = true;
    node
}

/// Opens a session and sends the viewer's part of the handshake.
async fn watch(consoles: &Consoles, node: &Node, server: Server) -> GraphicalViewer {
    let mut viewer = consoles.enter_graphical(node, server).unwrap();
    viewer.stream.write_all(b"RFB 003.008\n\x01\x00").await.unwrap();
    viewer
}

/// Reads to the end of the stream; returns the bytes and why the console ended.
async fn rest(mut viewer: GraphicalViewer) -> (Vec<u8>, ConsoleEnd) {
    let mut read = Vec::new();
    viewer.stream.read_to_end(&mut read).await.unwrap();
    (read, viewer.outcome.end())
}

fn refusal(consoles: &Consoles, node: &Node) -> ConsoleError {
    consoles.enter_graphical(node, server(9)).unwrap_err()
}

#[tokio::test]
async fn each_viewer_has_a_session_until_the_console_ends() {
    let (bmc, consoles, node) = (Bmc::start().await, consoles(8, 8), node(1));
    let mut viewers = Vec::new();
    for _ in 0..2 {
        let mut viewer = watch(&consoles, &node, bmc.server()).await;
        let mut session = bmc.session().await;
        session.write_all(b"pixels").await.unwrap();
        let mut shown = vec![0; GREETING.len() + 6];
        viewer.stream.read_exact(&mut shown).await.unwrap();
        assert_eq!(shown, [GREETING, b"pixels"].concat());
        viewer.stream.write_all(b"keys").await.unwrap();
        let mut typed = [0; 4];
        session.read_exact(&mut typed).await.unwrap();
        assert_eq!(&typed, b"keys");
        viewers.push((viewer, session));
    }
    assert_eq!(consoles.held().into_iter().collect::<Vec<_>>(), [node.id]);
    consoles.end(node.id, ConsoleEnd::Disabled);
    consoles.end(node.id, ConsoleEnd::Deleted);
    for (viewer, mut session) in viewers {
        assert_eq!(rest(viewer).await, (Vec::new(), ConsoleEnd::Disabled), "the first reason");
        assert_eq!(session.read_to_end(&mut Vec::new()).await.unwrap(), 0, "the session is over");
    }
    consoles.close().await;
    assert!(consoles.held().is_empty());
}

#[tokio::test]
async fn a_later_lessee_ends_only_the_sessions_of_the_earlier() {
    let (bmc, consoles, mut node) = (Bmc::start().await, consoles(8, 8), node(1));
    let ann = watch(&consoles, &node, bmc.server()).await;
    let _anns = bmc.session().await;
    consoles.end_if_handed_over(&node);
    node.lessee = Some("lab".to_owned());
    let bob = watch(&consoles, &node, bmc.server()).await;
    let _bobs = bmc.session().await;
    consoles.end_if_handed_over(&node);
    assert_eq!(rest(ann).await, (GREETING.to_vec(), ConsoleEnd::HandedOver));
    // The stop of the process waits until Bob has read why.
    let ((), (_, why)) = tokio::join!(consoles.close(), rest(bob));
    assert_eq!(why, ConsoleEnd::Stopping);
    assert_eq!(refusal(&consoles, &node), ConsoleError::Stopping);
}

#[tokio::test]
async fn a_viewer_is_refused_without_a_place_and_a_place_is_free_after_its_viewer_left() {
    let others = (node(2), node(3));
    let (bmc, consoles, mut node) = (Bmc::start().await, consoles(1, 2), node(1));
    let ann = watch(&consoles, &node, bmc.server()).await;
    let mut anns = bmc.session().await;
    let crowded = ConsoleError::Crowded { node: node.label(), at_most: 1 };
    assert_eq!(refusal(&consoles, &node), crowded);
    let _other = watch(&consoles, &others.0, bmc.server()).await;
    assert_eq!(refusal(&consoles, &others.1), ConsoleError::Exhausted { at_most: 2 });
    drop(ann);
    assert_eq!(anns.read_to_end(&mut Vec::new()).await.unwrap(), 0, "the session is over");
    while consoles.held().contains(&node.id) {
        tokio::task::yield_now().await;
    }
    // The place among all sessions is free a moment after the place at the node.
    while let Err(why) = consoles.enter_graphical(&node, bmc.server()) {
        assert_eq!(why, ConsoleError::Exhausted { at_most: 2 });
        tokio::task::yield_now().await;
    }
    node.console_enabled = false;
    assert_eq!(refusal(&consoles, &node), ConsoleError::Disabled { node: node.label() });
}

#[tokio::test]
async fn the_viewer_reads_why_the_bmc_opened_no_session_and_that_it_ended_one() {
    let (bmc, consoles, node) = (Bmc::start().await, consoles(8, 8), node(1));
    let viewer = watch(&consoles, &node, bmc.server()).await;
    let (mut session, _) = bmc.0.accept().await.unwrap();
    session.write_all(b"RFB 003.008\n\0\0\0\0\x04full").await.unwrap();
    let (read, why) = rest(viewer).await;
    let read = String::from_utf8(read).unwrap();
    assert!(read.ends_with("refused the connection: full"), "{read:?}");
    assert_eq!(why, ConsoleEnd::Refused);

    let viewer = watch(&consoles, &node, bmc.server()).await;
    drop(bmc.session().await);
    assert_eq!(rest(viewer).await, (GREETING.to_vec(), ConsoleEnd::Over));
}

#[tokio::test(start_paused = true)]
async fn a_viewer_that_says_nothing_is_disconnected_before_the_bmc_is_asked() {
    let (consoles, node) = (consoles(8, 8), node(1));
    let viewer = consoles.enter_graphical(&node, server(9)).unwrap();
    assert_eq!(rest(viewer).await, (b"RFB 003.008\n".to_vec(), ConsoleEnd::TooSlow));
    // A viewer that speaks another protocol.
    let mut viewer = consoles.enter_graphical(&node, server(9)).unwrap();
    viewer.stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    assert_eq!(rest(viewer).await.1, ConsoleEnd::Over);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_is_held_back_while_a_viewer_reads_nothing() {
    let ((mut bmc, of_bmc), (mut viewer, of_viewer)) = (duplex(1024), duplex(BYTES_IN_FLIGHT));
    let copying = tokio::spawn(copy_both_ways(of_bmc, of_viewer));
    let mut taken = 0;
    // Time passes only when no task can continue.
    while let Ok(sent) = timeout(Duration::from_secs(1), bmc.write(&[7; 1024])).await {
        taken += sent.unwrap();
        assert!(taken < 4 * BYTES_IN_FLIGHT, "everything is taken");
    }
    drop(bmc);
    let mut read = Vec::new();
    let (copied, all) = tokio::join!(copying, viewer.read_to_end(&mut read));
    copied.unwrap();
    assert_eq!(all.unwrap(), taken, "nothing is lost");
}
