//! Mends the parts of a load balancer that is ACTIVE itself: a listener, a pool or a monitor that is missing, failed or makes no progress.
//!
//! Octavia locks a load balancer during a change, so each call makes one change, and the next turn the next one.

use openstack::load_balancer::listeners::{self, Listener, NewListener};
use openstack::load_balancer::monitors;
use openstack::load_balancer::pools::{self, NewPool, Pool};
use openstack::{CloudError, Session};

use crate::cloud::found::is_stuck;

/// Makes the first change that a listener of the load balancer `balancer`, its pool or its monitor needs. Returns whether there was one.
pub(super) async fn mend(
    session: &Session,
    balancer: &str,
    wanted: &NewListener,
) -> Result<bool, CloudError> {
    let found = listeners::find(session, balancer, &wanted.name).await?;
    let Some(listener) = found.into_iter().next() else {
        // A pool stays when its listener is deleted, and the new listener does not take it.
        if let Some(pool) = &wanted.default_pool
            && let Some(left) = pools::find(session, balancer, &pool.name).await?.first()
        {
            pools::delete(session, &left.id).await?;
            return Ok(true);
        }
        tracing::info!("creating the missing listener {} of load balancer {balancer}", wanted.name);
        listeners::create(session, balancer, wanted).await?;
        return Ok(true);
    };
    if is_stuck(&listener.provisioning_status) {
        // Octavia marks a load balancer ACTIVE a moment before its listeners, so the listener is read again.
        let again = listeners::show(session, &listener.id).await?;
        if again.is_none_or(|it| is_stuck(&it.provisioning_status)) {
            tracing::warn!(
                "deleting listener {} of load balancer {balancer}, which is stuck",
                wanted.name
            );
            listeners::delete(session, &listener.id).await?;
            return Ok(true);
        }
    }
    match &wanted.default_pool {
        Some(pool) => mend_pool(session, balancer, &listener, pool).await,
        None => Ok(false),
    }
}

async fn mend_pool(
    session: &Session,
    balancer: &str,
    listener: &Listener,
    wanted: &NewPool,
) -> Result<bool, CloudError> {
    let named = pools::find(session, balancer, &wanted.name).await?;
    let is_own = |pool: &&Pool| listener.default_pool_id.as_ref() == Some(&pool.id);
    let Some(pool) = named.iter().find(is_own) else {
        match named.first() {
            Some(lost) => pools::delete(session, &lost.id).await?,
            None => drop(pools::create(session, &listener.id, wanted).await?),
        }
        return Ok(true);
    };
    let members = pools::members(session, &pool.id).await?;
    let is_lost = is_stuck(&pool.provisioning_status)
        || members.iter().any(|member| is_stuck(&member.provisioning_status));
    if is_lost {
        tracing::warn!("deleting pool {} of load balancer {balancer}, which is stuck", wanted.name);
        pools::delete(session, &pool.id).await?;
        return Ok(true);
    }
    let Some(monitor) = &wanted.healthmonitor else { return Ok(false) };
    match monitors::find(session, &pool.id).await? {
        None => drop(monitors::create(session, &pool.id, monitor).await?),
        Some(found) if is_stuck(&found.provisioning_status) => {
            monitors::delete(session, &found.id).await?;
        }
        Some(_) => return Ok(false),
    }
    Ok(true)
}
