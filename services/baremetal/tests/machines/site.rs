//! A service with nodes in any state that a test needs, and without a BMC.

use std::net::SocketAddr;
use std::path::Path;

use baremetal::{Config, Service};
use baremetal_core::{
    Driver, Node, NodeUuid, Port, PortUuid, State, Task, Verb, WorkUuid, request_verb,
    start_next_task,
};
use baremetal_store::Store;
use hardware::MacAddress;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A service that runs until this value is dropped.
pub(crate) struct TestService {
    pub(crate) api: SocketAddr,
    /// The address of the provisioning listener.
    pub(crate) provisioning: SocketAddr,
    /// The address from which firmware loads iPXE by HTTPS.
    pub(crate) https: Option<SocketAddr>,
    pub(crate) dhcp: SocketAddr,
    /// DHCP on the network of BMCs, if it is configured.
    pub(crate) bmc_dhcp: Option<SocketAddr>,
    pub(crate) http: reqwest::Client,
    /// The service's own store, opened a second time.
    pub(crate) store: Store,
    stop: CancellationToken,
    _running: JoinSet<()>,
    _folder: tempfile::TempDir,
}

/// The network of the DHCP server and its range of addresses, as in the configuration.
#[derive(Clone, Copy)]
pub(crate) struct Pool {
    /// The socket for requests of relays.
    pub(crate) listen: &'static str,
    pub(crate) server: &'static str,
    pub(crate) prefix: u8,
    pub(crate) range: &'static str,
}

pub(crate) const LOOPBACK: Pool =
    Pool { listen: "127.0.0.1:0", server: "127.0.0.1", prefix: 8, range: "127.9.0.1-127.9.0.4" };

impl TestService {
    /// Starts a service with these nodes, and with `unknown_machines = unknown`.
    pub(crate) async fn start(pool: Pool, unknown: &str, nodes: &[(Node, Port)]) -> TestService {
        TestService::start_with(pool, unknown, nodes, "").await
    }

    /// Like [`TestService::start`], with these additional tables in the configuration.
    pub(crate) async fn start_with(
        pool: Pool,
        unknown: &str,
        nodes: &[(Node, Port)],
        tables: &str,
    ) -> TestService {
        // Another test of the process may have installed a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        std::fs::create_dir(&state).unwrap();
        let store = open(&state).await;
        for (node, port) in nodes {
            store.insert_node(node).await.unwrap();
            store.insert_port(port).await.unwrap();
        }
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            path
        };
        let Pool { listen, server, prefix, range } = pool;
        let text = format!(
            "state_dir = {state:?}\n[api]\nlisten = '127.0.0.1:0'\n[timeouts]\npoll_every = '50ms'\n\
             [provisioning]\nlisten = '127.0.0.1:0'\nkernel = {:?}\nramdisk = {:?}\niso = {:?}\n\
             unknown_machines = '{unknown}'\n\
             [provisioning.dhcp]\nlisten = '{listen}'\nserver = '{server}'\nprefix = {prefix}\n\
             range = '{range}'\n{tables}",
            file("kernel"),
            file("ramdisk"),
            file("iso"),
        );
        let config: Config = toml::from_str(&text).unwrap();
        let service = Service::start(config).await.unwrap();
        let at = service.listeners().clone();
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        let until = stop.clone();
        running.spawn(async move { service.run(until).await.unwrap() });
        TestService {
            api: at.api,
            provisioning: at.provisioning.unwrap(),
            https: at.https,
            dhcp: at.dhcp.unwrap(),
            bmc_dhcp: at.bmc_dhcp,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            store,
            stop,
            _running: running,
            _folder: folder,
        }
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn open(state: &Path) -> Store {
    let file = state.join("baremetal.db");
    Store::open(&format!("sqlite://{}", file.display())).await.unwrap()
}

/// Makes a node with one port, whose work for `verb` waits for the machine.
pub(crate) fn awaited(name: &str, mac: MacAddress, verb: Verb) -> (Node, Port) {
    let now = Timestamp::now();
    let (node, port) = enrolled(name, mac);
    let node = Node { provision_state: State::Manageable, ..node };
    let (mut node, _) = request_verb(&node, verb, WorkUuid::new_v4(), now).unwrap();
    let is_awaited = |node: &Node| {
        let task = node.work.as_ref().unwrap().task().unwrap();
        matches!(task, Task::AwaitAgent | Task::AwaitInventory)
    };
    while !is_awaited(&node) {
        node = start_next_task(&node, now).unwrap().0;
    }
    (node, port)
}

pub(crate) fn enrolled(name: &str, mac: MacAddress) -> (Node, Port) {
    let now = Timestamp::now();
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, now);
    node.name = Some(name.parse().unwrap());
    let port = Port::new(PortUuid::new_v4(), node.id, mac, now);
    (node, port)
}
