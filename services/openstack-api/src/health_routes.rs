//! `/bedplate/v1/health`: facts about a service that only the service knows: the state of its database and its clock.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;

use crate::policy::Ward;
use crate::{ApiError, Caller, Handle, Need, Routes, Shape, Time, json};

/// The health of a service.
#[derive(Serialize)]
pub struct Health {
    /// The time of the service's clock.
    pub now: Time,
    pub database: DatabaseHealth,
}

/// The state of a service's database.
#[derive(Serialize)]
pub struct DatabaseHealth {
    /// `sqlite` or `postgresql`.
    pub kind: &'static str,
    /// The schema version of the database.
    pub schema_found: i64,
    /// The newest schema version that the program knows.
    pub schema_known: i64,
}

/// A service that can report its health.
pub trait Reporter: Clone + Send + Sync + 'static {
    /// Asks the database, and returns the health of the service.
    fn health(&self) -> impl Future<Output = Result<Health, ApiError>> + Send;
}

/// The routes of this file.
pub fn health_routes<S: Reporter + Ward>() -> Routes<S>
where
    crate::Auth: axum::extract::FromRef<S>,
{
    let database = Shape::object([
        ("kind", Shape::word(["sqlite", "postgresql"])),
        ("schema_found", Shape::whole()),
        ("schema_known", Shape::whole()),
    ]);
    let show = Handle::get("Show the health of the service", show::<S>).needs(Need::Administer);
    let shape = Shape::object([("now", Shape::text()), ("database", database)]);
    Routes::new("bedplate").at("/bedplate/v1/health", [show.tells(shape)])
}

/// `GET /bedplate/v1/health`: needs an administrator.
async fn show<S: Reporter>(_caller: Caller, State(app): State<S>) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, &app.health().await?))
}
