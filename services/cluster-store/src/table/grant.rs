//! The table `grants`: the limits of persons in projects.

use cluster_core::{Limit, Limits, Resource};
use database::{Connection, Result, values};
use jiff::Timestamp;

use super::quota::limits;

/// Replaces all limits of a person.
pub(crate) async fn set(
    connection: &mut Connection,
    (project, person): (&str, &str),
    new: &Limits,
    now: Timestamp,
) -> Result<()> {
    for resource in Resource::ALL {
        let limit = new.0.get(&resource).copied();
        change(connection, (project, person), (resource, limit), now).await?;
    }
    Ok(())
}

/// Writes one limit of a person; `None` deletes the limit.
pub(crate) async fn change(
    connection: &mut Connection,
    (project, person): (&str, &str),
    (resource, limit): (Resource, Option<Limit>),
    now: Timestamp,
) -> Result<()> {
    const CLEAR: &str = "DELETE FROM grants WHERE project = $1 AND person = $2 AND resource = $3";
    const SET: &str = "INSERT INTO grants (project, person, resource, hard_limit, set_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (project, person, resource) DO UPDATE SET hard_limit = $4, set_at = $5";
    let word = resource.as_str();
    match limit {
        None => connection.execute(CLEAR, values![project, person, word]).await?,
        Some(limit) => {
            let limit = i64::from(limit);
            connection.execute(SET, values![project, person, word, limit, now]).await?
        }
    };
    Ok(())
}

/// Returns the limits of a person.
pub(crate) async fn of(
    connection: &mut Connection,
    (project, person): (&str, &str),
) -> Result<Limits> {
    const OF: &str = "SELECT resource, hard_limit FROM grants WHERE project = $1 AND person = $2";
    limits(&connection.rows(OF, values![project, person]).await?, Resource::find)
}
