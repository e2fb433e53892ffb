//! `/clusters`: all of them, and one: conditions, machines, node groups, events, and what may be asked of it.

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use serde_json::{Value, json};

use super::confirm::check_name;
use crate::api::segment;
use crate::form::Posted;
use crate::problem::Problem;
use crate::service::Console;
use crate::visit::Person;

/// So many of the newest events are shown.
const EVENTS: usize = 60;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/clusters", get(list))
        .route("/clusters/{cluster}", get(show))
        .route("/clusters/{cluster}/kubeconfig", post(kubeconfig))
        .route("/clusters/{cluster}/resize", post(resize))
        .route("/clusters/{cluster}/groups", post(add_group))
        .route("/clusters/{cluster}/groups/delete", post(delete_group))
        .route("/clusters/{cluster}/delete", post(delete))
}

/// `GET /clusters`.
async fn list(person: Person) -> Result<Response, Problem> {
    let clusters = person.clusters()?.all("clusters", "/v1/clusters/detail", 2000).await?;
    let page = person.page("clusters.html", "Clusters").under("clusters").live();
    person.show(page.put("clusters", clusters))
}

/// `GET /clusters/{cluster}`.
async fn show(person: Person, Path(cluster): Path<String>) -> Result<Response, Problem> {
    let (api, name) = (person.clusters()?, segment(&cluster)?);
    let [shown, explained, machines, groups, events] = [
        format!("/v1/clusters/{name}"),
        format!("/bedplate/v1/clusters/{name}"),
        format!("/bedplate/v1/clusters/{name}/machines"),
        format!("/v1/clusters/{name}/nodegroups"),
        format!("/bedplate/v1/clusters/{name}/events"),
    ];
    let (shown, explained, machines, groups, events) = tokio::join!(
        api.get(&shown),
        api.get(&explained),
        api.get(&machines),
        api.get(&groups),
        api.find(&events),
    );
    let (shown, explained) = (shown?, explained?);
    let label = shown["name"].as_str().unwrap_or(&cluster);
    let page = person.page("cluster.html", label).under("clusters").live();
    let page = page.put("label", label).put("address", &name).put("explained", &explained);
    let page = page.put("machines", &machines?["machines"]).put("groups", &groups?["nodegroups"]);
    let page = page.put("events", newest(events.as_ref().ok().and_then(Option::as_ref)));
    person.show(page.put("cluster", &shown))
}

/// The newest events, newest first.
pub(super) fn newest(events: Option<&Value>) -> Vec<&Value> {
    let all = events.and_then(|it| it["events"].as_array());
    all.into_iter().flatten().rev().take(EVENTS).collect()
}

/// `POST /clusters/{cluster}/kubeconfig`: a file. It holds a key that may do anything in the cluster, so no address alone brings it.
async fn kubeconfig(
    Path(cluster): Path<String>,
    Posted { person, .. }: Posted,
) -> Result<Response, Problem> {
    let text = person
        .clusters()?
        .text(&format!("/bedplate/v1/clusters/{}/kubeconfig", segment(&cluster)?))
        .await?;
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = cluster.chars().filter(is_plain).collect();
    let named = HeaderValue::try_from(format!("attachment; filename=\"{name}.kubeconfig\""));
    let named = named.unwrap_or_else(|_| HeaderValue::from_static("attachment"));
    let kind = HeaderValue::from_static("application/yaml");
    Ok(([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, named)], text).into_response())
}

/// `POST /clusters/{cluster}/resize`: how many machines a node group is to have; fewer than it has only with the cluster's name written out.
async fn resize(
    Path(cluster): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let count = fields.number("node_count")?;
    let mut body = json!({"node_count": count});
    if let Some(group) = fields.find("nodegroup") {
        body["nodegroup"] = group.into();
    }
    if shrinks(&person, &cluster, fields.find("nodegroup"), count).await? {
        check_name(&fields, &name_of(&person, &cluster).await?, "cluster")?;
    }
    ask(&person, &cluster, Method::POST, "/actions/resize", Some(&body)).await
}

/// Whether a node group has more machines than it is to have.
async fn shrinks(
    person: &Person,
    cluster: &str,
    group: Option<&str>,
    count: Option<i64>,
) -> Result<bool, Problem> {
    let path = format!("/v1/clusters/{}/nodegroups", segment(cluster)?);
    let found = person.clusters()?.get(&path).await?;
    let groups = found["nodegroups"].as_array().into_iter().flatten();
    // Without a group the API resizes the default one for workers.
    let is_meant = |it: &&Value| match group {
        Some(group) => it["uuid"] == group || it["name"] == group,
        None => it["role"] == "worker" && it["is_default"] == true,
    };
    let now = groups.filter(is_meant).filter_map(|it| it["node_count"].as_i64()).max();
    Ok(count.zip(now).is_none_or(|(count, now)| count < now))
}

/// What a cluster is called.
async fn name_of(person: &Person, cluster: &str) -> Result<String, Problem> {
    let shown = person.clusters()?.get(&format!("/v1/clusters/{}", segment(cluster)?)).await?;
    Ok(shown["name"].as_str().unwrap_or(cluster).to_owned())
}

/// `POST /clusters/{cluster}/groups`.
async fn add_group(
    Path(cluster): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let mut body = json!({"name": fields.get("name")?.trim(), "node_count": fields.number("node_count")?.unwrap_or(1)});
    if let Some(flavor) = fields.find("flavor") {
        body["flavor_id"] = flavor.trim().into();
    }
    ask(&person, &cluster, Method::POST, "/nodegroups", Some(&body)).await
}

/// `POST /clusters/{cluster}/groups/delete`: only with the group's name written out.
async fn delete_group(
    Path(cluster): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let path = format!("/nodegroups/{}", segment(fields.get("target")?)?);
    let of = format!("/v1/clusters/{}{path}", segment(&cluster)?);
    let shown = person.clusters()?.get(&of).await?;
    check_name(&fields, shown["name"].as_str().unwrap_or_default(), "node group")?;
    ask(&person, &cluster, Method::DELETE, &path, None).await
}

/// `POST /clusters/{cluster}/delete`: only with its name written out.
async fn delete(
    Path(cluster): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let (api, name) = (person.clusters()?, segment(&cluster)?);
    let shown = api.get(&format!("/v1/clusters/{name}")).await?;
    if fields.find("name").map(str::trim) != shown["name"].as_str() {
        return Err(Problem::Unreadable("name: write the cluster's name to delete it".to_owned()));
    }
    api.send(Method::DELETE, &format!("/v1/clusters/{name}"), None).await?;
    Ok(Redirect::to("/clusters").into_response())
}

async fn ask(
    person: &Person,
    cluster: &str,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response, Problem> {
    let name = segment(cluster)?;
    person.clusters()?.send(method, &format!("/v1/clusters/{name}{path}"), body).await?;
    Ok(Redirect::to(&format!("/clusters/{name}")).into_response())
}
