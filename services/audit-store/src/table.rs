//! The tables `audit` and `audit_head`.

use std::collections::BTreeMap;

use audit::{Broken, Entry, Fault, Filter, Head, Listed, Order, Row, TrailResult};
use database::{Connection, Query, Row as Columns, SqlError, StoreError, Value, values};
use jiff::Timestamp;

const TABLE: &str = "audit";
const SELECT: &str = "SELECT number, at, service, outcome, status, times, since, request_id, global_request_id, user_id, user_name, \
     project_id, roles, service_user_id, source, method, route, target, action, previous, hash FROM audit";

/// Adds a row for each of `entries`, if the trail still ends where it was left.
///
/// Nothing but that the way to the database failed is `Unavailable`: others may write in the same transaction.
pub(crate) async fn append(
    connection: &mut Connection,
    service: &str,
    entries: Vec<Entry>,
    now: Timestamp,
) -> Result<(), StoreError> {
    // On PostgreSQL, who writes a head waits until nobody else does.
    const BEGIN: &str = "UPDATE audit_head SET number = number RETURNING number, hash";
    const INSERT: &str = "INSERT INTO audit (number, at, service, outcome, status, times, since, request_id, global_request_id, user_id, \
         user_name, project_id, roles, service_user_id, source, method, route, target, action, previous, hash) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";
    let begun = connection.row(BEGIN, values![]).await.map_err(refused)?;
    let mut head = head_of(begun)?;
    let last = last(connection).await?;
    if last != head {
        let number = last.number.min(head.number).saturating_add(1);
        return Err(unfit(Broken { number, fault: Fault::Missing }));
    }
    for entry in entries {
        let row = Row::after(head, service, entry, now);
        let hash = row.digest();
        head = Head { number: row.number, hash };
        connection.execute(INSERT, columns(row)).await.map_err(refused)?;
    }
    Ok(())
}

/// The last row, as the head has it.
pub(crate) async fn head(connection: &mut Connection) -> Result<Head, StoreError> {
    const HEAD: &str = "SELECT number, hash FROM audit_head";
    head_of(connection.row(HEAD, values![]).await?)
}

/// The last row that is there.
async fn last(connection: &mut Connection) -> Result<Head, StoreError> {
    const LAST: &str = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";
    match connection.row(LAST, values![]).await.map_err(refused)? {
        Some(row) => head_of(Some(row)),
        None => Ok(Head::NONE),
    }
}

/// One page of the rows that `filter` wants, each with what became of the request that it says was asked.
pub(crate) async fn list(
    connection: &mut Connection,
    filter: &Filter,
) -> Result<Vec<Listed>, StoreError> {
    let mut query = Query::new(SELECT);
    query.and_if_set("(user_id = ? OR user_name = ?)", filter.user.as_deref());
    query.and_if_set("project_id = ?", filter.project.as_deref());
    query.and_if_set("(request_id = ? OR global_request_id = ?)", filter.request_id.as_deref());
    query.and_if_set("at >= ?", filter.since);
    query.and_if_set("at < ?", filter.until);
    let (beyond, descending) = match filter.order {
        Order::OldestFirst => ("number > ?", false),
        Order::NewestFirst => ("number < ?", true),
    };
    query.and_if_set(beyond, filter.marker);
    let (sql, values) = query.first_by("number", descending, filter.limit);
    let found = connection.rows(sql, values).await?;
    let rows = found.iter().map(read).collect::<Result<Vec<Row>, StoreError>>()?;
    let mut results = results(connection, &rows).await?;
    let listed = rows.into_iter().map(|row| {
        let result = row.is_asked().then(|| results.remove(&row.request_id)).flatten();
        Listed { row, result }
    });
    Ok(listed.collect())
}

/// What became of the requests that these rows say were asked, by their ids.
async fn results(
    connection: &mut Connection,
    rows: &[Row],
) -> Result<BTreeMap<String, TrailResult>, StoreError> {
    const RESULTS: &str = "SELECT request_id, number, outcome, status FROM audit";
    let asked: Vec<Value> = rows
        .iter()
        .filter(|row| row.is_asked())
        .map(|row| Value::from(row.request_id.as_str()))
        .collect();
    if asked.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut query = Query::new(RESULTS);
    query.and("outcome <> 'asked'");
    query.and_any("request_id", asked);
    let (sql, values) = query.into_parts();
    let found = connection.rows(sql, values).await?;
    let read = |row: &Columns| {
        let (number, status) = (row.int(1)?, row.int(3)?);
        let result = TrailResult { number, outcome: row.text(2)?.to_owned(), status };
        Ok((row.text(0)?.to_owned(), result))
    };
    found.iter().map(read).collect()
}

fn columns(row: Row) -> Vec<Value> {
    let Row { number, at, service, outcome, status, times, since, request_id, .. } = row;
    let Row { global_request_id, user_id, user_name, project_id, roles, service_user_id, .. } = row;
    let Row { source, method, route, target, action, previous, hash, .. } = row;
    values![
        number,
        at,
        service,
        outcome,
        status,
        times,
        since,
        request_id,
        global_request_id,
        user_id,
        user_name,
        project_id,
        roles,
        service_user_id,
        source,
        method,
        route,
        target,
        action,
        previous,
        hash
    ]
}

/// A row, whatever is in it; where that is none, its number is told.
fn read(row: &Columns) -> Result<Row, StoreError> {
    let fields = || -> Result<Row, StoreError> {
        let text = |column| row.text(column).map(str::to_owned);
        Ok(Row {
            number: row.int(0)?,
            at: row.time(TABLE, 1)?,
            service: text(2)?,
            outcome: text(3)?,
            status: row.int(4)?,
            times: row.int(5)?,
            since: row.optional_time(TABLE, 6)?,
            request_id: text(7)?,
            global_request_id: text(8)?,
            user_id: text(9)?,
            user_name: text(10)?,
            project_id: text(11)?,
            roles: text(12)?,
            service_user_id: text(13)?,
            source: text(14)?,
            method: text(15)?,
            route: text(16)?,
            target: text(17)?,
            action: text(18)?,
            previous: text(19)?,
            hash: text(20)?,
        })
    };
    let number = row.int(0)?;
    fields().map_err(|_| unfit(Broken { number, fault: Fault::Unreadable }))
}

fn head_of(row: Option<Columns>) -> Result<Head, StoreError> {
    let unreadable = || unfit(Broken { number: 1, fault: Fault::Unreadable });
    let row = row.ok_or_else(unreadable)?;
    let number = row.int(0).map_err(|_| unreadable())?;
    let hash = row.text(1).ok().and_then(|text| text.parse().ok()).ok_or_else(unreadable)?;
    Ok(Head { number, hash })
}

/// That what is kept is not what was written.
fn unfit(broken: Broken) -> StoreError {
    StoreError::corrupt(TABLE, &broken.number.to_string(), broken)
}

/// A statement that the database refuses is this work's fault alone; that the way to it failed is everybody's.
fn refused(error: SqlError) -> StoreError {
    match error.as_database_error() {
        Some(_) => StoreError::corrupt(TABLE, "head", error),
        None => error.into(),
    }
}
