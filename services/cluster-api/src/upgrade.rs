//! Upgrades: gathers the facts that the rules of `cluster-core` need, and records what they accept.

use std::collections::{BTreeMap, BTreeSet};

use cluster_conductor::SizesUnknown;
use cluster_core::{
    Cluster, ClusterSpec, FlavorSize, Ident, NodeGroup, RollChange, Template, UpgradeRequest,
    UpgradeScope, after_roll, roll_growth,
};
use cluster_store::{ClusterChange, Scope};
use newtype_uuid::GenericUuid;
use openstack_api::ApiError;

use crate::app::App;
use crate::error::{Error, Result};
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
    /// The sizes of the flavors of the new template that no group has.
    sizes: Result<BTreeMap<String, FlavorSize>, SizesUnknown>,
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
            let given = new.blueprint.image.clone();
            let id = request.resolve_image(cluster, given.clone()).await?;
            if given != id {
                new.blueprint.note_name(&given, &id);
            }
            new.blueprint.image = id;
        }
        let ident = Ident::Id(cluster.template.into_untyped_uuid());
        let former = request.app.store.find_templates(&ident, &Scope::All).await?.pop();
        let gone = || ApiError::broken("the cluster has no template");
        let former = former.ok_or_else(gone)?;
        let groups = request.app.store.groups_of(cluster.id).await?;
        let is_new = |flavor: &String| groups.iter().all(|it| it.flavor.as_ref() != Some(flavor));
        let flavors = [&new.blueprint.flavor, &new.blueprint.master_flavor].into_iter().flatten();
        let flavors: BTreeSet<String> = flavors.filter(|it| is_new(it)).cloned().collect();
        let sizes = match flavors.is_empty() {
            true => Ok(BTreeMap::new()),
            false => request.app.conductor.sizes(cluster, &flavors).await,
        };
        Ok(Templates { new, former, sizes })
    }

    /// Refuses larger flavors than the limits of the project and of the caller have room for.
    pub(crate) async fn check_limits(
        &self,
        request: &Request,
        templates: &Templates,
        upgraded: &Cluster,
        groups: &[NodeGroup],
    ) -> Result<()> {
        let growth = roll_growth(&ClusterSpec { cluster: upgraded, groups });
        let (app, by) = (&request.app, request.user());
        let asked = app.store.growth_refusal((upgraded, by.as_str()), growth, &app.settings.quotas);
        match asked.await? {
            Some(denial) => Err(Error::Denied(denial, templates.sizes.as_ref().err().cloned())),
            None => Ok(()),
        }
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
        let mut change = request.on(cluster, groups, (app.clock)())?;
        if let Err(SizesUnknown { why, is_asked_wrong: true }) = &templates.sizes {
            return Err(ApiError::bad_request(why).into());
        }
        let waiting = change.cluster.roll.iter_mut().flat_map(|roll| roll.waiting.values_mut());
        for parameters in waiting.filter(|it| it.size.is_none()) {
            let sizes = templates.sizes.as_ref().ok();
            let flavor = parameters.flavor.as_ref();
            parameters.size = sizes.zip(flavor).and_then(|(all, it)| all.get(it)).copied();
        }
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
        request.app.check_upgraded()?;
        let templates = self.templates(request, &cluster).await?;
        let (app, id) = (&request.app, cluster.id.to_string());
        let groups = app.store.groups_of(cluster.id).await?;
        let first = self.on(app, &templates, &cluster, &groups)?;
        self.check_limits(request, &templates, &first.cluster, &groups).await?;
        let change = request.change(&id, |cluster, groups| {
            let RollChange { cluster: upgraded, groups: changed } =
                self.on(app, &templates, &cluster, &groups)?;
            let said = format!("upgrade to template {} requested", templates.new.name);
            let requested = app.request_event(&cluster, "UpgradeRequested", said);
            let warning = app.label_event(&cluster, &upgraded.blueprint.labels);
            let events = [requested].into_iter().chain(warning).collect();
            Ok(ClusterChange { changed, events, ..ClusterChange::of(upgraded) })
        });
        change.await
    }
}
