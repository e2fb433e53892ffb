//! Checks that the release before works on the tables of the next one: scripts of a schema only add to the tables.

use tidy::{assert_none, text_files};

/// The scripts that existed before the rule: the folder, and the last version of its schema.
const BEFORE_THE_RULE: [(&str, u32); 3] =
    [("baremetal-store", 22), ("cluster-store", 12), ("console-store", 1)];

/// Statements after which an older program may fail.
const NARROWING: [&str; 9] = [
    "ALTER COLUMN",
    "DROP COLUMN",
    "DROP DEFAULT",
    "DROP TABLE",
    "RENAME",
    "SET NOT NULL",
    "DELETE FROM",
    "UPDATE ",
    "CREATE UNIQUE INDEX",
];

#[test]
fn scripts_only_add_to_the_tables() {
    let (mut wrong, mut counted) = (Vec::new(), 0);
    for file in text_files() {
        let Some((store, version)) = version(&file.path) else { continue };
        let first = BEFORE_THE_RULE.iter().find(|(folder, _)| *folder == store);
        if first.is_none_or(|(_, last)| version > *last) {
            counted += 1;
            wrong.extend(objection(version, &file.text).map(|why| format!("{}: {why}", file.path)));
        }
    }
    assert!(counted >= 2, "only {counted} scripts were found");
    assert_none("scripts that the release before cannot work with", wrong);
}

/// The store and the version of `services/STORE/src/schema-N.sql`. A script of `database` is a part of several schemas, with a number in each
/// of them, so it narrows none.
fn version(path: &str) -> Option<(&str, u32)> {
    let (store, name) = path.strip_prefix("services/")?.split_once("/src/")?;
    if store == "database" {
        return name.ends_with(".sql").then_some((store, 0));
    }
    let number = name.strip_prefix("schema")?.strip_suffix(".sql")?;
    let version = if number.is_empty() { 1 } else { number.strip_prefix('-')?.parse().ok()? };
    // The tables of the audit trail are a part of the schemas of both services.
    (store != "audit-store").then_some((store, version))
}

/// The reason why a program of the release before may fail after this script; `None` if it works on.
fn objection(version: u32, sql: &str) -> Option<String> {
    if let Some(needs) = sql.lines().find_map(|line| line.strip_prefix("-- needs schema ")) {
        let needed = needs.split_once(" of ").and_then(|(schema, program)| {
            let is_version = program.split('.').filter(|it| it.parse::<u32>().is_ok()).count() == 3;
            Some((schema.parse::<u32>().ok()?, is_version))
        });
        return match needed {
            Some((schema, true)) if schema <= version => None,
            Some(_) | None => Some(format!("{needs:?} is not a schema version and a release")),
        };
    }
    let statements: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--")).collect();
    let found = NARROWING.iter().find(|it| statements.iter().any(|line| line.contains(**it)));
    if let Some(found) = found {
        return Some(format!("{found} without a line `-- needs schema N of VERSION`"));
    }
    let requires = |line: &&&str| {
        line.contains("ADD COLUMN") && line.contains("NOT NULL") && !line.contains("DEFAULT")
    };
    let column = statements.iter().find(requires)?;
    Some(format!("a program that does not know this column cannot add rows: {column}"))
}

#[test]
fn narrowing_scripts_name_the_release_that_they_need() {
    let check = |sql: &str| objection(24, sql).is_none();
    assert!(check("-- Adds.\nALTER TABLE a ADD COLUMN b TEXT;\nCREATE TABLE c (d TEXT NOT NULL);"));
    assert!(check("ALTER TABLE a ADD COLUMN b BIGINT NOT NULL DEFAULT 0;"));
    assert!(check("-- needs schema 23 of 0.2.0\nALTER TABLE a DROP COLUMN b;"));
    assert!(!check("ALTER TABLE a DROP COLUMN b;"));
    assert!(!check("ALTER TABLE a ADD COLUMN b BIGINT NOT NULL;"));
    assert!(!check("-- needs schema 25 of 0.2.0\n"));
    assert!(!check("-- needs schema 24 of the next release\n"));
}
