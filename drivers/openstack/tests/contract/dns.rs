//! Stories about Designate.

use openstack::Service;
use openstack::dns::recordsets::{self, NewRecordset};
use openstack::dns::{DnsStatus, limits, ptr, zones};
use openstack::network::{floating_ips, networks};

use crate::{given, resolve};

#[tokio::test]
async fn a_zone_has_recordsets() {
    let Some(alice) = given::with("alice", Service::Dns).await else { return };
    let (name, _tidy) = given::named("alice");
    let name = format!("{name}.example.");
    let zone = zones::create(&alice, &name, "ops@example.org", "a contract test's").await.unwrap();
    let again = zones::create(&alice, &name, "ops@example.org", "").await.unwrap_err();
    assert!(again.is_conflict(), "{again:?}");
    assert_eq!(zones::find(&alice, &name).await.unwrap().unwrap().id, zone.id);
    assert_eq!(zones::find(&alice, "no-such-zone.example.").await.unwrap(), None);
    if let Some(bob) = given::session("bob") {
        assert_eq!(zones::show(&bob, &zone.id).await.unwrap(), None, "it is alice's alone");
    }
    given::until("an active zone", || async {
        Ok(zones::show(&alice, &zone.id).await?.filter(|zone| zone.status == DnsStatus::Active))
    })
    .await;

    let before = limits::recordsets(&alice, &zone.id).await.unwrap();
    let api = NewRecordset {
        name: format!("api.{name}"),
        kind: "A".to_owned(),
        records: vec!["192.0.2.1".to_owned()],
        description: "cluster 1".to_owned(),
        ttl: Some(60),
    };
    let apps = NewRecordset { name: format!("*.apps.{name}"), ..api.clone() };
    for new in [&api, &apps] {
        let made = recordsets::create(&alice, &zone.id, new).await.unwrap();
        let again = recordsets::create(&alice, &zone.id, new).await.unwrap_err();
        assert!(again.is_conflict(), "{again:?}");
        let find = || async {
            let found = recordsets::find(&alice, &zone.id, &new.name, "A").await?;
            Ok(found.filter(|it| it.status == DnsStatus::Active))
        };
        let found = given::until("an active recordset", find).await;
        assert_eq!((found.id, found.records, found.ttl), (made.id, new.records.clone(), Some(60)));
        assert_eq!(found.description, "cluster 1");
    }
    let after = limits::recordsets(&alice, &zone.id).await.unwrap();
    assert_eq!((after.limit, after.used), (before.limit, before.used + 2));
    if let Some(server) = resolve::server() {
        let anything = format!("shop.apps.{name}");
        for asked in [&api.name, &anything] {
            assert_eq!(resolve::addresses(server, asked).await, ["192.0.2.1"], "{asked}");
        }
    }
    let found = recordsets::find(&alice, &zone.id, &api.name, "A").await.unwrap().unwrap();
    let several = ["192.0.2.1".to_owned(), "192.0.2.2".to_owned()];
    recordsets::set_records(&alice, &zone.id, &found.id, &several).await.unwrap();
    let found = recordsets::find(&alice, &zone.id, &api.name, "A").await.unwrap().unwrap();
    let mut records = found.records;
    records.sort();
    assert_eq!(records, several);
    let kinds = recordsets::list(&alice, &zone.id).await.unwrap();
    assert_eq!(kinds.iter().filter(|it| it.kind == "A").count(), 2);
    assert_eq!(kinds.iter().filter(|it| it.kind == "SOA").count(), 1);

    recordsets::delete(&alice, &zone.id, &found.id).await.unwrap();
    let look = || recordsets::find(&alice, &zone.id, &api.name, "A");
    given::until_gone("a deleted recordset", look).await;
    recordsets::delete(&alice, &zone.id, &found.id).await.unwrap();
    zones::delete(&alice, &zone.id).await.unwrap();
    given::until_gone("a deleted zone", || zones::show(&alice, &zone.id)).await;
    zones::delete(&alice, &zone.id).await.unwrap();
}

#[tokio::test]
async fn a_floating_ip_gets_a_ptr_record() {
    let Some(alice) = given::with("alice", Service::Dns).await else { return };
    let (name, _tidy) = given::named("alice");
    let region = alice.config().region.clone().unwrap_or_else(|| "RegionOne".to_owned());
    let outside = networks::external(&alice).await.unwrap().swap_remove(0);
    let floating = floating_ips::create(&alice, &outside.id, &name, None).await.unwrap();
    let host = format!("{name}.example.");
    ptr::set(&alice, &region, &floating.id, Some(&host), "a contract test's").await.unwrap();
    ptr::set(&alice, &region, &floating.id, Some(&host), "a contract test's").await.unwrap();
    let shown = ptr::show(&alice, &region, &floating.id).await.unwrap().unwrap();
    assert_eq!(shown.ptrdname, Some(host));
    assert_eq!(shown.address, floating.address.to_string());
    ptr::set(&alice, &region, &floating.id, None, "").await.unwrap();
    let nameless = || async {
        let shown = ptr::show(&alice, &region, &floating.id).await?;
        Ok(shown.and_then(|ptr| ptr.ptrdname))
    };
    given::until_gone("the name of a floating IP", nameless).await;
    floating_ips::delete(&alice, &floating.id).await.unwrap();
}
