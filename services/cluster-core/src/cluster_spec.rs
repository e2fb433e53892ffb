//! A cluster with its node groups.

use crate::{Cluster, NodeGroup};

/// A cluster with its node groups: everything that its owner asked for.
#[derive(Clone, Copy, Debug)]
pub struct ClusterSpec<'a> {
    pub cluster: &'a Cluster,
    pub groups: &'a [NodeGroup],
}
