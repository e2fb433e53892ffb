//! `/quotas`: usage and limits of a project and of a user.

use axum::Router;
use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{encoded, segment};
use crate::form::UserForm;
use crate::page_request::AuthorizedUser;
use crate::problem::Problem;
use crate::state::Console;

/// The limited resources, each with its name in the API and its label.
const COUNTED: [(&str, &str); 9] = [
    ("clusters", "Clusters"),
    ("nodes", "Cluster members"),
    ("vms", "VMs"),
    ("vcpus", "vCPUs"),
    ("ram_mib", "RAM (MiB)"),
    ("disk_gib", "Disk (GiB)"),
    ("gpus", "GPUs"),
    ("floating_ips", "Floating IPs"),
    ("lease_seconds", "Max lease (s)"),
];

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

/// A row of the table.
#[derive(Serialize)]
pub(super) struct Row {
    key: &'static str,
    name: &'static str,
    used: Option<i64>,
    /// Negative if there is no limit.
    limit: i64,
    /// `None` if there is no limit.
    left: Option<i64>,
}

/// `GET /quotas?project=&user=`: shows usage and limits.
async fn show(
    person: AuthorizedUser,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, Problem> {
    let path = format!(
        "/bedplate/v1/quotas?project_id={}&user_id={}",
        encoded(wanted.project.trim()),
        encoded(wanted.user.trim())
    );
    let found = person.clusterd()?.get(&path).await?;
    let page = person.page("quotas.html", "Quotas").under("quotas");
    let page =
        page.put("project_rows", rows(&found["project"])).put("user_rows", rows(&found["user"]));
    let page = page.put("project_id", &found["project_id"]).put("user_id", &found["user_id"]);
    person.show(page.put("wanted_project", wanted.project).put("wanted_user", wanted.user))
}

/// The rows of a table, in the order of `COUNTED`.
pub(super) fn rows(account: &Value) -> Vec<Row> {
    let row = |(key, name): &(&'static str, &'static str)| {
        let entry = account.get(*key)?;
        let limit = entry["limit"].as_i64().unwrap_or(-1);
        let used = entry["used"].as_i64();
        let left = used.filter(|_| limit >= 0).map(|used| (limit - used).max(0));
        Some(Row { key, name, used, limit, left })
    };
    COUNTED.iter().filter_map(row).collect()
}

/// `POST /quotas`: sets limits. An empty field keeps its limit.
async fn set(UserForm { person, fields }: UserForm) -> Result<Response, Problem> {
    let (project, user) = (fields.get("project")?.trim(), fields.find("user").map(str::trim));
    let mut limits = Map::new();
    for (key, _) in COUNTED {
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
        let told: Vec<_> = rows(&account).iter().map(|row| (row.key, row.left)).collect();
        assert_eq!(told, [("vms", Some(2)), ("gpus", None)]);
    }
}
