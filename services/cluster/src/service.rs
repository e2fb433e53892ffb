//! Start and stop of clusterd.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use cluster_api::{App, Streams};
use cluster_conductor::{BackupPlace, Conductor, LendingSettings, MachineSettings, NodesListener};
use cluster_core::RepairLimits;
use cluster_store::{Store, Tripwire};
use daemon::{ApiListener, ConnectionLimits, MetricsListener};
use jiff::Timestamp;
use metrics::WebhookMetrics;
use notices::{EventSender, OutboxSender, SendersError};
use openstack::{CallObserver, CloudConfig, Session};
use openstack_api::{ApiSettings, AuthConfig};
use otlp::Exporter;
use sealing::Keyring;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::info;
use uuid::Uuid;

use crate::config::{CloudAccess, Tenancy};
use crate::service_metrics::{self, ServiceMetrics};
use crate::undelivered::UndeliveredAsEvent;
use crate::{Config, nodes};

/// A service that has opened its store and listeners, and does not serve yet.
pub struct Service {
    conductor: Conductor,
    store: Store,
    api: (ApiListener, axum::Router),
    metrics: (ServiceMetrics, Option<MetricsListener>),
    nodes: Option<NodesService>,
    streams: Streams,
    /// Delivers notices outside of the API, and notifications.
    notices: (OutboxSender, EventSender),
    listeners: Listeners,
    /// No other process uses the SQLite file, or the state folder, until this value is dropped.
    _lock: Option<File>,
}

/// The listener for members, and everything that serves on it.
type NodesService = (TcpListener, TlsAcceptor, axum::Router, ConnectionLimits);

/// The addresses of the listeners, written to `listeners.json` in the state folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listeners {
    pub api: SocketAddr,
    #[serde(default)]
    pub nodes: Option<SocketAddr>,
    #[serde(default)]
    pub metrics: Option<SocketAddr>,
}

impl Service {
    /// Opens the store and every listener.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        Service::start_with(config, Tripwire::default()).await
    }

    /// Like [`Service::start`], with the tripwire of a crash test at every write.
    pub async fn start_with(config: Config, tripwire: Tripwire) -> anyhow::Result<Self> {
        daemon::create_private_folder(&config.state_dir).with_context(|| {
            format!("cannot make the state folder {}", config.state_dir.display())
        })?;
        let auth = config.api.listener.authentication()?;
        let url = config.database_url().context("cannot read database.url_file")?;
        let lock = daemon::lock_state("clusterd", Store::file(&url), &config.state_dir).await?;
        let metrics = ServiceMetrics::new(&config)?;
        let (store, keys) = open_store(&config, &metrics, tripwire).await?;
        let notices = senders(&config, metrics.webhooks.clone())?;
        let certificate = certificate(&config)?;
        let of_nodes = certificate.as_ref().map(|(settings, _)| settings.clone());
        let instance = daemon::instance_name(lock.as_ref());
        let settings = conductor_settings(&config, instance, of_nodes, &notices.0, &metrics);
        let conductor = match cloud(&config, metrics.cloud_observer())? {
            Some((session, Tenancy::Own)) => {
                Conductor::of_tenants(settings, store.clone(), keys, session)
            }
            Some((session, Tenancy::Shared)) => {
                Conductor::new(settings, store.clone(), keys, Some(session))
            }
            None => Conductor::new(settings, store.clone(), keys, None),
        };
        let scraped = MetricsListener::open(config.metrics).await?;
        let streams =
            Streams::at_most(config.api.event_streams).for_each(config.api.event_streams_each);
        let app = App {
            store: store.clone(),
            conductor: conductor.clone(),
            clock: cluster_conductor::now,
            ids: Uuid::new_v4,
            auth,
            streams: streams.clone(),
            settings: api_settings(&config, &metrics),
        };
        let api = config.api.listener.open().await?;
        let nodes = open_nodes(&config, certificate, &conductor).await?;
        let of_nodes = nodes.as_ref().map(|(listener, ..)| listener.local_addr());
        let listeners = Listeners {
            api: api.address,
            nodes: of_nodes.transpose().context("the listener for members has no address")?,
            metrics: scraped.as_ref().map(|listener| listener.address),
        };
        daemon::write_listeners(&config.state_dir, &listeners)
            .context("cannot write listeners.json")?;
        let api = (api, cluster_api::router(app));
        Ok(Service {
            conductor,
            store,
            api,
            metrics: (metrics, scraped),
            nodes,
            streams,
            notices,
            listeners,
            _lock: lock,
        })
    }

    /// Returns the addresses of the listeners.
    pub fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Serves until `stop` is cancelled or a part of the service fails.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let at = &self.listeners;
        info!(api = %at.api, "serving the Container Infra API on {}", at.api);
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
        let (streams, ending) = (self.streams, stop.clone());
        tasks.spawn(async move {
            // The service waits for requests in progress, and event streams would never end by themselves.
            ending.cancelled().await;
            streams.end();
            Ok(())
        });
        if let Some((listener, tls, router, connections)) = self.nodes {
            info!("serving members");
            let serving = daemon::serve_tls(listener, tls, router, connections, stop.clone());
            tasks.spawn(async move { serving.await.context("the listener for members failed") });
        }
        let conductor = self.conductor.clone();
        let may_send = move || conductor.has_task("notices");
        let conductor = self.conductor.clone();
        let given_up = UndeliveredAsEvent { store: self.store.clone(), conductor };
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

/// Checks the files that a configuration names: passwords, clouds.yaml, certificates, the key file, the whole database file.
/// Creates nothing and connects to nothing.
pub async fn check(config: &Config) -> anyhow::Result<()> {
    config.api.listener.check()?;
    let url = config.database_url().context("cannot read database.url_file")?;
    Store::check(&url).await.context("cannot open the database")?;
    Keyring::check_file(&config.seal_keys_file())
        .context("cannot use the sealing keys (seal_keys)")?;
    cloud(config, CallObserver::default())?;
    senders(config, WebhookMetrics::default())?;
    service_metrics::check_traces(config)?;
    let files = config.nodes.as_ref().and_then(|nodes| nodes.certificate.as_ref());
    files.map(nodes::read_certificate).transpose().context(NO_CERTIFICATE)?;
    Ok(())
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
    metrics: &ServiceMetrics,
    tripwire: Tripwire,
) -> anyhow::Result<(Store, Arc<Keyring>)> {
    let url = config.database_url().context("cannot read database.url_file")?;
    let opened = Store::open_with(&url, config.database.timeout, metrics.writes.clone()).await;
    let store = opened.context("cannot open the database")?.with_tripwire(tripwire);
    let known = store.known_keys().await.context("cannot read the database")?;
    let keys = Keyring::open(&config.seal_keys_file(), &known)
        .context("cannot use the sealing keys (seal_keys)")?;
    let keys = Arc::new(keys);
    let source = format!("/clusterd/{}", config.hostname());
    let store = store.with_subscriptions(config.events.subscriptions(source));
    let store = store.with_keys(keys.clone()).await.context("cannot use the sealing keys")?;
    Ok((store, keys))
}

/// Opens the listener for members, if one is configured.
async fn open_nodes(
    config: &Config,
    certificate: Option<(NodesListener, TlsAcceptor)>,
    conductor: &Conductor,
) -> anyhow::Result<Option<NodesService>> {
    let (Some(nodes), Some((_, tls))) = (&config.nodes, certificate) else { return Ok(None) };
    let listener = TcpListener::bind(nodes.listen)
        .await
        .with_context(|| format!("cannot listen on {} (nodes.listen)", nodes.listen))?;
    Ok(Some((listener, tls, nodes::router(conductor.clone()), nodes.connections)))
}

fn conductor_settings(
    config: &Config,
    instance: String,
    nodes: Option<NodesListener>,
    pump: &OutboxSender,
    metrics: &ServiceMetrics,
) -> cluster_conductor::Settings {
    cluster_conductor::Settings {
        hostname: config.hostname(),
        instance,
        workers: config.conductor.workers.get(),
        look_every: config.conductor.look_every.unsigned_abs(),
        repair: RepairLimits {
            not_ready_for: config.repair.not_ready_for,
            workers_at_once: config.repair.workers_at_once.get(),
            become_node_within: config.repair.become_node_within,
            ..RepairLimits::DEFAULT
        },
        machines: MachineSettings { kubernetes: config.kubernetes.0.clone(), nodes },
        lending: LendingSettings {
            schedule: config.leases.schedule.clone().without_snapshot(),
            addressees: pump.addressees(),
        },
        vms: config.machines.settings(),
        backups: config.backups.as_ref().map(|backups| backups.0.clone()),
        metrics: metrics.conductor.clone(),
        tracer: metrics.tracer.clone(),
        clock: cluster_conductor::now,
    }
}

fn api_settings(config: &Config, metrics: &ServiceMetrics) -> cluster_api::Settings {
    let (requests, tracer) = (metrics.requests.clone(), metrics.tracer.clone());
    cluster_api::Settings {
        api: ApiSettings { requests, tracer, ..config.api.listener.settings() },
        project: config.api.project.clone(),
        quotas: config.quotas.defaults(),
        leases: config.leases.clusters,
        schedule: config.leases.schedule.clone().without_snapshot(),
        machines: config.machines.lease_settings(),
    }
}

const NO_CERTIFICATE: &str = "cannot use the certificate of the listener for members (nodes)";

/// The settings of the listener for members, and its certificate.
fn certificate(config: &Config) -> anyhow::Result<Option<(NodesListener, TlsAcceptor)>> {
    let Some(nodes) = &config.nodes else { return Ok(None) };
    let made = nodes::certificate(nodes.certificate.as_ref(), &nodes.url, &config.state_dir)
        .context(NO_CERTIFICATE)?;
    let settings = NodesListener {
        url: nodes.url.clone(),
        authority: made.authority,
        source: nodes.source,
        claim_lasts: nodes.claim_lasts.unsigned_abs(),
    };
    Ok(Some((settings, made.tls)))
}

/// The session with the cloud, and the project in which clusters are created.
fn cloud(config: &Config, observer: CallObserver) -> anyhow::Result<Option<(Session, Tenancy)>> {
    let Some(access) = &config.cloud else {
        let place = config.backups.as_ref().map(|backups| &backups.0.place);
        if matches!(place, Some(BackupPlace::Container(_))) {
            bail!("backups.container: needs [cloud], because the container is in the cloud");
        }
        return Ok(None);
    };
    let session = session(access, observer)?;
    let knows_projects = matches!(config.api.listener.access, AuthConfig::Keystone(_));
    let is_bound = matches!(session.config().auth, openstack::Auth::ApplicationCredential { .. });
    let tenancy = match access.tenancy {
        Some(Tenancy::Own) if !knows_projects => {
            bail!(
                "cloud.tenancy: own needs api.auth = \"keystone\", because clusterd does not know the caller's project otherwise"
            )
        }
        Some(Tenancy::Own) if is_bound => {
            bail!(
                "cloud.tenancy: own needs a user with a password in {}, because an application credential is valid in one project only",
                access.clouds_yaml.display()
            )
        }
        Some(said) => said,
        None if knows_projects && !is_bound => Tenancy::Own,
        None => Tenancy::Shared,
    };
    Ok(Some((session, tenancy)))
}

/// The session with the cloud. Sends no request yet.
fn session(cloud: &CloudAccess, observer: CallObserver) -> anyhow::Result<Session> {
    let file = cloud.clouds_yaml.display();
    let read = CloudConfig::read(&cloud.clouds_yaml, cloud.name.as_deref());
    let mut config = read.with_context(|| format!("cannot use {file} (cloud.clouds_yaml)"))?;
    config.calls_at_once = cloud.calls_at_once.unwrap_or(config.calls_at_once);
    Session::observed(config, observer).with_context(|| format!("cannot use the cloud in {file}"))
}
