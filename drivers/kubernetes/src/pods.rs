//! Pods, with the fields that this crate uses.

use std::fmt;

use serde::Deserialize;

use crate::lenient;
use crate::object::Metadata;

/// A pod's namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The used fields of `core/v1 Pod`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) spec: Spec,
    #[serde(default)]
    pub(crate) status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) node_name: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) containers: Vec<Container>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) volumes: Vec<Volume>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Container {
    pub(crate) name: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) image: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Volume {
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) persistent_volume_claim: ClaimSource,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClaimSource {
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) claim_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) phase: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    pub(crate) r#type: String,
    pub(crate) status: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerStatus {
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) state: State,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) waiting: Why,
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) terminated: Why,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Why {
    #[serde(deserialize_with = "lenient::or_default")]
    pub(crate) reason: String,
}

impl Pod {
    pub(crate) fn pod_name(&self) -> PodName {
        PodName { namespace: self.metadata.namespace.clone(), name: self.metadata.name.clone() }
    }

    /// Whether the pod has ended and will not restart.
    pub(crate) fn has_ended(&self) -> bool {
        ["Succeeded", "Failed"].contains(&self.status.phase.as_str())
    }

    /// Whether the kubelet reports that all containers of the pod are ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|it| it.r#type == "Ready" && it.status == "True")
    }

    /// Returns the kubelet's reason why the pod does not run or has failed.
    pub(crate) fn failure_reason(&self) -> String {
        let containers = self.status.container_statuses.iter();
        let said =
            containers.flat_map(|it| [&it.state.waiting.reason, &it.state.terminated.reason]);
        let mut said = [&self.status.reason].into_iter().chain(said).filter(|it| !it.is_empty());
        lenient::plain(said.next().unwrap_or(&self.status.phase), 100)
    }
}
