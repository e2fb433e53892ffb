//! `/audit`: the audit trails of both services.

use api_client::WithJson;
use api_client::shared::AuditRow;
use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;

use crate::api::encoded;
use crate::page_request::AuthorizedUser;
use crate::problem::Result;
use crate::state::Console;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/audit", get(list))
}

#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    of: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    marker: String,
}

/// `GET /audit?of=&user=&marker=`: a page of a trail.
async fn list(person: AuthorizedUser, Query(wanted): Query<ListQuery>) -> Result<Response> {
    let api = if wanted.of == "clusters" { person.clusterd()? } else { person.baremetald()? };
    let mut path = "/bedplate/v1/audit?limit=100".to_owned();
    for (name, value) in [("user", &wanted.user), ("marker", &wanted.marker)] {
        if !value.is_empty() {
            path = format!("{path}&{name}={}", encoded(value.trim()));
        }
    }
    let (rows, has_more) = api.page::<WithJson<AuditRow>>(&path).await?;
    let last = rows.last().filter(|_| has_more).map(|row| row.number);
    let next = last.map(|last| {
        format!(
            "/audit?of={}&user={}&marker={last}",
            encoded(wanted.of.trim()),
            encoded(wanted.user.trim())
        )
    });
    let page = person.page("audit.html", "Audit").under("audit");
    let page = page.put("rows", rows).put("next", next);
    person.show(page.put("of", wanted.of).put("user", wanted.user))
}
