//! An emulated cloud for tests of single functions.

use openstack::load_balancer::load_balancers::{self, NewLoadBalancer};
use openstack::network::networks::{self, NewNetwork};
use openstack::network::subnets::{self, NewSubnet};
use openstack::{CloudConfig, Session};
use openstack_emulator::{Cloud, Emulator, Kind, Settings};

/// Starts a cloud, and opens the session of a tenant.
pub(crate) async fn emulated_cloud() -> (Emulator, Session) {
    let emulator = Emulator::start(Settings::default()).await.unwrap();
    let clouds = emulator.cloud.clouds_yaml();
    let config = CloudConfig::from_clouds_yaml(&clouds, Some("alice")).unwrap();
    (emulator, Session::new(config).unwrap())
}

/// Creates a network with a subnet, and returns the id of the subnet.
pub(crate) async fn new_subnet(session: &Session) -> String {
    let network = NewNetwork { name: "n".to_owned(), description: String::new(), mtu: None };
    let network = networks::create(session, &network).await.unwrap();
    let subnet = NewSubnet {
        name: "s".to_owned(),
        network_id: network.id,
        cidr: "10.0.0.0/24".to_owned(),
        dns_nameservers: Vec::new(),
    };
    subnets::create(session, &subnet).await.unwrap().id
}

/// Creates a load balancer, waits until it is active, and returns its id.
pub(crate) async fn new_balancer(
    (cloud, session): (&Cloud, &Session),
    name: &str,
    subnet: &str,
) -> String {
    let new = NewLoadBalancer {
        name: name.to_owned(),
        vip_subnet_id: Some(subnet.to_owned()),
        ..NewLoadBalancer::default()
    };
    let id = load_balancers::create(session, &new).await.unwrap().id;
    let is_active = |cloud: &Cloud| {
        let all = cloud.objects(Kind::LoadBalancer);
        all.iter().all(|it| it.text("provisioning_status") == "ACTIVE").then_some(())
    };
    cloud.wait_until(is_active).await;
    id
}
