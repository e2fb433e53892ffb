//! The table `outbox`, on both databases.

use database::on_both;
use database::outbox::Letter;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::Store;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn letter(receiver: &str) -> Letter {
    Letter {
        notice: Uuid::new_v4(),
        receiver: receiver.to_owned(),
        body: "{}".to_owned(),
        project: None,
    }
}

on_both! { Store:
    a_letter_waits_until_it_was_sent
    a_letter_is_written_once_for_each_receiver
    a_postponed_receiver_gets_no_letters
    a_letter_postponed_under_a_wrong_clock_is_due
    letters_beyond_the_limits_are_dropped
    one_project_cannot_fill_the_outbox
}

async fn receivers(store: &Store, now: Timestamp) -> Vec<String> {
    let due = store.outbox().due(now, HOUR, 100).await.unwrap();
    due.into_iter().map(|waiting| waiting.letter.receiver).collect()
}

async fn a_letter_waits_until_it_was_sent(store: Store) {
    let sent = letter("webhook");
    assert_eq!(store.append(vec![sent.clone()], at(0)).await, 0);
    assert_eq!(receivers(&store, at(-1)).await, [""; 0]);
    let due = store.outbox().due(at(0), HOUR, 100).await.unwrap();
    assert_eq!((due.len(), &due[0].letter, due[0].tries), (1, &sent, 0));
    store.outbox().failed(due[0].seq, 1, at(10)).await.unwrap();
    assert_eq!(receivers(&store, at(9)).await, [""; 0]);
    let again = store.outbox().due(at(10), HOUR, 100).await.unwrap();
    assert_eq!((again.len(), again[0].tries), (1, 1));
    store.outbox().remove(due[0].seq).await.unwrap();
    assert_eq!(receivers(&store, at(10)).await, [""; 0]);
}

async fn a_letter_is_written_once_for_each_receiver(store: Store) {
    let one = letter("a");
    let other = Letter { receiver: "b".to_owned(), ..one.clone() };
    store.append(vec![one.clone(), other], at(0)).await;
    store.append(vec![one], at(1)).await;
    assert_eq!(receivers(&store, at(2)).await, ["a", "b"]);
}

async fn a_postponed_receiver_gets_no_letters(store: Store) {
    store.append(vec![letter("a"), letter("b"), letter("a")], at(0)).await;
    store.outbox().postpone("a", at(60)).await.unwrap();
    assert_eq!(receivers(&store, at(59)).await, ["b"]);
    assert_eq!(receivers(&store, at(60)).await, ["b", "a", "a"]);
}

async fn a_letter_postponed_under_a_wrong_clock_is_due(store: Store) {
    store.append(vec![letter("a")], at(1_000_000)).await;
    assert_eq!(receivers(&store, at(0)).await, ["a"]);
}

async fn letters_beyond_the_limits_are_dropped(store: Store) {
    let many =
        |count: usize, receiver: &str| (0..count).map(|_| letter(receiver)).collect::<Vec<_>>();
    // One receiver gets at most half of the outbox.
    assert_eq!(store.append(many(5_002, "a"), at(0)).await, 2);
    assert_eq!(store.append(vec![letter("a"), letter("b")], at(0)).await, 1);
    assert_eq!(store.append([many(4_000, "c"), many(1_000, "d")].concat(), at(0)).await, 1);
    assert_eq!(store.append(vec![letter("b")], at(0)).await, 1);
    assert_eq!(store.outbox().due(at(0), HOUR, 20_000).await.unwrap().len(), 10_000);
}

async fn one_project_cannot_fill_the_outbox(store: Store) {
    let of = |project: &str, count: usize| {
        let named = |number: usize| Letter {
            project: Some(project.to_owned()),
            ..letter(&format!("mail:{project}-{number}@example.org"))
        };
        (0..count).map(named).collect::<Vec<_>>()
    };
    assert_eq!(store.append(of("p", 2_502), at(0)).await, 2);
    assert_eq!(store.append(of("p", 1), at(0)).await, 1);
    assert_eq!(store.append(of("q", 10), at(0)).await, 0);
    let due = store.outbox().due(at(0), HOUR, 1).await.unwrap().remove(0);
    assert_eq!(due.letter.project.as_deref(), Some("p"));
    store.outbox().remove(due.seq).await.unwrap();
    assert_eq!(store.append(of("p", 2), at(1)).await, 1);
}
