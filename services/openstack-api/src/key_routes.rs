//! `/bedplate/v1/keys`: the ids of the sealing keys, and their rotation. No request or answer contains a key.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use sealing::{KeyFileError, KeyUsage};
use serde::Serialize;
use tracing::error;

use crate::policy::ApiState;
use crate::{
    ApiError, Caller, JsonShape, PathParam, RequiredAccess, Route, Routes, Shaped, chain,
    json_field, shaped,
};

/// A service that seals secrets with the keys of a key file.
pub trait KeyRotation: Clone + Send + Sync + 'static {
    /// Lists the keys, with the number of records and tokens that need each.
    fn keys(&self) -> impl Future<Output = Result<Vec<KeyUsage>, ApiError>> + Send;

    /// Makes a new key that seals from now on, and returns its id.
    fn rotate(&self) -> impl Future<Output = Result<String, ApiError>> + Send;

    /// Removes a key that nothing needs any more.
    fn retire(&self, id: &str) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// The routes of this file.
pub fn key_routes<S: KeyRotation + ApiState>() -> Routes<S>
where
    crate::Auth: axum::extract::FromRef<S>,
{
    let list = Route::get("List the sealing keys", list::<S>).needs(RequiredAccess::Administer);
    let rotate =
        Route::post("Rotate the sealing key", rotate::<S>).needs(RequiredAccess::Administer);
    let retire = Route::delete("Retire an unused sealing key", retire::<S>)
        .needs(RequiredAccess::Administer);
    let key = Shown::shape();
    let list = list.returns(JsonShape::object([("keys", JsonShape::list(key))]));
    let rotate = rotate.returns(JsonShape::object([("id", JsonShape::text())]));
    let rotate = rotate.refuses([StatusCode::CONFLICT]);
    let retire = retire.refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT]);
    Routes::new("bedplate")
        .at("/bedplate/v1/keys", [list])
        .at("/bedplate/v1/keys/rotate", [rotate.answers(StatusCode::ACCEPTED)])
        .at("/bedplate/v1/keys/{key}", [retire.answers(StatusCode::NO_CONTENT)])
}

/// The refusal for a key file that cannot be used or changed. The cause is logged.
pub fn key_file(why: &KeyFileError) -> ApiError {
    if matches!(why, KeyFileError::NoFile | KeyFileError::NotEverywhere { .. }) {
        return ApiError::conflict(why.to_string());
    }
    error!("cannot use the sealing keys: {}", chain(why));
    ApiError::broken("the key file cannot be used; see the log of the service")
}

shaped! {
    #[derive(Serialize)]
    struct Shown<'a> {
        id: &'a str,
        seals: bool,
        in_file: bool,
        records: u64,
        machines: u64,
    }
}

fn shown(key: &KeyUsage) -> Shown<'_> {
    Shown {
        id: &key.id,
        seals: key.seals,
        in_file: key.held,
        records: key.records,
        machines: key.tokens,
    }
}

/// `GET /bedplate/v1/keys`: needs an administrator.
async fn list<S: KeyRotation>(_caller: Caller, State(app): State<S>) -> Result<Response, ApiError> {
    let keys = app.keys().await?;
    Ok(json_field(StatusCode::OK, "keys", &keys.iter().map(shown).collect::<Vec<_>>()))
}

/// `POST /bedplate/v1/keys/rotate`: makes a new key; the service then re-encrypts all records in the background.
async fn rotate<S: KeyRotation>(
    _caller: Caller,
    State(app): State<S>,
) -> Result<Response, ApiError> {
    let id = app.rotate().await?;
    Ok(json_field(StatusCode::ACCEPTED, "id", &id))
}

/// `DELETE /bedplate/v1/keys/{key}`: 409 while records or tokens need the key.
async fn retire<S: KeyRotation>(
    _caller: Caller,
    State(app): State<S>,
    PathParam(id): PathParam<String>,
) -> Result<StatusCode, ApiError> {
    app.retire(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
