//! Changes to the tables behind the writer's back are refused by triggers; without triggers, verification finds them.

use audit::{Broken, Fault, Head, Trail};
use database::on_both;

use crate::trail::TrailFixture;

on_both! { TrailFixture:
    the_tables_refuse_everything_but_appending_a_row
    a_change_of_any_column_is_found
    a_deleted_row_is_found
    rows_that_changed_places_are_found
    a_rewritten_end_is_found_with_a_known_head
}

async fn the_tables_refuse_everything_but_appending_a_row(kept: TrailFixture) {
    kept.fill(3).await;
    let before = kept.all().await;
    let mut statements = vec![
        "UPDATE audit SET status = 1 WHERE number = 2",
        "UPDATE audit SET hash = hash",
        "UPDATE audit SET number = number + 1 WHERE number = 6",
        "DELETE FROM audit WHERE number = 6",
        "DELETE FROM audit",
        // A row that exists already, a row that leaves a gap, and a row with the wrong `previous` hash.
        "INSERT INTO audit SELECT * FROM audit WHERE number = 2",
        "INSERT INTO audit SELECT 9, at, service, outcome, status, times, since, request_id, global_request_id, user_id, user_name, \
             project_id, roles, service_user_id, source, method, route, target, action, previous, hash FROM audit WHERE number = 6",
        "INSERT INTO audit SELECT 7, at, service, outcome, status, times, since, request_id, global_request_id, user_id, user_name, \
             project_id, roles, service_user_id, source, method, route, target, action, previous, hash FROM audit WHERE number = 6",
        "UPDATE audit_head SET number = 0",
        "UPDATE audit_head SET number = number + 1",
        "UPDATE audit_head SET hash = 'x'",
        "DELETE FROM audit_head",
        "INSERT INTO audit_head (one, number, hash) VALUES (2, 0, 'x')",
    ];
    statements.extend(match kept.is_sqlite() {
        true => vec![
            "INSERT OR REPLACE INTO audit SELECT * FROM audit WHERE number = 2",
            "REPLACE INTO audit SELECT * FROM audit WHERE number = 6",
            "UPDATE OR REPLACE audit SET number = 1 WHERE number = 2",
            "INSERT OR REPLACE INTO audit_head (one, number, hash) VALUES (1, 0, 'x')",
            "INSERT INTO audit SELECT * FROM audit WHERE number = 2 ON CONFLICT (number) DO UPDATE SET status = 1",
        ],
        false => vec![
            "TRUNCATE audit",
            "TRUNCATE audit_head",
            "INSERT INTO audit SELECT * FROM audit WHERE number = 2 ON CONFLICT (number) DO UPDATE SET status = 1",
            "INSERT INTO audit_head (one, number, hash) VALUES (1, 0, 'x') ON CONFLICT (one) DO UPDATE SET number = 0",
        ],
    });
    for statement in statements {
        let refused = kept.sql(statement).await;
        assert!(refused.is_err(), "{statement}: {refused:?}");
    }
    assert_eq!(kept.all().await, before);
    kept.fill(1).await;
    assert_eq!(kept.verify().await.unwrap().number, 8);
}

/// Each column, an expression for another value, and the expression that restores the old value.
fn columns() -> Vec<(&'static str, String, String)> {
    let text = [
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
    let text =
        text.map(|it| (it, format!("{it} || 'x'"), format!("substr({it}, 1, length({it}) - 1)")));
    let numbers = ["at", "status", "times"];
    let numbers = numbers.map(|it| (it, format!("{it} + 1"), format!("{it} - 1")));
    let since = ("since", "5".to_owned(), "NULL".to_owned());
    text.into_iter().chain(numbers).chain([since]).collect()
}

async fn a_change_of_any_column_is_found(kept: TrailFixture) {
    kept.fill(3).await;
    kept.unguard().await;
    for (column, other, same) in columns() {
        for number in [2, 6] {
            let set =
                |to: &str| format!("UPDATE audit SET {column} = {to} WHERE number = {number}");
            assert_eq!(kept.sql(&set(&other)).await.unwrap(), 1);
            let found = kept.verify().await.unwrap_err();
            assert_eq!(found.number, number, "{column}: {found}");
            assert_eq!(kept.sql(&set(&same)).await.unwrap(), 1);
            assert!(kept.verify().await.is_ok(), "{column}");
        }
    }
    // A number that is no valid time.
    kept.sql("UPDATE audit SET at = 9223372036854775807 WHERE number = 3").await.unwrap();
    assert_eq!(kept.verify().await, Err(Broken { number: 3, fault: Fault::Unreadable }));
}

async fn a_deleted_row_is_found(kept: TrailFixture) {
    kept.fill(3).await;
    kept.unguard().await;
    let known = kept.verify().await.unwrap();
    kept.sql("DELETE FROM audit WHERE number = 6").await.unwrap();
    let missing = |number| Err(Broken { number, fault: Fault::Missing });
    assert_eq!(kept.verify().await, missing(6));
    // With the head set back as well, only somebody who knows the old head notices the loss.
    kept.sql("UPDATE audit_head SET number = 5, hash = (SELECT hash FROM audit WHERE number = 5)")
        .await
        .unwrap();
    assert_eq!(kept.verify().await.unwrap().number, 5);
    assert_eq!(kept.verify_knowing(known).await, missing(6));
    kept.sql("DELETE FROM audit WHERE number = 2").await.unwrap();
    assert_eq!(kept.verify().await, missing(2));
    kept.sql("DELETE FROM audit WHERE number = 1").await.unwrap();
    assert_eq!(kept.verify().await, missing(1));
}

async fn rows_that_changed_places_are_found(kept: TrailFixture) {
    kept.fill(3).await;
    kept.unguard().await;
    for (from, to) in [(2, 99), (3, 2), (99, 3)] {
        kept.sql(&format!("UPDATE audit SET number = {to} WHERE number = {from}")).await.unwrap();
    }
    assert_eq!(kept.verify().await, Err(Broken { number: 2, fault: Fault::Changed }));
}

async fn a_rewritten_end_is_found_with_a_known_head(kept: TrailFixture) {
    kept.fill(3).await;
    let known = kept.verify().await.unwrap();
    kept.unguard().await;
    kept.sql("DELETE FROM audit WHERE number > 4").await.unwrap();
    kept.sql("UPDATE audit_head SET number = 4, hash = (SELECT hash FROM audit WHERE number = 4)")
        .await
        .unwrap();
    // The rows are made as the writer would make them. Without triggers the head does not follow.
    let head = kept.recorder.head().await.unwrap();
    let row = audit::Row::after(
        head,
        "clusterd",
        crate::trail::asked("req-x"),
        "2026-01-01T00:00:00Z".parse().unwrap(),
    );
    for number in [5, 6] {
        let head = Head { number: number - 1, ..head };
        let row = audit::Row { number, previous: head.hash.to_string(), ..row.clone() };
        let (previous, hash) = (row.previous.clone(), row.digest());
        kept.sql(&format!(
            "INSERT INTO audit SELECT {number}, {}, service, outcome, status, times, since, 'req-x', global_request_id, user_id, user_name, \
             project_id, roles, service_user_id, source, method, route, target, action, '{previous}', '{hash}' FROM audit WHERE number = 1",
            row.at.as_microsecond()
        ))
        .await
        .unwrap();
        if number == 5 {
            let whole = Head { number: 5, hash };
            assert_eq!(kept.verify_knowing(whole).await, Ok(whole));
            assert_eq!(
                kept.verify_knowing(known).await,
                Err(Broken { number: 6, fault: Fault::Missing })
            );
        }
    }
    // A second row that names the hash of an earlier row as its `previous`.
    assert_eq!(
        kept.verify_knowing(known).await,
        Err(Broken { number: 6, fault: Fault::WrongPrevious })
    );
}
