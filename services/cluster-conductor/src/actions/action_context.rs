//! The parts of the conductor that a single action needs.

use cluster_core::{
    CloudObject, ClusterObservation, DesiredObjects, Key, Ledger, ObjectOwner, ResourceSpec,
};
use cluster_store::Store;

use crate::cloud::{CloudLookups, CloudWorkError, Result};
use crate::member_configs::MemberConfigs;
use crate::nodes::Nodes;

pub(crate) struct ActionContext<'a> {
    pub(crate) store: &'a Store,
    pub(crate) site: &'a CloudLookups<'a>,
    pub(crate) member_configs: &'a MemberConfigs,
    /// The cluster or VM whose action it is.
    pub(crate) of: ObjectOwner<'a>,
    pub(crate) shape: &'a DesiredObjects,
    /// The ledger, which has the intent of the action.
    pub(crate) ledger: Ledger,
    /// The cluster's Kubernetes API; `None` for a VM.
    pub(crate) nodes: Option<&'a Nodes<'a>>,
    pub(crate) seen: ClusterObservation,
}

impl ActionContext<'_> {
    /// Returns an observed object.
    pub(super) fn found(&self, key: &Key) -> Result<&CloudObject> {
        self.seen.objects.get(key).ok_or_else(|| CloudWorkError::DependencyMissing(key.clone()))
    }

    /// Returns a desired object.
    pub(super) fn thing(&self, key: &Key) -> Result<&ResourceSpec> {
        let object =
            self.shape.get(key).ok_or_else(|| CloudWorkError::DependencyMissing(key.clone()))?;
        Ok(&object.thing)
    }
}
