//! `/bedplate/v1/import/clustertemplates/{template}`: templates of a Magnum, kept with their ids, owners and times.

use axum::response::Response;
use cluster_core::{
    ClusterParameters, Ident, Owner, Template, TemplateUuid, check_template, default_name,
};
use cluster_store::Scope;
use http::StatusCode;
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use openstack_api::{
    ApiError, JsonShape, PathParam, Query, RequiredAccess, Route, Routes, StrictJson, flag,
    json_field,
};
use serde_json::{Map, Value};
use tracing::info;
use uuid::Uuid;

use crate::app::App;
use crate::body::Body;
use crate::error::Result;
use crate::request::Request;

pub(crate) fn routes() -> Routes<App> {
    let results = JsonShape::enumeration(["imported", "present", "checked"]);
    let put = Route::put("Import a cluster template of Magnum", put)
        .needs(RequiredAccess::Administer)
        .query_parameters(["dry_run"])
        .reads(JsonShape::any_object())
        .refuses([StatusCode::CONFLICT])
        .returns(JsonShape::object([("result", results)]));
    Routes::new("bedplate").at("/bedplate/v1/import/clustertemplates/{template}", [put])
}

fn result(word: &str) -> Response {
    json_field(StatusCode::OK, "result", &word)
}

/// `PUT /bedplate/v1/import/clustertemplates/{template}`: imports a template as Magnum shows it. A template that is here already stays as
/// it is.
async fn put(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
    StrictJson(body): StrictJson<Map<String, Value>>,
) -> Result<Response> {
    let is_dry = query.take("dry_run").map(|raw| flag("dry_run", &raw)).transpose()?;
    query.finish()?;
    let id: Uuid =
        ident.parse().map_err(|_| ApiError::bad_request("the path must end in a UUID"))?;
    let store = &request.app.store;
    if !store.find_templates(&Ident::Id(id), &Scope::All).await?.is_empty() {
        return Ok(result("present"));
    }
    let template = imported(&request, id, body).await?;
    let owner = Scope::Project(template.project.clone());
    let same = store.find_templates(&Ident::Name(template.name.clone()), &owner).await?;
    if same.iter().any(|it| it.project == template.project) {
        let why = format!("name: {:?} is already in use", template.name.as_str());
        return Err(ApiError::conflict(why).into());
    }
    if is_dry == Some(true) {
        return Ok(result("checked"));
    }
    store.insert_template(&template).await?;
    info!("cluster template {id} was imported");
    Ok(result("imported"))
}

/// Reads a template as Magnum shows it.
async fn imported(request: &Request, id: Uuid, mut body: Map<String, Value>) -> Result<Template> {
    if text(&mut body, "uuid")?.and_then(|own| own.parse().ok()) != Some(id) {
        return Err(ApiError::bad_field("uuid", "must be the UUID of the path").into());
    }
    let needed = |field: &str, given: Option<String>| {
        given.ok_or_else(|| ApiError::bad_field(field, "is required"))
    };
    let project = needed("project_id", text(&mut body, "project_id")?)?;
    let user = needed("user_id", text(&mut body, "user_id")?)?;
    let created_at = time(&mut body, "created_at")?.unwrap_or((request.app.clock)());
    let updated_at = time(&mut body, "updated_at")?;
    body.remove("links");
    let fields: Body<Template> = serde_json::from_value(Value::Object(body))
        .map_err(|why| ApiError::bad_request(why.to_string()))?;
    request.app.auth.check_project(&request.caller, "project_id", &project).await?;
    let name = default_name("template", &id.to_string());
    let (id, owner) = (TemplateUuid::from_untyped_uuid(id), Owner::new(project.as_str(), user));
    let blank = ClusterParameters::new(String::new());
    let mut template = Template::new(id, owner, name, blank, created_at);
    fields.write(&mut template)?;
    check_template(&template.blueprint)?;
    template.blueprint = request.borrowed_for(&project, template.blueprint).await?;
    Ok(Template { updated_at, ..template })
}

/// Takes a text out of the body; `None` if it is missing or null.
fn text(body: &mut Map<String, Value>, field: &str) -> Result<Option<String>, ApiError> {
    match body.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ApiError::bad_field(field, "must be text")),
    }
}

fn time(body: &mut Map<String, Value>, field: &str) -> Result<Option<Timestamp>, ApiError> {
    let parse = |raw: String| {
        raw.parse().map_err(|_| {
            ApiError::bad_field(field, "must be a time such as 2026-01-02T03:04:05+00:00")
        })
    };
    text(body, field)?.map(parse).transpose()
}
