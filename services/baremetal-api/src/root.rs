//! `/` and `/v1`: the versions of the API, and its resources.

use openstack_api::{ApiVersions, Microversion, VersionLayout};

use crate::microversion as since;

/// The version documents, which list the resources that clients look for.
pub(crate) const VERSIONS: ApiVersions = ApiVersions {
    name: "OpenStack Ironic API",
    description: "Bedplate provisions bare metal machines by the OpenStack Bare Metal API.",
    headers: since::dialect,
    media_type: "application/vnd.openstack.ironic.v1+json",
    layout: VersionLayout::Ironic,
    resources: RESOURCES.split_at(RESOURCES.len() - AGENT_ROUTES).0,
};

/// The version documents of an API that serves the requests of agents.
pub(crate) const VERSIONS_WITH_AGENTS: ApiVersions =
    ApiVersions { resources: RESOURCES, ..VERSIONS };

/// The resources; those of agents are the last.
const RESOURCES: &[(&str, Microversion)] = &[
    ("chassis", since::MINIMUM),
    ("nodes", since::MINIMUM),
    ("ports", since::MINIMUM),
    ("drivers", since::MINIMUM),
    ("portgroups", since::PORTGROUPS),
    ("volume", since::VOLUME),
    ("conductors", since::CONDUCTORS),
    ("allocations", since::ALLOCATIONS),
    ("events", since::EVENTS),
    ("deploy_templates", since::DEPLOY_TEMPLATES),
    ("shards", since::SHARD),
    ("runbooks", since::RUNBOOKS),
    ("inspection_rules", since::INSPECTION_RULES),
    ("lookup", since::AGENTS),
    ("heartbeat", since::AGENTS),
    ("continue_inspection", since::CONTINUE_INSPECTION),
];
/// How many of the resources are for agents.
const AGENT_ROUTES: usize = 3;
