//! `/bedplate/v1/hypervisor-profiles`: how machines become compute hosts of the cloud.

mod view;

use axum::response::Response;
use baremetal_core::{Profile, check_compute_host, check_profile};
use baremetal_store::{PagePart, PageRows, ProfileRow, StoreError};
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, ListPart, Listing, PathParam, RequiredAccess, Route, Routes, StrictJson,
    json,
};
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::{Error, Result};
use crate::request::{Request, retry_if_stale};
use crate::secret;

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List hypervisor profiles", list)
        .returns(JsonShape::object([("hypervisor_profiles", JsonShape::list(view::shape()))]));
    let create = Route::post("Create a hypervisor profile", create)
        .needs(RequiredAccess::Administer)
        .reads(view::asked())
        .answers(StatusCode::CREATED)
        .returns(view::shape());
    let show = Route::get("Show a hypervisor profile without its secrets", show);
    let set = Route::put("Replace a hypervisor profile", set)
        .needs(RequiredAccess::Administer)
        .reads(view::asked())
        .returns(view::shape());
    let delete = Route::delete("Delete a hypervisor profile", delete)
        .needs(RequiredAccess::Administer)
        .answers(StatusCode::NO_CONTENT);
    Routes::new("bedplate").at("/bedplate/v1/hypervisor-profiles", [list, create]).at(
        "/bedplate/v1/hypervisor-profiles/{profile}",
        [show.returns(view::shape()), set, delete],
    )
}

/// `GET /bedplate/v1/hypervisor-profiles`: lists the profiles.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let store = app.store.clone();
    openstack_api::list(Listing::whole("hypervisor_profiles"), move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } = store.list_profiles_part(asked.elements, part).await?;
            let shown = found.iter().map(view::of).collect::<Result<Vec<Value>, _>>()?;
            let name = |shown: &Value| shown["name"].to_string();
            Ok::<_, Error>(ListPart::of(&shown, name, |shown| shown, more)?)
        })
    })
    .await
}

/// `GET /bedplate/v1/hypervisor-profiles/{profile}`: shows a profile.
async fn show(
    Request { app, .. }: Request,
    PathParam(name): PathParam<String>,
) -> Result<Response> {
    Ok(json(StatusCode::OK, &view::of(&find(&app, &name).await?)?))
}

/// `POST /bedplate/v1/hypervisor-profiles`: creates a profile.
async fn create(
    Request { app, .. }: Request,
    StrictJson(asked): StrictJson<Profile>,
) -> Result<Response> {
    let profile = checked(asked, None)?;
    app.conductor.check_image_host(&profile.instance_info)?;
    check_compute_host(None, &profile.instance_info)?;
    app.store.insert_profile(&profile, (app.clock)()).await?;
    Ok(json(StatusCode::CREATED, &view::of(&find(&app, profile.name.as_str()).await?)?))
}

/// `PUT /bedplate/v1/hypervisor-profiles/{profile}`: replaces a profile. A mask in place of a secret keeps the stored secret.
async fn set(
    Request { app, .. }: Request,
    PathParam(name): PathParam<String>,
    StrictJson(asked): StrictJson<Profile>,
) -> Result<Response> {
    retry_if_stale(|| async {
        let before = find(&app, &name).await?;
        if asked.name != before.profile.name {
            return Err(ApiError::bad_field("name", "cannot be changed").into());
        }
        let known = app.store.secrets().with_profile(&before.profile);
        let known = known.map_err(|why| {
            ApiError::broken(format!("cannot unseal the secrets of the profile: {why}"))
        })?;
        let profile = checked(asked.clone(), Some(&known))?;
        app.conductor.check_image_host(&profile.instance_info)?;
        check_compute_host(Some(&known.instance_info), &profile.instance_info)?;
        Ok(app.store.update_profile(&profile, before.version, (app.clock)()).await?)
    })
    .await?;
    Ok(json(StatusCode::OK, &view::of(&find(&app, &name).await?)?))
}

/// `DELETE /bedplate/v1/hypervisor-profiles/{profile}`: refused while a rack uses the profile as its goal.
async fn delete(
    Request { app, .. }: Request,
    PathParam(name): PathParam<String>,
) -> Result<StatusCode> {
    retry_if_stale(|| async {
        let found = find(&app, &name).await?;
        match app.store.delete_profile(&name, found.version).await {
            Err(StoreError::InUse { .. }) => {
                let problem =
                    format!("profile {name} is the goal of a rack: see `bedplate rack list`");
                Err(ApiError::conflict(problem).into())
            }
            done => Ok(done?),
        }
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Finds a profile by name. Its secrets stay sealed.
pub(super) async fn find(app: &App, name: &str) -> Result<ProfileRow> {
    let missing = || {
        let shown: String = name.chars().take(64).collect();
        ApiError::not_found(format!("Hypervisor profile {shown} could not be found."))
    };
    Ok(app.store.find_profile(name).await?.ok_or_else(missing)?)
}

/// Validates a profile after replacing masks by the secrets of `before`.
fn checked(asked: Profile, before: Option<&Profile>) -> Result<Profile> {
    let before = before.map(settings).transpose()?.unwrap_or_default();
    let mut with_secrets = settings(&asked)?;
    secret::restore_masked("settings", &before, &mut with_secrets)?;
    let settings = serde_json::from_value(Value::Object(with_secrets)).map_err(view::unreadable)?;
    let profile = Profile { settings, ..asked };
    check_profile(&profile).map_err(|why| ApiError::bad_field(&why.field, why.problem))?;
    Ok(profile)
}

fn settings(profile: &Profile) -> Result<Map<String, Value>, ApiError> {
    match serde_json::to_value(&profile.settings).map_err(view::unreadable)? {
        Value::Object(settings) => Ok(settings),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Ok(Map::new())
        }
    }
}
