//! The tables `audit` and `audit_head`.

use std::collections::BTreeMap;

use audit::{Broken, Entry, Fault, Filter, Head, ListedRow, Order, RequestResult, Row};
use database::{
    Column, Connection, Query, Row as Columns, SqlError, StoreError, Value, columns, values,
};
use jiff::Timestamp;

const TABLE: &str = "audit";
const SELECT: &str = "SELECT number, at, service, outcome, status, times, since, request_id, global_request_id, user_id, user_name, \
     project_id, roles, service_user_id, source, method, route, target, action, previous, hash FROM audit";

/// Adds one row for each of `entries` if the trail still ends at its head: all rows, or none.
///
/// A refusal by the database is reported as `Corrupt` and not as `Unavailable`, because `Unavailable` would undo the whole transaction, and
/// other jobs may write in the same transaction. `Unavailable` only means that the connection failed.
pub(crate) async fn append(
    connection: &mut Connection,
    service: &str,
    entries: Vec<Entry>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let head = lock_head(connection).await?;
    let mut rows: Vec<Row> = Vec::with_capacity(entries.len());
    for entry in entries {
        let last = rows.last().map(|row| Head { number: row.number, hash: row.digest() });
        rows.push(Row::after(last.unwrap_or(head), service, entry, now));
    }
    let rows = rows.into_iter().map(columns).collect();
    insert(connection, rows).await.map_err(refused)
}

async fn insert(connection: &mut Connection, rows: Vec<Vec<Column>>) -> Result<(), SqlError> {
    match connection {
        Connection::Sqlite(_) => {
            for row in rows {
                columns::insert(connection, TABLE, row).await?;
            }
            Ok(())
        }
        // One statement for all rows, because each statement waits for the server.
        Connection::Postgres(_) => {
            connection.execute(INSERT_ALL, values![json_of(rows)]).await.map(drop)
        }
    }
}

/// Inserts one row for each element of a JSON array; each element is an array of the columns.
const INSERT_ALL: &str = "INSERT INTO audit (number, at, service, outcome, status, times, since, request_id, global_request_id, user_id, \
     user_name, project_id, roles, service_user_id, source, method, route, target, action, previous, hash) \
     SELECT CAST(value ->> 0 AS BIGINT), CAST(value ->> 1 AS BIGINT), value ->> 2, value ->> 3, CAST(value ->> 4 AS BIGINT), \
     CAST(value ->> 5 AS BIGINT), CAST(value ->> 6 AS BIGINT), value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, \
     value ->> 12, value ->> 13, value ->> 14, value ->> 15, value ->> 16, value ->> 17, value ->> 18, value ->> 19, value ->> 20 \
     FROM json_array_elements(CAST($1 AS json))";

fn json_of(rows: Vec<Vec<Column>>) -> String {
    let json = |column: Column| match column.value {
        Value::Int(int) => serde_json::Value::from(int),
        Value::Text(text) => serde_json::Value::from(text),
    };
    let rows = rows.into_iter().map(|row| row.into_iter().map(json).collect::<serde_json::Value>());
    serde_json::Value::Array(rows.collect()).to_string()
}

/// Returns the head of the trail and keeps other writers out until the transaction ends.
async fn lock_head(connection: &mut Connection) -> Result<Head, StoreError> {
    const WAIT: &str = "UPDATE audit_head SET number = number";
    const ENDS: &str = "SELECT audit_head.number, audit_head.hash, last.number, last.hash FROM audit_head \
         LEFT JOIN (SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1) AS last ON 1 = 1";
    match connection {
        // SQLite has one writer, so nobody else can write.
        Connection::Sqlite(_) => {}
        // The update locks the row of the head, so other writers wait here.
        Connection::Postgres(_) => {
            connection.execute(WAIT, values![]).await.map_err(refused)?;
        }
    }
    let ends = connection.row(ENDS, values![]).await.map_err(refused)?;
    let head = head_of(ends.as_ref(), 0)?;
    let is_empty = ends.as_ref().is_some_and(|ends| matches!(ends.optional_int(2), Ok(None)));
    let last = if is_empty { Head::NONE } else { head_of(ends.as_ref(), 2)? };
    if last != head {
        let number = last.number.min(head.number).saturating_add(1);
        return Err(broken(Broken { number, fault: Fault::Missing }));
    }
    Ok(head)
}

/// The number and hash of the last row, as stored in `audit_head`.
pub(crate) async fn head(connection: &mut Connection) -> Result<Head, StoreError> {
    const HEAD: &str = "SELECT number, hash FROM audit_head";
    head_of(connection.row(HEAD, values![]).await?.as_ref(), 0)
}

/// Returns one page of the rows that match `filter`, each `asked` row with the result of its request.
pub(crate) async fn list(
    connection: &mut Connection,
    filter: &Filter,
) -> Result<Vec<ListedRow>, StoreError> {
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
    let found = query.first_by("number", descending, filter.limit).rows(connection).await?;
    let rows = found.iter().map(read).collect::<Result<Vec<Row>, StoreError>>()?;
    let mut results = results(connection, &rows).await?;
    let listed = rows.into_iter().map(|row| {
        let result = row.is_asked().then(|| results.remove(&row.request_id)).flatten();
        ListedRow { row, result }
    });
    Ok(listed.collect())
}

/// The results of the requests that these rows announce, by request id.
async fn results(
    connection: &mut Connection,
    rows: &[Row],
) -> Result<BTreeMap<String, RequestResult>, StoreError> {
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
    let found = query.rows(connection).await?;
    let read = |row: &Columns| {
        let (number, status) = (row.int(1)?, row.int(3)?);
        let result = RequestResult { number, outcome: row.text(2)?.to_owned(), status };
        Ok((row.text(0)?.to_owned(), result))
    };
    found.iter().map(read).collect()
}

/// The columns of a row in the order of [`INSERT_ALL`].
fn columns(row: Row) -> Vec<Column> {
    columns![
        number: row.number,
        at: row.at,
        service: row.service,
        outcome: row.outcome,
        status: row.status,
        times: row.times,
        since: row.since,
        request_id: row.request_id,
        global_request_id: row.global_request_id,
        user_id: row.user_id,
        user_name: row.user_name,
        project_id: row.project_id,
        roles: row.roles,
        service_user_id: row.service_user_id,
        source: row.source,
        method: row.method,
        route: row.route,
        target: row.target,
        action: row.action,
        previous: row.previous,
        hash: row.hash,
    ]
}

/// Reads a row. A row with unreadable fields becomes an error that names its number.
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
    fields().map_err(|_| broken(Broken { number, fault: Fault::Unreadable }))
}

/// Reads a head from two columns: the number at `column`, and the hash in the next column.
fn head_of(row: Option<&Columns>, column: usize) -> Result<Head, StoreError> {
    let unreadable = || broken(Broken { number: 1, fault: Fault::Unreadable });
    let row = row.ok_or_else(unreadable)?;
    let number = row.int(column).map_err(|_| unreadable())?;
    let hash = row.text(column + 1).ok().and_then(|text| text.parse().ok());
    Ok(Head { number, hash: hash.ok_or_else(unreadable)? })
}

/// The error for a trail that is not the trail that was written.
fn broken(broken: Broken) -> StoreError {
    StoreError::corrupt(TABLE, &broken.number.to_string(), broken)
}

/// Tells a statement that the database refused, which only fails this job, from a failed connection, which fails every job of the
/// transaction.
fn refused(error: SqlError) -> StoreError {
    if error.is_refusal() { StoreError::corrupt(TABLE, "head", error) } else { error.into() }
}
