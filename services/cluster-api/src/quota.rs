//! `/v1/quotas`: Magnum's quota, the maximum number of clusters in a project. `/bedplate/v1/quotas` has all other limits.

use axum::response::Response;
use cluster_core::{QuotaUuid, Resource};
use cluster_store::{Quota, Scope};
use http::StatusCode;
use newtype_uuid::GenericUuid;
use openstack_api::{
    AccessScope, ApiError, JsonShape, ListRequest, Paging, PathParam, RequiredAccess, Route,
    Routes, Shaped, StrictJson, Time, flag, json, shaped,
};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Result;
use crate::listing::MemoryList;
use crate::request::{Request, may_see_project, missing, other_project_refusal};

/// The only resource with a quota in Magnum.
const CLUSTER: &str = "Cluster";

pub(crate) fn routes() -> Routes<App> {
    let all = [
        Route::get("List quotas", list)
            .query_parameters(["limit", "marker", "sort_key", "sort_dir", "all_tenants"])
            .returns(JsonShape::page("quotas", Shown::shape())),
        Route::post("Set a quota", create)
            .needs(RequiredAccess::Administer)
            .reads(Body::schema())
            .answers(StatusCode::CREATED)
            .returns(Shown::shape())
            .refuses([StatusCode::NOT_FOUND]),
    ];
    let one = [
        Route::get("Show a quota", show).returns(Shown::shape()),
        Route::patch("Change a quota", patch)
            .needs(RequiredAccess::Administer)
            .reads(Body::schema())
            .answers(StatusCode::ACCEPTED)
            .returns(Shown::shape()),
        Route::delete("Delete a quota", delete)
            .needs(RequiredAccess::Administer)
            .answers(StatusCode::NO_CONTENT),
    ];
    Routes::new("quotas").at("/v1/quotas", all).at("/v1/quotas/{project}/{resource}", one)
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    project_id: Option<String>,
    /// Only `Cluster`.
    resource: Option<String>,
    /// The maximum number of clusters.
    hard_limit: u32,
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        id: Option<String>,
        project_id: &'a str,
        resource: &'a str,
        hard_limit: i64,
        created_at: Option<Time>,
        updated_at: Option<Time>,
    }
}

fn shown(quota: &Quota) -> Shown<'_> {
    Shown {
        id: Some(quota.id.to_string()),
        project_id: &quota.project,
        resource: &quota.resource,
        hard_limit: quota.hard_limit,
        created_at: Some(Time(quota.created_at)),
        updated_at: Time::some(quota.updated_at),
    }
}

fn check_resource(resource: &str) -> Result<(), ApiError> {
    match resource {
        CLUSTER => Ok(()),
        _ => Err(ApiError::bad_field("resource", "must be Cluster")),
    }
}

pub(crate) fn check_project(project: &str) -> Result<(), ApiError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !project.is_empty() && project.len() <= 255 && project.chars().all(legal) {
        true => Ok(()),
        false => Err(ApiError::bad_field("project_id", "must be the id of a project")),
    }
}

/// As in Magnum, a project that does not exist is 404.
fn no_project(why: ApiError) -> ApiError {
    match why.status {
        StatusCode::BAD_REQUEST => ApiError::not_found(why.message),
        _ => why,
    }
}

async fn find(app: &App, project: &str, resource: &str) -> Result<Option<Quota>> {
    check_project(project)?;
    check_resource(resource)?;
    let scope = Scope::Project(project.to_owned());
    Ok(app.store.list_quotas(&scope, Some(resource)).await?.pop())
}

/// `POST /v1/quotas`: sets the quota of a project.
async fn create(
    Request { app, caller, .. }: Request,
    StrictJson(body): StrictJson<Body>,
) -> Result<Response> {
    let project =
        body.project_id.ok_or_else(|| ApiError::bad_field("project_id", "is required"))?;
    let resource = body.resource.unwrap_or_else(|| CLUSTER.to_owned());
    check_project(&project)?;
    check_resource(&resource)?;
    app.auth.check_project(&caller, "project_id", &project).await.map_err(no_project)?;
    let quota = Quota {
        id: QuotaUuid::from_untyped_uuid((app.ids)()),
        project,
        resource,
        hard_limit: body.hard_limit.into(),
        created_at: (app.clock)(),
        updated_at: None,
    };
    app.store.insert_quota(&quota).await?;
    Ok(json(StatusCode::CREATED, &shown(&quota)))
}

const LIST: MemoryList = MemoryList {
    name: "quotas",
    marker: "id",
    keys: &["id", "project_id", "resource", "hard_limit", "created_at", "updated_at"],
};

/// `GET /v1/quotas`: lists the quotas that administrators set.
async fn list(request: Request, asked: ListRequest) -> Result<Response> {
    let mut query = asked.query.clone();
    let paging = Paging::take(&mut query)?;
    let all = query.take("all_tenants").map_or(Ok(false), |raw| flag("all_tenants", &raw))?;
    query.finish()?;
    let scope = match (all, request.project()) {
        (true, _) if request.caller.access_scope() == AccessScope::Everything => Scope::All,
        // As in Magnum, `all_tenants` of other callers means their own project.
        (_, Ok(own)) => Scope::Project(own.to_owned()),
        (_, Err(_)) => request.scope(),
    };
    let mut found = request.app.store.list_quotas(&scope, Some(CLUSTER)).await?;
    found.sort_by_key(|quota| (quota.created_at, quota.id));
    LIST.page(&found.iter().map(shown).collect::<Vec<_>>(), (&paging, &asked))
}

/// `GET /v1/quotas/{project}/{resource}`: the quota of a project, or the configured default.
async fn show(
    request: Request,
    PathParam((project, resource)): PathParam<(String, String)>,
) -> Result<Response> {
    if !may_see_project(&request.caller, &project) {
        return Err(other_project_refusal("project_id").into());
    }
    let found = find(&request.app, &project, &resource).await?;
    let body = match &found {
        Some(quota) => shown(quota),
        None => Shown {
            id: None,
            project_id: &project,
            resource: &resource,
            hard_limit: request.app.settings.quotas.project.of(Resource::Clusters).into(),
            created_at: None,
            updated_at: None,
        },
    };
    Ok(json(StatusCode::OK, &body))
}

/// `PATCH /v1/quotas/{project}/{resource}`: reads an object, not a JSON patch.
async fn patch(
    Request { app, .. }: Request,
    PathParam((project, resource)): PathParam<(String, String)>,
    StrictJson(body): StrictJson<Body>,
) -> Result<Response> {
    let same = |field: &str, given: &Option<String>, path: &str| match given {
        Some(given) if given != path => Err(ApiError::bad_field(field, "differs from the path")),
        Some(_) | None => Ok(()),
    };
    same("project_id", &body.project_id, &project)?;
    same("resource", &body.resource, &resource)?;
    let found = find(&app, &project, &resource).await?;
    let quota = found.ok_or_else(|| missing("Quota", &format!("{project}/{resource}")))?;
    let quota =
        Quota { hard_limit: body.hard_limit.into(), updated_at: Some((app.clock)()), ..quota };
    app.store.update_quota(&quota).await?;
    Ok(json(StatusCode::ACCEPTED, &shown(&quota)))
}

/// `DELETE /v1/quotas/{project}/{resource}`: restores the configured default.
async fn delete(
    Request { app, .. }: Request,
    PathParam((project, resource)): PathParam<(String, String)>,
) -> Result<StatusCode> {
    let found = find(&app, &project, &resource).await?;
    let quota = found.ok_or_else(|| missing("Quota", &format!("{project}/{resource}")))?;
    app.store.delete_quota(&quota).await?;
    Ok(StatusCode::NO_CONTENT)
}
