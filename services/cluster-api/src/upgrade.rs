//! Upgrades: gathers the facts that the rules of `cluster-core` need, and records what they accept.

use cluster_core::{
    Cluster, Ident, NodeGroup, RollChange, Template, UpgradeRequest, UpgradeScope, after_roll,
};
use cluster_store::{ClusterChange, Scope};
use newtype_uuid::GenericUuid;
use openstack_api::ApiError;

use crate::app::App;
use crate::error::Result;
use crate::request::{Request, missing};

/// An upgrade that a caller asks for.
#[derive(Clone, Debug)]
pub(crate) struct WantedUpgrade {
    /// The id or name of the template.
    pub(crate) template: String,
    /// The id or name of the only node group to upgrade; `None`: all.
    pub(crate) nodegroup: Option<String>,
    pub(crate) at_once: u32,
    pub(crate) max_unavailable: u32,
}

/// The template that a cluster is upgraded to, and the one that it has.
pub(crate) struct Templates {
    pub(crate) new: Template,
    former: Template,
}

impl WantedUpgrade {
    /// Finds the templates. The image of a template whose names were not checked for the project of the cluster is checked now.
    pub(crate) async fn templates(
        &self,
        request: &Request,
        cluster: &Cluster,
    ) -> Result<Templates> {
        let mut new = request.template(&self.template).await?;
        if request.app.checked_blueprint(&new, &cluster.project).is_none() {
            new.blueprint.image = request.resolve_image(cluster, new.blueprint.image).await?;
        }
        let ident = Ident::Id(cluster.template.into_untyped_uuid());
        let former = request.app.store.find_templates(&ident, &Scope::All).await?.pop();
        let gone = || ApiError::broken("the cluster has no template");
        Ok(Templates { new, former: former.ok_or_else(gone)? })
    }

    /// Returns the cluster with the roll that the upgrade means. The configs of its members can be made.
    pub(crate) fn on(
        &self,
        app: &App,
        templates: &Templates,
        cluster: &Cluster,
        groups: &[NodeGroup],
    ) -> Result<RollChange> {
        let request = UpgradeRequest {
            template: &templates.new,
            former: &templates.former,
            scope: self.scope(groups)?,
            at_once: self.at_once,
            max_unavailable: self.max_unavailable,
        };
        let change = request.on(cluster, groups, (app.clock)())?;
        let (after, members) = after_roll(&change.cluster, groups);
        app.conductor.check_member_configs(&after, &members)?;
        Ok(change)
    }

    fn scope(&self, groups: &[NodeGroup]) -> Result<UpgradeScope> {
        let Some(ident) = self.nodegroup.as_deref() else { return Ok(UpgradeScope::All) };
        let is_it =
            |group: &&NodeGroup| group.name.as_str() == ident || group.id.to_string() == ident;
        let group = groups.iter().find(is_it).ok_or_else(|| missing("Nodegroup", ident))?;
        Ok(UpgradeScope::Group(group.id))
    }

    /// Records the upgrade, which the conductor carries out.
    pub(crate) async fn record(&self, request: &Request, ident: &str) -> Result<Cluster> {
        let cluster = request.cluster(ident).await?;
        let templates = self.templates(request, &cluster).await?;
        let (app, id) = (&request.app, cluster.id.to_string());
        let change = request.change(&id, |cluster, groups| {
            let RollChange { cluster: upgraded, groups: changed } =
                self.on(app, &templates, &cluster, &groups)?;
            let said = format!("upgrade to template {} requested", templates.new.name);
            let events = vec![app.request_event(&cluster, "UpgradeRequested", said)];
            Ok(ClusterChange { changed, events, ..ClusterChange::of(upgraded) })
        });
        change.await
    }
}
