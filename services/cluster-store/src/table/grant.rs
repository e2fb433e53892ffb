//! The table `grants`: the limits of people in projects.

use cluster_core::{Limits, Resource};
use database::{Connection, StoreError, values};
use jiff::Timestamp;

use super::quota::limits;

/// Writes those of a person in place of all there were.
pub(crate) async fn set(
    connection: &mut Connection,
    (project, person): (&str, &str),
    new: &Limits,
    now: Timestamp,
) -> Result<(), StoreError> {
    const CLEAR: &str = "DELETE FROM grants WHERE project = $1 AND person = $2";
    const INSERT: &str = "INSERT INTO grants (project, person, resource, hard_limit, set_at) VALUES ($1, $2, $3, $4, $5)";
    connection.execute(CLEAR, values![project, person]).await?;
    for (resource, limit) in &new.0 {
        let values = values![project, person, resource.as_str(), i64::from(*limit), now];
        connection.execute(INSERT, values).await?;
    }
    Ok(())
}

/// Those of a person.
pub(crate) async fn of(
    connection: &mut Connection,
    (project, person): (&str, &str),
) -> Result<Limits, StoreError> {
    const OF: &str = "SELECT resource, hard_limit FROM grants WHERE project = $1 AND person = $2";
    limits(&connection.rows(OF, values![project, person]).await?, Resource::read)
}
