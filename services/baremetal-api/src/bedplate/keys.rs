//! `/bedplate/v1/keys`: the keys that seal secrets, by their ids. No key itself goes in or out.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use openstack_api::{Caller, Handle, Need, Routes, Segment, Shape, json};
use sealing::KeyUse;
use serde::Serialize;

use crate::app::App;
use crate::error::Error;

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    let list = Handle::get("List the keys that seal secrets", list).needs(Need::Administer);
    let rotate = Handle::post("Seal secrets by a new key", rotate).needs(Need::Administer);
    let retire =
        Handle::delete("Forget a key that seals nothing any more", retire).needs(Need::Administer);
    let key = Shape::object([
        ("id", Shape::text()),
        ("seals", Shape::flag()),
        ("in_file", Shape::flag()),
        ("records", Shape::whole()),
    ]);
    let list = list.tells(Shape::object([("keys", Shape::list(key))]));
    let rotate = rotate.tells(Shape::object([("id", Shape::text())]));
    let rotate = rotate.refuses([StatusCode::CONFLICT]);
    let retire = retire.refuses([StatusCode::NOT_FOUND, StatusCode::CONFLICT]);
    Routes::new("bedplate")
        .at("/bedplate/v1/keys", [list])
        .at("/bedplate/v1/keys/rotate", [rotate.answers(StatusCode::ACCEPTED)])
        .at("/bedplate/v1/keys/{key}", [retire.answers(StatusCode::NO_CONTENT)])
}

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    seals: bool,
    in_file: bool,
    records: u64,
}

fn shown(key: &KeyUse) -> Shown<'_> {
    Shown { id: &key.id, seals: key.seals, in_file: key.held, records: key.records }
}

/// `GET /bedplate/v1/keys`.
async fn list(_caller: Caller, State(app): State<App>) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body<'a> {
        keys: Vec<Shown<'a>>,
    }
    let keys = app.conductor.keys().await?;
    Ok(json(StatusCode::OK, &Body { keys: keys.iter().map(shown).collect() }))
}

/// `POST /bedplate/v1/keys/rotate`: the service makes the key, and seals all by it while it goes on.
async fn rotate(_caller: Caller, State(app): State<App>) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Body {
        id: String,
    }
    let id = app.conductor.rotate_keys().await?;
    Ok(json(StatusCode::ACCEPTED, &Body { id }))
}

/// `DELETE /bedplate/v1/keys/{key}`: 409 while anything needs it.
async fn retire(
    _caller: Caller,
    State(app): State<App>,
    Segment(id): Segment<String>,
) -> Result<StatusCode, Error> {
    app.conductor.retire_key(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
