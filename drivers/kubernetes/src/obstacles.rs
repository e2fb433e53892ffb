//! The obstacles inside a cluster to an upgrade: budgets that permit no eviction, and requests to API versions that a release lacks.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::client::Client;
use crate::error::{Result, if_found};
use crate::lenient;
use crate::object::{self, Metadata};

/// The metric of requests to API versions that will be removed (kubernetes,
/// staging/src/k8s.io/apiserver/pkg/endpoints/metrics: `requested_deprecated_apis`).
const DEPRECATED: &str = "apiserver_requested_deprecated_apis{";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Budget {
    #[serde(deserialize_with = "lenient::or_default")]
    metadata: Metadata,
    #[serde(deserialize_with = "lenient::or_default")]
    status: BudgetStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BudgetStatus {
    #[serde(deserialize_with = "lenient::or_default")]
    disruptions_allowed: i64,
    #[serde(deserialize_with = "lenient::or_default")]
    expected_pods: i64,
}

/// Returns the `PodDisruptionBudget`s with pods of which none may be evicted now, as `NAMESPACE/NAME`.
pub async fn tight_budgets(client: &Client) -> Result<Vec<String>> {
    let budgets = match list(client, "v1").await {
        // `policy/v1` exists from 1.21 on.
        Err(error) if error.is_not_found() => if_found(list(client, "v1beta1").await)?,
        listed => Some(listed?),
    };
    let is_tight = |it: &Budget| it.status.disruptions_allowed <= 0 && it.status.expected_pods > 0;
    let tight = budgets.into_iter().flatten().filter(is_tight);
    let name = |it: Budget| format!("{}/{}", it.metadata.namespace, it.metadata.name);
    Ok(tight.map(|it| lenient::plain(&name(it), 320)).collect())
}

async fn list(client: &Client, version: &str) -> Result<Vec<Budget>> {
    object::list(client, &["apis", "policy", version, "poddisruptionbudgets"], &[]).await
}

/// Returns the API versions that somebody requested of the answering API server since its start, and that Kubernetes 1.`minor` does not have
/// any more: `ingresses of extensions/v1beta1`.
pub async fn removed_apis(client: &Client, minor: u16) -> Result<Vec<String>> {
    let metrics = match client.get(&["metrics"]).send().await {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        answer => answer?.text(),
    };
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(DEPRECATED));
    let found: BTreeSet<String> = lines.filter_map(|line| removed(line, minor)).collect();
    Ok(found.into_iter().collect())
}

/// Reads the labels of a line, if the API version is removed in 1.`minor` or before.
fn removed(line: &str, minor: u16) -> Option<String> {
    let (labels, _) = line.split_once('}')?;
    let pairs = labels.split(',').filter_map(|label| label.split_once('='));
    let labels: BTreeMap<&str, &str> =
        pairs.map(|(name, value)| (name, value.trim_matches('"'))).collect();
    let release: u16 = labels.get("removed_release")?.strip_prefix("1.")?.parse().ok()?;
    let named = |name: &str| labels.get(name).copied();
    let said = format!("{} of {}/{}", named("resource")?, named("group")?, named("version")?);
    (release <= minor).then(|| lenient::plain(&said, 200))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_names_what_a_version_removes() {
        let line = r#"group="extensions",removed_release="1.22",resource="ingresses",subresource="",version="v1beta1"} 1"#;
        assert_eq!(removed(line, 21), None);
        assert_eq!(removed(line, 22).as_deref(), Some("ingresses of extensions/v1beta1"));
        // In the order of another exporter.
        let line = r#"version="v1beta1",subresource="status",resource="cronjobs",removed_release="1.25",group="batch"} 1"#;
        assert_eq!(removed(line, 30).as_deref(), Some("cronjobs of batch/v1beta1"));
        for line in [r#"group="a",removed_release="",resource="b",version="c"} 1"#, "", "} 1"] {
            assert_eq!(removed(line, 99), None, "{line}");
        }
    }
}
