//! The table `quotas`: the limits of projects. The limit of clusters has Magnum's name for the resource, because Magnum's API shows it.

use cluster_core::{Limit, Limits, QuotaUuid, Resource};
use database::table::{changed_one, violated_unique_column};
use database::{Connection, Query, Result, Row, StoreError, values};
use jiff::Timestamp;

use crate::{Quota, Scope};

const TABLE: &str = "quotas";

/// Magnum's name for clusters.
const CLUSTER: &str = "Cluster";

pub(crate) async fn insert(connection: &mut Connection, quota: &Quota) -> Result<()> {
    const INSERT: &str = "INSERT INTO quotas (id, project, resource, hard_limit, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6)";
    let values = values![
        quota.id,
        quota.project.as_str(),
        quota.resource.as_str(),
        quota.hard_limit,
        quota.created_at,
        quota.updated_at,
    ];
    match connection.execute(INSERT, values).await {
        Err(error) if violated_unique_column(&error).is_some() => {
            Err(StoreError::Duplicate { field: "project_id", value: quota.project.clone() })
        }
        written => Ok(written.map(drop)?),
    }
}

pub(crate) async fn update(connection: &mut Connection, quota: &Quota) -> Result<()> {
    const UPDATE: &str = "UPDATE quotas SET hard_limit = $2, updated_at = $3 WHERE id = $1";
    let values = values![quota.id, quota.hard_limit, quota.updated_at];
    changed_one(connection.execute(UPDATE, values).await?)
}

pub(crate) async fn delete(connection: &mut Connection, quota: &Quota) -> Result<()> {
    changed_one(connection.execute("DELETE FROM quotas WHERE id = $1", values![quota.id]).await?)
}

/// Returns the quotas in `scope`; only those of `resource`, when it is given.
pub(crate) async fn list(
    connection: &mut Connection,
    scope: &Scope,
    resource: Option<&str>,
) -> Result<Vec<Quota>> {
    let mut query =
        Query::new("SELECT id, project, resource, hard_limit, created_at, updated_at FROM quotas");
    query.and_if_set("project = ?", scope.project());
    query.and_if_set("resource = ?", resource);
    query.first_by_id(1000).rows(connection).await?.iter().map(read).collect()
}

/// Replaces all limits of a project. A limit that existed keeps its id.
pub(crate) async fn set(
    connection: &mut Connection,
    project: &str,
    new: &Limits,
    now: Timestamp,
) -> Result<()> {
    for resource in Resource::ALL {
        change(connection, project, (resource, new.0.get(&resource).copied()), now).await?;
    }
    Ok(())
}

/// Writes one limit of a project; `None` deletes the limit. A limit that existed keeps its id.
pub(crate) async fn change(
    connection: &mut Connection,
    project: &str,
    (resource, limit): (Resource, Option<Limit>),
    now: Timestamp,
) -> Result<()> {
    const CLEAR: &str = "DELETE FROM quotas WHERE project = $1 AND resource = $2";
    const SET: &str = "INSERT INTO quotas (id, project, resource, hard_limit, created_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (project, resource) DO UPDATE SET hard_limit = $4, updated_at = $5";
    match limit {
        None => connection.execute(CLEAR, values![project, word(resource)]).await?,
        Some(limit) => {
            let (id, limit) = (QuotaUuid::new_v4(), i64::from(limit));
            connection.execute(SET, values![id, project, word(resource), limit, now]).await?
        }
    };
    Ok(())
}

pub(crate) async fn of(connection: &mut Connection, project: &str) -> Result<Limits> {
    const OF: &str = "SELECT resource, hard_limit FROM quotas WHERE project = $1";
    let of_word = |raw: &str| Resource::ALL.into_iter().find(|it| word(*it) == raw);
    limits(&connection.rows(OF, values![project]).await?, of_word)
}

/// Returns the name of a resource in this table.
fn word(resource: Resource) -> &'static str {
    if resource == Resource::Clusters { CLUSTER } else { resource.as_str() }
}

/// Reads limits from rows of resource and number.
pub(crate) fn limits(rows: &[Row], resource: impl Fn(&str) -> Option<Resource>) -> Result<Limits> {
    let mut limits = Limits::default();
    for row in rows {
        let raw = row.text(0)?;
        let limit = Limit::try_from(row.int(1)?);
        let limit = limit.map_err(|error| StoreError::corrupt(TABLE, raw, error))?;
        let known =
            resource(raw).ok_or_else(|| StoreError::corrupt(TABLE, raw, "unknown resource"))?;
        limits.0.insert(known, limit);
    }
    Ok(limits)
}

fn read(row: &Row) -> Result<Quota> {
    Ok(Quota {
        id: row.parse(TABLE, 0)?,
        project: row.text(1)?.to_owned(),
        resource: row.text(2)?.to_owned(),
        hard_limit: row.int(3)?,
        created_at: row.time(TABLE, 4)?,
        updated_at: row.optional_time(TABLE, 5)?,
    })
}
