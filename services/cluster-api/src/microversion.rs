//! Microversions and the features that came with them, from Magnum's "REST API Version History".

use http::HeaderName;
use openstack_api::{ApiError, Microversion, VersionHeaders};

macro_rules! versions {
    ($($name:ident $minor:literal $what:literal)*) => {
        $(#[doc = $what] pub(crate) const $name: Microversion = Microversion::new($minor);)*
    };
}

versions! {
    MINIMUM 1 "The lowest."
    ROLLBACK 3 "The rollback of a failed update."
    RESIZE 7 "The action `resize`."
    UPGRADE 8 "The action `upgrade`."
    NODE_GROUPS 9 "Node groups."
    ZERO_NODES 10 "Clusters without workers."
    CREDENTIALS 12 "Rotation of a cluster's credentials."
    CLUSTER_ID 13 "`cluster_id` instead of `stack_id`."
    MAXIMUM 14 "The highest."
}

/// The headers and bounds of microversions in the Container Infra API.
pub(crate) fn dialect() -> VersionHeaders {
    VersionHeaders {
        header: HeaderName::from_static("openstack-api-version"),
        prefix: "container-infra ",
        minimum_header: HeaderName::from_static("openstack-api-minimum-version"),
        maximum_header: HeaderName::from_static("openstack-api-maximum-version"),
        minimum: MINIMUM,
        maximum: MAXIMUM,
    }
}

/// Refuses an empty node group in microversions that do not have them.
pub(crate) fn check_zero(count: u32, asked: Microversion) -> Result<(), ApiError> {
    match count == 0 && !asked.has(ZERO_NODES) {
        true => Err(ApiError::bad_field("node_count", "must be at least 1 before version 1.10")),
        false => Ok(()),
    }
}
