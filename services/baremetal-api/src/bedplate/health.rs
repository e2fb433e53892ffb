//! `/bedplate/v1/health`: what only the service itself knows of how it is: its database, and its clock.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use openstack_api::{Caller, Handle, Need, Routes, Shape, Time, json};
use serde::Serialize;

use crate::app::App;
use crate::error::Error;

/// What is answered here.
pub(crate) fn routes() -> Routes<App> {
    let database = Shape::object([
        ("kind", Shape::word(["sqlite", "postgresql"])),
        ("schema_found", Shape::whole()),
        ("schema_known", Shape::whole()),
    ]);
    let show = Handle::get("Show how the service is", show).needs(Need::Administer);
    let shape = Shape::object([("now", Shape::text()), ("database", database)]);
    Routes::new("bedplate").at("/bedplate/v1/health", [show.tells(shape)])
}

#[derive(Serialize)]
struct Body {
    now: Time,
    database: Database,
}

#[derive(Serialize)]
struct Database {
    kind: &'static str,
    /// What is in the database now, and the last that this program knows.
    schema_found: i64,
    schema_known: i64,
}

/// `GET /bedplate/v1/health`: asks the database.
async fn show(_caller: Caller, State(app): State<App>) -> Result<Response, Error> {
    let (kind, version) = app.store.schema().await?;
    let database = Database { kind, schema_found: version.found, schema_known: version.known };
    Ok(json(StatusCode::OK, &Body { now: Time((app.clock)()), database }))
}
