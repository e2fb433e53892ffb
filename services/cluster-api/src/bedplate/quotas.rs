//! `/bedplate/v1/quotas`: usage and limits of a project, and of a user in the project.

use axum::response::Response;
use cluster_core::{LimitChanges, Limits, QuotaScope, QuotaUsage, Resource};
use http::StatusCode;
use openstack_api::{
    AccessScope, ApiError, JsonShape, PathParam, Query, RequiredAccess, Route, Routes, StrictJson,
    json,
};
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

use crate::app::App;
use crate::error::Result;
use crate::quota::check_project;
use crate::request::{Request, may_see_project, other_project_refusal};

pub(crate) fn routes() -> Routes<App> {
    Routes::new("bedplate")
        .at(
            "/bedplate/v1/quotas",
            [Route::get("Show usage and limits of a project and a user", show)
                .query_parameters(["project_id", "user_id"])
                .returns(shape())],
        )
        .at(
            "/bedplate/v1/quotas/{project}",
            [
                Route::put("Set the limits of a project", set).reads(limits()),
                Route::patch("Change some limits of a project", change).reads(changes()),
            ]
            .map(|handle| handle.needs(RequiredAccess::Administer).returns(shape())),
        )
        .at(
            "/bedplate/v1/quotas/{project}/users/{user}",
            [
                Route::put("Set the limits of a user in a project", grant).reads(limits()),
                Route::patch("Change some limits of a user in a project", change_grant)
                    .reads(changes()),
            ]
            .map(|handle| handle.needs(RequiredAccess::Administer).returns(shape())),
        )
}

/// The response schema of usage and limits.
fn shape() -> JsonShape {
    let each = || {
        let shown = || {
            JsonShape::object([("limit", JsonShape::integer())])
                .maybe([("used", JsonShape::integer())])
        };
        let none = JsonShape::object([]);
        Resource::ALL.into_iter().fold(none, |all, one| all.and([(one.as_str(), shown())]))
    };
    let account = JsonShape::object([("project_id", JsonShape::text()), ("project", each())]);
    account.maybe([("user_id", JsonShape::text()), ("user", each())])
}

/// The body that sets limits: a resource that is not named gets the configured limit. -1 means no limit.
fn limits() -> RefOr<Schema> {
    each_limit(SchemaType::Type(Type::Integer))
}

/// The body that changes limits: a resource that is not named keeps its limit, and null means the configured limit.
fn changes() -> RefOr<Schema> {
    each_limit(SchemaType::Array(vec![Type::Integer, Type::Null]))
}

fn each_limit(kind: SchemaType) -> RefOr<Schema> {
    let limit = || ObjectBuilder::new().schema_type(kind.clone()).minimum(Some(-1));
    let object = Resource::ALL
        .into_iter()
        .fold(ObjectBuilder::new(), |object, resource| object.property(resource.as_str(), limit()));
    Schema::from(object.additional_properties(Some(AdditionalProperties::FreeForm(false))).build())
        .into()
}

/// Serializes each resource by name as `Shown`.
struct ByResource<'a>(&'a QuotaUsage);

#[derive(Serialize)]
struct Shown {
    /// Missing for a resource that is a maximum for each request and not a sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    limit: i64,
}

impl Serialize for ByResource<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let QuotaUsage { used, limits, .. } = self.0;
        let is_summed = |of: Resource| Resource::summed().any(|it| it == of);
        serializer.collect_map(Resource::ALL.into_iter().map(|resource| {
            let used = is_summed(resource).then(|| used[resource]);
            (resource.as_str(), Shown { used, limit: limits.of(resource).into() })
        }))
    }
}

/// Responds with the usage and limits of a project, and of one of its users.
async fn respond_account(app: &App, project: String, user: Option<String>) -> Result<Response> {
    #[derive(Serialize)]
    struct Body<'a> {
        project_id: &'a str,
        project: ByResource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user: Option<ByResource<'a>>,
    }
    let defaults = &app.settings.quotas;
    let of_project = QuotaScope { project, person: None };
    let of_person = user.map(|user| QuotaScope { person: Some(user), ..of_project.clone() });
    let project = app.store.account(&of_project, defaults).await?;
    let user = match &of_person {
        Some(person) => Some(app.store.account(person, defaults).await?),
        None => None,
    };
    let body = Body {
        project_id: &of_project.project,
        project: ByResource(&project),
        user_id: of_person.as_ref().and_then(|whose| whose.person.as_deref()),
        user: user.as_ref().map(ByResource),
    };
    Ok(json(StatusCode::OK, &body))
}

/// `GET /bedplate/v1/quotas?project_id=&user_id=`: the caller's own quota. Only administrators see the quotas of others.
async fn show(request: Request, mut query: Query) -> Result<Response> {
    let given = |text: &String| !text.is_empty();
    let project = query.take("project_id").filter(given);
    let user = query.take("user_id").filter(given);
    query.finish()?;
    let project = match project {
        Some(project)
            if !may_see_project(&request.caller, &project) && request.project()? != project =>
        {
            return Err(other_project_refusal("project_id").into());
        }
        Some(project) => project,
        None => request.project()?.to_owned(),
    };
    let own = request.user();
    let user = match user {
        Some(user) if user != own && request.caller.access_scope() != AccessScope::Everything => {
            let why = "user_id: only administrators may see the usage of other users";
            return Err(ApiError::new(StatusCode::FORBIDDEN, why).into());
        }
        Some(user) => user,
        None => own,
    };
    respond_account(&request.app, project, Some(user)).await
}

/// `PUT /bedplate/v1/quotas/{project}`: sets the limits of a project.
async fn set(
    Request { app, .. }: Request,
    PathParam(project): PathParam<String>,
    StrictJson(limits): StrictJson<Limits>,
) -> Result<Response> {
    check_project(&project)?;
    let whose = QuotaScope { project, person: None };
    app.store.set_limits(&whose, &limits, (app.clock)()).await?;
    respond_account(&app, whose.project, None).await
}

/// `PUT /bedplate/v1/quotas/{project}/users/{user}`: sets the limits of a user in a project.
async fn grant(
    Request { app, .. }: Request,
    PathParam((project, user)): PathParam<(String, String)>,
    StrictJson(limits): StrictJson<Limits>,
) -> Result<Response> {
    let whose = person(project, user)?;
    app.store.set_limits(&whose, &limits, (app.clock)()).await?;
    respond_account(&app, whose.project, whose.person).await
}

/// `PATCH /bedplate/v1/quotas/{project}`: changes some limits of a project and keeps the others.
async fn change(
    Request { app, .. }: Request,
    PathParam(project): PathParam<String>,
    StrictJson(changes): StrictJson<LimitChanges>,
) -> Result<Response> {
    check_project(&project)?;
    let whose = QuotaScope { project, person: None };
    app.store.change_limits(&whose, &changes, (app.clock)()).await?;
    respond_account(&app, whose.project, None).await
}

/// `PATCH /bedplate/v1/quotas/{project}/users/{user}`: changes some limits of a user and keeps the others.
async fn change_grant(
    Request { app, .. }: Request,
    PathParam((project, user)): PathParam<(String, String)>,
    StrictJson(changes): StrictJson<LimitChanges>,
) -> Result<Response> {
    let whose = person(project, user)?;
    app.store.change_limits(&whose, &changes, (app.clock)()).await?;
    respond_account(&app, whose.project, whose.person).await
}

/// Checks the ids of a user and its project.
fn person(project: String, user: String) -> Result<QuotaScope> {
    check_project(&project)?;
    if user.is_empty() || user.len() > 255 || user.chars().any(char::is_control) {
        return Err(ApiError::bad_field("user_id", "must be the id of a user").into());
    }
    Ok(QuotaScope { project, person: Some(user) })
}
