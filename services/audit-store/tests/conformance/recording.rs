//! Every recorded row is stored in one chain, also with several writers.

use std::collections::BTreeSet;

use audit::{Entry, Filter, NextWrite, Order, Outcome, Refusal, Trail, TrailError};
use audit_store::Recorder;
use database::scratch::Scratch;
use database::{StoreError, on_both};

use crate::trail::{TrailFixture, asked, entry};

on_both! { TrailFixture:
    an_asked_row_is_listed_with_the_result_of_its_request
    a_page_has_the_rows_that_the_filter_selects
    concurrent_recorders_make_one_chain
    a_write_carries_the_row_of_its_request
    refusals_are_counted_together
    a_trail_that_was_cut_is_not_extended
}

async fn an_asked_row_is_listed_with_the_result_of_its_request(kept: TrailFixture) {
    kept.fill(1).await;
    // Request 2 stays without a result, as if the service had been killed.
    kept.recorder.record(asked("req-2")).await.unwrap();
    kept.recorder.record(asked("req-3")).await.unwrap();
    kept.recorder.record_later(entry(Outcome::Abandoned, "req-3"));
    kept.recorder.flush().await;

    let again = TrailFixture::open(&kept.url).await.unwrap();
    let all = again.all().await;
    let reported = all.iter().map(|listed| {
        let result = listed.result.as_ref().map(|it| (it.number, it.outcome.as_str(), it.status));
        (listed.row.number, listed.row.outcome.as_str(), result)
    });
    assert_eq!(
        reported.collect::<Vec<_>>(),
        [
            (1, "asked", Some((2, "answered", 202))),
            (2, "answered", None),
            (3, "asked", None),
            (4, "asked", Some((5, "abandoned", 0))),
            (5, "abandoned", None),
        ]
    );
    assert_eq!(all[0].row.service, "clusterd");
    assert_eq!(kept.verify().await.unwrap().number, 5);
}

async fn a_page_has_the_rows_that_the_filter_selects(kept: TrailFixture) {
    kept.fill(3).await;
    let other = Entry {
        user_id: "u2".to_owned(),
        user_name: "bob".to_owned(),
        project_id: "p2".to_owned(),
        global_request_id: "req-theirs".to_owned(),
        ..asked("req-4")
    };
    kept.recorder.record(other).await.unwrap();
    let list = async |change: &dyn Fn(&mut Filter)| {
        let mut filter = Filter { marker: None, ..Filter::after(0, 100) };
        change(&mut filter);
        let listed = kept.recorder.list(&filter).await.unwrap();
        listed.iter().map(|listed| listed.row.number).collect::<Vec<_>>()
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(list(&|_| {}).await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(list(&|it| it.user = text("u2")).await, [7]);
    assert_eq!(list(&|it| it.user = text("ann")).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(list(&|it| it.project = text("p2")).await, [7]);
    assert_eq!(list(&|it| it.request_id = text("req-2")).await, [3, 4]);
    assert_eq!(list(&|it| it.request_id = text("req-theirs")).await, [7]);
    assert_eq!(list(&|it| (it.marker, it.limit) = (Some(2), 2)).await, [3, 4]);
    let newest = |it: &mut Filter| (it.order, it.limit) = (Order::NewestFirst, 2);
    assert_eq!(list(&newest).await, [7, 6]);
    let before = |it: &mut Filter| {
        newest(it);
        it.marker = Some(6);
    };
    assert_eq!(list(&before).await, [5, 4]);
    let times: Vec<_> = kept.all().await.iter().map(|listed| listed.row.at).collect();
    assert_eq!(list(&|it| it.since = Some(times[6])).await.last(), Some(&7));
    assert_eq!(list(&|it| it.until = Some(times[0])).await, [0_i64; 0]);
}

/// Two recorders write to the same database, as two programs would.
async fn concurrent_recorders_make_one_chain(kept: TrailFixture) {
    let other = TrailFixture::open(&kept.url).await.unwrap();
    let tasks: Vec<_> = (0..200)
        .map(|n| {
            let recorder: Recorder = [&kept, &other][n % 2].recorder.clone();
            tokio::spawn(async move { recorder.record(asked(&format!("req-{n}"))).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(kept.verify().await.unwrap().number, 200);
    let ids: BTreeSet<String> =
        kept.all().await.into_iter().map(|listed| listed.row.request_id).collect();
    assert_eq!(ids.len(), 200);
}

/// PostgreSQL writes the row in a transaction of its own.
async fn a_write_carries_the_row_of_its_request(kept: TrailFixture) {
    let joins = kept.is_sqlite();
    assert_eq!(kept.recorder.joins_next_write(), joins);
    kept.sql("CREATE TABLE notes (note BIGINT NOT NULL)").await.unwrap();
    let next = NextWrite::default();
    let write = async |request: &str, sql: &str| {
        next.hold(asked(request));
        let done = next.during(kept.sql(sql)).await;
        (done, next.take().is_some())
    };
    let (done, is_left) = write("req-1", "INSERT INTO notes VALUES (1)").await;
    assert_eq!((done.unwrap(), is_left), (1, !joins));
    let requests = kept.all().await.into_iter().map(|listed| listed.row.request_id);
    let want: &[&str] = if joins { &["req-1"] } else { &[] };
    assert_eq!(requests.collect::<Vec<_>>(), want);
    // A transaction that fails has not recorded the row either.
    let (done, is_left) = write("req-2", "INSERT INTO notes VALUES (NULL)").await;
    assert!(done.is_err() && is_left);
    assert_eq!(kept.all().await.len(), want.len());
    if joins {
        kept.unguard().await;
        kept.sql("DELETE FROM audit").await.unwrap();
        let (refused, is_left) = write("req-3", "INSERT INTO notes VALUES (3)").await;
        assert!(matches!(refused, Err(StoreError::Unrecorded { .. })), "{refused:?}");
        assert!(is_left);
        assert_eq!(kept.sql("DELETE FROM notes").await.unwrap(), 1, "nothing else was written");
    }
}

async fn refusals_are_counted_together(kept: TrailFixture) {
    let refusal = |source: &str| Refusal {
        status: 401,
        source: source.to_owned(),
        user_id: String::new(),
        user_name: String::new(),
        project_id: String::new(),
    };
    for _ in 0..10_000 {
        kept.recorder.refused(refusal("192.0.2.1"));
    }
    kept.recorder.refused(refusal("192.0.2.2"));
    assert!(kept.all().await.is_empty());
    kept.recorder.flush().await;
    let all = kept.all().await;
    let reported: Vec<_> =
        all.iter().map(|it| (it.row.source.as_str(), it.row.status, it.row.times)).collect();
    assert_eq!(reported, [("192.0.2.1", 401, 10_000), ("192.0.2.2", 401, 1)]);
    assert!(all.iter().all(|it| it.row.since.is_some() && it.row.outcome == "refused"));
    kept.verify().await.unwrap();
}

async fn a_trail_that_was_cut_is_not_extended(kept: TrailFixture) {
    kept.fill(2).await;
    kept.unguard().await;
    kept.sql("DELETE FROM audit WHERE number = 4").await.unwrap();
    let refused = kept.recorder.record(asked("req-9")).await.unwrap_err();
    assert!(matches!(refused, TrailError::Broken(_)), "{refused:?}");
    assert_eq!(kept.all().await.len(), 3);
    // Other writers of the same database are not affected by the refusal.
    kept.sql("CREATE TABLE others (id BIGINT)").await.unwrap();
    kept.sql("DROP TABLE audit_head").await.unwrap();
    let trying = kept.recorder.clone();
    let (refused, written) = tokio::join!(
        async move { trying.record(asked("req-9")).await },
        kept.sql("INSERT INTO others (id) VALUES (1)")
    );
    assert!(matches!(refused, Err(TrailError::Unavailable(_))), "{refused:?}");
    assert_eq!(written.unwrap(), 1);
}

#[tokio::test]
async fn recorded_rows_are_there_after_a_restart() {
    let scratch = Scratch::sqlite();
    let kept = TrailFixture::open(&scratch.url).await.unwrap();
    kept.fill(3).await;
    drop(kept);
    let again = TrailFixture::open(&scratch.url).await.unwrap();
    assert_eq!(again.verify().await.unwrap().number, 6);
    again.fill(1).await;
    assert_eq!(again.verify().await.unwrap().number, 8);
}

/// Jobs that share a transaction are committed or refused together, and jobs of other tables in that transaction are not affected.
#[tokio::test]
async fn a_refused_row_fails_its_batch_and_no_other_job() {
    let scratch = Scratch::sqlite();
    let kept = TrailFixture::open(&scratch.url).await.unwrap();
    kept.fill(1).await;
    kept.sql("CREATE TABLE others (id BIGINT)").await.unwrap();
    kept.sql(
        "CREATE TRIGGER not_this_one BEFORE INSERT ON audit WHEN NEW.request_id = 'req-bad' \
         BEGIN SELECT RAISE(ABORT, 'it is refused'); END",
    )
    .await
    .unwrap();
    let tasks: Vec<_> = ["req-2", "req-3", "req-bad", "req-4"]
        .into_iter()
        .map(|id| {
            let kept = kept.clone();
            tokio::spawn(async move {
                let written = kept.recorder.record(asked(id)).await;
                kept.sql("INSERT INTO others (id) VALUES (1)").await.unwrap();
                (id, written.is_ok())
            })
        })
        .collect();
    let mut written = BTreeSet::new();
    for task in tasks {
        let (id, is_written) = task.await.unwrap();
        if is_written {
            written.insert(id.to_owned());
        }
    }
    assert!(!written.contains("req-bad"));
    let there = kept.all().await.into_iter().skip(2).map(|it| it.row.request_id);
    assert_eq!(there.collect::<BTreeSet<_>>(), written);
    kept.sql("DROP TRIGGER not_this_one").await.unwrap();
    kept.recorder.record(asked("req-bad")).await.unwrap();
    assert_eq!(kept.verify().await.unwrap().number, 3 + i64::try_from(written.len()).unwrap());
    assert_eq!(kept.sql("DELETE FROM others").await.unwrap(), 4);
}
