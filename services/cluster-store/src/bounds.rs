//! The size limit of documents that callers store: which fields of each record count, and where the limit is checked.

use std::num::NonZeroUsize;

use cluster_core::{Cluster, ClusterParameters, Ident, NodeGroup, Template, Vm};
use database::{FieldSizes, Result, SizeLimit};
use newtype_uuid::GenericUuid;

use crate::{ClusterChange, Scope, Store, VmScope};

impl Store {
    /// Returns the store for writes of callers: it refuses documents whose fields, as JSON, are larger than `bytes`.
    ///
    /// Fields that clusterd writes itself, such as conditions, do not count: otherwise a large request could stop the conductor from
    /// recording its progress.
    pub fn for_callers(mut self, bytes: NonZeroUsize) -> Store {
        self.bound = SizeLimit::of(bytes);
        self
    }

    pub(crate) async fn admit_template(&self, template: &Template) -> Result<()> {
        let stored = async || {
            let ident = Ident::Id(template.id.into_untyped_uuid());
            let found = self.find_templates(&ident, &Scope::All).await?;
            Ok(found.first().map(of_template))
        };
        self.bound.admit(|| of_template(template), stored).await
    }

    pub(crate) async fn admit_cluster(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
    ) -> Result<()> {
        let stored = async || {
            let ident = Ident::Id(cluster.id.into_untyped_uuid());
            let found = self.find_clusters(&ident, &Scope::All).await?;
            Ok(found.first().map(of_cluster))
        };
        self.bound.admit(|| of_cluster(cluster), stored).await?;
        for group in groups {
            let stored = async || {
                let found = self.groups_of(cluster.id).await?;
                Ok(found.iter().find(|it| it.id == group.id).map(of_group))
            };
            self.bound.admit(|| of_group(group), stored).await?;
        }
        Ok(())
    }

    pub(crate) async fn admit_change(&self, change: &ClusterChange) -> Result<()> {
        self.admit_cluster(&change.cluster, &change.added).await?;
        self.admit_cluster(&change.cluster, &change.changed).await
    }

    pub(crate) async fn admit_vm(&self, vm: &Vm) -> Result<()> {
        let stored = async || {
            let ident = Ident::Id(vm.id.into_untyped_uuid());
            let found = self.find_vms(&ident, &VmScope::All).await?;
            Ok(found.first().map(of_vm))
        };
        self.bound.admit(|| of_vm(vm), stored).await
    }
}

fn of_template(template: &Template) -> FieldSizes {
    of_blueprint(&template.blueprint).and("tags", &template.tags)
}

fn of_cluster(cluster: &Cluster) -> FieldSizes {
    let sizes = of_blueprint(&cluster.blueprint);
    match &cluster.reported_health {
        Some(report) => sizes.and("health_status_reason", &report.reason),
        None => sizes,
    }
}

fn of_blueprint(blueprint: &ClusterParameters) -> FieldSizes {
    FieldSizes::default()
        .and("labels", blueprint.labels.raw())
        .and("image_id", &blueprint.image)
        .and("keypair_id", &blueprint.keypair)
        .and("external_network_id", &blueprint.external_network)
        .and("fixed_network", &blueprint.fixed_network)
        .and("fixed_subnet", &blueprint.fixed_subnet)
        .and("dns_nameserver", &blueprint.dns_nameservers)
        .and("flavor_id", &blueprint.flavor)
        .and("master_flavor_id", &blueprint.master_flavor)
        .and("http_proxy", &blueprint.http_proxy)
        .and("https_proxy", &blueprint.https_proxy)
        .and("no_proxy", &blueprint.no_proxy)
}

fn of_group(group: &NodeGroup) -> FieldSizes {
    FieldSizes::default()
        .and("labels", group.labels.raw())
        .and("node_labels", &group.node_labels)
        .and("node_taints", &group.node_taints)
        .and("flavor_id", &group.flavor)
        .and("image_id", &group.image)
}

fn of_vm(vm: &Vm) -> FieldSizes {
    FieldSizes::default()
        .and("ssh_keys", &vm.ssh_keys)
        .and("image", &vm.image)
        .and("flavor", &vm.flavor)
        .and("network", &vm.network)
        .and("zone", &vm.zone)
        .and("availability_zone", &vm.availability_zone)
}
