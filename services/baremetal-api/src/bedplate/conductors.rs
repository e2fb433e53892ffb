//! `/bedplate/v1/conductors`: the share of each conductor in the work, and the drain of a conductor before it is stopped.

use std::collections::HashMap;

use axum::response::Response;
use http::StatusCode;
use openstack_api::{ApiError, JsonShape, PathParam, Route, Routes, Shaped, Time, json, shaped};
use replicas::{ConductorRow, ConductorState, DrainOutcome, LivingConductors};
use serde::Serialize;

use crate::app::App;
use crate::conductor::{missing, short};
use crate::error::Result;
use crate::request::Request;
use crate::rule;

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List conductors with their shares of the nodes", list)
        .with_rule(rule::READ_SHARED)
        .returns(JsonShape::object([("conductors", JsonShape::list(Share::shape()))]));
    let show = Route::get("Show a conductor with its share of the nodes", show)
        .with_rule(rule::READ_SHARED)
        .returns(Share::shape());
    let drain = Route::put("Let a conductor take no work until it starts again", drain)
        .with_rule(rule::ADMINISTER)
        .refuses([StatusCode::CONFLICT])
        .answers(StatusCode::ACCEPTED)
        .returns(Share::shape());
    let undrain = Route::delete("Let a conductor take work again", undrain)
        .with_rule(rule::ADMINISTER)
        .refuses([StatusCode::CONFLICT])
        .answers(StatusCode::ACCEPTED)
        .returns(Share::shape());
    Routes::new("bedplate")
        .at("/bedplate/v1/conductors", [list])
        .at("/bedplate/v1/conductors/{hostname}", [show])
        .at("/bedplate/v1/conductors/{hostname}/drain", [drain, undrain])
}

shaped! {
    /// A conductor with its share.
    #[derive(Serialize)]
    struct Share<'a> {
        hostname: &'a str,
        conductor_groups: &'a [String],
        state: &'static str = JsonShape::enumeration(ConductorState::ALL.map(ConductorState::as_str)),
        /// The version of its program; empty if the program is older than this field.
        version: &'a str,
        /// How many nodes belong to it.
        nodes: u64,
        /// How many of these have work or a change in progress.
        busy_nodes: u64,
        /// How many turns it still has for nodes that belong to others by now.
        turns_of_others: u32,
        last_seen_at: Time,
    }
}

/// The nodes of a conductor.
#[derive(Clone, Copy, Default)]
struct NodeCount {
    all: u64,
    busy: u64,
}

/// All conductors with their shares.
struct Shares {
    rows: Vec<ConductorRow>,
    living: LivingConductors,
    counts: HashMap<String, NodeCount>,
}

impl Shares {
    async fn read(app: &App) -> Result<Shares> {
        let conductors = app.store.conductors();
        let rows = conductors.list((app.clock)()).await?;
        let living = LivingConductors::listed(&rows, &conductors);
        let mut counts: HashMap<String, NodeCount> = HashMap::new();
        for node in app.store.node_groups().await? {
            let Some(hostname) = living.conductor_of(&node.id, &node.group) else { continue };
            let count = counts.entry(hostname.to_owned()).or_default();
            count.all += 1;
            count.busy += u64::from(node.is_busy);
        }
        Ok(Shares { rows, living, counts })
    }

    fn of<'a>(&'a self, row: &'a ConductorRow) -> Share<'a> {
        let NodeCount { all, busy } = self.counts.get(&row.hostname).copied().unwrap_or_default();
        Share {
            hostname: &row.hostname,
            conductor_groups: &row.groups,
            state: self.living.state_of(&row.hostname).as_str(),
            version: &row.program,
            nodes: all,
            busy_nodes: busy,
            turns_of_others: row.turns,
            last_seen_at: Time(row.seen_at),
        }
    }

    fn find(&self, hostname: &str) -> Result<Share<'_>> {
        let row = self.rows.iter().find(|row| row.hostname == hostname);
        Ok(self.of(row.ok_or_else(|| missing(hostname))?))
    }
}

#[derive(Serialize)]
struct List<'a> {
    conductors: Vec<Share<'a>>,
}

/// `GET /bedplate/v1/conductors`: lists conductors in the order in which they were first seen.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let shares = Shares::read(&app).await?;
    let conductors = shares.rows.iter().map(|row| shares.of(row)).collect();
    Ok(json(StatusCode::OK, &List { conductors }))
}

/// `GET /bedplate/v1/conductors/{hostname}`: shows a conductor.
async fn show(
    Request { app, .. }: Request,
    PathParam(hostname): PathParam<String>,
) -> Result<Response> {
    let shares = Shares::read(&app).await?;
    Ok(json(StatusCode::OK, &shares.find(&hostname)?))
}

/// `PUT /bedplate/v1/conductors/{hostname}/drain`: drains a conductor.
async fn drain(
    Request { app, .. }: Request,
    PathParam(hostname): PathParam<String>,
) -> Result<Response> {
    let outcome = app.store.conductors().drain(&hostname, (app.clock)()).await?;
    recorded(&app, &hostname, outcome).await
}

/// `DELETE /bedplate/v1/conductors/{hostname}/drain`: undrains a conductor.
async fn undrain(
    Request { app, .. }: Request,
    PathParam(hostname): PathParam<String>,
) -> Result<Response> {
    let outcome = app.store.conductors().undrain(&hostname, (app.clock)()).await?;
    recorded(&app, &hostname, outcome).await
}

/// Tells all conductors of the change, and answers with the conductor.
async fn recorded(app: &App, hostname: &str, outcome: DrainOutcome) -> Result<Response> {
    let why = match outcome {
        DrainOutcome::Recorded => {
            app.conductor.wake_conductors();
            let shares = Shares::read(app).await?;
            return Ok(json(StatusCode::ACCEPTED, &shares.find(hostname)?));
        }
        DrainOutcome::Missing => return Err(missing(hostname).into()),
        DrainOutcome::NotAlive if app.store.conductors().is_shared() => {
            format!("conductor {} is not alive", short(hostname))
        }
        DrainOutcome::NotAlive => {
            "a conductor whose database is SQLite has no other that takes its work".to_owned()
        }
        DrainOutcome::LastOfGroup(group) => format!(
            "no other living conductor takes the nodes of conductor group {group:?}; start another one first"
        ),
    };
    Err(ApiError::conflict(why).into())
}
