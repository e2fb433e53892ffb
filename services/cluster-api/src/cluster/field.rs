//! The fields of a cluster.

use std::collections::BTreeMap;

use cluster_core::{
    Cluster, ClusterParameters, ClusterRequest, ClusterSort, ClusterSpec, GroupRole, Health,
    NodeGroup, health, health_reason, health_status, reported_health, status, status_reason,
};

use crate::field::{Field, Read, Resource, put, put_if_sent, refuse_if_sent};
use crate::input::Input;
use crate::microversion as since;
use crate::shown::Kind::{
    Boolean, Integer, Links, MaybeInteger, MaybeText, Null, Text, TextMap, Texts,
};
use crate::shown::{Kind, Shown};

impl Resource for Cluster {
    const BODY: &'static str = "The body of a request for a cluster. A field that is null or missing has the template's value.";
    const MISSING_IS_NULL: bool = false;
    const FIELDS: &'static [Field<Cluster>] = FIELDS;
    type Record<'a> = ClusterSpec<'a>;
    type New = ClusterRequest;
    type Change = ClusterPatch;
    type Sort = ClusterSort;
}

/// The values of a patch; `None`: the value stays.
#[derive(Default)]
pub(crate) struct ClusterPatch {
    /// The new number of default workers.
    pub(crate) workers: Option<u32>,
    /// The health that the client reports; `Some(None)` takes a report back.
    pub(crate) health_status: Option<Option<Health>>,
    pub(crate) health_reason: Option<BTreeMap<String, String>>,
}

const fn field(name: &'static str, kind: Kind, read: Read<Cluster>) -> Field<Cluster> {
    Field::<Cluster>::new(name, kind, read)
}

#[rustfmt::skip]
const FIELDS: &[Field<Cluster>] = &[
    field("uuid", Text, |it, _| it.cluster.id.into())
        .brief()
        .sort(ClusterSort::Id),
    field("name", Text, |it, _| it.cluster.name.as_str().into())
        .brief()
        .create(Input::Text(|new, _, name| new.set_name(name)))
        .sort(ClusterSort::Name),
    field("cluster_template_id", Text, |it, _| it.cluster.template.into())
        .brief()
        .create(Input::Base)
        .about("The template's id or name."),
    field("keypair", MaybeText, |it, _| (&it.cluster.blueprint.keypair).into())
        .brief()
        .create(Input::Text(|new, _, key| put_if_sent(&mut new.cluster.blueprint.keypair, key.map(Some)))),
    field("docker_volume_size", MaybeInteger, |it, _| it.cluster.blueprint.docker_volume_size.into())
        .brief()
        .create(Input::Count(|new, _, size| put_if_sent(&mut new.cluster.blueprint.docker_volume_size, size.map(Some))))
        .about("The size in GiB."),
    field("labels", TextMap, |it, _| it.cluster.blueprint.labels.raw().into())
        .brief()
        .create(Input::TextMap(|new, _, labels| put(&mut new.labels.own, Ok(labels)))),
    Field::<Cluster>::unseen("merge_labels")
        .create(Input::Flag(|new, _, merge| put_if_sent(&mut new.labels.merge, merge)))
        .about("Whether `labels` are merged into the template's labels or replace them."),
    field("node_count", Integer, |it, _| members(it.groups, is_worker).into())
        .brief()
        .create(Input::Count(|new, _, count| put_if_sent(&mut new.workers, count)))
        .change(Input::Count(|change, _, count| put(&mut change.workers, Ok(Some(count.unwrap_or(1)))))),
    field("master_count", Integer, |it, _| members(it.groups, is_master).into())
        .brief()
        .create(Input::Count(|new, _, count| put_if_sent(&mut new.masters, count)))
        .about("1, 3 or 5."),
    field("flavor_id", MaybeText, |it, _| (&it.cluster.blueprint.flavor).into())
        .brief()
        .create(Input::Text(|new, _, flavor| put_if_sent(&mut new.cluster.blueprint.flavor, flavor.map(Some)))),
    field("master_flavor_id", MaybeText, |it, _| (&it.cluster.blueprint.master_flavor).into())
        .brief()
        .create(Input::Text(|new, _, flavor| put_if_sent(&mut new.cluster.blueprint.master_flavor, flavor.map(Some)))),
    field("create_timeout", Integer, |it, _| it.cluster.create_timeout.unwrap_or(0).into())
        .brief()
        .create(Input::Count(|new, _, minutes| put_if_sent(&mut new.cluster.create_timeout, minutes.map(minutes_or_none))))
        .about("In minutes; 0 means no timeout."),
    field("status", Text, |it, look| status(it.cluster, look.now).as_str().into())
        .brief(),
    field("health_status", Text, |it, _| health(it.cluster).as_str().into())
        .brief()
        .change(Input::Text(|change, _, word| put(&mut change.health_status, health_status(word.as_deref()).map(Some)))),
    field("stack_id", Null, |_, _| Shown::Null)
        .until(since::CLUSTER_ID)
        .brief(),
    field("cluster_id", Text, |it, _| it.cluster.id.into())
        .since(since::CLUSTER_ID)
        .brief(),
    field("links", Links, |it, look| look.links("clusters", it.cluster.id))
        .brief(),
    field("status_reason", MaybeText, |it, _| status_reason(it.cluster).into()),
    field("health_status_reason", TextMap, |it, _| health_reasons(it.cluster))
        .change(Input::TextMap(|change, _, reason| put(&mut change.health_reason, health_reason(reason.unwrap_or_default()).map(Some)))),
    field("api_address", MaybeText, |it, _| (&it.cluster.api_address).into()),
    field("coe_version", Text, |it, _| it.cluster.kubernetes.to_string().into()),
    field("container_version", Null, |_, _| Shown::Null),
    field("discovery_url", Null, |_, _| Shown::Null)
        .create(Input::Text(|_, name, url| refuse_if_sent(name, url, "must be null: etcd needs no discovery service")))
        .about("Only null, because etcd's members know each other from the beginning."),
    field("node_addresses", Texts, |it, _| addresses(it, is_worker)),
    field("master_addresses", Texts, |it, _| addresses(it, is_master)),
    field("faults", TextMap, |it, _| faults(it.cluster)),
    field("labels_overridden", TextMap, |it, _| (&it.cluster.labels_compared.overridden).into()),
    field("labels_added", TextMap, |it, _| (&it.cluster.labels_compared.added).into()),
    field("labels_skipped", TextMap, |it, _| (&it.cluster.labels_compared.skipped).into()),
    field("fixed_network", MaybeText, |it, _| shown(it, |of| &of.fixed_network))
        .create(Input::Text(|new, _, id| put_if_sent(&mut new.cluster.blueprint.fixed_network, id.map(Some)))),
    field("fixed_subnet", MaybeText, |it, _| shown(it, |of| &of.fixed_subnet))
        .create(Input::Text(|new, _, id| put_if_sent(&mut new.cluster.blueprint.fixed_subnet, id.map(Some)))),
    field("floating_ip_enabled", Boolean, |it, _| it.cluster.blueprint.floating_ip_enabled.into())
        .create(Input::Flag(|new, _, is_on| put_if_sent(&mut new.cluster.blueprint.floating_ip_enabled, is_on))),
    field("master_lb_enabled", Boolean, |it, _| it.cluster.blueprint.master_lb_enabled.into())
        .create(Input::Flag(|new, _, is_on| put_if_sent(&mut new.cluster.blueprint.master_lb_enabled, is_on))),
    field("project_id", Text, |it, _| (&it.cluster.project).into()),
    field("user_id", Text, |it, _| (&it.cluster.user).into()),
    field("created_at", Text, |it, _| it.cluster.created_at.into())
        .sort(ClusterSort::CreatedAt),
    field("updated_at", MaybeText, |it, _| it.cluster.updated_at.into()),
];

/// The name that the caller gave for an object of the cloud.
fn shown<'a>(
    it: ClusterSpec<'a>,
    field: fn(&'a ClusterParameters) -> &'a Option<String>,
) -> Shown<'a> {
    let of = &it.cluster.blueprint;
    field(of).as_deref().map(|id| of.shown(id)).into()
}

fn minutes_or_none(minutes: u32) -> Option<u32> {
    Some(minutes).filter(|minutes| *minutes > 0)
}

fn is_master(group: &&NodeGroup) -> bool {
    group.role == GroupRole::Master
}

fn is_worker(group: &&NodeGroup) -> bool {
    group.role != GroupRole::Master
}

/// The number of members in these node groups.
fn members(groups: &[NodeGroup], is_counted: fn(&&NodeGroup) -> bool) -> u32 {
    groups.iter().filter(is_counted).map(NodeGroup::node_count).sum()
}

/// The addresses of the members of these node groups, as far as the conductor knows them.
fn addresses<'a>(it: ClusterSpec<'a>, is_counted: fn(&&NodeGroup) -> bool) -> Shown<'a> {
    let members = it.groups.iter().filter(is_counted).flat_map(NodeGroup::refs);
    let address = |member| it.cluster.machine_addresses.get(&member).map(ToString::to_string);
    Shown::Texts(members.filter_map(address).collect())
}

/// The conditions, and the reasons that a client reported while clusterd cannot tell the health.
fn health_reasons(cluster: &Cluster) -> Shown<'_> {
    let own = cluster.conditions.iter().map(|it| (it.kind.as_str(), format!("{:?}", it.status)));
    let reported = reported_health(cluster).into_iter().flat_map(|it| &it.reason);
    let reported = reported.map(|(name, reason)| (name.as_str(), reason.clone()));
    Shown::WrittenMap(reported.chain(own).collect::<BTreeMap<_, _>>())
}

/// The messages of the conditions that no retry will change.
fn faults(cluster: &Cluster) -> Shown<'_> {
    let faults = cluster.conditions.iter().filter(|it| it.is_final);
    Shown::WrittenMap(faults.map(|it| (it.kind.as_str(), it.message.clone())).collect())
}
