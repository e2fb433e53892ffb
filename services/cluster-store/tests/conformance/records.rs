//! Magnum's quotas, and the services and conductors that work on the database.

use std::time::Duration;

use cluster_core::QuotaUuid;
use cluster_store::{Quota, Scope, ServiceSeen, Store, StoreError};
use database::conductors::{ConductorReport, NewConductor, RegisterOutcome};

use crate::samples::{at, on_both, project};

on_both! { Store:
    a_quota_is_set_once_for_a_project_and_resource
    services_are_listed_with_the_number_of_their_reports
    a_conductor_has_a_lease_that_it_renews_and_releases
}

async fn a_quota_is_set_once_for_a_project_and_resource(store: Store) {
    let quota = |project: &str, hard_limit| Quota {
        id: QuotaUuid::new_v4(),
        project: project.to_owned(),
        resource: "Cluster".to_owned(),
        hard_limit,
        created_at: at(1),
        updated_at: None,
    };
    let one = quota("p", 5);
    store.insert_quota(&one).await.unwrap();
    store.insert_quota(&quota("q", 6)).await.unwrap();
    let again = store.insert_quota(&quota("p", 7)).await;
    assert!(matches!(again, Err(StoreError::Duplicate { field: "project_id", .. })), "{again:?}");

    let raised = Quota { hard_limit: 8, updated_at: Some(at(2)), ..one };
    store.update_quota(&raised).await.unwrap();
    let found = store.list_quotas(&project("p"), Some("Cluster")).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&raised));
    assert_eq!(store.list_quotas(&Scope::All, None).await.unwrap().len(), 2);
    store.delete_quota(&raised).await.unwrap();
    assert!(matches!(store.delete_quota(&raised).await, Err(StoreError::Stale)));
    assert!(matches!(store.update_quota(&raised).await, Err(StoreError::Stale)));
}

async fn services_are_listed_with_the_number_of_their_reports(store: Store) {
    for (host, now) in [("b", 1), ("a", 2), ("b", 3)] {
        store.touch_service(host, at(now)).await.unwrap();
    }
    let seen = |hostname: &str, started, seen, reports| ServiceSeen {
        hostname: hostname.to_owned(),
        started_at: at(started),
        seen_at: at(seen),
        reports,
    };
    assert_eq!(store.list_services().await.unwrap(), [seen("a", 2, 2, 1), seen("b", 1, 3, 2)]);
}

/// `baremetal-store` tests the rest of what both services share.
async fn a_conductor_has_a_lease_that_it_renews_and_releases(store: Store) {
    let hour = Duration::from_secs(3600);
    let new = NewConductor {
        hostname: "a".to_owned(),
        groups: vec![String::new()],
        instance: "i".to_owned(),
        installation: "k".to_owned(),
    };
    let conductors = store.conductors();
    let registered = conductors.register(&new, hour, at(0)).await.unwrap();
    let RegisterOutcome::Registered(lease) = registered else { panic!("{registered:?}") };
    let report = ConductorReport { settled: "a/1".to_owned(), turns: 0 };
    let all = conductors.renew(&lease, &report, hour, at(1)).await.unwrap().unwrap();
    assert_eq!((all.len(), all[0].is_alive, all[0].settled.as_str()), (1, true, "a/1"));
    conductors.release(&lease, at(2)).await.unwrap();
    let all = conductors.list(at(2)).await.unwrap();
    assert_eq!((all[0].is_alive, all[0].is_released), (false, true));
}
