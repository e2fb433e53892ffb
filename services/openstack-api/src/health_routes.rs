//! `/bedplate/v1/health`: facts about a service that only the service knows: the state of its database and its clock.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;

use crate::policy::ApiState;
use crate::{
    ApiError, Caller, JsonShape, RequiredAccess, Route, Routes, Shaped, Time, json, shaped,
};

shaped! {
    /// The health of a service.
    #[derive(Serialize)]
    pub struct Health {
        /// The time of the service's clock.
        pub now: Time,
        pub database: DatabaseHealth,
    }
}

shaped! {
    /// The state of a service's database.
    #[derive(Serialize)]
    pub struct DatabaseHealth {
        /// `sqlite` or `postgresql`.
        pub kind: &'static str = JsonShape::enumeration(["sqlite", "postgresql"]),
        /// The schema version of the database.
        pub schema_found: i64,
        /// The newest schema version that the program knows.
        pub schema_known: i64,
    }
}

/// A service that can report its health.
pub trait HealthSource: Clone + Send + Sync + 'static {
    /// Asks the database, and returns the health of the service.
    fn health(&self) -> impl Future<Output = Result<Health, ApiError>> + Send;
}

/// The routes of this file.
pub fn health_routes<S: HealthSource + ApiState>() -> Routes<S>
where
    crate::Auth: axum::extract::FromRef<S>,
{
    let show =
        Route::get("Show the health of the service", show::<S>).needs(RequiredAccess::Administer);
    Routes::new("bedplate").at("/bedplate/v1/health", [show.returns(Health::shape())])
}

/// `GET /bedplate/v1/health`: needs an administrator.
async fn show<S: HealthSource>(
    _caller: Caller,
    State(app): State<S>,
) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, &app.health().await?))
}
