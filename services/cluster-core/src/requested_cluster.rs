//! A cluster as the API records it for a new request, for tests of other crates.

use jiff::Timestamp;

use crate::{
    Cluster, ClusterParameters, ClusterUuid, GroupRole, Name, NodeGroup, NodeGroupUuid, Owner,
    Template, TemplateUuid,
};

/// A cluster that user `u` of project `p` requested, with its template and groups.
#[derive(Clone, Debug)]
pub struct RequestedCluster {
    /// Its name is `t`.
    pub template: Template,
    /// Its name is `blue`.
    pub cluster: Cluster,
    /// `default-master` and, when the number of workers is not 0, `default-worker`.
    pub groups: Vec<NodeGroup>,
}

impl RequestedCluster {
    /// Makes a cluster with these numbers of control-plane members and workers.
    pub fn new(blueprint: ClusterParameters, masters: u32, workers: u32, now: Timestamp) -> Self {
        let owner = Owner::new("p", "u");
        let template =
            Template::new(TemplateUuid::new_v4(), owner.clone(), name("t"), blueprint.clone(), now);
        let of = (template.id, blueprint);
        let cluster = Cluster::new(ClusterUuid::new_v4(), owner, name("blue"), of, now);
        let roles =
            [(GroupRole::Master, masters), (GroupRole::Worker("worker".to_owned()), workers)];
        let groups = roles.into_iter().filter(|(_, machines)| *machines > 0);
        let groups = groups.map(|(role, machines)| {
            let id = NodeGroupUuid::new_v4();
            let named = (name(&format!("default-{}", role.as_str())), role);
            let group = NodeGroup::new(id, &cluster, named, machines, now);
            NodeGroup { is_default: true, ..group }
        });
        RequestedCluster { groups: groups.collect(), template, cluster }
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("it is a name")
}
