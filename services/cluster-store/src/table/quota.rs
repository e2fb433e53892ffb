//! The table `quotas`.

use database::table::{changed_one, clash};
use database::{Connection, Query, Row, StoreError, values};

use crate::{Quota, Scope};

const TABLE: &str = "quotas";

pub(crate) async fn insert(connection: &mut Connection, quota: &Quota) -> Result<(), StoreError> {
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
        Err(error) if clash(&error).is_some() => {
            Err(StoreError::Duplicate { field: "project_id", value: quota.project.clone() })
        }
        written => Ok(written.map(drop)?),
    }
}

pub(crate) async fn update(connection: &mut Connection, quota: &Quota) -> Result<(), StoreError> {
    const UPDATE: &str = "UPDATE quotas SET hard_limit = $2, updated_at = $3 WHERE id = $1";
    let values = values![quota.id, quota.hard_limit, quota.updated_at];
    changed_one(connection.execute(UPDATE, values).await?)
}

pub(crate) async fn delete(connection: &mut Connection, quota: &Quota) -> Result<(), StoreError> {
    changed_one(connection.execute("DELETE FROM quotas WHERE id = $1", values![quota.id]).await?)
}

/// Those of `scope`, of `resource` where one is given.
pub(crate) async fn list(
    connection: &mut Connection,
    scope: &Scope,
    resource: Option<&str>,
) -> Result<Vec<Quota>, StoreError> {
    let mut query =
        Query::new("SELECT id, project, resource, hard_limit, created_at, updated_at FROM quotas");
    query.and_if_set("project = ?", scope.project());
    query.and_if_set("resource = ?", resource);
    let (sql, values) = query.first_by_id(1000);
    connection.rows(sql, values).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Quota, StoreError> {
    Ok(Quota {
        id: row.parse(TABLE, 0)?,
        project: row.text(1)?.to_owned(),
        resource: row.text(2)?.to_owned(),
        hard_limit: row.int(3)?,
        created_at: row.time(TABLE, 4)?,
        updated_at: row.optional_time(TABLE, 5)?,
    })
}
