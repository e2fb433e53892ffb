//! `/racks`: draws racks, and shows one with its bring-up.

use std::collections::BTreeMap;

use api_client::WithJson;
use api_client::baremetald::{Hypervisor, Rack, RackMachine, RackSummary};
use axum::Router;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use futures::future::join_all;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::confirm::{Question, check_name};
use super::profiles;
use crate::api::segment;
use crate::form::{Fields, UserForm};
use crate::image::image_info;
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;
use crate::view::tone;

/// The number of racks on a page: each costs one request.
const DRAWN: usize = 12;
/// The minimum height of a drawn rack, in rack units.
const UNITS: u64 = 12;
/// The maximum height of a drawn rack, in rack units. Nodes above are listed below the drawing.
const MOST_UNITS: u64 = 60;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/racks", get(list))
        .route("/racks/{rack}", get(show))
        .route("/racks/{rack}/up", post(up))
        .route("/racks/{rack}/pause", post(pause))
        .route("/racks/{rack}/delete", get(confirm).post(delete))
}

#[derive(Deserialize)]
struct PageQuery {
    #[serde(default)]
    page: usize,
}

#[derive(Serialize)]
struct Drawn {
    rack: WithJson<Rack>,
    /// From the top down.
    units: Vec<Unit>,
    /// The nodes without a known position.
    elsewhere: Vec<WithJson<RackMachine>>,
    /// The number of nodes in each state: tone, state, number.
    tally: Vec<(&'static str, String, usize)>,
}

#[derive(Serialize)]
struct Unit {
    position: u64,
    machines: Vec<WithJson<RackMachine>>,
}

/// `GET /racks`: draws racks.
async fn list(person: AuthorizedUser, Query(wanted): Query<PageQuery>) -> Result<Response> {
    let api = person.baremetald()?;
    let all: Vec<RackSummary> = api.all("/bedplate/v1/racks").await?;
    let total = all.len();
    let shown = all.iter().skip(wanted.page.saturating_mul(DRAWN)).take(DRAWN);
    let paths: Result<Vec<String>> =
        shown.map(|rack| Ok(format!("/bedplate/v1/racks/{}", segment(&rack.name)?))).collect();
    let paths = paths?;
    let racks = join_all(paths.iter().map(|path| api.get(path))).await;
    let racks: Result<Vec<Drawn>> = racks.into_iter().map(|rack| rack.map(draw)).collect();
    let page = person.page("racks.html", "Racks").under("racks").live();
    let page = page.put("racks", racks?).put("total", total).put("page", wanted.page);
    person.show(page.put("pages", total.div_ceil(DRAWN)))
}

/// `GET /racks/{rack}`: shows a rack.
async fn show(person: AuthorizedUser, Path(rack): Path<String>) -> Result<Response> {
    let (api, path) = (person.baremetald()?, format!("/bedplate/v1/racks/{}", segment(&rack)?));
    let (found, profiles) = tokio::join!(api.get(&path), profiles::names(&api));
    let found: WithJson<Rack> = found?;
    let machines = found.machines.clone();
    let page = person.page("rack.html", &format!("Rack {rack}")).under("racks").live();
    let page = page.put("hosts", hosts(&machines)).put("profiles", profiles?);
    person.show(page.put("drawn", draw(found)).put("machines", machines).put("name", rack))
}

/// The number of hypervisors in each state: tone, state, number.
fn hosts(machines: &[WithJson<RackMachine>]) -> Vec<(&'static str, String, usize)> {
    let mut tally: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    for Hypervisor { state, .. } in machines.iter().filter_map(|it| it.hypervisor.as_ref()) {
        *tally.entry((tone(state), state.replace('_', " "))).or_default() += 1;
    }
    tally.into_iter().map(|((tone, state), count)| (tone, state, count)).collect()
}

/// Arranges the nodes of a rack by their positions.
fn draw(rack: WithJson<Rack>) -> Drawn {
    let mut tally: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    let mut placed: BTreeMap<u64, Vec<WithJson<RackMachine>>> = BTreeMap::new();
    let mut elsewhere = Vec::new();
    for machine in rack.machines.clone() {
        let state = machine.provision_state.clone();
        *tally.entry((tone(&state), state)).or_default() += 1;
        match machine.position.map(u64::from).filter(|it| (1..=MOST_UNITS).contains(it)) {
            Some(position) => placed.entry(position).or_default().push(machine),
            None => elsewhere.push(machine),
        }
    }
    let top = placed.keys().next_back().copied().unwrap_or(0).max(UNITS);
    let unit = |position| Unit { position, machines: placed.remove(&position).unwrap_or_default() };
    let units = (1..=top).rev().map(unit).collect();
    let tally = tally.into_iter().map(|((tone, state), count)| (tone, state, count)).collect();
    Drawn { rack, units, elsewhere, tally }
}

/// `POST /racks/{rack}/up`: starts a bring-up. A goal that erases disks needs the rack's name as a confirmation.
async fn up(Path(rack): Path<String>, UserForm { person, fields }: UserForm) -> Result<Response> {
    if erases(&fields) {
        check_name(&fields, &rack, "rack")?;
    }
    let path = format!("/bedplate/v1/racks/{}/up", segment(&rack)?);
    person.baremetald()?.send(Method::PUT, &path, Some(&goal(&fields)?)).await?;
    Ok(Redirect::to(&format!("/racks/{}", segment(&rack)?)).into_response())
}

/// Whether a bring-up erases disks: enrolling and inspecting do not.
pub(super) fn erases(fields: &Fields) -> bool {
    let reach = fields.find("reach");
    fields.find("profile").is_some() || !matches!(reach, None | Some("enrolled" | "inspected"))
}

/// The question before a rack is deleted.
fn question(rack: &str) -> Result<Question> {
    let address = segment(rack)?;
    Ok(Question {
        verb: "Delete",
        loss: "The rack's record is deleted. Delete its nodes first.",
        kind: "rack",
        name: rack.to_owned(),
        action: format!("/racks/{address}/delete"),
        target: None,
        back: format!("/racks/{address}"),
        force: None,
    })
}

/// `GET /racks/{rack}/delete`: asks for the rack's name.
async fn confirm(person: AuthorizedUser, Path(rack): Path<String>) -> Result<Response> {
    question(&rack)?.ask(&person, "racks")
}

/// `POST /racks/{rack}/delete`: deletes a rack without nodes. Needs its name as a confirmation.
async fn delete(
    Path(rack): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let question = question(&rack)?;
    if let Err(why) = question.check(&fields) {
        return question.ask_again(&person, "racks", &why);
    }
    let path = format!("/bedplate/v1/racks/{}", segment(&rack)?);
    match person.baremetald()?.send(Method::DELETE, &path, None).await {
        Ok(_) => Ok(Redirect::to("/racks").into_response()),
        Err(why @ Problem::Refused { status: StatusCode::CONFLICT, .. }) => {
            question.ask_again(&person, "racks", &why)
        }
        Err(why) => Err(why),
    }
}

/// The goal of a bring-up from a form.
pub(super) fn goal(fields: &Fields) -> Result<Value> {
    let mut info = Map::new();
    if let Some(image) = fields.find("image") {
        info = image_info(image, fields)?;
    }
    let mut goal = json!({"reach": fields.get("reach")?, "instance_info": info});
    if let Some(profile) = fields.find("profile") {
        // A node becomes a hypervisor only by an installation.
        goal["profile"] = profile.into();
        goal["reach"] = "installed".into();
    }
    if let Some(limit) = fields.number("limit")? {
        goal["limit"] = limit.into();
    }
    Ok(goal)
}

/// `POST /racks/{rack}/pause`: starts no further work in the rack.
async fn pause(Path(rack): Path<String>, UserForm { person, .. }: UserForm) -> Result<Response> {
    let path = format!("/bedplate/v1/racks/{}/up", segment(&rack)?);
    person.baremetald()?.send(Method::DELETE, &path, None).await?;
    Ok(Redirect::to(&format!("/racks/{}", segment(&rack)?)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(more: Value) -> WithJson<RackMachine> {
        let mut machine = json!({
            "uuid": "u1", "provision_state": "active", "since": "2026-01-02T03:04:05Z",
        });
        let more = more.as_object().cloned().unwrap_or_default();
        machine.as_object_mut().unwrap().extend(more);
        serde_json::from_value(machine).unwrap()
    }

    #[test]
    fn nodes_are_drawn_at_their_positions() {
        let place =
            |name: &str, position: Value| machine(json!({"name": name, "position": position}));
        let machines = [place("a", 14.into()), place("b", 1.into()), place("c", Value::Null)];
        let rack = json!({"name": "r", "machines": machines});
        let drawn = draw(serde_json::from_value(rack).unwrap());
        assert_eq!(drawn.units.len(), 14);
        let names =
            |unit: &Unit| unit.machines.iter().map(|it| it.label().to_owned()).collect::<String>();
        assert_eq!(drawn.units.first().map(names).as_deref(), Some("a"));
        assert_eq!(drawn.units.last().map(names).as_deref(), Some("b"));
        assert_eq!(drawn.elsewhere.len(), 1);
        assert_eq!(drawn.tally, [("good", "active".to_owned(), 3)]);
    }

    #[test]
    fn hypervisors_are_counted_by_state() {
        let host = |state: &str| {
            let host = json!({"host": "a", "state": state, "since": "2026-01-02T03:04:05Z"});
            machine(json!({"hypervisor": host}))
        };
        let machines =
            [host("joined"), host("awaiting_service"), host("joined"), machine(json!({}))];
        let counted = hosts(&machines);
        assert_eq!(
            counted,
            [("busy", "awaiting service".to_owned(), 1), ("good", "joined".to_owned(), 2)]
        );
    }
}
