//! `/quotas`: usage and limits of a project and of a user.

use std::collections::BTreeMap;

use api_client::clusterd::{Quotas, ResourceQuota};
use axum::Router;
use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::Method;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{encoded, segment};
use crate::form::UserForm;
use crate::page_request::AuthorizedUser;
use crate::problem::Result;
use crate::state::Console;
use crate::view::bytes;

/// The limited resources, each with its name in the API, its name for people, and the unit of its numbers.
const COUNTED: [(&str, &str, Unit); 9] = [
    ("clusters", "Clusters", Unit::One),
    ("nodes", "Cluster members", Unit::One),
    ("vms", "VMs", Unit::One),
    ("vcpus", "vCPUs", Unit::One),
    ("ram_mib", "RAM", Unit::Mib),
    ("disk_gib", "Disk", Unit::Gib),
    ("gpus", "GPUs", Unit::One),
    ("floating_ips", "Floating IPs", Unit::One),
    ("lease_seconds", "Max lease", Unit::Seconds),
];

/// The unit of a number in the API.
#[derive(Clone, Copy)]
enum Unit {
    One,
    Mib,
    Gib,
    Seconds,
}

impl Unit {
    /// A number with the unit that people read.
    fn show(self, number: i64) -> String {
        match self {
            Unit::One => number.to_string(),
            Unit::Mib => bytes(number as f64 * 1048576.0),
            Unit::Gib => bytes(number as f64 * 1073741824.0),
            Unit::Seconds => readable::duration(SignedDuration::from_secs(number)),
        }
    }

    /// The label of a form field, which expects the number of the API.
    fn label(self, name: &str) -> String {
        match self {
            Unit::One => name.to_owned(),
            Unit::Mib => format!("{name} (MiB)"),
            Unit::Gib => format!("{name} (GiB)"),
            Unit::Seconds => format!("{name} (s)"),
        }
    }
}

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/quotas", get(show).post(set))
}

#[derive(Deserialize)]
struct PageQuery {
    #[serde(default)]
    project: String,
    #[serde(default)]
    user: String,
}

#[derive(Serialize)]
pub(super) struct Row {
    key: &'static str,
    name: &'static str,
    /// The label of the form field that sets the limit.
    label: String,
    used: Option<i64>,
    /// The used amount with its unit.
    used_shown: Option<String>,
    /// Negative if there is no limit.
    limit: i64,
    /// The limit with its unit.
    limit_shown: String,
    /// `None` if there is no limit.
    left: Option<i64>,
}

/// `GET /quotas?project=&user=`: shows usage and limits.
async fn show(person: AuthorizedUser, Query(wanted): Query<PageQuery>) -> Result<Response> {
    let path = format!(
        "/bedplate/v1/quotas?project_id={}&user_id={}",
        encoded(wanted.project.trim()),
        encoded(wanted.user.trim())
    );
    let found: Quotas = person.clusterd()?.get(&path).await?;
    let page = person.page("quotas.html", "Quotas").under("quotas");
    let page = page.put("project_rows", rows(&found.project)).put("user_rows", rows(&found.user));
    let page = page.put("project_id", found.project_id).put("user_id", found.user_id);
    person.show(page.put("wanted_project", wanted.project).put("wanted_user", wanted.user))
}

/// The rows of a table, in the order of `COUNTED`.
pub(super) fn rows(account: &BTreeMap<String, ResourceQuota>) -> Vec<Row> {
    let row = |(key, name, unit): &(&'static str, &'static str, Unit)| {
        let ResourceQuota { limit, used } = *account.get(*key)?;
        let used = used.and_then(|used| i64::try_from(used).ok());
        let left = used.filter(|_| limit >= 0).map(|used| (limit - used).max(0));
        Some(Row {
            key,
            name,
            label: unit.label(name),
            used,
            used_shown: used.map(|used| unit.show(used)),
            limit,
            limit_shown: unit.show(limit),
            left,
        })
    };
    COUNTED.iter().filter_map(row).collect()
}

/// `POST /quotas`: sets limits. An empty field keeps its limit.
async fn set(UserForm { person, fields }: UserForm) -> Result<Response> {
    let (project, user) = (fields.get("project")?.trim(), fields.find("user").map(str::trim));
    let mut limits = Map::new();
    for (key, ..) in COUNTED {
        if let Some(limit) = fields.number(key)? {
            limits.insert(key.to_owned(), limit.into());
        }
    }
    let mut path = format!("/bedplate/v1/quotas/{}", segment(project)?);
    let mut back = format!("/quotas?project={}", segment(project)?);
    if let Some(user) = user {
        path = format!("{path}/users/{}", segment(user)?);
        back = format!("{back}&user={}", segment(user)?);
    }
    person.clusterd()?.send(Method::PATCH, &path, Some(&Value::Object(limits))).await?;
    Ok(Redirect::to(&back).into_response())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_remainder_is_shown_if_there_is_a_limit() {
        let account = json!({"vms": {"used": 3, "limit": 5}, "gpus": {"used": 1, "limit": -1}});
        let shown: Vec<_> = rows(&serde_json::from_value(account).unwrap())
            .iter()
            .map(|row| (row.key, row.left))
            .collect();
        assert_eq!(shown, [("vms", Some(2)), ("gpus", None)]);
    }

    #[test]
    fn amounts_have_the_unit_that_people_read() {
        let account = json!({
            "ram_mib": {"used": 1536, "limit": 65536}, "disk_gib": {"used": 40, "limit": -1},
            "lease_seconds": {"limit": 604800},
        });
        let shown: Vec<_> = rows(&serde_json::from_value(account).unwrap())
            .into_iter()
            .map(|row| (row.label, row.used_shown, row.limit_shown))
            .collect();
        let row = |label: &str, used: Option<&str>, limit: &str| {
            (label.to_owned(), used.map(str::to_owned), limit.to_owned())
        };
        assert_eq!(shown[0], row("RAM (MiB)", Some("1.5 GiB"), "64 GiB"));
        assert_eq!(shown[1].1.as_deref(), Some("40 GiB"));
        assert_eq!(shown[2], row("Max lease (s)", None, "7 d"));
    }
}
