//! A cluster as it is when somebody has just asked for it, for tests.

use jiff::Timestamp;

use crate::{
    Blueprint, Cluster, ClusterUuid, GroupRole, Name, NodeGroup, NodeGroupUuid, Owner, Template,
    TemplateUuid,
};

/// A cluster that the user `u` of the project `p` asked for, and what belongs to it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The template, `t`.
    pub template: Template,
    /// The cluster, `blue`.
    pub cluster: Cluster,
    /// `default-master` and, where it has any machines, `default-worker`.
    pub groups: Vec<NodeGroup>,
}

impl Asked {
    /// A cluster of so many machines of the control plane and so many workers.
    pub fn new(blueprint: Blueprint, masters: u32, workers: u32, now: Timestamp) -> Self {
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
        Asked { groups: groups.collect(), template, cluster }
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("it is a name")
}
