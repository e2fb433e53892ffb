//! `/nodes/{node}`: one node with its state, history, inventory and actions.

use api_client::WithJson;
use api_client::baremetald::{
    EventLog, Explanation, History, HistoryEvent, Inventory, Node, Ports, Sensors,
};
use api_client::clusterd::Drain;
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
use crate::form::{Fields, UserForm};
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;
use crate::view::Page;

/// The number of newest events that the page shows.
const EVENTS: usize = 40;

/// The action that gives the BMC account another password.
const ROTATE: &str = "rotate-bmc-password";

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
        .route("/nodes/{node}/rotate-bmc-password", post(rotate_bmc_password))
        .route("/nodes/{node}/join", post(join))
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Event {
    at: String,
    what: String,
    severity: String,
    /// The time until the next event.
    took: Option<String>,
}

/// `GET /nodes/{node}`: shows a node.
async fn show(person: AuthorizedUser, Path(node): Path<String>) -> Result<Response> {
    let page = one(&person, &node).await?;
    person.show(page)
}

async fn one(person: &AuthorizedUser, node: &str) -> Result<Page> {
    let (api, name) = (person.baremetald()?, segment(node)?);
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
    let shown: WithJson<Node> = shown?;
    let explained: Option<WithJson<Explanation>> = explained?;
    let (state, label) = (shown.state(), shown.name.as_deref().unwrap_or(node));
    let page = person.page("node.html", label).under("nodes").live();
    let page = page.put("verbs", actions(state)).put("label", label).put("address", &name);
    let page = page.put("may_be_deleted", may_be_deleted(state, shown.maintenance));
    let page = page
        .put("events", history?.map(|History { history }| timeline(&history)).unwrap_or_default());
    let inventory = inventory?.map(|Inventory { inventory, .. }| inventory);
    let ports = ports?.map(|Ports { ports }| ports);
    let page = page.put("inventory", inventory).put("ports", ports);
    let joined = explained.as_ref().and_then(|it| it.hypervisor.as_ref());
    let host = joined.map(|it| it.host.as_str()).or(shown.hypervisor_hostname());
    let page = page.put("is_host", host.is_some()).put("drain", drain_of(person, host).await);
    Ok(page.put("explained", explained).put("node", &shown))
}

/// The drain of the compute host that the node is; `None` if there is no drain or clusterd does not answer.
async fn drain_of(person: &AuthorizedUser, host: Option<&str>) -> Option<WithJson<Drain>> {
    let path = format!("/bedplate/v1/drains/{}", segment(host?).ok()?);
    person.clusterd().ok()?.find(&path).await.ok()?
}

/// The newest events, newest first, each with the time until the next event.
fn timeline(all: &[HistoryEvent]) -> Vec<Event> {
    let time = |event: &HistoryEvent| event.created_at.parse::<Timestamp>().ok();
    let nexts = all.iter().skip(1).map(Some).chain([None]);
    let events = all.iter().zip(nexts).map(|(event, next)| {
        let took = time(event).zip(next.and_then(time));
        let took = took.map(|(from, until)| until.duration_since(from));
        Event {
            at: event.created_at.clone(),
            what: event.event.clone(),
            severity: event.severity.to_ascii_lowercase(),
            took: took.map(|it| {
                if it.as_secs() < 10 {
                    format!("{:.1} s", it.as_secs_f64())
                } else {
                    readable::duration(it)
                }
            }),
        }
    });
    let mut events: Vec<Event> = events.collect();
    events.reverse();
    events.truncate(EVENTS);
    events
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct NodeAction {
    target: &'static str,
    name: &'static str,
    /// Whether the button is marked as destructive.
    is_bold: bool,
    /// Whether the user has to type the node's name first.
    asks: bool,
}

/// The actions for a node in this state. The service may still refuse an action for other reasons. Service and rescue need arguments, so the
/// page cannot begin them; it ends them.
fn actions(state: &str) -> Vec<NodeAction> {
    let actions: &[(&'static str, &'static str)] = match state {
        "enroll" => &[("manage", "Manage")],
        "manageable" => &[
            ("inspect", "Inspect"),
            ("provide", "Provide"),
            ("clean", "Clean"),
            ("adopt", "Adopt"),
        ],
        "available" => &[("active", "Deploy"), ("manage", "Manage")],
        "active" => &[("rebuild", "Rebuild"), ("deleted", "Undeploy")],
        "deploy failed" | "error" => {
            &[("active", "Deploy"), ("rebuild", "Rebuild"), ("deleted", "Undeploy")]
        }
        "clean failed" | "inspect failed" | "adopt failed" => &[("manage", "Manage")],
        "clean wait" | "inspect wait" | "wait call-back" => &[("abort", "Abort")],
        "service wait" | "rescue wait" => &[("abort", "Abort"), ("deleted", "Undeploy")],
        "clean hold" | "deploy hold" | "service hold" => {
            &[("unhold", "Continue"), ("abort", "Abort")]
        }
        "service failed" => &[("abort", "Return to active"), ("deleted", "Undeploy")],
        "rescue" | "rescue failed" | "unrescue failed" => {
            &[("unrescue", "Unrescue"), ("deleted", "Undeploy")]
        }
        _ => &[],
    };
    let action = |(target, name): &(&'static str, &'static str)| {
        let asks = !is_harmless(target);
        NodeAction { target, name, is_bold: asks || *target == "abort", asks }
    };
    actions.iter().map(action).collect()
}

/// Whether an action erases nothing. An unknown action counts as harmful.
fn is_harmless(target: &str) -> bool {
    matches!(target, "manage" | "inspect" | "adopt" | "abort" | "unrescue")
}

/// The name of an action, and its consequences.
fn loss(target: &str) -> (&'static str, &'static str) {
    match target {
        "provide" => {
            ("Provide", "The node is cleaned: its disks are erased as configured in baremetald.")
        }
        "clean" => ("Clean", "Partition tables and file systems on the node's disks are erased."),
        "active" => ("Deploy", "The image overwrites the node's disk."),
        "rebuild" => ("Rebuild", "The image overwrites the node's disk again."),
        "unhold" => ("Continue", "The work goes on with its next step, which may erase disks."),
        "deleted" => ("Undeploy", "The node is powered off and its disks are erased."),
        "delete" => (
            "Delete",
            "The node's record is deleted with its ports, history and BMC password. The machine itself is not changed.",
        ),
        ROTATE => (
            "Change BMC password",
            "The BMC account of baremetald gets a new random password, which nobody sees. The old password is lost. If you use the BMC yourself, add an account of your own first.",
        ),
        _ => ("Change", "Data on the node's disks may be lost."),
    }
}

/// Whether the API permits the deletion of a node in this state, as far as the state tells.
fn may_be_deleted(state: &str, is_in_maintenance: bool) -> bool {
    let is_free = ["enroll", "manageable", "available", "adopt failed"].contains(&state);
    let is_busy = state.ends_with("ing") || state.ends_with("wait") || state == "wait call-back";
    is_free || (is_in_maintenance && !is_busy)
}

async fn question(person: &AuthorizedUser, node: &str, target: &str) -> Result<Question> {
    let address = segment(node)?;
    let path = format!("/v1/nodes/{address}?fields=uuid,name");
    let shown: Node = person.baremetald()?.get(&path).await?;
    let (verb, loss) = loss(target);
    // These actions have forms of their own; the others change the provision state.
    let is_own = ["delete", ROTATE].contains(&target);
    let form = if is_own { target } else { "provision" };
    Ok(Question {
        verb,
        loss,
        kind: "node",
        name: shown.name.or(shown.uuid).unwrap_or_else(|| node.to_owned()),
        action: format!("/nodes/{address}/{form}"),
        target: (!is_own).then(|| target.to_owned()),
        back: format!("/nodes/{address}"),
        force: None,
    })
}

#[derive(Deserialize)]
struct Confirmed {
    target: String,
}

/// `GET /nodes/{node}/confirm?target=`: asks for the node's name before a destructive action.
async fn confirm(
    person: AuthorizedUser,
    Path(node): Path<String>,
    Query(wanted): Query<Confirmed>,
) -> Result<Response> {
    question(&person, &node, &wanted.target).await?.ask(&person, "nodes")
}

/// `POST /nodes/{node}/delete`: deletes a node. Needs its name as a confirmation.
async fn delete(
    Path(node): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let question = question(&person, &node, "delete").await?;
    if let Err(why) = question.check(&fields) {
        return question.ask_again(&person, "nodes", &why);
    }
    let path = with_force(&format!("/v1/nodes/{}", segment(&node)?), &fields);
    match person.baremetald()?.send(Method::DELETE, &path, None).await {
        Ok(_) => Ok(Redirect::to("/nodes").into_response()),
        Err(why @ Problem::Refused { status: StatusCode::CONFLICT, .. }) => {
            let force = Some(fields.find("force").unwrap_or_default().to_owned());
            Question { force, ..question }.ask_again(&person, "nodes", &why)
        }
        Err(why) => Err(why),
    }
}

/// Appends the names in the field `force` to a path.
fn with_force(path: &str, fields: &Fields) -> String {
    let forced = encoded(&fields.forced().join(","));
    if forced.is_empty() { path.to_owned() } else { format!("{path}?force={forced}") }
}

/// `GET /nodes/{node}/sensors`: the sensors and event log of the BMC, read on request only.
async fn sensors(person: AuthorizedUser, Path(node): Path<String>) -> Result<Response> {
    let (api, name) = (person.baremetald()?, segment(&node)?);
    let (sensors, log) = (
        format!("/bedplate/v1/nodes/{name}/sensors"),
        format!("/bedplate/v1/nodes/{name}/event-log?limit=50"),
    );
    let (sensors, log) = tokio::join!(api.get(&sensors), api.find(&log));
    let sensors: WithJson<Sensors> = sensors?;
    let log = log?.map(|EventLog { event_log }| event_log).unwrap_or_default();
    let log: Vec<Value> = log
        .iter()
        .rev()
        .map(|entry| json!({"at": entry.at.and_then(format_seconds), "message": entry.message}))
        .collect();
    let page = person.page("sensors.html", &format!("Sensors of {node}")).under("nodes");
    person.show(
        page.put("sensors", &sensors.sensors)
            .put("log", log)
            .put("label", &node)
            .put("address", name),
    )
}

/// Formats seconds since 1970.
fn format_seconds(seconds: i64) -> Option<String> {
    Timestamp::from_second(seconds).ok().map(|at| at.to_string())
}

/// `POST /nodes/{node}/provision`: runs a provisioning action. An action that erases something needs the node's name as a confirmation.
async fn provision(
    Path(node): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
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
    send_disruptive_action(
        &person,
        &node,
        "provision",
        &fields,
        ("/v1/nodes/{}/states/provision", &body),
    )
    .await
}

/// `POST /nodes/{node}/power`: changes the power state.
async fn power(
    Path(node): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let body = json!({"target": fields.get("target")?});
    send_disruptive_action(&person, &node, "power", &fields, ("/v1/nodes/{}/states/power", &body))
        .await
}

/// `POST /nodes/{node}/maintenance`: turns maintenance on or off.
async fn maintenance(
    Path(node): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let path = "/v1/nodes/{}/maintenance";
    match fields.get("target")? {
        "on" => {
            let body = json!({"reason": fields.find("reason")});
            send_disruptive_action(&person, &node, "maintenance", &fields, (path, &body)).await
        }
        _ => ask(&person, &node, Method::DELETE, path, None).await,
    }
}

/// `POST /nodes/{node}/identify`: turns the locator light on or off.
async fn identify(
    Path(node): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let body = json!({"on": fields.get("target")? == "on"});
    ask(&person, &node, Method::PUT, "/bedplate/v1/nodes/{}/identify", Some(&body)).await
}

/// `POST /nodes/{node}/rotate-bmc-password`: requests a new password of the BMC account. Needs the node's name as a confirmation.
async fn rotate_bmc_password(
    Path(node): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let question = question(&person, &node, ROTATE).await?;
    if let Err(why) = question.check(&fields) {
        return question.ask_again(&person, "nodes", &why);
    }
    ask(&person, &node, Method::POST, "/bedplate/v1/nodes/{}/rotate-bmc-password", None).await
}

/// `POST /nodes/{node}/join`: lets the node join the cloud as a hypervisor again.
async fn join(Path(node): Path<String>, UserForm { person, .. }: UserForm) -> Result<Response> {
    ask(&person, &node, Method::PUT, "/bedplate/v1/nodes/{}/hypervisor/join", None).await
}

/// Sends an action that may take a compute host away. If the service refuses because of running servers, shows the page again with a field
/// for the clusters that may be disrupted.
async fn send_disruptive_action(
    person: &AuthorizedUser,
    node: &str,
    form: &str,
    fields: &Fields,
    (path, body): (&str, &Value),
) -> Result<Response> {
    match ask(person, node, Method::PUT, &with_force(path, fields), Some(body)).await {
        Err(why @ Problem::Refused { status: StatusCode::CONFLICT, .. }) => {
            let again = json!({"form": form, "target": fields.find("target"), "force": fields.find("force"), "name": fields.find("name")});
            person.show_again(one(person, node).await?.put("again", again), &why)
        }
        other => other,
    }
}

/// Sends an action and shows the node again.
async fn ask(
    person: &AuthorizedUser,
    node: &str,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response> {
    let name = segment(node)?;
    person.baremetald()?.send(method, &path.replace("{}", &name), body).await?;
    Ok(Redirect::to(&format!("/nodes/{name}")).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_that_may_erase_something_asks_for_the_name() {
        let asking = |state: &str| -> Vec<&str> {
            actions(state)
                .into_iter()
                .filter(|action| action.asks)
                .map(|action| action.target)
                .collect()
        };
        assert_eq!(asking("manageable"), ["provide", "clean"]);
        assert_eq!(asking("available"), ["active"]);
        assert_eq!(asking("active"), ["rebuild", "deleted"]);
        assert_eq!(asking("deploy failed"), ["active", "rebuild", "deleted"]);
        assert_eq!(asking("clean wait"), Vec::<&str>::new());
        // The step after the hold may erase something.
        assert_eq!(asking("clean hold"), ["unhold"]);
        assert_eq!(asking("service failed"), ["deleted"]);
        assert_eq!(asking("rescue"), ["deleted"]);
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
        let History { history } = serde_json::from_value(history).unwrap();
        let events: Vec<_> = timeline(&history).into_iter().map(|it| (it.what, it.took)).collect();
        assert_eq!(
            events,
            [
                ("asked to inspect".to_owned(), None),
                ("done".to_owned(), Some("2 min".to_owned())),
                ("asked to manage".to_owned(), Some("1.5 s".to_owned())),
            ]
        );
    }
}
