//! The body of a request for a cluster.

use std::collections::BTreeMap;

use cluster_core::{
    Cluster, ClusterParameters, ClusterUuid, Labels, LabelsCompared, NodeGroup, NodeGroupUuid,
    Owner, check_cluster, check_group, grant_lease,
};
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Caller, Microversion};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::Error;
use crate::lenient::{count, flag, labels, text};
use crate::microversion as since;
use crate::template;

/// The body of a request for a cluster. A field that is null or missing has the template's value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCluster {
    #[serde(default, deserialize_with = "text")]
    name: Option<String>,
    /// The template's id or name.
    cluster_template_id: String,
    #[serde(default, deserialize_with = "count")]
    node_count: Option<u32>,
    /// 1, 3 or 5.
    #[serde(default, deserialize_with = "count")]
    master_count: Option<u32>,
    #[serde(default, deserialize_with = "text")]
    keypair: Option<String>,
    /// In minutes; 0 means no timeout.
    #[serde(default, deserialize_with = "count")]
    create_timeout: Option<u32>,
    /// Only null, because etcd's members know each other from the beginning.
    #[serde(default, deserialize_with = "text")]
    discovery_url: Option<String>,
    #[serde(default, deserialize_with = "labels")]
    labels: Option<BTreeMap<String, String>>,
    /// Whether `labels` are merged into the template's labels or replace them.
    #[serde(default, deserialize_with = "flag")]
    merge_labels: Option<bool>,
    #[serde(default, deserialize_with = "text")]
    flavor_id: Option<String>,
    #[serde(default, deserialize_with = "text")]
    master_flavor_id: Option<String>,
    /// The size in GiB.
    #[serde(default, deserialize_with = "count")]
    docker_volume_size: Option<u32>,
    #[serde(default, deserialize_with = "text")]
    fixed_network: Option<String>,
    #[serde(default, deserialize_with = "text")]
    fixed_subnet: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    floating_ip_enabled: Option<bool>,
    #[serde(default, deserialize_with = "flag")]
    master_lb_enabled: Option<bool>,
}

/// A checked request: the cluster to create, with its node groups.
pub(crate) struct CheckedCluster {
    pub(crate) cluster: Cluster,
    pub(crate) groups: Vec<NodeGroup>,
}

/// Magnum's default timeout of a creation, in minutes.
const CREATE_TIMEOUT: u32 = 60;

impl NewCluster {
    /// Checks the request and resolves its names to a cluster and node groups.
    pub(crate) async fn into_order(
        self,
        app: &App,
        caller: &Caller,
        asked: Microversion,
    ) -> Result<CheckedCluster, Error> {
        if self.discovery_url.is_some() {
            let why = "must be null: etcd needs no discovery service";
            return Err(ApiError::bad_field("discovery_url", why).into());
        }
        let found = app.template(caller, &self.cluster_template_id).await;
        let template = found.map_err(|why| match ApiError::from(why) {
            // The path is right and the body is wrong, so the response is 400, not 404.
            why if why.status == http::StatusCode::NOT_FOUND => {
                ApiError::bad_field("cluster_template_id", why.message)
            }
            why => why,
        })?;
        let (masters, workers) = (self.master_count.unwrap_or(1), self.node_count.unwrap_or(1));
        since::check_zero(workers, asked)?;

        let now = (app.clock)();
        let id = ClusterUuid::from_untyped_uuid((app.ids)());
        let name = template::named("cluster", self.name.as_deref(), &id.to_string())?;
        let create_timeout = self.create_timeout.unwrap_or(CREATE_TIMEOUT);
        let base = template.blueprint.labels.clone();
        let blueprint = self.blueprint(template.blueprint.clone())?;
        check_cluster(&blueprint, masters)?;
        let owner = Owner::new(app.project(caller)?, app.user(caller));
        app.admit(caller).await?;
        let settled = app.checked_blueprint(&template, &owner.project);
        let blueprint = app.borrowed(caller, settled, blueprint).await?;
        let labels_compared = LabelsCompared::new(&base, &blueprint.labels);
        let terms = app.lease_terms(app.settings.leases, &owner).await?;
        let lending = grant_lease(blueprint.labels.settings(), terms, now)?;
        let cluster = Cluster {
            labels_compared,
            create_timeout: Some(create_timeout).filter(|minutes| *minutes > 0),
            lending,
            ..Cluster::new(id, owner, name, (template.id, blueprint), now)
        };
        let new_id = || NodeGroupUuid::from_untyped_uuid((app.ids)());
        let groups = vec![
            NodeGroup::default_masters(new_id(), &cluster, masters),
            NodeGroup::default_workers(new_id(), &cluster, workers),
        ];
        for group in &groups {
            check_group(group)?;
        }
        app.conductor.check_member_configs(&cluster, &groups)?;
        Ok(CheckedCluster { cluster, groups })
    }

    /// The template's blueprint with the values of this request.
    fn blueprint(self, base: ClusterParameters) -> Result<ClusterParameters, Error> {
        let labels = match (self.labels, self.merge_labels) {
            (None, _) => base.labels,
            (Some(own), Some(true)) => base.labels.merged(&Labels::try_from(own)?)?,
            (Some(own), Some(false) | None) => Labels::try_from(own)?,
        };
        let flavor = self.flavor_id.or(base.flavor);
        Ok(ClusterParameters {
            keypair: self.keypair.or(base.keypair),
            master_flavor: self.master_flavor_id.or(base.master_flavor).or_else(|| flavor.clone()),
            flavor,
            docker_volume_size: self.docker_volume_size.or(base.docker_volume_size),
            fixed_network: self.fixed_network.or(base.fixed_network),
            fixed_subnet: self.fixed_subnet.or(base.fixed_subnet),
            floating_ip_enabled: self.floating_ip_enabled.unwrap_or(base.floating_ip_enabled),
            master_lb_enabled: self.master_lb_enabled.unwrap_or(base.master_lb_enabled),
            labels,
            ..base
        })
    }
}

/// Reads the `node_count` of `body`.
pub(crate) fn read_count(body: Map<String, Value>) -> Result<u32, ApiError> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(deserialize_with = "count")]
        node_count: Option<u32>,
    }
    let read = serde_json::from_value::<Body>(Value::Object(body));
    let read = read.map_err(|why| ApiError::bad_field("node_count", why))?;
    Ok(read.node_count.unwrap_or(1))
}
