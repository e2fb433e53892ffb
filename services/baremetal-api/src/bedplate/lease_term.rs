//! The lease of a node in answers, and its length in requests.

use baremetal_core::NodeLease;
use jiff::Timestamp;
use lease::{Due, LeaseSchedule, Length, Terms};
use openstack_api::{ApiError, JsonShape, Time, shaped};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

shaped! {
    /// A lease in the form that clients see.
    #[derive(Serialize)]
    pub(super) struct LeaseView {
        since: Time,
        until: Time,
        ended_at: Option<Time>,
        deleted_at: Option<Time>,
        next: Option<Next>,
    }
}

shaped! {
    /// The next stage of a lease.
    #[derive(Serialize)]
    struct Next {
        step: &'static str = JsonShape::enumeration(["warn", "shut_off", "keep_copy", "warn_of_deletion", "delete"]),
        at: Time,
    }
}

impl LeaseView {
    pub(super) fn of(lending: &NodeLease, schedule: &LeaseSchedule, now: Timestamp) -> LeaseView {
        let lease = &lending.lease;
        let (warned, ended) = (lease.taken.warned, lease.taken.ended_at);
        let next = match schedule.due(lease, now) {
            Due::Nothing => None,
            Due::Now(step) => Some(Next { step: word(step), at: Time(now) }),
            Due::At(at) => {
                let step = match (ended, lease.taken.warned_of_deletion_at) {
                    (Some(_), Some(_)) => "delete",
                    (Some(_), None) => "warn_of_deletion",
                    (None, _) if warned.is_some() && at >= schedule.ends_at(lease, now) => {
                        "shut_off"
                    }
                    (None, _) => "warn",
                };
                Some(Next { step, at: Time(at) })
            }
        };
        LeaseView {
            since: Time(lease.since),
            until: Time(lease.until),
            ended_at: Time::some(ended),
            deleted_at: Time::some(lease.taken.deleted_at),
            next,
        }
    }
}

fn word(step: lease::LeaseStage) -> &'static str {
    match step {
        lease::LeaseStage::Warn { .. } => "warn",
        lease::LeaseStage::SwitchOff { .. } => "shut_off",
        lease::LeaseStage::Snapshot => "keep_copy",
        lease::LeaseStage::WarnOfDeletion { .. } => "warn_of_deletion",
        lease::LeaseStage::Delete => "delete",
    }
}

/// A new length of a lease: exactly one of the two fields, or none for the default.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseChange {
    /// The length from now, such as `14d`.
    #[serde(default, rename = "for")]
    #[schema(value_type = Option<String>)]
    length: Option<Length>,
    /// The end of the lease.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    until: Option<Timestamp>,
}

impl LeaseChange {
    /// The end of the lease that was requested.
    pub(super) fn end(self, terms: Terms, now: Timestamp) -> Result<Timestamp, ApiError> {
        match (self.length, self.until) {
            (Some(_), Some(_)) => {
                Err(ApiError::bad_field("until", "cannot be used together with for"))
            }
            (Some(length), None) => Ok(now + length.as_duration()),
            (None, Some(until)) => Ok(until),
            (None, None) => {
                let granted = terms.grant(None, now);
                let granted = granted.map_err(|why| ApiError::bad_field("for", why))?;
                let missing =
                    || ApiError::bad_field("for", "is required: no default is configured");
                granted.map(|lease| lease.until).ok_or_else(missing)
            }
        }
    }
}
