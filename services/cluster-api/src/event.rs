//! Events of clusters and VMs in responses.

use cluster_core::{Event, EventUuid, VmEvent};
use openstack_api::{ApiError, Query, Time, shaped};
use serde::Serialize;

shaped! {
    /// An event in a list or in a stream.
    #[derive(Serialize)]
    pub(crate) struct Shown<'a> {
        id: Option<String>,
        at: Time,
        severity: &'static str,
        reason: &'a str,
        message: &'a str,
    }
}

impl<'a> From<&'a Event> for Shown<'a> {
    fn from(event: &'a Event) -> Shown<'a> {
        let Event { id, cluster: _, at, severity, reason, message } = event;
        let id = id.map(|id| id.to_string());
        Shown { id, at: Time(*at), severity: severity.as_str(), reason, message }
    }
}

impl<'a> From<&'a VmEvent> for Shown<'a> {
    fn from(event: &'a VmEvent) -> Shown<'a> {
        let VmEvent { id, vm: _, at, severity, reason, message } = event;
        let id = id.map(|id| id.to_string());
        Shown { id, at: Time(*at), severity: severity.as_str(), reason, message }
    }
}

/// Takes `limit` and `marker` out of `query`.
pub(crate) fn page(query: &mut Query) -> Result<(u32, Option<EventUuid>), ApiError> {
    let limit = match query.take("limit").map(|raw| raw.parse::<u32>()) {
        None => 1000,
        Some(Ok(limit @ 1..=1000)) => limit,
        Some(_) => return Err(ApiError::bad_field("limit", "must be between 1 and 1000")),
    };
    let marker = query.take("marker").map(|raw| raw.parse());
    let marker = marker.transpose().map_err(|_| ApiError::bad_field("marker", "must be a UUID"))?;
    Ok((limit, marker))
}
