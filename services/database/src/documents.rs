//! Updates rows with a JSON document that a newer program may have written, and keeps the fields that this program does not know.
//!
//! The column `written_by` has the number of the newest program whose fields the document may have ([`program::NUMBER`]). An update of
//! [`columns`] changes no row whose number is newer, and sets the own number otherwise. Only for such a row the stored document is read
//! again, so rows that no newer program has written cost nothing.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::columns::{self, WRITTEN_BY};
use crate::{AssertSqlSafe, Column, Connection, Result, SqlError, StoreError, program};

/// Returns the part of a stored document that this program knows: what it writes again after reading.
pub type KnownPart = fn(&str) -> serde_json::Result<Value>;

/// The part of a stored document that the type `T` knows.
pub fn known_part<T: Serialize + DeserializeOwned>(stored: &str) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_str::<T>(stored)?)
}

/// Updates a row as [`columns::update`] does, and keeps the fields of its document that this program does not know. `columns` makes the columns,
/// and `refused` converts the refusal of the database.
pub async fn update(
    connection: &mut Connection,
    table: &'static str,
    columns: impl Fn() -> Result<Vec<Column>>,
    known: KnownPart,
    refused: impl Fn(SqlError) -> StoreError,
) -> Result<u64> {
    let written = columns::update(connection, table, columns()?).await.map_err(&refused)?;
    if written > 0 {
        return Ok(written);
    }
    let mut columns = columns()?;
    if !keep_unknown(connection, table, &mut columns, known).await? {
        return Ok(0);
    }
    columns::update(connection, table, columns).await.map_err(&refused)
}

/// Adds the fields that this program does not know to the column `document`. Returns whether a newer program has written the row with this key
/// and version: then the same update, with the changed columns, finds the row.
pub async fn keep_unknown(
    connection: &mut Connection,
    table: &'static str,
    columns: &mut [Column],
    known: KnownPart,
) -> Result<bool> {
    let [key, version, rest @ ..] = columns else { return Ok(false) };
    let sql = format!(
        "SELECT document, written_by FROM {table} WHERE {} = $1 AND {} = $2 AND written_by > $3",
        key.name, version.name
    );
    let id = text(&key.value).to_owned();
    let values = vec![key.value.clone(), version.value.clone(), program::NUMBER.into()];
    let Some(row) = connection.row(AssertSqlSafe(sql), values).await? else { return Ok(false) };
    let (stored, written_by) = (row.text(0)?, row.int(1)?);
    let corrupt = |error| StoreError::corrupt(table, &id, error);
    for column in rest {
        match column.name {
            "document" => {
                let merged = merged(text(&column.value), stored, known).map_err(corrupt)?;
                column.value = merged.into();
            }
            WRITTEN_BY => column.value = written_by.into(),
            _ => {}
        }
    }
    Ok(true)
}

fn text(value: &crate::Value) -> &str {
    match value {
        crate::Value::Text(Some(text)) => text,
        crate::Value::Text(None) | crate::Value::Int(_) => "",
    }
}

/// Returns the document `ours` with the fields of `stored` that this program does not know. The error is that of a document that this program
/// could not read again.
fn merged(ours: &str, stored: &str, known: KnownPart) -> serde_json::Result<String> {
    let mut ours = serde_json::from_str(ours)?;
    keep(&mut ours, &known(stored)?, serde_json::from_str(stored)?);
    let merged = ours.to_string();
    known(&merged)?;
    Ok(merged)
}

/// Changes `ours` so that it keeps what `stored` has beyond `known`. A part that this program did not change is kept as it is; an object with
/// another `id` is another object, and keeps nothing.
fn keep(ours: &mut Value, known: &Value, stored: Value) {
    if *ours == *known {
        *ours = stored;
        return;
    }
    match (ours, known, stored) {
        (Value::Object(ours), Value::Object(known), Value::Object(stored))
            if ours.get("id") == known.get("id") =>
        {
            for (name, stored) in stored {
                match (ours.get_mut(&name), known.get(&name)) {
                    (Some(ours), Some(known)) => keep(ours, known, stored),
                    (None, None) => drop(ours.insert(name, stored)),
                    (Some(_), None) | (None, Some(_)) => {}
                }
            }
        }
        (Value::Array(ours), Value::Array(known), Value::Array(stored))
            if ours.len() == stored.len() && known.len() == stored.len() =>
        {
            for ((ours, known), stored) in ours.iter_mut().zip(known).zip(stored) {
                keep(ours, known, stored);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::scratch::Scratch;
    use crate::{Database, WriteKind, columns, values};

    const TABLES: &[&str] =
        &["CREATE TABLE cats (id TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, \
         document TEXT NOT NULL, written_by BIGINT NOT NULL DEFAULT 0);"];

    const NEWER: i64 = program::NUMBER + 1;

    /// A cat as this program knows it.
    #[derive(Serialize, Deserialize)]
    struct Cat {
        #[serde(alias = "called")]
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        #[serde(default)]
        meal: Meal,
        #[serde(default)]
        toys: Vec<Meal>,
    }

    #[derive(Default, Serialize, Deserialize)]
    struct Meal {
        id: u32,
        grams: u32,
    }

    #[track_caller]
    fn check(ours: Value, stored: Value, want: Value) {
        let merged = merged(&ours.to_string(), &stored.to_string(), known_part::<Cat>).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&merged).unwrap(), want);
    }

    #[test]
    fn a_document_that_could_not_be_read_again_is_not_written() {
        // The newer program called the name by another word that this one reads as well.
        let stored = json!({"called": "Tim"}).to_string();
        let ours = json!({"name": "Tom"}).to_string();
        let refused = merged(&ours, &stored, known_part::<Cat>).unwrap_err();
        assert!(refused.to_string().starts_with("duplicate field `name`"), "{refused}");
    }

    #[test]
    fn unknown_fields_are_kept_and_known_ones_are_written() {
        let meal = |grams: u32| json!({"id": 1, "grams": grams});
        let spiced = |grams: u32| json!({"id": 1, "grams": grams, "salt": "\u{0}"});
        check(
            json!({"name": "Tom", "meal": meal(5), "toys": [meal(1), meal(3)]}),
            json!({"name": "Tim", "owner": "Ann", "tail": [1], "meal": spiced(4), "toys": [spiced(1), spiced(2)]}),
            json!({"name": "Tom", "tail": [1], "meal": spiced(5), "toys": [spiced(1), spiced(3)]}),
        );
        // A part that did not change, and one that was replaced.
        check(
            json!({"name": "Tom", "meal": meal(4), "toys": []}),
            json!({"name": "Tom", "meal": spiced(4), "toys": [spiced(1)]}),
            json!({"name": "Tom", "meal": spiced(4), "toys": []}),
        );
        check(
            json!({"name": "Tom", "meal": {"id": 2, "grams": 4}, "toys": []}),
            json!({"name": "Tom", "meal": spiced(4)}),
            json!({"name": "Tom", "meal": {"id": 2, "grams": 4}, "toys": []}),
        );
    }

    #[tokio::test]
    async fn a_row_that_a_newer_program_wrote_keeps_its_fields_on_sqlite() {
        keeps_fields(&Scratch::sqlite()).await;
    }

    #[tokio::test]
    async fn a_row_that_a_newer_program_wrote_keeps_its_fields_on_postgres() {
        let Some(scratch) = Scratch::postgres().await else { return };
        keeps_fields(&scratch).await;
    }

    async fn keeps_fields(scratch: &Scratch) {
        let database = Database::open(&scratch.url, TABLES).await.unwrap();
        let written = database.write(WriteKind::AnyStatementCanFail, |c| {
            Box::pin(async move {
                let tim = json!({"name": "Tim", "tail": true}).to_string();
                let row = columns![id: "c1", version: 1_i64, document: tim, written_by: NEWER];
                columns::insert(c, "cats", row).await?;
                assert_eq!(call_tom(c, 9).await?, 0, "the version is another one");
                assert_eq!(call_tom(c, 1).await?, 1);
                // The next update keeps the field too.
                assert_eq!(cat(c).await?, (json!({"name": "Tom", "tail": true}), NEWER));
                // A row of an older program has no fields to keep.
                c.execute("UPDATE cats SET written_by = 0", values![]).await?;
                assert_eq!(call_tom(c, 2).await?, 1);
                assert_eq!(cat(c).await?, (json!({"name": "Tom"}), program::NUMBER));
                Ok(())
            })
        });
        written.await.unwrap();
    }

    /// Changes the name of the cat, as this program does.
    async fn call_tom(connection: &mut Connection, version: i64) -> Result<u64> {
        let tom = json!({"name": "Tom"}).to_string();
        let row = || {
            let tom = tom.as_str();
            Ok(columns![id: "c1", version: version, document: tom, written_by: program::NUMBER])
        };
        update(connection, "cats", row, known_part::<Cat>, StoreError::from).await
    }

    async fn cat(connection: &mut Connection) -> Result<(Value, i64)> {
        const CAT: &str = "SELECT document, written_by FROM cats";
        let row = connection.row(CAT, values![]).await?.unwrap();
        Ok((row.json("cats", 0)?, row.int(1)?))
    }
}
