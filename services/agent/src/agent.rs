//! The agent from start to end: finds the conductor, reports the inventory, runs commands, ends.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use agent_protocol::{Heartbeat, InspectionData, KernelParameters, LookupAnswer};
use anyhow::{Context, Result, bail};
use tokio::net::{TcpListener, UdpSocket, lookup_host};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use crate::api::{self, Service, TlsListener};
use crate::certificate;
use crate::commands::Commands;
use crate::conductor::{AGENT_VERSION, Conductor, ConductorError};
use crate::error::chain;
use crate::heartbeat::{HeartbeatTiming, send_heartbeats};
use crate::hints;
use crate::image::{DownloadPolicy, TrustAnchors};
use crate::inventory::{self, lldp};
use crate::logs::Logs;
use crate::machine::{self, Ending, Machine};
use crate::root::Root;

const DEFAULT_PORT: u16 = 9999;
/// The value of ironic-python-agent's ipa-lookup-timeout.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(600);
/// Switches send LLDP every 30 s.
const LLDP_PATIENCE: Duration = Duration::from_secs(31);
/// How long answers in progress may still take once the machine is about to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);
const INSPECTION_TRIES: u32 = 5;
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Replaces a token that was handed out before.
const WITHHELD: &str = "******";

/// The options that the agent is started with.
pub struct Options {
    /// The directory tree in which the agent sees the machine.
    pub root: Root,
    /// Address of the agent's API; `None` uses the local address from which the conductor is reached.
    pub listen: Option<SocketAddr>,
    /// File with the kernel's command line; `None` reads `/proc/cmdline`.
    pub cmdline: Option<PathBuf>,
    pub logs: Logs,
}

/// Runs the agent until the conductor ends it. On a real machine the machine ends at the same time.
pub async fn run(options: Options) -> Result<Ending> {
    // A process has one provider, so a second call has no effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Options { root, listen, cmdline, logs } = options;
    let parameters = kernel_parameters(&cmdline.unwrap_or_else(|| root.path("/proc/cmdline")))?;
    let api_url = api_url(&parameters)?;
    let anchors = trust_anchors(&root)?;
    let mut conductor = Conductor::new(&api_url, &anchors, parameters.insecure)?;

    let machine = Arc::new(Machine {
        root,
        parameters,
        anchors,
        patience: DownloadPolicy::default(),
        logs,
        properties: Mutex::default(),
        written: Mutex::default(),
        partition_ids: Mutex::default(),
        ending: watch::Sender::new(None),
    });
    wait_for_conductor(&mut conductor).await?;
    if machine.parameters.api_url.is_none() {
        return report_and_wait(&machine, &conductor).await;
    }
    let answer = identify(&machine, &conductor).await?;
    let token = token(&machine.parameters, &answer)?;
    let LookupAnswer { node, config } = answer;
    info!(node.id = %node.uuid, "this machine is node {}", node.uuid);
    *machine.properties.lock().unwrap_or_else(PoisonError::into_inner) = node.properties;

    let tcp = bind(listen, &machine.parameters, &conductor).await?;
    let rhythm = HeartbeatTiming::new(config.heartbeat_timeout);
    let ending = serve(&machine, &conductor, tcp, (&node.uuid, token, rhythm)).await?;
    info!("ending: {ending:?}");
    machine::end(&machine.root, ending).context("cannot end the machine")?;
    Ok(ending)
}

/// Reads the parameters of the kernel from its command line in this file.
fn kernel_parameters(cmdline: &Path) -> Result<KernelParameters> {
    let line = std::fs::read(cmdline).with_context(|| {
        format!("cannot read the kernel's command line in {}", cmdline.display())
    })?;
    Ok(KernelParameters::parse(&String::from_utf8_lossy(&line)))
}

/// Returns the address of the conductor. Ironic without fast-track names only the address to which the inventory is posted.
fn api_url(parameters: &KernelParameters) -> Result<String> {
    match (&parameters.api_url, &parameters.inspection_callback_url) {
        (Some(url), _) => Ok(url.clone()),
        (None, Some(callback)) => {
            Ok(callback.trim_end_matches("/v1/continue_inspection").to_owned())
        }
        (None, None) => bail!(
            "the kernel parameters ipa-api-url and ipa-inspection-callback-url are missing, so the agent cannot find a conductor"
        ),
    }
}

/// Reads the certificate authorities of the ramdisk; without their file, the agent trusts none.
fn trust_anchors(root: &Root) -> Result<TrustAnchors> {
    match std::fs::read(root.path(AUTHORITIES)) {
        Ok(pem) => TrustAnchors::from_pem(&pem).context("cannot read the certificate authorities"),
        Err(_) => Ok(TrustAnchors::default()),
    }
}

/// Reports the inventory, and then waits until the conductor switches the machine off.
async fn report_and_wait(machine: &Arc<Machine>, conductor: &Conductor) -> Result<Ending> {
    let callback = machine.parameters.inspection_callback_url.as_deref().unwrap_or_default();
    report(machine, conductor, callback).await?;
    info!("waiting until the conductor switches the machine off");
    std::future::pending().await
}

/// Finds the node of this machine. If the conductor inspects the node, the agent first reports the inventory.
async fn identify(machine: &Arc<Machine>, conductor: &Conductor) -> Result<LookupAnswer> {
    let known = match machine.parameters.inspection_callback_url.as_deref() {
        Some(callback) => Some(report(machine, conductor, callback).await?),
        None => None,
    };
    match known {
        Some(InspectionReply { answer: Some(answer), .. }) => Ok(answer),
        Some(InspectionReply { node, .. }) => find_node(machine, conductor, node.as_deref()).await,
        None => find_node(machine, conductor, None).await,
    }
}

/// Serves the agent's API on `tcp` and sends heartbeats for the node, until the conductor ends the agent.
async fn serve(
    machine: &Arc<Machine>,
    conductor: &Conductor,
    tcp: TcpListener,
    (node, token, rhythm): (&str, String, HeartbeatTiming),
) -> Result<Ending> {
    let address = tcp.local_addr().context("cannot tell the API's own address")?;
    let certificate = certificate::for_address(address.ip())?;
    let commands = Arc::new(Commands::default());
    let service = Service {
        token: token.clone(),
        commands: commands.clone(),
        machine: machine.clone(),
        started: SystemTime::now(),
    };
    let listener = TlsListener::new(tcp, TlsAcceptor::from(certificate.server))?;
    let (mut ended, mut stop) = (machine.ending.subscribe(), machine.ending.subscribe());
    let server = tokio::spawn(
        axum::serve(listener, api::routes(Arc::new(service)))
            .with_graceful_shutdown(async move {
                let _ = stop.wait_for(Option::is_some).await;
            })
            .into_future(),
    );
    info!("serving https://{address}");

    let heartbeat = Heartbeat {
        callback_url: format!("https://{address}"),
        agent_token: Some(token),
        agent_version: Some(AGENT_VERSION.to_owned()),
        agent_verify_ca: Some(certificate.pem),
        agent_status: None,
        agent_status_message: None,
    };
    let beat = send_heartbeats(conductor, node, &heartbeat, rhythm, &commands);
    let ending = tokio::select! {
        never = beat => never,
        ending = ended.wait_for(Option::is_some) => ending.ok().and_then(|ending| *ending),
    };
    let _ = timeout(SHUTDOWN_GRACE, server).await;
    Ok(ending.unwrap_or(Ending::PowerOff))
}

/// Waits until the conductor answers: its network may come up later than this machine.
async fn wait_for_conductor(conductor: &mut Conductor) -> Result<()> {
    let end = Instant::now() + LOOKUP_TIMEOUT;
    let mut pause = Duration::from_secs(1);
    loop {
        match conductor.negotiate().await {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() + pause < end => {
                warn!("{}; trying again in {} s", chain(&error), pause.as_secs());
            }
            Err(error) => return Err(error).context("cannot find the conductor"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(30));
    }
}

/// The data in the conductor's answer to an inventory.
struct InspectionReply {
    node: Option<String>,
    answer: Option<LookupAnswer>,
}

/// Takes the inventory and posts it to the conductor.
async fn report(
    machine: &Arc<Machine>,
    conductor: &Conductor,
    callback: &str,
) -> Result<InspectionReply> {
    let collected = machine.clone();
    let data = tokio::task::spawn_blocking(move || collect(&collected)).await?;
    let mut tries = 1;
    loop {
        match conductor.inspected(callback, &data).await {
            Ok(body) => {
                info!("the conductor has the inventory");
                let node = body.get("uuid").and_then(|uuid| uuid.as_str()).map(str::to_owned);
                return Ok(InspectionReply { node, answer: serde_json::from_value(body).ok() });
            }
            Err(error) if error.is_transient() && tries < INSPECTION_TRIES => {
                warn!("{}; trying again", chain(&error));
            }
            Err(error) => return Err(error).context("the conductor did not take the inventory"),
        }
        sleep(Duration::from_secs(2)).await;
        tries += 1;
    }
}

fn collect(machine: &Machine) -> InspectionData {
    let parameters = &machine.parameters;
    let mut data = inventory::inspect(&machine.root, parameters.boot_interface);
    let asked = |name: &str| parameters.inspection_collectors.iter().any(|asked| asked == name);
    if (asked("lldp") || parameters.collect_lldp) && machine.root.is_this_machine() {
        lldp::listen(&machine.root, &mut data.inventory.interfaces, LLDP_PATIENCE);
        data.configuration.collectors.push("lldp".to_owned());
    }
    let hints = machine.hints(&serde_json::Map::new());
    match hints::choose(&data.inventory.disks, &hints, machine.least_mib()) {
        Ok(disk) => data.root_disk = Some(disk.clone()),
        Err(error) => info!("no root disk: {error}"),
    }
    if asked("logs") {
        data.logs = machine.logs.collect().ok();
        data.configuration.collectors.push("logs".to_owned());
    }
    data
}

/// Asks the conductor for the node of this machine, with growing pauses between the tries.
async fn find_node(
    machine: &Machine,
    conductor: &Conductor,
    node: Option<&str>,
) -> Result<LookupAnswer> {
    let interfaces = inventory::interfaces(&machine.root);
    let addresses: Vec<String> = interfaces.into_iter().filter_map(|i| i.mac_address).collect();
    let end = Instant::now() + LOOKUP_TIMEOUT;
    let mut pause = Duration::from_secs(1);
    loop {
        match conductor.lookup(&addresses, node).await {
            Ok(answer) => return Ok(answer),
            Err(error @ (ConductorError::Address { .. } | ConductorError::Client(_))) => {
                return Err(error.into());
            }
            Err(error) if Instant::now() + pause < end => warn!("{}", chain(&error)),
            Err(error) => return Err(error).context("the conductor does not know this machine"),
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(Duration::from_secs(30));
    }
}

/// Returns the secret of this boot: from the kernel's command line, or from lookup if the command line has none.
fn token(parameters: &KernelParameters, answer: &LookupAnswer) -> Result<String> {
    let handed_out = answer.config.agent_token.clone().filter(|token| token != WITHHELD);
    match parameters.agent_token.clone().or(handed_out) {
        Some(token) if !token.is_empty() => Ok(token),
        Some(_) | None => {
            bail!("the conductor has handed out this boot's token already; restart the machine")
        }
    }
}

/// Listens at the configured address, or at the local address from which the conductor is reached.
async fn bind(
    listen: Option<SocketAddr>,
    parameters: &KernelParameters,
    conductor: &Conductor,
) -> Result<TcpListener> {
    let port = parameters.listen_port.unwrap_or(DEFAULT_PORT);
    let address = match listen {
        Some(address) if !address.ip().is_unspecified() => address,
        Some(address) => SocketAddr::new(own_address(conductor).await?, address.port()),
        None => SocketAddr::new(own_address(conductor).await?, port),
    };
    TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))
}

/// Finds the local address from which the conductor is reached. Connecting a UDP socket sends nothing, and makes the kernel choose the
/// route.
async fn own_address(conductor: &Conductor) -> Result<IpAddr> {
    let target = conductor.host_and_port().context("the conductor's address has no host")?;
    let mut targets = lookup_host(target).await.context("cannot resolve the conductor's name")?;
    let target = targets.next().context("the conductor's name has no address")?;
    let any: SocketAddr = if target.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(target).await.context("no route to the conductor")?;
    Ok(socket.local_addr()?.ip())
}
