//! `bedplate audit`: lists and verifies the audit trails of the services.

use ::audit::{Chain, Head, Row};
use anyhow::{Context, bail};
use api_client::shared::{AuditRow, AuditVerdict};
use api_client::{Listed, WithJson};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::form_urlencoded::Serializer;

use crate::api::Api;
use crate::connection::Connection;
use crate::output::{Answer, Format, plain};
use crate::policy::Service;
use crate::watch::Watch;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List requests, newest first.
    List(ListFilter),
    /// Verify the whole trail: recompute the hash of each row, and fail at the first row that was changed.
    Verify(VerifyOptions),
}

/// The filter of a list.
#[derive(Args)]
pub(crate) struct ListFilter {
    /// Service; default: both.
    #[arg(value_enum)]
    service: Option<Service>,
    /// Only requests of this user, by id or name.
    #[arg(long)]
    by: Option<String>,
    /// Only requests in this project, by id.
    #[arg(long)]
    project: Option<String>,
    /// Only the request with this id: the id of the service, or the global request id of the caller.
    #[arg(long)]
    request: Option<String>,
    /// Start of the period (inclusive), for example 2026-01-02T03:04:05Z.
    #[arg(long)]
    since: Option<String>,
    /// End of the period (exclusive).
    #[arg(long)]
    until: Option<String>,
    /// Maximum number of requests per service.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    watch: Watch,
}

/// The trails to verify.
#[derive(Args)]
pub(crate) struct VerifyOptions {
    /// Service; default: both.
    #[arg(value_enum)]
    service: Option<Service>,
    /// Head that an earlier run printed, as NUMBER:HASH; the trail must still contain this row.
    #[arg(long, requires = "service")]
    head: Option<Head>,
}

/// The number of rows that one request asks for.
const PAGE: usize = 1000;

/// A row with all fields that its hash covers.
#[derive(Deserialize)]
struct ChainedRow(Row);

impl Listed for ChainedRow {
    const LIST: &'static str = AuditRow::LIST;
}

pub(crate) async fn run(
    command: Command,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    match command {
        Command::List(wanted) => {
            wanted.watch.show(format, async || list(&wanted, connection).await).await
        }
        Command::Verify(checked) => verify(&checked, connection, format).await,
    }
}

async fn list(wanted: &ListFilter, connection: &Connection) -> anyhow::Result<Answer> {
    let query = query(wanted);
    let mut trails = Vec::new();
    for service in Service::all_or(wanted.service) {
        let api = service.api(connection).await?;
        trails.push((service.name(), newest(&api, &query, wanted.limit as usize).await?));
    }
    Ok(Answer::of_services(trails, &HEADER, line))
}

/// Returns the newest rows to show, at most `at_most`. A request has two rows in the trail, and the second one is shown as the result of
/// the first, so more rows are read until enough can be shown.
async fn newest(api: &Api, query: &str, at_most: usize) -> anyhow::Result<Vec<WithJson<AuditRow>>> {
    let size = (2 * at_most).min(PAGE);
    let path = format!("/bedplate/v1/audit?limit={size}{query}");
    let mut pages = api.pages(&path);
    let mut shown = Vec::new();
    while shown.len() < at_most
        && let Some(rows) = api.read_page::<WithJson<AuditRow>>(&mut pages).await?
    {
        shown.extend(rows.into_iter().filter(|row| is_shown(row)));
    }
    shown.truncate(at_most);
    Ok(shown)
}

/// Whether a row is shown by itself: a request or a count of refusals. The row with a request's result is shown with the request.
fn is_shown(row: &AuditRow) -> bool {
    matches!(row.outcome.as_str(), "asked" | "refused")
}

/// The query parameters of a filter, to be appended after another parameter.
fn query(wanted: &ListFilter) -> String {
    let mut query = Serializer::new(String::new());
    for (name, value) in [
        ("user", &wanted.by),
        ("project", &wanted.project),
        ("request_id", &wanted.request),
        ("since", &wanted.since),
        ("until", &wanted.until),
    ] {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { query } else { format!("&{query}") }
}

const HEADER: [&str; 8] =
    ["Row", "Service", "Time", "User", "Source", "Action", "Target", "Result"];

fn line(service: &str, row: &AuditRow) -> Vec<String> {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { plain(text) };
    let who = [&row.user_name, &row.user_id].into_iter().find(|name| !name.is_empty());
    let came = match (row.outcome.as_str(), &row.result) {
        ("refused", _) => format!("refused {} times: {}", row.times, row.status),
        (_, Some(result)) if result.outcome == "answered" => result.status.to_string(),
        (_, Some(result)) => plain(&result.outcome),
        (_, None) => "unknown".to_owned(),
    };
    vec![
        row.number.to_string(),
        service.to_owned(),
        readable::time(row.at),
        who.map_or_else(|| "anonymous".to_owned(), |name| plain(name)),
        or_dash(&row.source),
        plain(&row.action),
        or_dash(&row.target),
        came,
    ]
}

async fn verify(
    checked: &VerifyOptions,
    connection: &Connection,
    format: Format,
) -> anyhow::Result<()> {
    let mut verdicts = Map::new();
    let (mut lines, mut broken) = (Vec::new(), Vec::new());
    for service in Service::all_or(checked.service) {
        let api = service.api(connection).await?;
        let (chain, fault) = verify_trail(&api, checked.head).await?;
        let (count, head) = (chain.count(), chain.head());
        let name = service.name();
        lines.push(format!("{name}: {count} rows verified, up to {head}"));
        verdicts.insert(
            name.to_owned(),
            json!({"count": count, "head": head.to_string(), "broken": fault.as_deref()}),
        );
        broken.extend(fault.map(|fault| format!("the audit trail of {name} is broken: {fault}")));
    }
    Answer::sentence(Value::Object(verdicts), lines.join("\n")).write(format)?;
    if !broken.is_empty() {
        bail!("{}", broken.join("; "));
    }
    Ok(())
}

/// Reads a whole trail and recomputes its hashes, at least up to the end that the service reports. Returns the chain and the first fault.
async fn verify_trail(api: &Api, known: Option<Head>) -> anyhow::Result<(Chain, Option<String>)> {
    let said: AuditVerdict = api.get("/bedplate/v1/audit/verify").await?;
    let said_broken = said.broken.map(|broken| plain(&broken.why));
    let head = said.head.parse::<Head>().ok();
    let head = head.context("the response has no end of the audit trail")?;
    let mut chain = known.into_iter().fold(Chain::default().expecting(head), Chain::expecting);
    let after = chain.head().number;
    let path = format!("/bedplate/v1/audit?sort_dir=asc&limit={PAGE}&marker={after}");
    let mut pages = api.pages::<ChainedRow>(&path);
    loop {
        // If a row cannot be read, the service refuses to list it, and the fault that `verify` reported is the reason.
        let rows = match (api.read_page(&mut pages).await, &said_broken) {
            (Ok(Some(rows)), _) => rows,
            (Ok(None), _) => break,
            (Err(_), Some(broken)) => return Ok((chain, Some(broken.clone()))),
            (Err(why), None) => return Err(why),
        };
        for ChainedRow(row) in &rows {
            if let Err(broken) = chain.follow(row) {
                return Ok((chain, Some(broken.to_string())));
            }
        }
    }
    let own = chain.end().err().map(|broken| broken.to_string());
    Ok((chain, own.or(said_broken)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(more: Value) -> AuditRow {
        let mut row = json!({
            "number": 1, "at": "2026-01-02T03:04:05Z", "outcome": "asked", "status": 0, "times": 1, "user_id": "",
            "user_name": "", "source": "", "method": "", "route": "", "target": "", "action": "", "result": null,
        });
        let more = more.as_object().cloned().unwrap_or_default();
        row.as_object_mut().unwrap().extend(more);
        serde_json::from_value(row).unwrap()
    }

    #[track_caller]
    fn came(more: Value, want: &str) {
        assert_eq!(line("clusters", &row(more)).last().map(String::as_str), Some(want));
    }

    #[test]
    fn the_result_of_a_request_is_shown_in_the_row_of_the_request() {
        came(json!({"outcome": "asked", "result": {"outcome": "answered", "status": 202}}), "202");
        came(
            json!({"outcome": "asked", "result": {"outcome": "abandoned", "status": 0}}),
            "abandoned",
        );
        came(json!({"outcome": "asked", "result": null}), "unknown");
        came(json!({"outcome": "refused", "times": 7, "status": 401}), "refused 7 times: 401");
        let shown =
            ["answered", "asked", "refused"].map(|word| is_shown(&row(json!({"outcome": word}))));
        assert_eq!(shown, [false, true, true]);
    }
}
