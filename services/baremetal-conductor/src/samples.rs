//! Samples for the tests of this crate: an emulated BMC, a node that waits for its machine, and a conductor without tasks.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baremetal_core::{
    AgentCommand, Driver, Node, NodeUuid, Port, PortUuid, State, Task, Verb, WorkUuid,
    request_verb, start_next_task,
};
use baremetal_store::{SharedBmcs, Store};
use bmc_emulator::{
    BmcKind, BmcSpec, DiskSpec, Firmware, Identity, Mac, Machine, MachineSpec, NicSpec, Served,
    serve,
};
use hardware::{AllowedHosts, MacAddress};
use jiff::Timestamp;
use openstack::{CloudConfig, Session};
use openstack_emulator::Cloud;
use redfish::{Auth, Target, Trust};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::conductor::Conductor;
use crate::secrets::ServiceKey;
use crate::settings::Settings;

/// Starts an HTTP server that answers each request with `answer`, and returns its address.
pub(crate) async fn answering(answer: String) -> SocketAddr {
    // Another test of the process may have installed a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            // A client that refuses the answer may close the connection first.
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    at
}

/// An HTTPS server whose answers a test makes.
pub(crate) struct TlsServer {
    pub(crate) address: SocketAddr,
    /// The server's certificate in PEM, which is its own CA.
    pub(crate) certificate: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl TlsServer {
    /// Starts a server whose answers are the bytes that `answer` makes of the server's address and the head of the request.
    pub(crate) async fn start(
        answer: impl Fn(SocketAddr, &str) -> Vec<u8> + Send + Sync + 'static,
    ) -> TlsServer {
        // Another test of the process may have installed a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let identity = Identity::for_addresses(&BTreeSet::from([address.ip()])).unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (answer, acceptor, seen) = (Arc::new(answer), identity.acceptor, heads.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, acceptor, seen) = (answer.clone(), acceptor.clone(), seen.clone());
                tokio::spawn(async move {
                    // A client that does not trust the certificate ends the connection.
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let head = head_of(&mut stream).await;
                    seen.lock().unwrap().push(head.clone());
                    let _ = stream.write_all(&answer(address, &head)).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        TlsServer { address, certificate: identity.pem.to_string(), heads }
    }

    /// Takes the heads of the requests so far, oldest first.
    pub(crate) fn heads(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock().unwrap())
    }
}

/// Reads the head of a request, which has no body.
async fn head_of(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    let mut part = [0; 4096];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => break,
            Ok(read) => head.extend_from_slice(&part[..read]),
        }
    }
    String::from_utf8(head).unwrap()
}

/// Makes an answer that ends the connection. `head` has the status and further headers, separated by line breaks.
pub(crate) fn http(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let (body, head) = (body.as_ref(), head.replace('\n', "\r\n"));
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Returns a node whose agent is to write the image with this `image_source`.
pub(crate) fn writing_node(source: &str) -> Node {
    let now = Timestamp::now();
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, now);
    node.provision_state = State::Available;
    node.instance_info.insert("image_source".to_owned(), source.into());
    let (mut node, _) = request_verb(&node, Verb::Deploy, WorkUuid::new_v4(), now).unwrap();
    let write = Task::Agent(AgentCommand::WriteImage);
    while node.work.as_ref().unwrap().task() != Some(&write) {
        node = start_next_task(&node, now).unwrap().0;
    }
    node
}

pub(crate) const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);

/// A machine whose BMC is served.
pub(crate) struct SampleMachine {
    pub(crate) machine: Machine,
    pub(crate) target: Target,
    _served: Served,
}

impl SampleMachine {
    /// Starts a Redfish BMC of a machine that is off.
    pub(crate) async fn start() -> SampleMachine {
        // Another test of the process may have installed a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let machine = Machine::new(MachineSpec {
            name: "r1u1".to_owned(),
            uuid: uuid::Uuid::from_u128(1),
            serial: "SN0001".to_owned(),
            manufacturer: "Acme Servers".to_owned(),
            model: "R650 Clone".to_owned(),
            firmware: Firmware::Uefi,
            nics: vec![NicSpec { mac: Mac(MAC.octets()), speed_mbps: 10_000 }],
            disks: vec![DiskSpec {
                name: "sda".to_owned(),
                serial: "D1".to_owned(),
                size_bytes: 1 << 30,
                model: "Acme Disk".to_owned(),
                rotational: false,
            }],
            cpus: 8,
            memory_mib: 8192,
            bmc: BmcSpec {
                kind: BmcKind::Redfish,
                address: (Ipv4Addr::LOCALHOST, 0).into(),
                tls: false,
                username: "admin".to_owned(),
                password: "secret".to_owned(),
                profile: "generic".to_owned(),
                also_ipmi: None,
                own_certificate: false,
            },
        });
        let served = serve(vec![machine.clone()]).await.unwrap();
        let address = served.machines[0].redfish.unwrap();
        let target = Target {
            address: format!("http://{address}").parse().unwrap(),
            system: None,
            username: "admin".to_owned(),
            password: "secret".into(),
            auth: Auth::Auto,
            trust: Trust::Unverified,
            timeout: Duration::from_secs(20),
        };
        SampleMachine { machine, target, _served: served }
    }

    /// Returns a node of this machine, whose work waits for the agent.
    pub(crate) fn node(&self) -> (Node, Port) {
        let now = Timestamp::now();
        let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, now);
        node.provision_state = State::Manageable;
        let info = json!({
            "redfish_address": self.target.address,
            "redfish_username": "admin",
            "redfish_password": "secret",
        });
        node.driver_info = info.as_object().unwrap().clone();
        let (mut node, _) = request_verb(&node, Verb::Provide, WorkUuid::new_v4(), now).unwrap();
        while node.work.as_ref().unwrap().task() != Some(&Task::AwaitAgent) {
            node = start_next_task(&node, now).unwrap().0;
        }
        let port = Port::new(PortUuid::new_v4(), node.id, MAC, now);
        (node, port)
    }
}

/// Makes a session of the administrator of an emulated cloud. It does not repeat calls.
pub(crate) fn session_of_admin(cloud: &Cloud) -> Session {
    let variables = [
        ("OS_AUTH_URL", cloud.auth_url()),
        ("OS_USERNAME", "admin".to_owned()),
        ("OS_PASSWORD", "admin-secret".to_owned()),
        ("OS_PROJECT_NAME", "admin".to_owned()),
        ("OS_USER_DOMAIN_NAME", "Default".to_owned()),
        ("OS_PROJECT_DOMAIN_NAME", "Default".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let mut config = CloudConfig::from_environment(variables).unwrap();
    config.patience.attempts = 1;
    Session::new(config).unwrap()
}

/// Returns settings for machines on this host.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::sample(Timestamp::now);
    settings.bmc.allowed = AllowedHosts::anywhere();
    settings.bmc.requests_per_second = 1000;
    settings.provisioning_url = Some("http://10.0.0.1:8080/".parse().unwrap());
    settings
}

/// Makes a conductor with an empty store.
pub(crate) async fn conductor(settings: Settings) -> Conductor {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = Store::open("sqlite::memory:").await.unwrap();
    // Several nodes of a test stand for one machine in several states.
    let store = store.with_shared_bmcs(SharedBmcs::Permitted);
    Conductor::new(settings, store, ServiceKey::new([7; 32])).await.unwrap()
}
