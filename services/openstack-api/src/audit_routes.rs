//! `/bedplate/v1/audit`: lists the audit trail and verifies it.

use audit::{Chain, Filter, ListedRow, Order, TrailError};
use axum::Extension;
use axum::extract::{FromRef, OriginalUri};
use axum::response::Response;
use http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use tracing::error;

use crate::policy::ApiState;
use crate::request_recorder::RequestRecorder;
use crate::{
    AccessScope, ApiError, Auth, Caller, JsonShape, ListPart, Listing, MAX_LIMIT, NextLink, Origin,
    PartRequest, Query, RequiredAccess, Route, Routes, Rule, Shaped, json, next_link, shaped,
};

/// The most rows that are read at once. A row has at most 13 texts of 255 characters.
const ROWS_AT_ONCE: u32 = 64;

pub(crate) fn routes<S>() -> Routes<S>
where
    S: ApiState + Clone + Send + Sync + 'static,
    Auth: FromRef<S>,
{
    let verify = Route::get("Verify the audit trail", verify).needs(RequiredAccess::Administer);
    let verify = verify.returns(Verdict::shape());
    let list = Route::get("List the audit trail", list)
        .with_rule(Rule::TRAIL)
        .query_parameters([
            "limit",
            "marker",
            "sort_dir",
            "user",
            "project",
            "request_id",
            "since",
            "until",
        ])
        .returns(JsonShape::page("audit", listed()));
    Routes::new("audit").at("/bedplate/v1/audit", [list]).at("/bedplate/v1/audit/verify", [verify])
}

/// The JSON shape of `audit::ListedRow`: a row with the result of its request.
fn listed() -> JsonShape {
    let texts = [
        "at",
        "service",
        "outcome",
        "request_id",
        "global_request_id",
        "user_id",
        "user_name",
        "project_id",
        "roles",
        "service_user_id",
        "source",
        "method",
        "route",
        "target",
        "action",
        "previous",
        "hash",
    ];
    let result = || {
        JsonShape::object([
            ("number", JsonShape::integer()),
            ("outcome", JsonShape::text()),
            ("status", JsonShape::integer()),
        ])
    };
    let row = JsonShape::object([
        ("number", JsonShape::integer()),
        ("status", JsonShape::integer()),
        ("times", JsonShape::integer()),
        ("since", JsonShape::text().or_null()),
        ("result", result().or_null()),
    ]);
    texts.into_iter().fold(row, |row, name| row.and([(name, JsonShape::text())]))
}

/// `GET /bedplate/v1/audit`: the newest rows first. A manager of a project sees the requests made in that project.
async fn list(
    caller: Caller,
    Extension(watch): Extension<RequestRecorder>,
    origin: Origin,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, ApiError> {
    let mut filter = filter(query.clone())?;
    match caller.access_scope() {
        AccessScope::Everything => {}
        AccessScope::Project(own) if filter.project.as_deref().is_none_or(|asked| asked == own) => {
            filter.project = Some(own.to_owned());
        }
        AccessScope::Project(_) | AccessScope::Nothing => {
            let why = "project: only administrators may read the audit trail of other projects";
            return Err(ApiError::new(StatusCode::FORBIDDEN, why));
        }
    }
    let (limit, path) = (filter.limit, uri.path().to_owned());
    let next: NextLink = Box::new(move |last| next_link(&origin, &path, &query, limit, last));
    let page = Listing { name: "audit", limit, bytes: usize::MAX, next: Some(next) };
    let trail = watch.trail().clone();
    crate::list(page, move |asked: PartRequest<i64>| {
        let limit = asked.elements.min(ROWS_AT_ONCE);
        let marker = asked.after.or(filter.marker);
        let (trail, part) = (trail.clone(), Filter { limit, marker, ..filter.clone() });
        Box::pin(async move {
            let rows = trail.list(&part).await.map_err(failed)?;
            let number = |listed: &ListedRow| listed.row.number;
            let more = rows.last().filter(|_| rows.len() == limit as usize).map(number);
            ListPart::of(&rows, number, |listed| listed, more)
        })
    })
    .await
}

fn filter(mut query: Query) -> Result<Filter, ApiError> {
    let number = |name: &str, raw: String| {
        let number = raw.parse::<i64>().ok().filter(|number| *number >= 0);
        number.ok_or_else(|| ApiError::bad_field(name, "must be a non-negative number"))
    };
    let time = |name: &str, raw: String| {
        raw.parse::<Timestamp>()
            .map_err(|_| ApiError::bad_field(name, "must be a time such as 2026-01-02T03:04:05Z"))
    };
    let limit = match query.take("limit").map(|raw| number("limit", raw)).transpose()? {
        None => MAX_LIMIT,
        Some(0) => return Err(ApiError::bad_field("limit", "must be positive")),
        Some(limit) => u32::try_from(limit).unwrap_or(MAX_LIMIT).min(MAX_LIMIT),
    };
    let order = match query.take("sort_dir").as_deref() {
        None | Some("desc") => Order::NewestFirst,
        Some("asc") => Order::OldestFirst,
        Some(_) => return Err(ApiError::bad_field("sort_dir", "must be asc or desc")),
    };
    let filter = Filter {
        user: query.take("user"),
        project: query.take("project"),
        request_id: query.take("request_id"),
        since: query.take("since").map(|raw| time("since", raw)).transpose()?,
        until: query.take("until").map(|raw| time("until", raw)).transpose()?,
        order,
        marker: query.take("marker").map(|raw| number("marker", raw)).transpose()?,
        limit,
    };
    query.finish()?;
    Ok(filter)
}

shaped! {
    #[derive(Serialize)]
    struct Verdict {
        /// How many rows, from the first on, are unchanged.
        count: u64,
        /// The last unchanged row: `NUMBER:HASH`.
        head: String,
        /// The first row that was tampered with; null if there is none.
        broken: Option<FirstBroken>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct FirstBroken {
        number: i64,
        why: String,
    }
}

/// `GET /bedplate/v1/audit/verify`: verifies the whole trail page by page, up to the row that was the last one at the start.
async fn verify(
    _caller: Caller,
    Extension(watch): Extension<RequestRecorder>,
) -> Result<Response, ApiError> {
    let mut chain = Chain::default();
    let broken = match follow(&watch, &mut chain).await {
        Ok(()) => None,
        Err(TrailError::Broken(broken)) => {
            Some(FirstBroken { number: broken.number, why: broken.to_string() })
        }
        Err(why @ TrailError::Unavailable(_)) => return Err(failed(why)),
    };
    let verdict = Verdict { count: chain.count(), head: chain.head().to_string(), broken };
    Ok(json(StatusCode::OK, &verdict))
}

async fn follow(watch: &RequestRecorder, chain: &mut Chain) -> Result<(), TrailError> {
    let head = watch.trail().head().await?;
    *chain = Chain::default().expecting(head);
    while chain.head().number < head.number {
        let page = watch.trail().list(&Filter::after(chain.head().number, MAX_LIMIT)).await?;
        if page.is_empty() {
            break;
        }
        for listed in page {
            chain.follow(&listed.row)?;
        }
    }
    chain.end()?;
    Ok(())
}

fn failed(why: TrailError) -> ApiError {
    error!("cannot read the audit trail: {why}");
    match why {
        TrailError::Broken(broken) => {
            ApiError::broken(format!("the audit trail is broken: {broken}"))
        }
        TrailError::Unavailable(_) => {
            let why = "the audit trail cannot be read at present; see the log of the service";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why)
        }
    }
}
