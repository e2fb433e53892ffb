//! `/clusters/new`: creates a cluster. The console first shows the plan, and whether it fits.

use api_client::WithJson;
use api_client::clusterd::{ClusterTemplate, CreatedCluster, Plan, Quotas};
use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serde_json::{Map, Value, json};

use super::quotas::rows;
use crate::api::segment;
use crate::form::{Fields, UserForm};
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;
use crate::view::Page;

pub(super) fn routes() -> Router<Console> {
    // This path is matched before `/clusters/{cluster}`, so a cluster named `new` cannot hide it.
    Router::new().route("/clusters/new", get(ask).post(send))
}

/// `GET /clusters/new`: shows the form.
async fn ask(person: AuthorizedUser) -> Result<Response> {
    let page = form(&person).await?;
    person.show(page.put("given", json!({"master_count": "3", "node_count": "2"})))
}

async fn form(person: &AuthorizedUser) -> Result<Page> {
    let api = person.clusterd()?;
    let (templates, quotas) = tokio::join!(
        api.first("/v1/clustertemplates/detail", 1000),
        api.find("/bedplate/v1/quotas"),
    );
    let templates: Vec<WithJson<ClusterTemplate>> = templates?;
    let account = quotas?.map(|it: Quotas| rows(&it.user)).unwrap_or_default();
    let page = person.page("cluster_new.html", "Create cluster").under("clusters");
    Ok(page.put("templates", templates).put("account", account))
}

/// `POST /clusters/new`: shows the plan, and creates the cluster in a second step.
async fn send(UserForm { person, fields }: UserForm) -> Result<Response> {
    let body = match body(&fields) {
        Ok(body) => body,
        Err(why) => return again(&person, &fields, &why).await,
    };
    let api = person.clusterd()?;
    if fields.find("step") == Some("make") {
        return match api.post("/v1/clusters", &body).await {
            Ok(CreatedCluster { uuid }) => {
                Ok(Redirect::to(&format!("/clusters/{}", segment(&uuid)?)).into_response())
            }
            Err(Problem::LoggedOut) => Err(Problem::LoggedOut),
            Err(why) => again(&person, &fields, &why).await,
        };
    }
    match api.post::<WithJson<Plan>>("/bedplate/v1/plan", &body).await {
        Ok(plan) => {
            let page = form(&person).await?.put("given", fields.shown());
            let count = plan.objects.len();
            person.show(page.put("plan", &plan).put("object_count", count))
        }
        Err(Problem::LoggedOut) => Err(Problem::LoggedOut),
        Err(why) => again(&person, &fields, &why).await,
    }
}

async fn again(person: &AuthorizedUser, fields: &Fields, why: &Problem) -> Result<Response> {
    let page = form(person).await?.put("given", fields.shown());
    person.show_again(page, why)
}

/// The request body that the form describes.
fn body(fields: &Fields) -> Result<Value> {
    let mut body = Map::new();
    body.insert("cluster_template_id".to_owned(), fields.get("template")?.into());
    for (name, key) in [
        ("name", "name"),
        ("flavor", "flavor_id"),
        ("master_flavor", "master_flavor_id"),
        ("keypair", "keypair"),
    ] {
        if let Some(text) = fields.find(name) {
            body.insert(key.to_owned(), text.trim().into());
        }
    }
    for name in ["master_count", "node_count"] {
        if let Some(count) = fields.number(name)? {
            body.insert(name.to_owned(), count.into());
        }
    }
    if let Some(version) = fields.find("kube_tag") {
        body.insert("labels".to_owned(), json!({"kube_tag": version.trim()}));
        body.insert("merge_labels".to_owned(), true.into());
    }
    Ok(Value::Object(body))
}
