//! Stories about Neutron.

use openstack::CloudError;
use openstack::network::floating_ips;
use openstack::network::networks;
use openstack::network::ports::{
    self, AddressPair, MachineBinding, NewMachinePort, NewPort, PortAddresses, PortQuery,
};
use openstack::network::quotas;
use openstack::network::routers;
use openstack::network::security_groups::{self, Remote, RuleSpec};
use openstack::network::subnets;
use openstack::network::tags::{self, TaggedKind};
use serde_json::{Map, Value, json};

use crate::given;

#[tokio::test]
async fn a_network_gets_a_router_and_a_floating_ip_and_is_deleted() {
    let (Some(alice), Some(bob)) = (given::session("alice"), given::session("bob")) else { return };
    let (name, _tidy) = given::named("alice");
    let (network, subnet) = given::network(&alice, &name, "10.77.0.0/24").await;
    assert_eq!(networks::find(&alice, &name).await.unwrap()[0].id, network.id);
    assert_eq!(subnets::find(&alice, &name).await.unwrap()[0].id, subnet.id);
    assert_eq!(subnet.gateway_ip.map(|ip| ip.to_string()).as_deref(), Some("10.77.0.1"));
    assert_eq!(networks::show(&bob, &network.id).await.unwrap(), None, "it is alice's alone");
    assert_eq!(networks::find(&alice, "no-such-name").await.unwrap(), []);
    let tag = "bedplate.cluster=1".to_owned();
    tags::set(&alice, TaggedKind::Network, &network.id, std::slice::from_ref(&tag)).await.unwrap();
    assert_eq!(networks::show(&alice, &network.id).await.unwrap().unwrap().tags, [tag]);

    let outside = networks::external(&alice).await.unwrap().swap_remove(0);
    assert!(outside.is_external);
    let router = routers::create(&alice, &name, Some(&outside.id)).await.unwrap();
    assert_eq!(routers::find(&alice, &name).await.unwrap()[0].id, router.id);
    routers::add_subnet(&alice, &router.id, &subnet.id).await.unwrap();
    routers::add_subnet(&alice, &router.id, &subnet.id).await.unwrap();

    let new = NewPort {
        name: name.clone(),
        network_id: network.id.clone(),
        subnet_id: Some(subnet.id.clone()),
        address: Some("10.77.0.20".parse().unwrap()),
        allowed_address_pairs: vec![AddressPair { ip_address: "10.244.0.0/16".to_owned() }],
        ..NewPort::default()
    };
    let port = ports::create(&alice, &new).await.unwrap();
    assert_eq!(port.fixed_ips[0].ip_address.to_string(), "10.77.0.20");
    assert_eq!(port.allowed_address_pairs, new.allowed_address_pairs);
    let worker = [format!("worker-{name}")];
    tags::set(&alice, TaggedKind::Port, &port.id, &worker).await.unwrap();
    let query = PortQuery { tag: Some(&worker[0]), ..PortQuery::default() };
    let tagged = ports::list(&alice, &query).await.unwrap();
    assert_eq!((tagged.len(), &tagged[0].id, &tagged[0].tags[..]), (1, &port.id, &worker[..]));
    assert_eq!(ports::find(&alice, &name).await.unwrap()[0].id, port.id);
    let taken = ports::create(&alice, &new).await.unwrap_err();
    assert!(taken.is_conflict(), "an address is had once: {taken:?}");

    let floating = floating_ips::create(&alice, &outside.id, &name, None).await.unwrap();
    assert_eq!(floating.port_id, None);
    let led = floating_ips::associate(&alice, &floating.id, Some(&port.id)).await.unwrap();
    assert_eq!(led.fixed_ip_address.map(|ip| ip.to_string()).as_deref(), Some("10.77.0.20"));
    assert_eq!(floating_ips::find(&alice, &name).await.unwrap()[0].id, floating.id);
    assert_eq!(floating_ips::of_port(&alice, &port.id).await.unwrap()[0].id, floating.id);

    let used = networks::delete(&alice, &network.id).await.unwrap_err();
    assert!(used.is_conflict() && !used.is_transient(), "{used:?}");
    let used = routers::delete(&alice, &router.id).await.unwrap_err();
    assert!(matches!(used, CloudError::Conflict(_)), "{used:?}");

    assert_eq!(floating_ips::associate(&alice, &floating.id, None).await.unwrap().port_id, None);
    for _ in 0..2 {
        floating_ips::delete(&alice, &floating.id).await.unwrap();
        ports::delete(&alice, &port.id).await.unwrap();
        routers::remove_subnet(&alice, &router.id, &subnet.id).await.unwrap();
        routers::delete(&alice, &router.id).await.unwrap();
        given::remove_network(&alice, &network.id).await;
    }
    assert_eq!(networks::show(&alice, &network.id).await.unwrap(), None);
    assert_eq!(subnets::show(&alice, &subnet.id).await.unwrap(), None);
}

#[tokio::test]
async fn an_administrator_binds_a_port_to_a_machine_and_releases_it() {
    let (Some(alice), Some(admin)) = (given::session("alice"), given::session("admin")) else {
        return;
    };
    let (name, _tidy) = given::named("alice");
    let (network, _) = given::network(&alice, &name, "10.79.0.0/24").await;
    let new = NewPort { name, network_id: network.id.clone(), ..NewPort::default() };
    let port = ports::create(&alice, &new).await.unwrap();
    assert!(network.physical_networks().next().is_none(), "alice does not see them");
    let [mac, other] = ["52:54:00:c0:77:01", "52:54:00:c0:77:02"];
    let at = |mac: &str| MachineBinding {
        host: "a-machine".to_owned(),
        mac: Some(mac.to_owned()),
        profile: Some(switch_port("Eth1")),
    };
    for _ in 0..2 {
        let bound = ports::bind(&admin, &port.id, &at(mac)).await.unwrap();
        assert_eq!(bound.profile, switch_port("Eth1"));
        assert_eq!((&*bound.host, &*bound.mac_address), ("a-machine", mac));
        assert_eq!(
            (&bound.fixed_ips, bound.project_id),
            (&port.fixed_ips, port.project_id.clone())
        );
    }
    let taken = ports::bind(&admin, &port.id, &at(other)).await.unwrap_err();
    assert!(taken.is_conflict(), "a bound port keeps its address: {taken:?}");
    for _ in 0..2 {
        let released = ports::release(&admin, &port.id).await.unwrap();
        assert_eq!((&*released.host, released.profile.is_empty()), ("", true));
        let renewed = ports::renew_mac(&admin, &port.id).await.unwrap();
        assert_ne!(renewed.mac_address, mac);
    }
    ports::delete(&alice, &port.id).await.unwrap();
    given::remove_network(&alice, &network.id).await;
}

/// The binding profile of a machine that is plugged into this port of a switch.
fn switch_port(name: &str) -> Map<String, Value> {
    let link = json!([{"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": name}]);
    Map::from_iter([("local_link_information".to_owned(), link)])
}

#[tokio::test]
async fn an_administrator_creates_a_bound_port_for_a_machine_itself() {
    let (Some(alice), Some(admin)) = (given::session("alice"), given::session("admin")) else {
        return;
    };
    let (name, _tidy) = given::named("alice");
    let (network, _) = given::network(&alice, &name, "10.80.0.0/24").await;
    let machine = format!("machine-of-{name}");
    let mac = "52:54:00:c0:80:01";
    let new = NewMachinePort {
        name: name.clone(),
        network_id: network.id.clone(),
        device_id: machine.clone(),
        device_owner: "baremetal:none".to_owned(),
        binding: MachineBinding {
            host: "a-machine".to_owned(),
            mac: Some(mac.to_owned()),
            profile: Some(switch_port("Eth1")),
        },
        ..NewMachinePort::default()
    };
    let port = ports::create_for_machine(&admin, &new).await.unwrap();
    assert_eq!((&*port.host, &*port.mac_address), ("a-machine", mac));
    assert_eq!((&*port.device_owner, &port.profile), ("baremetal:none", &switch_port("Eth1")));
    assert_eq!(port.fixed_ips.len(), 1);
    let taken = ports::create_for_machine(&admin, &new).await.unwrap_err();
    assert!(taken.is_conflict(), "a MAC address is once in a network: {taken:?}");
    let silent = NewMachinePort {
        binding: MachineBinding {
            mac: Some("52:54:00:c0:80:02".to_owned()),
            ..new.binding.clone()
        },
        addresses: PortAddresses::None,
        ..new.clone()
    };
    let silent = ports::create_for_machine(&admin, &silent).await.unwrap();
    assert_eq!(silent.fixed_ips, []);
    let query = PortQuery { device_id: Some(&machine), ..PortQuery::default() };
    assert_eq!(ports::list(&admin, &query).await.unwrap().len(), 2);
    for port in [&port, &silent] {
        ports::delete(&admin, &port.id).await.unwrap();
    }
    assert_eq!(ports::list(&admin, &query).await.unwrap(), []);
    given::remove_network(&alice, &network.id).await;
}

#[tokio::test]
async fn a_port_is_made_with_the_rules_of_a_group() {
    let Some(alice) = given::session("alice") else { return };
    let (name, _tidy) = given::named("alice");
    let (network, subnet) = given::network(&alice, &name, "10.78.0.0/24").await;
    let group = security_groups::create(&alice, &name, "a contract test's").await.unwrap();
    let api = RuleSpec::to_port("tcp", 6443, Remote::Prefix("0.0.0.0/0".to_owned()));
    let among = RuleSpec::everything(Remote::Group(group.id.clone()));
    for what in [&api, &among, &api, &among] {
        security_groups::allow(&alice, &group.id, what).await.unwrap();
    }
    let known = security_groups::find(&alice, &name).await.unwrap().swap_remove(0);
    let ours = |what: &&RuleSpec| known.rules.iter().filter(|rule| rule.what == **what).count();
    assert_eq!([&api, &among].iter().map(ours).collect::<Vec<_>>(), [1, 1], "{:?}", known.rules);

    let before = quotas::show(&alice).await.unwrap()["port"];
    let new = NewPort {
        name: name.clone(),
        network_id: network.id.clone(),
        subnet_id: Some(subnet.id.clone()),
        security_groups: Some(vec![group.id.clone()]),
        ..NewPort::default()
    };
    let made = ports::create(&alice, &new).await.unwrap();
    assert_eq!(made.security_groups, std::slice::from_ref(&group.id));
    assert!(quotas::show(&alice).await.unwrap()["port"].used >= before.used);

    let used = security_groups::delete(&alice, &group.id).await.unwrap_err();
    assert!(used.is_conflict(), "{used:?}");
    ports::delete(&alice, &made.id).await.unwrap();
    let rule = known.rules.iter().find(|rule| rule.what == api).unwrap();
    security_groups::remove_rule(&alice, &rule.id).await.unwrap();
    security_groups::remove_rule(&alice, &rule.id).await.unwrap();
    security_groups::delete(&alice, &group.id).await.unwrap();
    given::remove_network(&alice, &network.id).await;
}
