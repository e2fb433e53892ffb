//! Measures the cost of the trail: how many requests per second a service answers with the trail and without it, one row written for each.
//!
//! `cargo run --release -p audit-store --example append [postgres://…]`; without a URL on a SQLite file.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on ends here, and is printed"
)]

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use audit::{Entry, Filter, Head, ListedRow, Refusal, Trail, TrailError};
use audit_store::Recorder;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRef, State};
use database::WriteKind::OneStatement;
use database::{Database, values};
use http::{HeaderName, Request, StatusCode};
use openstack_api::{
    ApiConfig, ApiDescription, ApiError, ApiSettings, ApiState, Auth, BrowserCheck, Caller,
    JsonShape, Limits, Microversion, ResourceOwnership, Route, Routes, VersionHeaders, apply,
};
use tower::ServiceExt;
use uuid::Uuid;

/// The number of requests in each measurement.
const REQUESTS: usize = 20_000;

/// A trail that stores nothing, for comparison.
struct None;

#[async_trait]
impl Trail for None {
    async fn record(&self, _: Entry) -> Result<(), TrailError> {
        Ok(())
    }
    fn joins_next_write(&self) -> bool {
        false
    }
    fn record_later(&self, _: Entry) {}
    fn refused(&self, _: Refusal) {}
    async fn head(&self) -> Result<Head, TrailError> {
        Ok(Head::NONE)
    }
    async fn list(&self, _: &Filter) -> Result<Vec<ListedRow>, TrailError> {
        Ok(Vec::new())
    }
}

#[derive(Clone)]
struct App(Database);

impl ApiState for App {
    const POLICY: ResourceOwnership = ResourceOwnership::Projects;
}

impl FromRef<App> for Auth {
    fn from_ref(_: &App) -> Auth {
        Auth::None
    }
}

async fn write(_: Caller, State(app): State<App>) -> Result<StatusCode, ApiError> {
    let written = app.0.write(OneStatement, |c| {
        const INSERT: &str = "INSERT INTO things (id, document) VALUES ($1, $2)";
        let values = values![Uuid::new_v4(), "x".repeat(1000)];
        Box::pin(async move { Ok(c.execute(INSERT, values).await?) })
    });
    written.await.map_err(|why| ApiError::broken(why.to_string()))?;
    Ok(StatusCode::CREATED)
}

fn router(database: &Database, trail: Arc<dyn Trail>) -> Router {
    let settings = ApiSettings::sample(Limits::default());
    let config = ApiConfig {
        dialect: VersionHeaders {
            header: HeaderName::from_static("version"),
            prefix: "",
            minimum_header: HeaderName::from_static("minimum"),
            maximum_header: HeaderName::from_static("maximum"),
            minimum: Microversion::new(1),
            maximum: Microversion::new(1),
        },
        alias: |_, _| Option::None,
        unrouted: |_, _, _| Option::None,
        envelope: |refusal, _| refusal.to_string(),
        challenge: String::new(),
        browsers: BrowserCheck::new(&Auth::None, settings.hosts.clone()),
        trail,
        ticket_keys: Option::None,
        longest_body: 1 << 20,
        settings,
    };
    let routes = Routes::new("things").at("/things/{thing}", [Route::post("Make a thing", write)]);
    let description = ApiDescription {
        title: "Things",
        version: Microversion::new(1),
        description: "",
        refusal: JsonShape::anything(),
    };
    let router = routes.finish(description);
    apply(router.with_state(App(database.clone())), config)
}

async fn pace(router: &Router, at_once: usize) -> f64 {
    let begun = Instant::now();
    let workers = (0..at_once).map(|_| {
        let router = router.clone();
        tokio::spawn(async move {
            for _ in 0..REQUESTS / at_once {
                let request = Request::post("/things/t").body(Body::empty()).unwrap();
                let answer = router.clone().oneshot(request).await.unwrap();
                assert_eq!(answer.status(), StatusCode::CREATED);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    REQUESTS as f64 / begun.elapsed().as_secs_f64()
}

#[tokio::main]
async fn main() {
    let folder = std::env::temp_dir().join(format!("pace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = format!("sqlite://{}/pace.db", folder.display());
    let url = std::env::args().nth(1).unwrap_or(file);
    const THINGS: &str =
        "CREATE TABLE things (id TEXT NOT NULL PRIMARY KEY, document TEXT NOT NULL)";
    let database = Database::open(&url, &[audit_store::SCHEMA, THINGS]).await.unwrap();
    let with = router(&database, Arc::new(Recorder::new(database.clone(), "pace")));
    let without = router(&database, Arc::new(None));
    for at_once in [1, 8, 64] {
        let (without, with) = (pace(&without, at_once).await, pace(&with, at_once).await);
        println!("{at_once} at once: {without:.0} requests/s without the trail, {with:.0} with it");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
