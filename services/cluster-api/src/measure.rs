//! Records the sizes of the flavors that a request uses. The cloud is asked before the request is written, and later changes of a flavor do
//! not change the recorded usage.

use std::collections::BTreeSet;

use cluster_conductor::SizesUnknown;
use cluster_core::{Cluster, NodeGroup};

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
