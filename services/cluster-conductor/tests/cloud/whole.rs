//! A cluster without any disturbance.

use openstack_emulator::Kind;
use serde_json::json;

use crate::given::ClusterFixture;

#[tokio::test]
async fn every_object_is_created_correctly_and_deleted_again() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    given.assert_once(1, 1);

    let only = |kind| given.of_kind(kind).swap_remove(0);
    let subnet = only(Kind::Subnet);
    assert_eq!(subnet.text("network_id"), only(Kind::Network).id);
    assert_eq!(subnet.text("cidr"), "10.0.0.0/24");
    assert!(only(Kind::Router).body["external_gateway_info"].is_object());

    let ports = given.of_kind(Kind::Port);
    let port = |suffix: &str| ports.iter().find(|it| it.text("name").ends_with(suffix)).unwrap();
    let (master, worker) = (port("-default-master-0"), port("-default-worker-0"));
    assert_eq!(master.list("security_groups").len(), 2);
    assert_eq!(worker.list("security_groups").len(), 1);
    assert!(worker.list("allowed_address_pairs").is_empty(), "Flannel wraps what pods send");

    let rules = given.of_kind(Kind::SecurityGroupRule);
    let inward = |group: &str| {
        let group = given
            .of_kind(Kind::SecurityGroup)
            .into_iter()
            .find(|it| it.text("name").ends_with(group))
            .unwrap()
            .id;
        let of = rules.iter().filter(|it| it.text("security_group_id") == group);
        of.filter(|it| it.text("direction") == "ingress").count()
    };
    assert_eq!((inward("-control-plane"), inward("-node")), (1, 4));

    let balancer = only(Kind::LoadBalancer);
    let vip = port("-vip-port-api");
    assert_eq!(balancer.text("vip_port_id"), vip.id);
    assert_eq!(only(Kind::Listener).number("protocol_port"), 6443);
    let member = only(Kind::Member);
    assert_eq!(json!(member.text("address")), master.list("fixed_ips")[0]["ip_address"]);
    let floating = only(Kind::FloatingIp);
    assert_eq!(floating.text("port_id"), vip.id);
    let records = given.of_kind(Kind::Recordset);
    let api = records.iter().find(|it| it.text("name") == "api.blue.example.org.").unwrap();
    assert_eq!(api.list("records"), [json!(floating.text("floating_ip_address"))]);

    given.deleted().await;
}

#[tokio::test]
async fn the_number_of_calls_per_observation_does_not_depend_on_the_size() {
    let mut looks = Vec::new();
    for (masters, workers) in [(1, 1), (3, 2)] {
        let (given, working) = ClusterFixture::complete(masters, workers).await;
        given.assert_once(masters as usize, workers as usize);
        given.cloud.forget_calls();
        // Each observation begins with the list of networks.
        let begins = |call: &openstack_emulator::Call| call.path.ends_with("/networks");
        given.cloud.wait_until(|cloud| (cloud.count(begins) > 20).then_some(())).await;
        working.abort();
        let calls = given.cloud.calls();
        let changes: Vec<_> = calls.iter().filter(|call| call.method != "GET").collect();
        assert!(changes.is_empty(), "{changes:?}");
        let looked = calls.iter().filter(|call| begins(call)).count() - 1;
        let first = calls.iter().position(begins).unwrap();
        let last = calls.iter().rposition(begins).unwrap();
        looks.push((last - first + looked / 2) / looked);
    }
    assert_eq!(looks[0], looks[1], "calls a look");
    assert!(looks[0] <= 16, "{looks:?}");
}
