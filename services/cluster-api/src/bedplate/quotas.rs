//! `/bedplate/v1/quotas`: usage and limits of a project, and of a user in the project.

use axum::extract::State;
use axum::response::Response;
use cluster_core::{Account, LimitChanges, Limits, Resource, Whose};
use http::StatusCode;
use openstack_api::{
    ApiError, Caller, Handle, Need, Query, Reach, Routes, Segment, Shape, Strict, json,
};
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

use crate::app::{App, elsewhere, reaches};
use crate::error::Error;
use crate::quota::check_project;

/// Returns the routes of quotas.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("bedplate")
        .at(
            "/bedplate/v1/quotas",
            [Handle::get("Show usage and limits of a project and a user", show)
                .asks(["project_id", "user_id"])
                .tells(shape())],
        )
        .at(
            "/bedplate/v1/quotas/{project}",
            [
                Handle::put("Set the limits of a project", set).reads(limits()),
                Handle::patch("Change some limits of a project", change).reads(changes()),
            ]
            .map(|handle| handle.needs(Need::Administer).tells(shape())),
        )
        .at(
            "/bedplate/v1/quotas/{project}/users/{user}",
            [
                Handle::put("Set the limits of a user in a project", grant).reads(limits()),
                Handle::patch("Change some limits of a user in a project", change_grant)
                    .reads(changes()),
            ]
            .map(|handle| handle.needs(Need::Administer).tells(shape())),
        )
}

/// The response schema of usage and limits.
fn shape() -> Shape {
    let each = || {
        let shown = || Shape::object([("limit", Shape::whole())]).maybe([("used", Shape::whole())]);
        let none = Shape::object([]);
        Resource::ALL.into_iter().fold(none, |all, one| all.and([(one.as_str(), shown())]))
    };
    let account = Shape::object([("project_id", Shape::text()), ("project", each())]);
    account.maybe([("user_id", Shape::text()), ("user", each())])
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
struct Each<'a>(&'a Account);

#[derive(Serialize)]
struct Shown {
    /// Missing for a resource that is a maximum for each request and not a sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    limit: i64,
}

impl Serialize for Each<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Account { used, limits, .. } = self.0;
        let is_summed = |of: Resource| Resource::summed().any(|it| it == of);
        serializer.collect_map(Resource::ALL.into_iter().map(|resource| {
            let used = is_summed(resource).then(|| used[resource]);
            (resource.as_str(), Shown { used, limit: limits.of(resource).into() })
        }))
    }
}

/// Responds with the usage and limits of a project, and of one of its users.
async fn told(app: &App, project: String, user: Option<String>) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body<'a> {
        project_id: &'a str,
        project: Each<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user: Option<Each<'a>>,
    }
    let defaults = &app.settings.quotas;
    let of_project = Whose { project, person: None };
    let of_person = user.map(|user| Whose { person: Some(user), ..of_project.clone() });
    let project = app.store.account(&of_project, defaults).await?;
    let user = match &of_person {
        Some(person) => Some(app.store.account(person, defaults).await?),
        None => None,
    };
    let body = Body {
        project_id: &of_project.project,
        project: Each(&project),
        user_id: of_person.as_ref().and_then(|whose| whose.person.as_deref()),
        user: user.as_ref().map(Each),
    };
    Ok(json(StatusCode::OK, &body))
}

/// `GET /bedplate/v1/quotas?project_id=&user_id=`: the caller's own quota. Only administrators see the quotas of others.
async fn show(caller: Caller, State(app): State<App>, mut query: Query) -> Result<Response, Error> {
    let given = |text: &String| !text.is_empty();
    let project = query.take("project_id").filter(given);
    let user = query.take("user_id").filter(given);
    query.finish()?;
    let project = match project {
        Some(project) if !reaches(&caller, &project) && app.project(&caller)? != project => {
            return Err(elsewhere("project_id").into());
        }
        Some(project) => project,
        None => app.project(&caller)?.to_owned(),
    };
    let own = app.user(&caller);
    let user = match user {
        Some(user) if user != own && caller.reach() != Reach::Everything => {
            let why = "user_id: only administrators may see the usage of other users";
            return Err(ApiError::new(StatusCode::FORBIDDEN, why).into());
        }
        Some(user) => user,
        None => own,
    };
    told(&app, project, Some(user)).await
}

/// `PUT /bedplate/v1/quotas/{project}`: sets the limits of a project.
async fn set(
    _caller: Caller,
    State(app): State<App>,
    Segment(project): Segment<String>,
    Strict(limits): Strict<Limits>,
) -> Result<Response, Error> {
    check_project(&project)?;
    let whose = Whose { project, person: None };
    app.store.set_limits(&whose, &limits, (app.clock)()).await?;
    told(&app, whose.project, None).await
}

/// `PUT /bedplate/v1/quotas/{project}/users/{user}`: sets the limits of a user in a project.
async fn grant(
    _caller: Caller,
    State(app): State<App>,
    Segment((project, user)): Segment<(String, String)>,
    Strict(limits): Strict<Limits>,
) -> Result<Response, Error> {
    let whose = person(project, user)?;
    app.store.set_limits(&whose, &limits, (app.clock)()).await?;
    told(&app, whose.project, whose.person).await
}

/// `PATCH /bedplate/v1/quotas/{project}`: changes some limits of a project and keeps the others.
async fn change(
    _caller: Caller,
    State(app): State<App>,
    Segment(project): Segment<String>,
    Strict(changes): Strict<LimitChanges>,
) -> Result<Response, Error> {
    check_project(&project)?;
    let whose = Whose { project, person: None };
    app.store.change_limits(&whose, &changes, (app.clock)()).await?;
    told(&app, whose.project, None).await
}

/// `PATCH /bedplate/v1/quotas/{project}/users/{user}`: changes some limits of a user and keeps the others.
async fn change_grant(
    _caller: Caller,
    State(app): State<App>,
    Segment((project, user)): Segment<(String, String)>,
    Strict(changes): Strict<LimitChanges>,
) -> Result<Response, Error> {
    let whose = person(project, user)?;
    app.store.change_limits(&whose, &changes, (app.clock)()).await?;
    told(&app, whose.project, whose.person).await
}

/// Checks the ids of a user and its project.
fn person(project: String, user: String) -> Result<Whose, Error> {
    check_project(&project)?;
    if user.is_empty() || user.len() > 255 || user.chars().any(char::is_control) {
        return Err(ApiError::bad_field("user_id", "must be the id of a user").into());
    }
    Ok(Whose { project, person: Some(user) })
}
