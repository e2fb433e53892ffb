//! Starts and stops baremetald.

use std::fs::{self, File};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api_client::Credentials;
use baremetal_api::{App, Reservations};
use baremetal_conductor::{
    BmcDirectory, BmcSettings, ClusterdClient, Conductor, ConsoleSettings, Leases, LendingSettings,
    NameSettings, ServiceKey, Settings, SweepSettings,
};
use baremetal_core::Timeouts;
use baremetal_store::{AddressPool, Store, Tripwire};
use daemon::{ApiListener, MetricsListener};
use hardware::AllowedHosts;
use jiff::Timestamp;
use metrics::WebhookMetrics;
use notices::{EventSender, OutboxSender, ReceiverKinds, SendersError};
use openstack::{CallObserver, Session};
use openstack_api::{ApiSettings, Auth, PlaceCounts};
use otlp::Exporter;
use pxe::{Mode, Prober, RouterAdvertisementConfig, TftpConfig, TftpFiles};
use sealing::Keyring;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::Config;
use crate::config::{
    BmcDhcpConfig, CloudConfig, ClusterdConfig, ClusterdIdentityConfig, ConductorConfig,
    DhcpConfig, DhcpMode, DhcpV4Config, DhcpV6Config, ProvisioningConfig, TimeoutsConfig,
};
use crate::console_owner;
use crate::provisioning::{self, Downloads, Files, IsoTemplate, Provisioning, RamdiskFiles};
use crate::provisioning_sockets::{ProvisioningSockets, certificate};
use crate::service_metrics::{self, ServiceMetrics};
use crate::undelivered::HistoryOfUndelivered;

/// How long a BMC keeps its address after its last DHCP request. Nodes name their BMCs by address, so a BMC that was away for a while must
/// not find its address in use by another one.
const KEEP_BMC_ADDRESS: Duration = Duration::from_hours(24 * 30);

/// A service whose listeners are open, before it serves.
pub struct Service {
    conductor: Conductor,
    /// Delivers notices outside of the API, and notifications.
    notices: (OutboxSender, EventSender),
    store: Store,
    api: (ApiListener, axum::Router),
    metrics: (ServiceMetrics, Option<MetricsListener>),
    provisioning: Option<(ProvisioningSockets, Provisioning)>,
    /// Network boot runs until this value is dropped.
    _boot: Option<pxe::Running>,
    /// BMCs get addresses until this value is dropped.
    bmc_addresses: Option<pxe::Running>,
    listeners: Listeners,
    /// No other process uses the database, or the state folder, until this value is dropped.
    _lock: Option<File>,
}

/// The addresses of the service's listeners, as written to `listeners.json` in the state folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listeners {
    pub api: SocketAddr,
    pub provisioning: Option<SocketAddr>,
    /// The listener from which firmware loads iPXE by HTTPS.
    #[serde(default)]
    pub https: Option<SocketAddr>,
    pub dhcp: Option<SocketAddr>,
    pub tftp: Option<SocketAddr>,
    /// DHCP on the network of BMCs.
    pub bmc_dhcp: Option<SocketAddr>,
    #[serde(default)]
    pub metrics: Option<SocketAddr>,
}

impl Listeners {
    fn of_api(api: SocketAddr) -> Self {
        Listeners {
            api,
            provisioning: None,
            https: None,
            dhcp: None,
            tftp: None,
            bmc_dhcp: None,
            metrics: None,
        }
    }
}

impl Service {
    /// Opens the store and all listeners.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        Service::start_with(config, Tripwire::default()).await
    }

    /// Like [`Service::start`], with the tripwire of a crash test at every effect.
    pub async fn start_with(config: Config, tripwire: Tripwire) -> anyhow::Result<Self> {
        daemon::create_private_folder(&config.state_dir).with_context(|| {
            format!("cannot make the state folder {}", config.state_dir.display())
        })?;
        let auth = config.api.authentication()?;
        let url = config.database_url().context("cannot read database.url_file")?;
        let lock = daemon::lock_state("baremetald", Store::file(&url), &config.state_dir).await?;
        let metrics = ServiceMetrics::new(&config)?;
        let store = open_store(&config, tripwire, &metrics).await?;
        let key =
            service_key(&config.key_file()).context("cannot read or make the service's key")?;

        let provisioning = match &config.provisioning {
            Some(section) => Some((section, ProvisioningSockets::open(section).await?)),
            None => None,
        };
        let sockets = provisioning.as_ref().map(|(_, sockets)| sockets);
        let senders = senders(&config, metrics.webhooks.clone())?;
        let scraped = MetricsListener::open(config.metrics).await?;
        let instance = daemon::instance_name(lock.as_ref());
        let settings = settings(&config, sockets, senders.0.addressees(), instance, &metrics)?;
        let conductor = Conductor::new(settings, store.clone(), key).await?;
        let api = config.api.open().await?;

        let mut listeners = Listeners::of_api(api.address);
        listeners.metrics = scraped.as_ref().map(|listener| listener.address);
        let app = app(&config, auth, &store, &conductor, &metrics);
        let router = console_owner::wrap(app, &config.conductor)?;
        let mut service = Service {
            conductor: conductor.clone(),
            notices: senders,
            store,
            api: (api, router),
            metrics: (metrics, scraped),
            provisioning: None,
            _boot: None,
            bmc_addresses: bmc_addresses(&config, &conductor).await?,
            listeners: listeners.clone(),
            _lock: lock,
        };
        if let Some((section, sockets)) = provisioning {
            let files = Arc::new(files(section)?);
            listeners.provisioning = sockets.address();
            listeners.https = sockets.https_address();
            let routes = Provisioning { conductor: conductor.clone(), files };
            let boot = pxe::start(network_boot(section)?, Arc::new(conductor))
                .await
                .context("cannot start network boot")?;
            (listeners.dhcp, listeners.tftp) = (boot.dhcp.or(boot.dhcp_v6), boot.tftp);
            service.provisioning = Some((sockets, routes));
            service._boot = Some(boot);
        }
        listeners.bmc_dhcp = service.bmc_addresses.as_ref().and_then(|running| running.dhcp);
        service.listeners = listeners;
        daemon::write_listeners(&config.state_dir, &service.listeners)
            .context("cannot write listeners.json")?;
        Ok(service)
    }

    /// Returns the addresses of the service's listeners.
    pub fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Serves until `stop` is cancelled or an essential part fails.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let at = &self.listeners;
        info!(api = %at.api, provisioning = ?at.provisioning, dhcp = ?at.dhcp, tftp = ?at.tftp, "serving the Bare Metal API on {}", at.api);
        let mut tasks: JoinSet<anyhow::Result<()>> = JoinSet::new();
        let (listener, router) = self.api;
        let serving = listener.serve(router, stop.clone());
        tasks.spawn(async move { serving.await.context("a listener failed") });
        let (mut metrics, scraped) = self.metrics;
        let exporting = metrics.exporter.take().map(Exporter::start);
        if let Some(listener) = scraped {
            info!("serving metrics on {}", listener.address);
            let (page, counts) = metrics.serving(self.store.clone());
            let serving = listener.serve(page, counts, stop.clone());
            tasks.spawn(async move { serving.await.context("the listener of metrics failed") });
        }
        if let Some((sockets, routes)) = self.provisioning {
            let loaders = provisioning::loaders(routes.clone());
            sockets.serve(provisioning::router(routes), loaders, &mut tasks, &stop);
        }
        let conductor = self.conductor.clone();
        let may_send = move || conductor.has_task("notices");
        let conductor = self.conductor.clone();
        let given_up = HistoryOfUndelivered { store: self.store.clone(), conductor };
        let (notices, events) = self.notices;
        let notices = notices.run(self.store.outbox(), given_up, stop.clone());
        let events = events.run(self.store.webhook_outbox(), may_send, stop.clone());
        tasks.spawn(async move {
            tokio::join!(notices, events);
            Ok(())
        });
        let working = self.conductor.run(stop.clone());
        tasks.spawn(async move { working.await.context("the conductor stopped") });

        let outcome = daemon::stop_together(tasks, &stop).await;
        self.store.trail().flush().await;
        if let Some(exporting) = exporting {
            exporting.end().await;
        }
        outcome
    }
}

/// Checks the files that the configuration names: passwords, certificates, clouds.yaml, the key file, the whole database file. Creates
/// nothing, and contacts no other service.
pub async fn check(config: &Config) -> anyhow::Result<()> {
    config.api.check()?;
    let url = config.database_url().context("cannot read database.url_file")?;
    Store::check(&url).await.context("cannot open the database")?;
    Keyring::check_file(&config.seal_keys_file())
        .context("cannot use the sealing keys (seal_keys)")?;
    senders(config, WebhookMetrics::default())?;
    service_metrics::check_traces(config)?;
    let https = config.provisioning.as_ref().and_then(|it| it.https.as_ref());
    https.map(certificate).transpose()?;
    authorities(config)?;
    config.auto_discovery.settings(&config.bmc.credentials)?;
    config.bmc.crawl_settings()?;
    config.sensor_settings()?;
    names(config)?;
    config.cloud.as_ref().map(|it| cloud(it, CallObserver::default())).transpose()?;
    config.clusters.as_ref().map(clusters).transpose()?;
    Ok(())
}

/// Reads the service's key, which is created on the first start.
fn service_key(file: &Path) -> anyhow::Result<ServiceKey> {
    let make = || anyhow::Ok(ServiceKey::random().bytes().to_vec());
    let bytes = <[u8; 32]>::try_from(daemon::read_or_create(file, make)?);
    let bytes =
        bytes.ok().with_context(|| format!("{} does not contain 32 bytes", file.display()))?;
    Ok(ServiceKey::new(bytes))
}

/// Makes the senders of notices and of notifications.
fn senders(
    config: &Config,
    sent: WebhookMetrics,
) -> Result<(OutboxSender, EventSender), SendersError> {
    notices::senders(&config.notices, &config.events, sent, Timestamp::now)
}

/// Opens the store, and the keys that seal its secrets.
async fn open_store(
    config: &Config,
    tripwire: Tripwire,
    metrics: &ServiceMetrics,
) -> anyhow::Result<Store> {
    let url = config.database_url().context("cannot read database.url_file")?;
    let opened =
        Store::open_with(&url, config.database.timeout, tripwire, metrics.writes.clone()).await;
    let store = opened.context("cannot open the database")?;
    let known = store.known_keys().await.context("cannot read the database")?;
    let keys = Keyring::open(&config.seal_keys_file(), &known)
        .context("cannot use the sealing keys (seal_keys)")?;
    let store = store.with_shared_bmcs(config.bmc.shared.into());
    let store = store.with_state_metrics(metrics.states.clone());
    let source = format!("/baremetald/{}", config.hostname());
    let store = store.with_subscriptions(config.events.subscriptions(source));
    store.with_keys(Arc::new(keys)).await.context("cannot seal the stored secrets")
}

fn app(
    config: &Config,
    auth: Auth,
    store: &Store,
    conductor: &Conductor,
    metrics: &ServiceMetrics,
) -> App {
    App {
        store: store.clone(),
        conductor: conductor.clone(),
        clock: baremetal_conductor::now,
        auth,
        lookers: PlaceCounts::default(),
        settings: api_settings(config, metrics),
    }
}

fn api_settings(config: &Config, metrics: &ServiceMetrics) -> baremetal_api::Settings {
    let (requests, tracer) = (metrics.requests.clone(), metrics.tracer.clone());
    baremetal_api::Settings {
        api: ApiSettings { requests, tracer, ..config.api.settings() },
        power_timeout: config.timeouts.power.unsigned_abs(),
        consoles_each: config.consoles.viewed_by_one,
        novnc_url: config.consoles.novnc_url.clone(),
        allocations_each: config.allocations.per_project,
        reservations: Reservations {
            nodes_per_project: config.reservations.nodes_per_project,
            lease: config.leases.nodes,
        },
        serves_agents: config.agents.on_api_listener,
    }
}

fn timeouts(times: &TimeoutsConfig) -> Timeouts {
    Timeouts {
        bmc: times.bmc.unsigned_abs(),
        power: times.power.unsigned_abs(),
        ask_again: times.ask_again.unsigned_abs(),
        boot: times.boot.unsigned_abs(),
        command: times.command.unsigned_abs(),
        firmware: times.firmware.unsigned_abs(),
        silence: times.silence.unsigned_abs(),
        poll_every: times.poll_every.unsigned_abs(),
    }
}

fn sweep(conductor: &ConductorConfig) -> SweepSettings {
    SweepSettings {
        every: conductor.power_sync_every.unsigned_abs(),
        at_once: conductor.power_sync_at_once.get(),
        max_retries: conductor.power_sync_max_retries,
    }
}

fn bmc_settings(config: &Config) -> anyhow::Result<BmcSettings> {
    Ok(BmcSettings {
        request_timeout: config.bmc.request_timeout.unsigned_abs(),
        requests_per_second: config.bmc.requests_per_second,
        burst: config.bmc.burst,
        allow_unverified: config.bmc.allow_unverified,
        authorities: authorities(config)?,
        allowed: AllowedHosts::within(config.bmc.networks.clone()),
        event_hosts: AllowedHosts::new(config.bmc.event_hosts.clone()),
    })
}

fn settings(
    config: &Config,
    sockets: Option<&ProvisioningSockets>,
    addressees: ReceiverKinds,
    instance: String,
    metrics: &ServiceMetrics,
) -> anyhow::Result<Settings> {
    let provisioning = config.provisioning.as_ref();
    let dhcp = provisioning.and_then(|it| it.dhcp.as_ref());
    Ok(Settings {
        hostname: config.hostname(),
        instance,
        peer_url: config.conductor.peer_url.clone(),
        groups: config.conductor.groups.0.clone(),
        workers: config.conductor.workers.get(),
        timeouts: timeouts(&config.timeouts),
        step_priorities: config.steps.priorities(),
        bmc: bmc_settings(config)?,
        image_hosts: AllowedHosts::new(config.images.hosts.clone()),
        image_folder: provisioning.and_then(|section| section.images.clone()),
        pull_secret_registries: config.images.pull_secret_registries.clone(),
        sweep: sweep(&config.conductor),
        sensors: config.sensor_settings()?,
        fast_track: config.conductor.fast_track,
        bootloader_install: config.agents.enable_bios_bootloader_install,
        look_every: config.conductor.look_every.unsigned_abs(),
        consoles: ConsoleSettings {
            viewers_per_node: config.consoles.viewers_per_node.get(),
            sessions: config.consoles.sessions.get(),
            linger: config.consoles.linger.unsigned_abs(),
        },
        lending: LendingSettings {
            schedule: config.leases.schedule.clone().without_snapshot(),
            addressees,
        },
        cloud: config.cloud.as_ref().map(|it| cloud(it, metrics.cloud_observer())).transpose()?,
        networks: config.cloud.as_ref().map(|it| it.networks.settings()).unwrap_or_default(),
        names: names(config)?,
        clusters: config.clusters.as_ref().map(clusters).transpose()?,
        provisioning_url: sockets.map(|sockets| sockets.url.clone()),
        https_url: sockets.and_then(ProvisioningSockets::https_url),
        architectures: provisioning.map(ProvisioningConfig::architectures).unwrap_or_default(),
        media: provisioning.map(ProvisioningConfig::media).unwrap_or_default(),
        leases: dhcp.and_then(leases),
        bmc_leases: config.bmc.dhcp.as_ref().and_then(|dhcp| v4_leases(&dhcp.0, KEEP_BMC_ADDRESS)),
        unknown_machines: provisioning.map(|section| section.unknown_machines).unwrap_or_default(),
        discovery: config.auto_discovery.settings(&config.bmc.credentials)?,
        crawl: config.bmc.crawl_settings()?,
        kernel_parameters: provisioning.map(|it| it.kernel_parameters()).unwrap_or_default(),
        heartbeat_timeout: provisioning
            .map_or(Duration::from_secs(60), |section| section.heartbeat_timeout.unsigned_abs()),
        metrics: metrics.conductor.clone(),
        tracer: metrics.tracer.clone(),
        clock: baremetal_conductor::now,
    })
}

/// Reads the certificate authorities of BMCs.
fn authorities(config: &Config) -> anyhow::Result<Vec<u8>> {
    let Some(file) = &config.bmc.ca_file else { return Ok(Vec::new()) };
    fs::read(file).with_context(|| format!("cannot read {} (bmc.ca_file)", file.display()))
}

/// Starts DHCP on the network of BMCs.
async fn bmc_addresses(
    config: &Config,
    conductor: &Conductor,
) -> anyhow::Result<Option<pxe::Running>> {
    let Some(BmcDhcpConfig(dhcp)) = &config.bmc.dhcp else { return Ok(None) };
    let only_dhcp = pxe::Config { dhcp: Some(dhcp_v4(dhcp)), ..pxe::Config::default() };
    let running = pxe::start(only_dhcp, Arc::new(BmcDirectory(conductor.clone()))).await;
    running.map(Some).context("cannot start DHCP for BMCs (bmc.dhcp)")
}

/// Returns the addresses that machines are leased, or `None` if another server leases them.
fn leases(dhcp: &DhcpConfig) -> Option<Leases> {
    match dhcp {
        DhcpConfig::V4(dhcp) => v4_leases(dhcp, dhcp.lease_time),
        DhcpConfig::V6(dhcp) => Some(v6_leases(dhcp)),
    }
}

/// Returns the addresses that DHCP leases, or `None` if another server leases them. A client that nobody has enrolled keeps its address for
/// `kept` after its last request.
fn v4_leases(dhcp: &DhcpV4Config, kept: Duration) -> Option<Leases> {
    let DhcpMode::Full { first, last } = dhcp.mode else { return None };
    let dns: Vec<IpAddr> = dhcp.dns.iter().copied().map(IpAddr::from).collect();
    let router = dhcp.router.map(IpAddr::from);
    let used = [IpAddr::from(dhcp.server)].into_iter().chain(router);
    let pool = AddressPool {
        first: first.into(),
        last: last.into(),
        reserved: used.chain(dns.iter().copied()).collect(),
        stranger_lease_time: kept,
    };
    let prefix = dhcp.network.prefix_len();
    Some(Leases { pool, prober: Prober::new(&dhcp.listen), prefix, router, dns })
}

fn v6_leases(dhcp: &DhcpV6Config) -> Leases {
    let dns: Vec<IpAddr> = dhcp.dns.iter().copied().map(IpAddr::from).collect();
    let used = [IpAddr::from(dhcp.server)].into_iter();
    let pool = AddressPool {
        first: dhcp.first.into(),
        last: dhcp.last.into(),
        reserved: used.chain(dns.iter().copied()).collect(),
        stranger_lease_time: dhcp.lease_time,
    };
    let prefix = dhcp.network.prefix_len();
    Leases { pool, prober: Prober::new(&dhcp.listen), prefix, router: None, dns }
}

/// Returns the settings of the names of machines, whose addresses this service has to lease.
fn names(config: &Config) -> anyhow::Result<Option<NameSettings>> {
    let Some(dns) = config.cloud.as_ref().and_then(|it| it.dns.as_ref()) else { return Ok(None) };
    let dhcp = config.provisioning.as_ref().and_then(|it| it.dhcp.as_ref());
    let leases_any =
        matches!(dhcp, Some(DhcpConfig::V4(DhcpV4Config { mode: DhcpMode::Full { .. }, .. })));
    anyhow::ensure!(
        leases_any,
        "cloud.dns: needs provisioning.dhcp.range with IPv4, because names lead to leased addresses"
    );
    Ok(Some(dns.settings()))
}

/// Makes the session in the OpenStack that machines join.
fn cloud(section: &CloudConfig, observer: CallObserver) -> anyhow::Result<Session> {
    session(&section.clouds_yaml, section.name.as_deref(), "cloud.clouds_yaml", observer)
}

/// Makes the client of clusterd, without contacting clusterd.
fn clusters(section: &ClusterdConfig) -> anyhow::Result<ClusterdClient> {
    let caller = match &section.caller {
        ClusterdIdentityConfig::Anonymous => Credentials::Anonymous,
        ClusterdIdentityConfig::Basic(user, file) => {
            let text = fs::read_to_string(file).with_context(|| {
                format!("cannot read {} (clusters.password_file)", file.display())
            })?;
            let password = text.lines().next().unwrap_or_default();
            Credentials::Password(user.clone(), password.into())
        }
        ClusterdIdentityConfig::Keystone(file, name) => {
            let (key, observer) = ("clusters.clouds_yaml", CallObserver::default());
            Credentials::Keystone(session(file, name.as_deref(), key, observer)?)
        }
    };
    Ok(ClusterdClient::new(section.url.clone(), caller))
}

/// Makes a session with the credentials that the configuration's `key` names, without contacting the cloud.
fn session(
    file: &Path,
    name: Option<&str>,
    key: &str,
    observer: CallObserver,
) -> anyhow::Result<Session> {
    let shown = file.display();
    let read = openstack::CloudConfig::read(file, name);
    let config = read.with_context(|| format!("cannot use {shown} ({key})"))?;
    Session::observed(config, observer)
        .with_context(|| format!("cannot use the cloud in {shown} ({key})"))
}

fn files(section: &ProvisioningConfig) -> anyhow::Result<Files> {
    let (kernel, ramdisk) = (section.kernel.clone(), section.ramdisk.clone());
    let of_arm = section.aarch64.as_ref();
    let iso_of_arm = of_arm.and_then(|files| files.iso.as_deref());
    Ok(Files {
        ramdisk: RamdiskFiles { kernel, ramdisk },
        ramdisk_of_arm: of_arm.map(|files| RamdiskFiles {
            kernel: files.kernel.clone(),
            ramdisk: files.ramdisk.clone(),
        }),
        iso: iso(section.iso.as_deref(), "provisioning.iso")?,
        iso_of_arm: iso(iso_of_arm, "provisioning.aarch64.iso")?,
        loaders: section.loader_files(),
        images: section.images.clone(),
        downloads: Downloads::default(),
    })
}

/// Opens the template of the virtual CD that the configuration's `key` names.
fn iso(file: Option<&Path>, key: &str) -> anyhow::Result<Option<IsoTemplate>> {
    let opened = file.map(|file| {
        IsoTemplate::open(file).with_context(|| format!("cannot use {} ({key})", file.display()))
    });
    opened.transpose()
}

fn network_boot(section: &ProvisioningConfig) -> anyhow::Result<pxe::Config> {
    let (dhcp, dhcp_v6) = match &section.dhcp {
        Some(DhcpConfig::V4(dhcp)) => (Some(dhcp_v4(dhcp)), None),
        Some(DhcpConfig::V6(dhcp)) => (None, Some(dhcp)),
        None => (None, None),
    };
    let tftp = section.tftp.map(|listen| {
        let mut files = TftpFiles::new();
        for (loader, path) in section.loader_files() {
            files.load(loader.file_name(), &path).with_context(|| {
                format!(
                    "cannot read {}: install Debian's package ipxe, or set provisioning.loaders",
                    path.display()
                )
            })?;
        }
        anyhow::Ok(TftpConfig { listen, files, sessions: 1024, limits: tftp::Limits::default() })
    });
    let router_advertisements = section.router_advertisements.clone().map(|interface| {
        RouterAdvertisementConfig { interface, managed: dhcp_v6.map(|it| it.network) }
    });
    let dhcp_v6 = dhcp_v6.map(|dhcp| pxe::DhcpV6Config {
        listen: dhcp.listen.clone(),
        subnet: dhcp.network,
        dns: dhcp.dns.clone(),
        lease_time: dhcp.lease_time,
    });
    Ok(pxe::Config { dhcp, dhcp_v6, tftp: tftp.transpose()?, router_advertisements })
}

fn dhcp_v4(dhcp: &DhcpV4Config) -> pxe::DhcpConfig {
    pxe::DhcpConfig {
        listen: dhcp.listen.clone(),
        mode: match dhcp.mode {
            DhcpMode::Full { .. } => Mode::Full,
            DhcpMode::Proxy => Mode::Proxy,
        },
        subnet: dhcp.network,
        router: dhcp.router,
        dns: dhcp.dns.clone(),
        domain: dhcp.domain.clone(),
        lease_time: dhcp.lease_time,
        tftp_server: None,
    }
}
