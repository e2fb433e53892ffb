//! `/nodes/{node}`: one node: why it is where it is, what happened, what it consists of, and what may be asked of it.

use axum::Router;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::confirm::Question;
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
        .route("/nodes/{node}/confirm", get(confirm))
        .route("/nodes/{node}/delete", post(delete))
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
    let page = page.put("may_be_deleted", may_be_deleted(state, shown["maintenance"] == true));
    let page = page.put("events", history?.map(|history| timeline(&history)).unwrap_or_default());
    let inventory = inventory?.map(|mut it| it["inventory"].take());
    let ports = ports?.map(|mut it| it["ports"].take());
    let page = page.put("inventory", inventory).put("ports", ports);
    let host = &shown["instance_info"]["hypervisor_hostname"];
    let joined = explained.as_ref().map_or(&Value::Null, |it| &it["hypervisor"]["host"]);
    let host = joined.as_str().or(host.as_str());
    let page = page.put("is_host", host.is_some()).put("drain", drain_of(person, host).await);
    Ok(page.put("explained", explained).put("node", &shown))
}

/// The drain of the compute host that a node is; `None` where nobody drains it, or clusterd does not tell.
async fn drain_of(person: &Person, host: Option<&str>) -> Option<Value> {
    let path = format!("/bedplate/v1/drains/{}", segment(host?).ok()?);
    person.clusters().ok()?.find(&path).await.ok()?
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

/// A verb that may be asked of a node.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Verb {
    target: &'static str,
    name: &'static str,
    /// Whether it takes something away.
    is_bold: bool,
    /// Whether the node's name has to be written first.
    asks: bool,
}

/// What may be asked of a node in this state. The service says no where more is needed. It can not rescue, service or hold nodes, so nothing
/// of that is offered.
fn verbs(state: &str) -> Vec<Verb> {
    let told: &[(&'static str, &'static str)] = match state {
        "enroll" => &[("manage", "Manage")],
        "manageable" => &[
            ("inspect", "Inspect"),
            ("provide", "Make available"),
            ("clean", "Clean"),
            ("adopt", "Adopt"),
        ],
        "available" => &[("active", "Deploy"), ("manage", "Manage")],
        "active" => &[("rebuild", "Rebuild"), ("deleted", "Give back")],
        "deploy failed" | "error" => {
            &[("active", "Try again"), ("rebuild", "Rebuild"), ("deleted", "Give back")]
        }
        "clean failed" | "inspect failed" | "adopt failed" => &[("manage", "Manage")],
        "clean wait" | "inspect wait" | "wait call-back" => &[("abort", "Abort")],
        _ => &[],
    };
    let verb = |(target, name): &(&'static str, &'static str)| {
        let asks = !is_harmless(target);
        Verb { target, name, is_bold: asks || *target == "abort", asks }
    };
    told.iter().map(verb).collect()
}

/// Whether nothing is erased on the way to this target. Whatever is not known to be harmless is asked about.
fn is_harmless(target: &str) -> bool {
    matches!(target, "manage" | "inspect" | "adopt" | "abort")
}

/// What a verb is called, and what is lost by it.
fn loss(target: &str) -> (&'static str, &'static str) {
    match target {
        "provide" => (
            "Make available",
            "The node is cleaned: its disks are erased as the service's configuration says.",
        ),
        "clean" => ("Clean", "Partition tables and file systems on the node's disks are erased."),
        "active" => ("Deploy", "An image is written over what is on the node's disk."),
        "rebuild" => ("Rebuild", "The node's image is written anew over what is on its disk."),
        "deleted" => ("Give back", "The node is switched off and its disks are erased."),
        "delete" => (
            "Delete",
            "The node is forgotten with its ports, its history and the password of its BMC. Its machine is left as it is.",
        ),
        _ => ("Change", "What is on the node's disks may be lost."),
    }
}

/// Whether the API lets a node be deleted in this state, as far as that alone tells.
fn may_be_deleted(state: &str, is_in_maintenance: bool) -> bool {
    let is_free = ["enroll", "manageable", "available", "adopt failed"].contains(&state);
    let is_busy = state.ends_with("ing") || state.ends_with("wait") || state == "wait call-back";
    is_free || (is_in_maintenance && !is_busy)
}

/// The question before `target` is asked of a node.
async fn question(person: &Person, node: &str, target: &str) -> Result<Question, Problem> {
    let address = segment(node)?;
    let shown = person.machines()?.get(&format!("/v1/nodes/{address}?fields=uuid,name")).await?;
    let (verb, loss) = loss(target);
    let is_deletion = target == "delete";
    let form = if is_deletion { "delete" } else { "provision" };
    Ok(Question {
        verb,
        loss,
        kind: "node",
        name: shown["name"].as_str().or(shown["uuid"].as_str()).unwrap_or(node).to_owned(),
        action: format!("/nodes/{address}/{form}"),
        target: (!is_deletion).then(|| target.to_owned()),
        back: format!("/nodes/{address}"),
        force: None,
    })
}

#[derive(Deserialize)]
struct Confirmed {
    target: String,
}

/// `GET /nodes/{node}/confirm?target=`: asks for the node's name before something of it is lost.
async fn confirm(
    person: Person,
    Path(node): Path<String>,
    Query(wanted): Query<Confirmed>,
) -> Result<Response, Problem> {
    question(&person, &node, &wanted.target).await?.ask(&person, "nodes")
}

/// `POST /nodes/{node}/delete`: only with its name written out.
async fn delete(
    Path(node): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let question = question(&person, &node, "delete").await?;
    if let Err(why) = question.check(&fields) {
        return question.ask_again(&person, "nodes", &why);
    }
    let path = forced(&format!("/v1/nodes/{}", segment(&node)?), &fields);
    match person.machines()?.send(Method::DELETE, &path, None).await {
        Ok(_) => Ok(Redirect::to("/nodes").into_response()),
        Err(why @ Problem::Refused { status: StatusCode::CONFLICT, .. }) => {
            let force = Some(fields.find("force").unwrap_or_default().to_owned());
            Question { force, ..question }.ask_again(&person, "nodes", &why)
        }
        Err(why) => Err(why),
    }
}

/// A path, with the names of what may break where some were written.
fn forced(path: &str, fields: &Fields) -> String {
    let forced = encoded(&fields.forced().join(","));
    if forced.is_empty() { path.to_owned() } else { format!("{path}?force={forced}") }
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

/// `POST /nodes/{node}/provision`: what erases something only with the node's name written out.
async fn provision(
    Path(node): Path<String>,
    Posted { person, fields }: Posted,
) -> Result<Response, Problem> {
    let target = fields.get("target")?;
    if !is_harmless(target) {
        let question = question(&person, &node, target).await?;
        if let Err(why) = question.check(&fields) {
            return question.ask_again(&person, "nodes", &why);
        }
    }
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
    match ask(person, node, Method::PUT, &forced(path, fields), Some(body)).await {
        Err(why @ Problem::Refused { status: StatusCode::CONFLICT, .. }) => {
            let again = json!({"form": form, "target": fields.find("target"), "force": fields.find("force"), "name": fields.find("name")});
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
    fn whatever_may_erase_something_asks_for_the_name() {
        let asking = |state: &str| -> Vec<&str> {
            verbs(state).into_iter().filter(|verb| verb.asks).map(|verb| verb.target).collect()
        };
        assert_eq!(asking("manageable"), ["provide", "clean"]);
        assert_eq!(asking("available"), ["active"]);
        assert_eq!(asking("active"), ["rebuild", "deleted"]);
        assert_eq!(asking("deploy failed"), ["active", "rebuild", "deleted"]);
        assert_eq!(asking("clean wait"), Vec::<&str>::new());
        for target in ["undeploy", "rescue", "DELETED", "", "service"] {
            assert!(!is_harmless(target), "{target:?}");
        }
    }

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
