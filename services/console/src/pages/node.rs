//! `/nodes/{node}`: one node: why it is where it is, what happened, what it consists of, and what may be asked of it.

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::{encoded, segment};
use crate::form::{Fields, Posted};
use crate::problem::Problem;
use crate::service::Console;
use crate::view::{Page, span};
use crate::visit::Person;

/// So many of the newest events are shown.
const EVENTS: usize = 40;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/nodes/{node}", get(show))
        .route("/nodes/{node}/sensors", get(sensors))
        .route("/nodes/{node}/provision", post(provision))
        .route("/nodes/{node}/power", post(power))
        .route("/nodes/{node}/maintenance", post(maintenance))
        .route("/nodes/{node}/identify", post(identify))
        .route("/nodes/{node}/join", post(join))
}

/// Something that happened to a node.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Event {
    at: String,
    what: String,
    severity: String,
    /// How long it was before the next.
    took: Option<String>,
}

/// `GET /nodes/{node}`.
async fn show(person: Person, Path(node): Path<String>) -> Result<Response, Problem> {
    let page = one(&person, &node).await?;
    person.show(page)
}

async fn one(person: &Person, node: &str) -> Result<Page, Problem> {
    let (api, name) = (person.machines()?, segment(node)?);
    let [shown, explained, history, inventory, ports] = [
        format!("/v1/nodes/{name}"),
        format!("/bedplate/v1/nodes/{name}/explain"),
        format!("/v1/nodes/{name}/history"),
        format!("/v1/nodes/{name}/inventory"),
        format!("/v1/ports?node={name}"),
    ];
    let (shown, explained, history, inventory, ports) = tokio::join!(
        api.get(&shown),
        api.find(&explained),
        api.find(&history),
        api.find(&inventory),
        api.find(&ports),
    );
    let (shown, explained) = (shown?, explained?);
    let state = shown["provision_state"].as_str().unwrap_or_default();
    let label = shown["name"].as_str().unwrap_or(node);
    let page = person.page("node.html", label).under("nodes").live();
    let page = page.put("verbs", verbs(state)).put("label", label).put("address", &name);
    let page = page.put("events", history?.map(|history| timeline(&history)).unwrap_or_default());
    let inventory = inventory?.map(|mut it| it["inventory"].take());
    let ports = ports?.map(|mut it| it["ports"].take());
    let page = page.put("inventory", inventory).put("ports", ports);
    let host = &shown["instance_info"]["hypervisor_hostname"];
    let is_host =
        host.is_string() || explained.as_ref().is_some_and(|it| it["hypervisor"].is_object());
    Ok(page.put("explained", explained).put("is_host", is_host).put("node", &shown))
}

/// The newest events, newest first, each with how long it was until the next.
fn timeline(history: &Value) -> Vec<Event> {
    let all: Vec<&Value> = history["history"].as_array().into_iter().flatten().collect();
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let time = |event: &Value| event["created_at"].as_str()?.parse::<Timestamp>().ok();
    let nexts = all.iter().skip(1).map(Some).chain([None]);
    let events = all.iter().zip(nexts).map(|(event, next)| {
        let took = time(event).zip(next.and_then(|next| time(next)));
        let took = took.map(|(from, until)| until.duration_since(from));
        Event {
            at: text(event, "created_at"),
            what: text(event, "event"),
            severity: text(event, "severity").to_ascii_lowercase(),
            took: took.map(|it| {
                if it.as_secs() < 10 { format!("{:.1} s", it.as_secs_f64()) } else { span(it) }
            }),
        }
    });
    let mut events: Vec<Event> = events.collect();
    events.reverse();
    events.truncate(EVENTS);
    events
}

/// What may be asked of a node in this state: the target, what it is called, and whether it takes something away. The service
/// says no where more is needed. It can not rescue, service or hold nodes, so nothing of that is offered.
fn verbs(state: &str) -> Vec<(&'static str, &'static str, bool)> {
    match state {
        "enroll" => vec![("manage", "Manage", false)],
        "manageable" => vec![
            ("inspect", "Inspect", false),
            ("provide", "Make available", false),
            ("clean", "Clean", true),
            ("adopt", "Adopt", false),
        ],
        "available" => vec![("active", "Deploy", true), ("manage", "Manage", false)],
        "active" => vec![("rebuild", "Rebuild", true), ("deleted", "Give back", true)],
        "deploy failed" | "error" => {
            vec![
                ("active", "Try again", false),
                ("rebuild", "Rebuild", true),
                ("deleted", "Give back", true),
            ]
        }
        "clean failed" | "inspect failed" | "adopt failed" => vec![("manage", "Manage", false)],
        "clean wait" | "inspect wait" | "wait call-back" => vec![("abort", "Abort", true)],
        _ => Vec::new(),
    }
}

/// `GET /nodes/{node}/sensors`: what only its BMC knows, asked for when somebody looks.
async fn sensors(person: Person, Path(node): Path<String>) -> Result<Response, Problem> {
    let (api, name) = (person.machines()?, segment(&node)?);
    let (sensors, log) = (
        format!("/bedplate/v1/nodes/{name}/sensors"),
        format!("/bedplate/v1/nodes/{name}/event-log?limit=50"),
    );
    let (sensors, log) = tokio::join!(api.get(&sensors), api.find(&log));
    let mut sensors = sensors?;
    let log: Vec<Value> =
        log?.and_then(|log| log["event_log"].as_array().cloned()).unwrap_or_default();
    let log: Vec<Value> = log
        .iter()
        .rev()
        .map(|entry| json!({"at": told_at(&entry["at"]), "message": entry["message"]}))
        .collect();
    let page = person.page("sensors.html", &format!("Sensors of {node}")).under("nodes");
    person.show(
        page.put("sensors", sensors["sensors"].take())
            .put("log", log)
            .put("label", &node)
            .put("address", name),
    )
}

/// Seconds since 1970 as a time.
fn told_at(seconds: &Value) -> Option<String> {
    let at = Timestamp::from_second(seconds.as_i64()?).ok()?;
    Some(at.to_string())
}

/// `POST /nodes/{node}/provision`.
async fn provision(
    Path(node): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let target = fields.get("target")?;
    let mut body = json!({"target": target});
    if target == "clean" {
        body["clean_steps"] = json!([{"interface": "deploy", "step": "erase_devices_metadata"}]);
    }
    take_out(&person, &node, "provision", &fields, ("/v1/nodes/{}/states/provision", &body)).await
}

/// `POST /nodes/{node}/power`.
async fn power(
    Path(node): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let body = json!({"target": fields.get("target")?});
    take_out(&person, &node, "power", &fields, ("/v1/nodes/{}/states/power", &body)).await
}

/// `POST /nodes/{node}/maintenance`.
async fn maintenance(
    Path(node): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let path = "/v1/nodes/{}/maintenance";
    match fields.get("target")? {
        "on" => {
            let body = json!({"reason": fields.find("reason")});
            take_out(&person, &node, "maintenance", &fields, (path, &body)).await
        }
        _ => ask(&person, &node, Method::DELETE, path, None).await,
    }
}

/// `POST /nodes/{node}/identify`.
async fn identify(
    Path(node): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let body = json!({"on": fields.get("target")? == "on"});
    ask(&person, &node, Method::PUT, "/bedplate/v1/nodes/{}/identify", Some(&body)).await
}

/// `POST /nodes/{node}/join`: its machine joins the cloud once more.
async fn join(
    Path(node): Path<String>,
    Posted { person, .. }: Posted,
) -> Result<Response, Problem> {
    ask(&person, &node, Method::PUT, "/bedplate/v1/nodes/{}/hypervisor/join", None).await
}

/// Asks for what may take the machine out. What is refused for what runs on it is asked again, with the names of what may break.
async fn take_out(
    person: &Person,
    node: &str,
    form: &str,
    fields: &Fields,
    (path, body): (&str, &Value),
) -> Result<Response, Problem> {
    let forced = encoded(&fields.forced().join(","));
    let path = if forced.is_empty() { path.to_owned() } else { format!("{path}?force={forced}") };
    match ask(person, node, Method::PUT, &path, Some(body)).await {
        Err(why @ Problem::Refused { status: StatusCode::CONFLICT, .. }) => {
            let again = json!({"form": form, "target": fields.find("target"), "force": fields.find("force")});
            person.show_again(one(person, node).await?.put("again", again), &why)
        }
        other => other,
    }
}

/// Asks, and shows the node again.
async fn ask(
    person: &Person,
    node: &str,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response, Problem> {
    let name = segment(node)?;
    person.machines()?.send(method, &path.replace("{}", &name), body).await?;
    Ok(Redirect::to(&format!("/nodes/{name}")).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_lasts_until_the_next() {
        let event =
            |at: &str, what: &str| json!({"created_at": at, "event": what, "severity": "INFO"});
        let history = json!({"history": [
            event("2026-11-23T01:00:00Z", "asked to manage"),
            event("2026-11-23T01:00:01.5Z", "done"),
            event("2026-11-23T01:02:01.5Z", "asked to inspect"),
        ]});
        let told: Vec<_> = timeline(&history).into_iter().map(|it| (it.what, it.took)).collect();
        assert_eq!(
            told,
            [
                ("asked to inspect".to_owned(), None),
                ("done".to_owned(), Some("2 min 0 s".to_owned())),
                ("asked to manage".to_owned(), Some("1.5 s".to_owned())),
            ]
        );
    }
}
