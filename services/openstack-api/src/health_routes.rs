//! `/bedplate/v1/health`: what only the service itself knows of how it is: its database, and its clock.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;

use crate::policy::Ward;
use crate::{ApiError, Caller, Handle, Need, Routes, Shape, Time, json};

/// How a service is.
#[derive(Serialize)]
pub struct Health {
    /// What its clock says.
    pub now: Time,
    /// Its database.
    pub database: DatabaseHealth,
}

/// How a service's database is.
#[derive(Serialize)]
pub struct DatabaseHealth {
    /// `sqlite` or `postgresql`.
    pub kind: &'static str,
    /// The version of its tables now.
    pub schema_found: i64,
    /// The last version that the program knows.
    pub schema_known: i64,
}

/// A service that knows how it is.
pub trait Reporter: Clone + Send + Sync + 'static {
    /// Asks the database.
    fn health(&self) -> impl Future<Output = Result<Health, ApiError>> + Send;
}

/// What is answered here.
pub fn health_routes<S: Reporter + Ward>() -> Routes<S>
where
    crate::Auth: axum::extract::FromRef<S>,
{
    let database = Shape::object([
        ("kind", Shape::word(["sqlite", "postgresql"])),
        ("schema_found", Shape::whole()),
        ("schema_known", Shape::whole()),
    ]);
    let show = Handle::get("Show how the service is", show::<S>).needs(Need::Administer);
    let shape = Shape::object([("now", Shape::text()), ("database", database)]);
    Routes::new("bedplate").at("/bedplate/v1/health", [show.tells(shape)])
}

/// `GET /bedplate/v1/health`.
async fn show<S: Reporter>(_caller: Caller, State(app): State<S>) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, &app.health().await?))
}
