//! `/` and `/v1`: the versions of the API, and its resources.

use openstack_api::{ApiVersions, VersionLayout};

use crate::microversion as since;

/// The version documents, which list the resources that clients look for.
pub(crate) const VERSIONS: ApiVersions = ApiVersions {
    name: "OpenStack Magnum API",
    description: "Bedplate manages Kubernetes clusters through the OpenStack Container Infra API.",
    headers: since::dialect,
    media_type: "application/vnd.openstack.magnum.v1+json",
    layout: VersionLayout::Magnum,
    resources: &[
        ("clustertemplates", since::MINIMUM),
        ("clusters", since::MINIMUM),
        ("certificates", since::MINIMUM),
        ("mservices", since::MINIMUM),
        ("stats", since::MINIMUM),
        ("quotas", since::MINIMUM),
        ("nodegroups", since::MINIMUM),
        ("credentials", since::MINIMUM),
    ],
};
