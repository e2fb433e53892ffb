//! `/clusters`: lists clusters, and shows one with its conditions, members, node groups, events and actions.

use api_client::WithJson;
use api_client::clusterd::{Cluster, Event, Events, Member, NodeGroup};
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use serde_json::{Value, json};

use super::confirm::check_name;
use crate::api::segment;
use crate::form::UserForm;
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;

/// The number of newest events that a page shows.
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

/// `GET /clusters`: lists all clusters.
async fn list(person: AuthorizedUser) -> Result<Response> {
    let api = person.clusterd()?;
    let clusters = api.first::<WithJson<Cluster>>("/v1/clusters/detail", 2000).await?;
    let page = person.page("clusters.html", "Clusters").under("clusters").live();
    person.show(page.put("clusters", clusters))
}

/// `GET /clusters/{cluster}`: shows a cluster.
async fn show(person: AuthorizedUser, Path(cluster): Path<String>) -> Result<Response> {
    let (api, name) = (person.clusterd()?, segment(&cluster)?);
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
        api.all(&machines),
        api.all(&groups),
        api.find(&events),
    );
    let (shown, explained): (WithJson<Cluster>, Value) = (shown?, explained?);
    let label = &shown.name;
    let page = person.page("cluster.html", label).under("clusters").live();
    let page = page.put("label", label).put("address", &name).put("explained", &explained);
    let (machines, groups): (Vec<WithJson<Member>>, Vec<WithJson<NodeGroup>>) =
        (machines?, groups?);
    let page = page.put("machines", machines).put("groups", groups);
    let page = page.put("events", newest(events.ok().flatten()));
    person.show(page.put("cluster", &shown))
}

/// The newest events, newest first.
pub(super) fn newest(events: Option<Events>) -> Vec<WithJson<Event>> {
    let all = events.map(|it| it.events).unwrap_or_default();
    all.into_iter().rev().take(EVENTS).collect()
}

/// `POST /clusters/{cluster}/kubeconfig`: downloads a kubeconfig. The file contains a key with all permissions in the cluster, so a plain
/// link must not be able to fetch it.
async fn kubeconfig(
    Path(cluster): Path<String>,
    UserForm { person, .. }: UserForm,
) -> Result<Response> {
    let text = person
        .clusterd()?
        .text(&format!("/bedplate/v1/clusters/{}/kubeconfig", segment(&cluster)?))
        .await?;
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = cluster.chars().filter(is_plain).collect();
    let named = HeaderValue::try_from(format!("attachment; filename=\"{name}.kubeconfig\""));
    let named = named.unwrap_or_else(|_| HeaderValue::from_static("attachment"));
    let kind = HeaderValue::from_static("application/yaml");
    Ok(([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, named)], text).into_response())
}

/// `POST /clusters/{cluster}/resize`: resizes a node group. Shrinking needs the cluster's name as a confirmation.
async fn resize(
    Path(cluster): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
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

/// Whether a node group has more members than the requested number. Unknown groups count as shrinking.
async fn shrinks(
    person: &AuthorizedUser,
    cluster: &str,
    group: Option<&str>,
    count: Option<i64>,
) -> Result<bool> {
    let path = format!("/v1/clusters/{}/nodegroups", segment(cluster)?);
    let groups: Vec<NodeGroup> = person.clusterd()?.all(&path).await?;
    // Without a group the API resizes the default group of workers.
    let is_meant = |it: &&NodeGroup| match group {
        Some(group) => it.uuid == group || it.name == group,
        None => it.role == "worker" && it.is_default,
    };
    let now = groups.iter().filter(is_meant).map(|it| it.node_count).max();
    Ok(count.zip(now).is_none_or(|(count, now)| count < now))
}

async fn name_of(person: &AuthorizedUser, cluster: &str) -> Result<String> {
    let path = format!("/v1/clusters/{}", segment(cluster)?);
    Ok(person.clusterd()?.get::<Cluster>(&path).await?.name)
}

/// `POST /clusters/{cluster}/groups`: creates a node group.
async fn add_group(
    Path(cluster): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let mut body = json!({"name": fields.get("name")?.trim(), "node_count": fields.number("node_count")?.unwrap_or(1)});
    if let Some(flavor) = fields.find("flavor") {
        body["flavor_id"] = flavor.trim().into();
    }
    ask(&person, &cluster, Method::POST, "/nodegroups", Some(&body)).await
}

/// `POST /clusters/{cluster}/groups/delete`: deletes a node group. Needs the group's name as a confirmation.
async fn delete_group(
    Path(cluster): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let path = format!("/nodegroups/{}", segment(fields.get("target")?)?);
    let of = format!("/v1/clusters/{}{path}", segment(&cluster)?);
    let shown: NodeGroup = person.clusterd()?.get(&of).await?;
    check_name(&fields, &shown.name, "node group")?;
    ask(&person, &cluster, Method::DELETE, &path, None).await
}

/// `POST /clusters/{cluster}/delete`: deletes a cluster. Needs its name as a confirmation.
async fn delete(
    Path(cluster): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let (api, name) = (person.clusterd()?, segment(&cluster)?);
    let shown: Cluster = api.get(&format!("/v1/clusters/{name}")).await?;
    if fields.find("name").map(str::trim) != Some(&shown.name) {
        return Err(Problem::Unreadable("name: type the cluster's name to confirm".to_owned()));
    }
    api.send(Method::DELETE, &format!("/v1/clusters/{name}"), None).await?;
    Ok(Redirect::to("/clusters").into_response())
}

async fn ask(
    person: &AuthorizedUser,
    cluster: &str,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response> {
    let name = segment(cluster)?;
    person.clusterd()?.send(method, &format!("/v1/clusters/{name}{path}"), body).await?;
    Ok(Redirect::to(&format!("/clusters/{name}")).into_response())
}
