//! Looks for BMCs in the configured address ranges and at the addresses that the service leased to BMCs, and proposes those that belong to
//! no node. Asks without credentials.

use std::net::{IpAddr, SocketAddr};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use baremetal_core::{BmcAnswer, FoundBmc, IpmiAnswer, RedfishAnswer, crawl_targets};
use baremetal_store::StoreError;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use url::Url;

use crate::context::TurnContext;
use crate::problem::chain;
use crate::settings::CrawlSettings;

/// The name of this task, which one of the living conductors does.
const TASK: &str = "crawl";

/// How many addresses are asked in parallel.
const AT_ONCE: usize = 64;

/// How long a BMC may take to answer a probe.
const PATIENCE: Duration = Duration::from_secs(5);

/// Crawls until `stop` is cancelled, if a crawl is configured.
pub(crate) async fn run(context: Arc<TurnContext>, stop: CancellationToken) {
    let Some(settings) = context.settings.crawl.clone() else {
        return stop.cancelled().await;
    };
    let mut due = interval(settings.every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = due.tick() => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = context.membership.gets_task(TASK) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            crawled = crawl(&context, &settings) => if let Err(error) = crawled {
                warn!(error = chain(&error), "the BMCs that were found cannot be recorded");
            }
        }
    }
}

/// Asks every address once.
async fn crawl(context: &Arc<TurnContext>, settings: &CrawlSettings) -> Result<(), StoreError> {
    let leased = match &context.settings.bmc_leases {
        Some(leases) => context.store.leased_addresses(&leases.pool, context.now()).await?,
        None => Vec::new(),
    };
    let targets = crawl_targets(&settings.ranges, &leased, &context.settings.bmc.allowed);
    debug!("looking for BMCs at {} addresses", targets.len());
    let mut pace = interval(Duration::from_secs(1) / settings.per_second.max(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut probes = JoinSet::new();
    for target in targets {
        pace.tick().await;
        while probes.len() >= AT_ONCE {
            join(context, &mut probes).await?;
        }
        probes.spawn(probe(context.clone(), settings.clone(), target));
    }
    while !probes.is_empty() {
        join(context, &mut probes).await?;
    }
    Ok(())
}

/// Waits for the next answer, and records it.
async fn join(
    context: &TurnContext,
    probes: &mut JoinSet<Option<FoundBmc>>,
) -> Result<(), StoreError> {
    match probes.join_next().await {
        Some(Ok(Some(found))) => record(context, &found).await,
        // A panic ends the process, as everywhere.
        Some(Err(panicked)) => resume_unwind(panicked.into_panic()),
        Some(Ok(None)) | None => Ok(()),
    }
}

/// Records a BMC that belongs to no node, and removes the proposal of one that does.
async fn record(context: &TurnContext, found: &FoundBmc) -> Result<(), StoreError> {
    let store = &context.store;
    let mut is_known = false;
    for identity in found.identities() {
        is_known |= store.find_bmc_node(&identity).await?.is_some();
    }
    let kept = usize::from(!is_known);
    for id in found.ids().into_iter().skip(kept) {
        store.delete_discovery(id).await?;
    }
    if is_known {
        return Ok(());
    }
    let Some(proposal) = found.proposal(context.now()) else { return Ok(()) };
    if store.find_discovery(proposal.id).await?.is_none() {
        info!("found a BMC at {} that belongs to no node", proposal.id);
    }
    store.save_discovery(&proposal).await
}

/// Asks one address for Redfish and for IPMI.
async fn probe(
    context: Arc<TurnContext>,
    settings: CrawlSettings,
    address: IpAddr,
) -> Option<FoundBmc> {
    let ipmi_at = SocketAddr::new(address, settings.ipmi_port);
    let (redfish, ipmi) =
        tokio::join!(redfish(&context, &settings, address), ipmi::answers_ping(ipmi_at, PATIENCE));
    let ipmi = ipmi.unwrap_or(false).then_some(ipmi_at);
    if redfish.is_none() && ipmi.is_none() {
        return None;
    }
    let (redfish, answer) = redfish.unzip();
    let port = settings.ipmi_port;
    let ipmi_answer = ipmi.map(|at| IpmiAnswer { address: at.ip().to_string(), port });
    Some(FoundBmc { answer: BmcAnswer { redfish: answer, ipmi: ipmi_answer }, redfish, ipmi })
}

/// Asks the ports for a Redfish service, one after another.
async fn redfish(
    context: &TurnContext,
    settings: &CrawlSettings,
    address: IpAddr,
) -> Option<(SocketAddr, RedfishAnswer)> {
    for port in &settings.redfish_ports {
        let at = SocketAddr::new(address, *port);
        let Ok(url) = Url::parse(&format!("https://{at}")) else { continue };
        if let Ok(Some(root)) = context.bmcs.probe_redfish(&url, PATIENCE).await {
            let answer = RedfishAnswer {
                address: url.as_str().trim_end_matches('/').to_owned(),
                version: Some(root.version),
                vendor: root.vendor,
                product: root.product,
                uuid: root.uuid,
            };
            return Some((at, answer));
        }
    }
    None
}
