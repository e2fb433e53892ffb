//! The fields of a node group.

use cluster_core::{
    Cluster, GroupRequest, GroupRole, NodeGroup, NodeTaint, Refusal, group_status,
    group_status_reason, node_labels,
};

use crate::field::{Field, Read, Resource, put, put_if_sent};
use crate::input::{Input, Taint};
use crate::shown::Kind::{
    Boolean, Integer, Links, MaybeInteger, MaybeText, Null, Taints, Text, TextMap, Texts,
};
use crate::shown::{Kind, Shown, ShownTaint};

impl Resource for NodeGroup {
    const BODY: &'static str = "The body of a request for a node group. A field that is null or missing has the cluster's value.";
    const MISSING_IS_NULL: bool = false;
    const FIELDS: &'static [Field<NodeGroup>] = FIELDS;
    type Record<'a> = GroupOfCluster<'a>;
    type New = GroupRequest;
    type Change = NodeGroup;
    type Sort = ();
}

#[derive(Clone, Copy)]
pub(crate) struct GroupOfCluster<'a> {
    pub(crate) group: &'a NodeGroup,
    pub(crate) cluster: &'a Cluster,
}

const fn field(name: &'static str, kind: Kind, read: Read<NodeGroup>) -> Field<NodeGroup> {
    Field::<NodeGroup>::new(name, kind, read)
}

#[rustfmt::skip]
const FIELDS: &[Field<NodeGroup>] = &[
    field("uuid", Text, |it, _| it.group.id.into())
        .brief(),
    field("name", Text, |it, _| it.group.name.as_str().into())
        .brief()
        .create(Input::Word(|new, _, name| put(&mut new.name, Ok(name)))),
    field("flavor_id", MaybeText, |it, _| (&it.group.flavor).into())
        .brief()
        .create(Input::Text(|new, _, flavor| put(&mut new.flavor, Ok(flavor)))),
    field("image_id", MaybeText, |it, _| it.cluster.blueprint.shown(&it.group.image).into())
        .brief()
        .create(Input::Text(|new, _, image| put(&mut new.image, Ok(image)))),
    field("node_count", Integer, |it, _| it.group.node_count().into())
        .brief()
        .create(Input::Count(|new, _, count| put(&mut new.node_count, Ok(count.unwrap_or(1))))),
    field("role", Text, |it, _| it.group.role.as_str().into())
        .brief()
        .create(Input::Text(|new, _, role| put(&mut new.role, role.as_deref().map_or(Ok(GroupRole::default()), GroupRole::worker))))
        .about("`worker` or any other word except `master`."),
    field("is_default", Boolean, |it, _| it.group.is_default.into())
        .brief(),
    field("status", Text, |it, look| group_status(it.cluster, it.group, look.now).as_str().into())
        .brief(),
    field("stack_id", Null, |_, _| Shown::Null)
        .brief(),
    field("cluster_id", Text, |it, _| it.group.cluster.into()),
    field("project_id", Text, |it, _| (&it.cluster.project).into()),
    field("docker_volume_size", MaybeInteger, |it, _| it.group.docker_volume_size.into())
        .create(Input::Count(|new, _, size| put(&mut new.docker_volume_size, Ok(size))))
        .about("The size in GiB."),
    field("min_node_count", MaybeInteger, |it, _| it.group.min_node_count.into())
        .brief()
        .create(Input::Count(|new, _, count| put_if_sent(&mut new.min_node_count, count)))
        .change(Input::Count(|it, _, count| put(&mut it.min_node_count, Ok(count.unwrap_or(0))))),
    field("max_node_count", MaybeInteger, |it, _| it.group.max_node_count.into())
        .brief()
        .create(Input::Count(|new, _, count| put(&mut new.max_node_count, Ok(count))))
        .change(Input::Count(|it, _, count| put(&mut it.max_node_count, Ok(count)))),
    field("labels", TextMap, |it, _| it.group.labels.raw().into())
        .create(Input::TextMap(|new, _, labels| put(&mut new.labels.own, Ok(labels)))),
    Field::<NodeGroup>::unseen("merge_labels")
        .create(Input::Flag(|new, _, merge| put_if_sent(&mut new.labels.merge, merge))),
    field("labels_overridden", TextMap, |it, _| (&it.group.labels_compared.overridden).into()),
    field("labels_added", TextMap, |it, _| (&it.group.labels_compared.added).into()),
    field("labels_skipped", TextMap, |it, _| (&it.group.labels_compared.skipped).into()),
    field("status_reason", MaybeText, |it, look| group_status_reason(it.cluster, it.group, look.now).into()),
    field("version", Text, |it, _| it.cluster.kubernetes.to_string().into()),
    field("node_addresses", Texts, |it, _| addresses(it)),
    field("node_labels", TextMap, |it, _| (&it.group.node_labels).into())
        .create(Input::TextMap(|new, _, raw| put(&mut new.node_labels, node_labels(raw.unwrap_or_default()))))
        .change(Input::TextMap(|it, _, raw| put(&mut it.node_labels, node_labels(raw.unwrap_or_default()))))
        .about("Labels of the Kubernetes nodes."),
    field("node_taints", Taints, |it, _| Shown::Taints(it.group.node_taints.iter().map(ShownTaint::new).collect()))
        .create(Input::Taints(|new, _, raw| put(&mut new.node_taints, taints(raw))))
        .change(Input::Taints(|it, _, raw| put(&mut it.node_taints, taints(raw))))
        .about("Taints of the Kubernetes nodes."),
    field("created_at", Text, |it, _| it.group.created_at.into()),
    field("updated_at", MaybeText, |it, _| it.group.updated_at.into()),
    field("links", Links, |it, look| look.group_links(it.group.cluster, it.group.id)),
];

fn taints(raw: Option<Vec<Taint>>) -> Result<Vec<NodeTaint>, Refusal> {
    let all = raw.into_iter().flatten();
    all.map(|it| NodeTaint::new(it.key, it.value, &it.effect)).collect()
}

/// The addresses of the members, as far as the conductor knows them.
fn addresses(it: GroupOfCluster<'_>) -> Shown<'_> {
    let address = |member| it.cluster.machine_addresses.get(&member).map(ToString::to_string);
    Shown::Texts(it.group.refs().filter_map(address).collect())
}
