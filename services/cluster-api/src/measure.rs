//! Records the sizes of the flavors that a request uses. The cloud is asked before the request is written, and later changes of a flavor do
//! not change the recorded usage.

use std::collections::BTreeSet;

use cluster_conductor::SizesUnknown;
use cluster_core::{Cluster, NodeGroup, QuotaRefused};
use http::StatusCode;
use openstack_api::ApiError;

use crate::app::App;

impl App {
    /// Writes the present size of each group's flavor into the group.
    /// If the cloud cannot tell the sizes, leaves the groups unchanged and returns the reason.
    pub(crate) async fn measure<'g>(
        &self,
        cluster: &Cluster,
        groups: impl IntoIterator<Item = &'g mut NodeGroup>,
    ) -> Option<SizesUnknown> {
        let groups: Vec<&mut NodeGroup> = groups.into_iter().collect();
        let flavors: BTreeSet<String> =
            groups.iter().filter_map(|group| group.flavor.clone()).collect();
        if flavors.is_empty() {
            return None;
        }
        match self.conductor.sizes(cluster, &flavors).await {
            Ok(sizes) => {
                for group in groups {
                    let size = group.flavor.as_ref().and_then(|flavor| sizes.get(flavor));
                    group.size = size.copied().or(group.size);
                }
                None
            }
            Err(why) => Some(why),
        }
    }
}

/// Whether `group` has members that the groups `before` do not have.
pub(crate) fn has_grown(group: &NodeGroup, before: &[NodeGroup]) -> bool {
    let was = before.iter().find(|was| was.id == group.id);
    was.is_none_or(|was| !group.machines.is_subset(&was.machines))
}

/// The response to a request that exceeds a limit: 403, as in Magnum, or 503 if the sizes of the flavors are unknown.
pub(crate) fn refusal(denial: &QuotaRefused, unmeasured: Option<&SizesUnknown>) -> ApiError {
    match (denial, unmeasured) {
        (QuotaRefused::Exceeded(_) | QuotaRefused::Lease { .. }, _) => {
            ApiError::new(StatusCode::FORBIDDEN, denial.to_string())
        }
        (QuotaRefused::Unmeasured { .. }, Some(SizesUnknown { why, is_asked_wrong: true })) => {
            ApiError::bad_request(why)
        }
        (QuotaRefused::Unmeasured { .. }, why) => {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let said = format!("{denial}{why}; try again later");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, said)
        }
    }
}
