//! Clusters of several projects, each in its own project of the cloud.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_core::{Cluster, ConditionKind};
use cluster_store::ClusterChange;
use openstack::dns::zones;
use openstack::identity::roles;
use openstack::{CloudConfig, Service, Session};
use openstack_emulator::{Cloud, Kind};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::given::{ClusterFixture, PATIENCE, project, session_as};

/// The roles of clusterd's user in its tenants' projects.
const ROLES: [&str; 2] = ["member", "load-balancer_member"];

fn let_in(cloud: &Cloud, tenant: &str) {
    cloud.add_user_with("clusterd", "clusterd-secret", tenant, &ROLES);
}

/// Removes all roles of clusterd's user in a tenant's project.
async fn shut_out(cloud: &Cloud, tenant: &str) {
    let admin = session_as(cloud, "admin");
    let user = session_as(cloud, "clusterd").identity().await.unwrap().user_id;
    for role in ROLES {
        let role = roles::find(&admin, role).await.unwrap().unwrap();
        roles::unassign(&admin, (&user, &project(cloud, tenant)), &role.id).await.unwrap();
    }
}

/// Returns the names of the servers that Nova lists to a user.
async fn servers_seen_by(session: &Session) -> BTreeSet<String> {
    let nova = session.endpoint(Service::Compute).await.unwrap();
    let token = session.bearer().await.unwrap();
    let asked = session.client().get(format!("{nova}/servers"));
    let answer = asked.header("x-auth-token", token.expose_secret()).send().await.unwrap();
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let all = answer["servers"].as_array().unwrap().iter();
    all.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn servers_in(given: &ClusterFixture) -> BTreeSet<String> {
    given.of_kind(Kind::Server).iter().map(|it| it.text("name").to_owned()).collect()
}

#[tokio::test]
async fn each_cluster_is_in_its_own_project_and_neither_sees_the_other() {
    let first = ClusterFixture::cluster(1, 1).await;
    let cloud = &first.cloud;
    zones::create(&session_as(cloud, "clusterd"), "all.example.", "a@all.example", "")
        .await
        .unwrap();
    // The first cluster belongs to a project that the cloud does not know.
    first.delete().await;
    let (a, b) = (
        first.another("tenant-a", "example.org").await,
        first.another("tenant-b", "all.example").await,
    );
    let_in(cloud, "tenant-a");
    let_in(cloud, "tenant-b");
    let service = project(cloud, "service");
    let before = cloud.objects_of(&service);
    let _working = first.conductor_of_tenants("clusterd");
    a.until_complete().await;
    b.until_complete().await;

    let (of_a, of_b) = (servers_in(&a), servers_in(&b));
    assert_eq!((of_a.len(), of_b.len()), (2, 2));
    assert_eq!(servers_seen_by(&session_as(cloud, "alice")).await, of_a);
    assert_eq!(servers_seen_by(&session_as(cloud, "bob")).await, of_b);
    assert_eq!(a.find().await.unwrap().cloud_project.as_deref(), Some(a.project.as_str()));

    for (given, own) in [(&a, &of_a), (&b, &of_b)] {
        let credential = given.of_kind(Kind::ApplicationCredential).pop().unwrap();
        let roles: Vec<_> = credential.list("roles").iter().map(|it| it["name"].clone()).collect();
        assert_eq!(roles, ROLES);
        let clouds = format!(
            "{{clouds: {{c: {{auth_type: v3applicationcredential, auth: {{auth_url: '{}', \
             application_credential_id: '{}', application_credential_secret: '{}'}}}}}}}}",
            cloud.auth_url(),
            credential.id,
            credential.note("secret")
        );
        let config = CloudConfig::from_clouds_yaml(&clouds, None).unwrap();
        assert_eq!(&servers_seen_by(&Session::new(config).unwrap()).await, own);
    }
    // clusterd's own project got nothing but records in the zone that is offered to all.
    assert_eq!(cloud.objects_of(&service), before);
    let names = cloud.objects(Kind::Recordset);
    let names = names.iter().filter(|it| it.project == service && it.text("type") == "A");
    assert_eq!(names.count(), 2);

    a.delete().await;
    b.delete().await;
    a.until_gone().await;
    b.until_gone().await;
    assert_eq!(cloud.objects_of(&service), before);
}

#[tokio::test]
async fn a_project_in_which_clusterd_has_no_role_is_told_the_needed_role() {
    let first = ClusterFixture::cluster(1, 1).await;
    let b = first.another("tenant-b", "example.org").await;
    first.delete().await;
    let _working = first.conductor_of_tenants("clusterd");
    let reported = b.until(ConditionKind::NetworkReady, |it| it.reason == "NoRole").await;
    let id = b.project.as_str();
    let words = format!("clusterd's user clusterd lacks the role member in project {id}");
    assert!(reported.is_final && reported.message.contains(&words), "{reported:?}");
    assert!(reported.message.contains("openstack role add --user"), "{reported:?}");
    assert_eq!(b.store.ledger_of(b.id).await.unwrap(), []);
    b.delete().await;
    b.until_gone().await;
}

#[tokio::test]
async fn a_cluster_in_clusterds_project_stays_there_when_the_configuration_changes() {
    let (given, working) = ClusterFixture::complete(1, 1).await;
    working.abort();
    let _ = working.await;
    let (made, other) = (servers_in(&given), project(&given.cloud, "tenant-b"));

    // The record as an earlier version wrote it, without the cloud's project, of a cluster that another project requested.
    let old = given.find().await.unwrap();
    let old = Cluster { project: other.clone(), cloud_project: None, ..old };
    given.store.change_cluster(&ClusterChange::of(old)).await.unwrap();
    given.cloud.add_user_with("alice", "alice-secret", "tenant-b", &ROLES);
    let _working = given.conductor_of_tenants("alice");
    let noted = async {
        while given.find().await.unwrap().cloud_project.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, noted).await.unwrap();
    let noted = given.find().await.unwrap().cloud_project;
    assert_eq!(noted.as_deref(), Some(given.project.as_str()));
    assert_eq!(servers_in(&given), made);
    assert_eq!(given.cloud.count_of(Kind::Server, &other), 0);
    given.deleted().await;
}

#[tokio::test]
async fn a_deletion_waits_while_clusterd_has_no_role_and_continues_afterwards() {
    let first = ClusterFixture::cluster(1, 1).await;
    let a = first.another("tenant-a", "example.org").await;
    first.delete().await;
    let_in(&a.cloud, "tenant-a");
    let _working = first.conductor_of_tenants("clusterd");
    a.until_complete().await;
    shut_out(&a.cloud, "tenant-a").await;
    a.until(ConditionKind::NetworkReady, |it| it.reason == "NoRole").await;
    a.delete().await;
    let reported = a.until(ConditionKind::NetworkReady, |it| it.reason == "NoRole").await;
    assert!(reported.next_action.contains("give clusterd's user that role"), "{reported:?}");
    assert_eq!(servers_in(&a).len(), 2);
    let_in(&a.cloud, "tenant-a");
    a.until_gone().await;
}
