//! The emulator's own agent: finds its node, sends heartbeats and serves its API until the power goes off.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bmc_emulator::{Identity, web};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use url::Url;

use super::commands::{CommandRequest, Commands};
use super::inventory;
use super::outcome::Ending;
use super::parameters::Parameters;
use super::steps;
use crate::causes::chain;
use crate::event::{BootSource, Event};
use crate::machine::Machine;
use crate::rack_context::RackContext;

/// The newest version that agents use; see ironic-python-agent's `ironic_api_client.py`.
const API_VERSION: &str = "1.68";
/// How often the agent tries to post an inventory.
const INSPECTION_TRIES: u32 = 5;
/// The pause after an error; ironic-python-agent waits 5 to 10 seconds.
const PAUSE: Duration = Duration::from_secs(5);
const LEAST_PAUSE: Duration = Duration::from_millis(200);
/// The timeout of a request to the conductor.
const PATIENCE: Duration = Duration::from_secs(30);

/// The conductor's data about the node.
struct Node {
    uuid: String,
    heartbeat_every: Duration,
}

pub(super) async fn run(
    machine: &Machine,
    world: &RackContext,
    source: BootSource,
    parameters: Parameters,
) -> Infallible {
    let mut agent = Agent { machine, world, source, parameters };
    let inspected = agent.inspect().await;
    if agent.parameters.token.is_empty() {
        // The command line of an image that the conductor did not make has no token; the conductor gives it to the first look-up. Such an
        // image always posts its inventory, and goes on if the conductor wants none.
        let Some(token) = agent.looked_up_token().await else {
            let why = inspected.err();
            let why = why.unwrap_or_else(|| format!("nothing more to do after {source}"));
            return machine.hang(&why).await;
        };
        agent.parameters.token = token;
    } else if let Err(why) = inspected {
        return machine.hang(&why).await;
    }
    let node = agent.find_node().await;
    match agent.serve(node).await {
        Ok(never) => never,
        Err(error) => machine.hang(&format!("the agent cannot listen: {error}")).await,
    }
}

struct Agent<'a> {
    machine: &'a Machine,
    world: &'a RackContext,
    source: BootSource,
    parameters: Parameters,
}

impl Agent<'_> {
    /// Posts the inventory, if the command line requests it.
    async fn inspect(&self) -> Result<(), String> {
        let Some(url) = &self.parameters.inspection else { return Ok(()) };
        let report = inventory::report(self.machine, &self.parameters);
        let mut why = String::new();
        for _ in 0..INSPECTION_TRIES {
            let sent = self.world.http.post(url.clone()).json(&report).timeout(PATIENCE).send();
            why = match sent.await {
                Ok(answer) if answer.status().is_success() => {
                    self.machine.tell(Event::SentInventory);
                    return Ok(());
                }
                Ok(answer) if answer.status() == 409 || answer.status().is_server_error() => {
                    format!("the inventory is answered with {}", answer.status())
                }
                Ok(answer) => return Err(format!("the inventory is refused: {}", answer.status())),
                Err(error) => chain(&error.without_url()),
            };
            self.pause().await;
        }
        Err(why)
    }

    /// Returns the token from the answer to a look-up, if the conductor knows the machine and gives the token away.
    async fn looked_up_token(&self) -> Option<String> {
        let body = self.look_up().await?;
        let token = body.pointer("/config/agent_token").and_then(Value::as_str)?;
        (!token.starts_with('*')).then(|| token.to_owned())
    }

    /// Looks up the node of this machine; `None` if the conductor does not answer or knows no such node.
    async fn look_up(&self) -> Option<Value> {
        let macs: Vec<String> =
            self.machine.spec().nics.iter().map(|nic| nic.mac.to_string()).collect();
        let mut url = self.url("v1/lookup");
        url.query_pairs_mut().append_pair("addresses", &macs.join(","));
        let answer = self.world.http.get(url).timeout(PATIENCE).send().await.ok()?;
        if answer.status().is_success() { answer.json().await.ok() } else { None }
    }

    /// Looks up the node of this machine, until the conductor answers.
    async fn find_node(&self) -> Node {
        loop {
            if let Some(body) = self.look_up().await
                && let Some(uuid) = body.pointer("/node/uuid").and_then(Value::as_str)
            {
                let timeout = body.pointer("/config/heartbeat_timeout").and_then(Value::as_u64);
                // ironic-python-agent draws a number from 0.3 to 0.6 for each heartbeat.
                let every = Duration::from_secs(timeout.unwrap_or(300)).mul_f64(0.45);
                return Node { uuid: uuid.to_owned(), heartbeat_every: every.max(LEAST_PAUSE) };
            }
            self.pause().await;
        }
    }

    /// Serves the API, sends heartbeats and runs commands until the machine ends.
    async fn serve(&self, node: Node) -> std::io::Result<Infallible> {
        let address = Ipv4Addr::LOCALHOST;
        let listener = TcpListener::bind((address, 0)).await?;
        let at = listener.local_addr()?;
        let identity = match self.world.identity.get() {
            Some(shared) => shared.clone(),
            None => Identity::for_addresses(&BTreeSet::from([address.into()]))?,
        };
        let (jobs, asked) = mpsc::channel(1);
        let commands =
            Arc::new(Commands::new(self.machine.clone(), self.parameters.token.clone(), jobs));
        let api = commands.clone();
        if self.machine.faults().agent_does_not_listen {
            // Connections to the agent are refused.
            drop(listener);
            self.heartbeats(&node, at, &identity, &commands).await;
            return std::future::pending().await;
        }
        let shown = match self.machine.faults().agent_shows_another_certificate {
            true => Identity::for_addresses(&BTreeSet::from([address.into()]))?.acceptor,
            false => identity.acceptor.clone(),
        };
        let server = web::run(listener, Some(shown), move |request| {
            let api = api.clone();
            async move { api.answer(request).await }
        });
        let reports = self.heartbeats(&node, at, &identity, &commands);
        // The agent of a rescue system ends, and its API and heartbeats with it.
        tokio::select! {
            ((), ()) = async { tokio::join!(server, reports) } => {}
            () = self.work(&commands, asked) => {}
        }
        std::future::pending().await
    }

    /// Sends heartbeats: at once, at intervals, and whenever a command has ended.
    async fn heartbeats(
        &self,
        node: &Node,
        at: SocketAddr,
        identity: &Identity,
        commands: &Commands,
    ) {
        let url = self.url(&format!("v1/heartbeat/{}", node.uuid));
        let body = json!({
            "callback_url": format!("https://{at}"), "agent_token": self.parameters.token,
            "agent_version": "11.0.0", "agent_verify_ca": *identity.pem,
        });
        let mut reported = false;
        loop {
            let mut rest = node.heartbeat_every;
            if !self.machine.faults().agent_is_silent {
                let request = self.world.http.post(url.clone()).json(&body);
                let request = request.header("X-OpenStack-Ironic-API-Version", API_VERSION);
                match request.timeout(PATIENCE).send().await {
                    Ok(answer) if answer.status() == StatusCode::ACCEPTED => {
                        if !reported {
                            self.machine.tell(Event::Heartbeat);
                            reported = true;
                        }
                    }
                    Ok(_) | Err(_) => rest = self.world.pace.of(PAUSE).max(LEAST_PAUSE),
                }
            }
            // Timeout or notification: in both cases a heartbeat is due.
            let _ = tokio::time::timeout(rest, commands.wait_for_an_end()).await;
        }
    }

    /// Runs commands, one after the other, until a command ends the agent.
    async fn work(&self, commands: &Commands, mut asked: mpsc::Receiver<CommandRequest>) {
        while let Some(asked) = asked.recv().await {
            let done = steps::run(self.machine, self.world, &asked, commands).await;
            let ending = done.as_ref().ok().and_then(|done| done.ending.clone());
            commands.end(&asked.id, done);
            if let Some(ending) = ending {
                // The answer must be sent first, and a real system takes some time to shut down.
                tokio::time::sleep(self.world.pace.of(PAUSE).max(LEAST_PAUSE)).await;
                let is_over = matches!(ending, Ending::Rescue(_));
                ending.take_effect(self.machine, self.source);
                if is_over {
                    return;
                }
            }
        }
    }

    fn url(&self, path: &str) -> Url {
        let base = self.parameters.api.as_str().trim_end_matches('/');
        // Appending a path of letters to a valid URL gives a valid URL.
        Url::parse(&format!("{base}/{path}")).unwrap_or_else(|_| self.parameters.api.clone())
    }

    async fn pause(&self) {
        tokio::time::sleep(self.world.pace.of(PAUSE).max(LEAST_PAUSE)).await;
    }
}
