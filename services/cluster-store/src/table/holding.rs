//! The table `holdings`: the quota use of each cluster, member, VM and snapshot.
//!
//! A row keeps its amounts when the flavor changes later. The row of a member that is being deleted stays until its server is deleted.

use std::collections::BTreeMap;

use cluster_core::{
    Amounts, Cluster, ClusterUuid, LedgerUuid, QuotaScope, Resource, ResourceUse, Snapshot, Vm,
};
use database::{AssertSqlSafe, Connection, Query, Result, Row, Value, values};

const TABLE: &str = "holdings";

/// How many rows one statement writes.
const AT_ONCE: usize = 200;

pub(crate) struct HoldingRow {
    pub(crate) holding: ResourceUse,
    /// The user who requested the part.
    pub(crate) person: String,
    /// Whether the member is being deleted.
    pub(crate) is_leaving: bool,
}

/// Returns the columns of all summed resources, each as `each` writes it.
fn columns(each: impl Fn(Resource) -> String) -> String {
    Resource::summed().map(each).collect::<Vec<_>>().join(", ")
}

/// Returns the total use of a project or a person.
pub(crate) async fn sum(connection: &mut Connection, whose: &QuotaScope) -> Result<Amounts> {
    let sums = columns(|it| format!("cast(coalesce(sum({it}), 0) AS BIGINT)"));
    let mut query = Query::new(&format!("SELECT {sums} FROM holdings"));
    query.and_value("project = ?", whose.project.as_str());
    query.and_if_set("person = ?", whose.person.as_deref());
    let row = query.row(connection).await?;
    row.map_or(Ok(Amounts::default()), |row| amounts(&row, 0))
}

/// Returns the rows of a cluster by the name of the member; the row of the cluster itself has an empty name.
pub(crate) async fn of(
    connection: &mut Connection,
    cluster: &Cluster,
) -> Result<BTreeMap<String, HoldingRow>> {
    let sql = format!(
        "SELECT machine, leaving, measured, person, {} FROM holdings WHERE cluster = $1",
        columns(|it| it.to_string())
    );
    let rows = connection.rows(AssertSqlSafe(sql), values![cluster.id]).await?;
    let read = |row: &Row| {
        let name = row.text(0)?.to_owned();
        let machine = if name.is_empty() { None } else { Some(row.parse(TABLE, 0)?) };
        let (amounts, is_measured) = (amounts(row, 4)?, row.int(2)? != 0);
        let holding = ResourceUse { machine, amounts, is_measured };
        let (person, is_leaving) = (row.text(3)?.to_owned(), row.int(1)? != 0);
        Ok((name, HoldingRow { holding, person, is_leaving }))
    };
    rows.iter().map(read).collect()
}

/// Writes the use of parts of `cluster`, each with the user who requested it, and replaces existing rows.
pub(crate) async fn save(
    connection: &mut Connection,
    cluster: &Cluster,
    holdings: &[(ResourceUse, String)],
) -> Result<()> {
    for some in holdings.chunks(AT_ONCE) {
        let mut values: Vec<Value> = Vec::new();
        let mut rows = Vec::with_capacity(some.len());
        for (holding, person) in some {
            let machine = name(holding);
            let holder = match machine.as_str() {
                "" => cluster.id.to_string(),
                machine => format!("{}/{machine}", cluster.id),
            };
            let before = values.len();
            values.extend(values![
                holder,
                cluster.id,
                machine,
                cluster.project.as_str(),
                person.as_str(),
                false,
                holding.is_measured,
            ]);
            let amounts = holding.amounts.each();
            values.extend(amounts.map(|(_, it)| Value::from(it.cast_signed())));
            let places: Vec<String> =
                (before + 1..=values.len()).map(|place| format!("${place}")).collect();
            rows.push(format!("({})", places.join(", ")));
        }
        let sql = format!(
            "INSERT INTO holdings (holder, cluster, machine, project, person, leaving, measured, {}) VALUES {} \
             ON CONFLICT (holder) DO UPDATE SET person = excluded.person, leaving = excluded.leaving, measured = excluded.measured, {}",
            columns(|it| it.to_string()),
            rows.join(", "),
            columns(|it| format!("{it} = excluded.{it}")),
        );
        connection.execute(AssertSqlSafe(sql), values).await?;
    }
    Ok(())
}

/// The owner of a row that belongs to no cluster.
pub(crate) struct HoldingOwner {
    holder: String,
    pub(crate) project: String,
    pub(crate) person: String,
}

impl HoldingOwner {
    pub(crate) fn vm(of: &Vm) -> HoldingOwner {
        let (project, person) = (of.project.clone(), of.user.clone());
        HoldingOwner { holder: format!("vm/{}", of.id), project, person }
    }

    pub(crate) fn snapshot(of: &Snapshot) -> HoldingOwner {
        let (project, person) = (of.project.clone(), of.user.clone());
        HoldingOwner { holder: format!("snapshot/{}", of.id), project, person }
    }
}

/// Writes the use of a VM or snapshot, and replaces its row.
pub(crate) async fn save_one(
    connection: &mut Connection,
    whom: &HoldingOwner,
    takes: &Amounts,
) -> Result<()> {
    let (holder, project, person) =
        (whom.holder.as_str(), whom.project.as_str(), whom.person.as_str());
    let mut values = values![holder, "", project, person, false, true];
    values.extend(takes.each().map(|(_, it)| Value::from(it.cast_signed())));
    let places: Vec<String> = (1..=values.len()).map(|place| format!("${place}")).collect();
    let sql = format!(
        "INSERT INTO holdings (holder, machine, project, person, leaving, measured, {}) VALUES ({}) \
         ON CONFLICT (holder) DO UPDATE SET {}",
        columns(|it| it.to_string()),
        places.join(", "),
        columns(|it| format!("{it} = excluded.{it}")),
    );
    connection.execute(AssertSqlSafe(sql), values).await?;
    Ok(())
}

/// Deletes the row of a VM or snapshot.
pub(crate) async fn delete(connection: &mut Connection, whom: &HoldingOwner) -> Result<()> {
    const FORGET: &str = "DELETE FROM holdings WHERE holder = $1";
    connection.execute(FORGET, values![whom.holder.as_str()]).await?;
    Ok(())
}

/// Marks members of `cluster` as being deleted. Rows of members without a server in the ledger are deleted at once.
pub(crate) async fn mark_leaving(
    connection: &mut Connection,
    cluster: &Cluster,
    machines: impl IntoIterator<Item = &String>,
) -> Result<()> {
    const LEAVE: &str = "UPDATE holdings SET leaving = 1 WHERE cluster = $1 AND machine = $2";
    const FORGET: &str = "DELETE FROM holdings WHERE cluster = $1 AND leaving = 1 AND NOT EXISTS (SELECT 1 FROM ledger \
         WHERE ledger.cluster = holdings.cluster AND ledger.kind = 'server/' || holdings.machine)";
    let mut any = false;
    for machine in machines {
        connection.execute(LEAVE, values![cluster.id, machine.as_str()]).await?;
        any = true;
    }
    if any {
        connection.execute(FORGET, values![cluster.id]).await?;
    }
    Ok(())
}

/// Whether the member has a row. The row stays locked until the end of the transaction, so that a concurrent removal of the member waits.
pub(crate) async fn is_counted(
    connection: &mut Connection,
    (cluster, machine): (ClusterUuid, &str),
) -> Result<bool> {
    const HOLD: &str = "UPDATE holdings SET leaving = leaving WHERE cluster = $1 AND machine = $2";
    Ok(connection.execute(HOLD, values![cluster, machine]).await? > 0)
}

/// Deletes the row of the member whose server this ledger entry is, if the member is being deleted.
pub(crate) async fn forget(connection: &mut Connection, line: LedgerUuid) -> Result<()> {
    const FORGET: &str = "DELETE FROM holdings WHERE leaving = 1 AND EXISTS (SELECT 1 FROM ledger \
         WHERE ledger.id = $1 AND ledger.cluster = holdings.cluster AND ledger.kind = 'server/' || holdings.machine)";
    connection.execute(FORGET, values![line]).await?;
    Ok(())
}

/// Returns the name of the member; empty for the cluster itself.
pub(crate) fn name(holding: &ResourceUse) -> String {
    holding.machine.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn amounts(row: &Row, first: usize) -> Result<Amounts> {
    let each = Resource::summed().enumerate();
    let read = |(place, resource)| Ok((resource, row.int(first + place)?.unsigned_abs()));
    each.map(read).collect()
}
