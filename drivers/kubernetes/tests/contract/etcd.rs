//! Tests of etcd's members.

use kubernetes::etcd::{self, MemberId, Progress};

use crate::given::{cluster, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_etcd_are_the_control_plane() {
    let given = cluster().await;
    let (control_plane, workers) = given.nodes().await;
    let node = &control_plane[0].name;
    let members = until("the list of members", || async {
        match etcd::members(&given.client, node).await? {
            Progress::Pending => Ok(None),
            Progress::Done(members) => Ok(Some(members)),
        }
    })
    .await;
    let mut names: Vec<&str> = members.iter().map(|it| it.name.as_str()).collect();
    names.sort_unstable();
    let mut want: Vec<&str> = control_plane.iter().map(|it| it.name.as_str()).collect();
    want.sort_unstable();
    assert_eq!(names, want);
    assert!(members.iter().all(|it| it.id.0 != 0 && !it.peer_urls.is_empty()), "{members:?}");

    // Removing a member that does not exist succeeds.
    let nobody = MemberId(0x1234);
    until("the removal of nobody", || async {
        Ok((etcd::remove(&given.client, node, nobody).await? == Progress::Done(())).then_some(()))
    })
    .await;
    let path = "/api/v1/namespaces/kube-system/pods/bedplate-etcd-remove-1234";
    assert_eq!(given.object(path).await, None, "its pod is gone");

    let error = etcd::members(&given.client, &workers[0].name).await.unwrap_err();
    assert!(error.to_string().contains("knows no pod etcd-"), "{error}");
}
