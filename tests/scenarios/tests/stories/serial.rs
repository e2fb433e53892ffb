//! The boot of a machine is read on its serial console during a deployment.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use lab::{Api, Lab, Machine, Node, Settings};
use machine_emulator::Stage;
use reqwest::Method;
use serde_json::json;
use websocket::{Message, Socket};

/// The longest time that anything may take on a busy computer, including the time until the BMC notices a lost session.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn the_console_shows_a_deployment_and_a_kill_only_ends_the_session() {
    shows_a_deployment(Machine::ipmi("r1u7"), "ipmitool-socat").await;
}

#[tokio::test]
async fn the_console_of_a_redfish_machine_shows_a_deployment_too() {
    shows_a_deployment(Machine::redfish("r1u7"), "redfish-serial").await;
}

async fn shows_a_deployment(machine: Machine, interface: &str) {
    let lab = Lab::with_child(Settings::default()).await;
    let machine = lab.rack(machine).await;
    let node = lab.available(&machine).await;
    lab.set(node, "/console_interface", json!(interface)).await;
    let enabled = json!({"enabled": true});
    let switch = format!("{}/states/console", node.path());
    lab.api().send(Method::PUT, &switch, Some(&enabled)).await.expect("it is enabled");

    let mut console = Console::open(lab.api(), node).await;
    console.reads("the console is open").await;
    let asked = lab.provision(node, "active").await;
    // The ramdisk boots, then the installed disk.
    console.reads("Linux version").await;
    console.reads("Booting from local disk").await;
    asked.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    console.reads("r1u7 login: ").await;
    console.types("root\r").await;
    console.reads("Password: ").await;
    // The password must not be stored anywhere: the state folder of the lab is searched for it.
    console.types(&format!("{}\r", left::canary::CONSOLE)).await;
    console.reads("Login incorrect").await;

    lab.restart().await;
    while let Some(Ok(_)) = console.socket.next().await {}
    assert!(lab.node(node).await.console_enabled, "that it is enabled is not lost");
    let mut console = Console::open(lab.api(), node).await;
    console.reads("the console is open").await;
    console.types("\r").await;
    console.reads("r1u7 login: ").await;

    let disabled = json!({"enabled": false});
    lab.api().send(Method::PUT, &switch, Some(&disabled)).await.expect("it is disabled");
    loop {
        if let Message::Close(why) = console.next().await {
            let why = why.expect("it says why");
            assert_eq!(why.reason.to_string(), "the console was disabled");
            break;
        }
    }
}

/// A viewer of a machine's console.
pub(crate) struct Console {
    socket: Socket,
    /// Received output that was not read yet.
    rest: String,
}

impl Console {
    /// Opens the console of a node.
    pub(crate) async fn open(api: &Api, node: Node) -> Console {
        let socket = api.socket(&format!("/bedplate/v1/nodes/{}/console", node.0)).await;
        Console { socket, rest: String::new() }
    }

    /// Reads the output up to and including `words`.
    pub(crate) async fn reads(&mut self, words: &str) {
        loop {
            if let Some((_, rest)) = self.rest.split_once(words) {
                self.rest = rest.to_owned();
                return;
            }
            match self.next().await {
                Message::Binary(piece) => self.rest += &String::from_utf8_lossy(&piece),
                Message::Ping(_) => {}
                other @ (Message::Text(_)
                | Message::Pong(_)
                | Message::Close(_)
                | Message::Frame(_)) => panic!("{other:?} before {words:?}, after {}", self.rest),
            }
        }
    }

    async fn next(&mut self) -> Message {
        let next = tokio::time::timeout(PATIENCE, self.socket.next()).await;
        let next = next.unwrap_or_else(|_| panic!("no more after {:?}", self.rest));
        next.expect("it goes on").expect("it is no error")
    }

    async fn types(&mut self, keys: &str) {
        let keys = Message::Binary(keys.to_owned().into());
        self.socket.send(keys).await.expect("it is typed");
    }
}
