//! Maintains the names of machines in a DNS zone of the configured cloud: a node's name leads to the addresses that its ports have by DHCP.
//!
//! Nothing about a name is stored: each look compares the nodes with the zone, so a call that was not answered is found, and a name goes
//! after its node, whenever the service ran.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use baremetal_core::{NameChange, NodeName, SeenName, plan_names};
use baremetal_store::StoreError;
use openstack::dns::recordsets::{self, NewRecordset};
use openstack::dns::{DnsStatus, zones};
use openstack::{CloudError, Session};
use replicas::LeasePassed;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::context::TurnContext;
use crate::problem::chain;
use crate::secrets::Purpose;
use crate::settings::{Leases, NameSettings};

/// The name of this task, which one of the living conductors does.
const TASK: &str = "names";

/// The type of the recordsets: IPv4 addresses (RFC 1035).
const ADDRESSES: &str = "A";

/// Why the names could not be compared or changed.
#[derive(Debug, thiserror::Error)]
enum NamesError {
    #[error("cannot list the machines")]
    Machines(#[from] StoreError),
    #[error("the cloud has no DNS zone {zone} in the project of the service (cloud.dns.zone)")]
    NoZone { zone: String },
    #[error("cannot use the DNS zone of the cloud")]
    Cloud(#[from] CloudError),
    #[error(transparent)]
    LeasePassed(#[from] LeasePassed),
}

/// Maintains the names until `stop` is cancelled, if a zone is configured.
pub(crate) async fn run(context: Arc<TurnContext>, stop: CancellationToken) {
    let settings = &context.settings;
    let (Some(cloud), Some(names), Some(leases)) =
        (settings.cloud.as_ref(), settings.names.as_ref(), settings.leases.as_ref())
    else {
        return stop.cancelled().await;
    };
    // Every installation has its own key, so this differs from that of another one that uses the same zone.
    let installation = &context.key.derive(Purpose::Installation, &[])[..16];
    let mut refused = BTreeMap::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = context.membership.gets_task(TASK) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            looked = look(&context, cloud, names, leases, installation) => match looked {
                Ok(now) => refused = tell(refused, now),
                Err(error) => warn!(error = chain(&error), "the names of machines in DNS may be outdated"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(names.every) => {}
        }
    }
}

/// Compares the names with the zone, and changes the zone. Returns the names that nodes do not get.
async fn look(
    context: &TurnContext,
    cloud: &Session,
    names: &NameSettings,
    leases: &Leases,
    installation: &str,
) -> Result<BTreeMap<NodeName, &'static str>, NamesError> {
    let zone = zones::find(cloud, names.zone.as_str()).await?;
    let zone = zone.ok_or_else(|| NamesError::NoZone { zone: names.zone.as_str().to_owned() })?;
    let listed = recordsets::list(cloud, &zone.id).await?.into_iter();
    // The cloud removes recordsets in the background.
    let listed = listed.filter(|it| it.kind == ADDRESSES && it.status != DnsStatus::Deleted);
    let seen: Vec<SeenName> = listed
        .map(|it| SeenName {
            id: it.id,
            name: it.name,
            addresses: it.records,
            description: it.description,
        })
        .collect();
    // The zone was read before: a name that was written in between is not there yet, and adding it again is a conflict.
    let machines = context.store.named_machines(&leases.pool).await?;
    let plan = plan_names(&names.zone, installation, &machines, &seen);
    for change in &plan.changes {
        context.effect("dns: change", apply(cloud, &zone.id, change)).await??;
    }
    Ok(plan.refused)
}

/// Changes one recordset. Another replica may have made the same change.
async fn apply(cloud: &Session, zone: &str, change: &NameChange) -> Result<(), CloudError> {
    let text = |addresses: &[IpAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    match change {
        NameChange::Add { name, addresses, description } => {
            let new = NewRecordset {
                name: name.clone(),
                kind: ADDRESSES.to_owned(),
                records: text(addresses),
                description: description.clone(),
                ttl: None,
            };
            match recordsets::create(cloud, zone, &new).await {
                Err(error) if error.is_conflict() => return Ok(()),
                made => drop(made?),
            }
            info!("{name} is a name of {}", new.records.join(" and "));
        }
        NameChange::Replace { id, name, addresses } => {
            let records = text(addresses);
            recordsets::set_records(cloud, zone, id, &records).await?;
            info!("{name} is a name of {} now", records.join(" and "));
        }
        NameChange::Remove { id, name } => {
            recordsets::delete(cloud, zone, id).await?;
            info!("{name} is the name of no machine any more");
        }
    }
    Ok(())
}

/// Warns of the nodes that get no name, once for each.
fn tell(
    before: BTreeMap<NodeName, &'static str>,
    now: BTreeMap<NodeName, &'static str>,
) -> BTreeMap<NodeName, &'static str> {
    for (name, why) in now.iter().filter(|(name, why)| before.get(*name) != Some(*why)) {
        warn!("node {name} gets no name in DNS: {why}");
    }
    now
}
