//! Stories about Octavia.

use openstack::load_balancer::ProvisioningStatus;
use openstack::load_balancer::listeners::{self, NewListener};
use openstack::load_balancer::load_balancers::{self, LoadBalancer, NewLoadBalancer};
use openstack::load_balancer::monitors::{self, NewMonitor};
use openstack::load_balancer::pools::{self, NewMember, NewPool};
use openstack::load_balancer::{flavors, quotas};
use openstack::network::ports;
use openstack::{Service, Session};

use crate::given;

async fn active(session: &Session, id: &str) -> LoadBalancer {
    given::until("an active load balancer", || async {
        let it = load_balancers::show(session, id).await?.expect("it is there");
        assert_ne!(it.provisioning_status, ProvisioningStatus::Error);
        Ok((it.provisioning_status == ProvisioningStatus::Active).then_some(it))
    })
    .await
}

fn member(name: &str, address: &str) -> NewMember {
    NewMember {
        name: name.to_owned(),
        address: address.parse().unwrap(),
        protocol_port: 6443,
        subnet_id: None,
    }
}

fn monitor(name: &str) -> NewMonitor {
    NewMonitor {
        name: name.to_owned(),
        kind: "TCP".to_owned(),
        delay: 5,
        timeout: 3,
        max_retries: 2,
        max_retries_down: 2,
        url_path: None,
        expected_codes: None,
    }
}

fn pool(name: &str, members: Vec<NewMember>) -> NewPool {
    NewPool {
        name: name.to_owned(),
        protocol: "TCP".to_owned(),
        lb_algorithm: "ROUND_ROBIN".to_owned(),
        members,
        healthmonitor: Some(monitor(name)),
    }
}

fn listener(name: &str, port: u16, pool: Option<NewPool>) -> NewListener {
    NewListener {
        name: name.to_owned(),
        protocol: "TCP".to_owned(),
        protocol_port: port,
        allowed_cidrs: Vec::new(),
        timeout_client_data: Some(600_000),
        timeout_member_data: None,
        default_pool: pool,
    }
}

#[tokio::test]
async fn a_load_balancer_is_created_with_all_parts_changed_and_deleted() {
    let Some(alice) = given::with("alice", Service::LoadBalancer).await else { return };
    let (name, _tidy) = given::named("alice");
    let (network, subnet) = given::network(&alice, &name, "10.82.0.0/24").await;
    let members = ["10.82.0.11", "10.82.0.12", "10.82.0.13"].map(|ip| member("cp", ip));
    let new = NewLoadBalancer {
        name: name.clone(),
        description: "a contract test's".to_owned(),
        vip_subnet_id: Some(subnet.id.clone()),
        vip_address: Some("10.82.0.5".parse().unwrap()),
        tags: vec![name.clone()],
        listeners: vec![listener("api", 6443, Some(pool("api", members.to_vec())))],
        ..NewLoadBalancer::default()
    };
    let made = load_balancers::create(&alice, &new).await.unwrap();
    assert_eq!(made.vip_address.unwrap().to_string(), "10.82.0.5");
    let port = ports::show(&alice, &made.vip_port_id.unwrap()).await.unwrap().unwrap();
    assert_eq!(port.network_id, network.id, "its address is a port's from the beginning");
    let id = made.id;
    assert_eq!(load_balancers::find(&alice, &name).await.unwrap()[0].id, id);
    assert_eq!(load_balancers::on_subnet(&alice, &subnet.id).await.unwrap()[0].id, id);
    let whole = active(&alice, &id).await;
    assert_eq!((whole.listeners.len(), whole.pools.len()), (1, 1));
    let pool_id = pools::find(&alice, &id, "api").await.unwrap().swap_remove(0).id;
    assert_eq!(pools::members(&alice, &pool_id).await.unwrap().len(), 3);
    assert!(monitors::find(&alice, &pool_id).await.unwrap().is_some());

    let fewer = [member("cp", "10.82.0.11"), member("cp", "10.82.0.14")];
    pools::set_members(&alice, &pool_id, &fewer).await.unwrap();
    active(&alice, &id).await;
    let there = pools::members(&alice, &pool_id).await.unwrap();
    let mut there: Vec<String> = there.iter().map(|it| it.address.to_string()).collect();
    there.sort();
    assert_eq!(there, ["10.82.0.11", "10.82.0.14"]);

    let cidrs = vec!["192.0.2.0/24".to_owned()];
    let ingress = NewListener { allowed_cidrs: cidrs.clone(), ..listener("ingress", 443, None) };
    let added = listeners::create(&alice, &id, &ingress).await.unwrap();
    let at_work = listeners::create(&alice, &id, &listener("other", 80, None)).await;
    if let Err(error) = at_work {
        assert!(error.is_transient(), "a change while another is carried out: {error:?}");
    }
    active(&alice, &id).await;
    let again = listeners::create(&alice, &id, &ingress).await.unwrap_err();
    assert!(again.is_conflict(), "{again:?}");
    assert_eq!(listeners::find(&alice, &id, "ingress").await.unwrap()[0].id, added.id);
    let made = pools::create(&alice, &added.id, &pool("ingress", Vec::new())).await.unwrap();
    active(&alice, &id).await;
    monitors::create(&alice, &made.id, &monitor("ingress")).await.unwrap();
    active(&alice, &id).await;
    let shown = listeners::show(&alice, &added.id).await.unwrap().unwrap();
    assert_eq!((shown.allowed_cidrs, shown.default_pool_id), (cidrs, Some(made.id)));

    assert!(quotas::load_balancers(&alice).await.unwrap().used >= 1);
    flavors::list(&alice).await.unwrap();
    load_balancers::delete(&alice, &id).await.unwrap();
    given::until_gone("a deleted load balancer", || async {
        let it = load_balancers::show(&alice, &id).await?;
        Ok(it.filter(|it| it.provisioning_status != ProvisioningStatus::Deleted))
    })
    .await;
    given::until_free("a load balancer deleted twice", || load_balancers::delete(&alice, &id))
        .await;
    given::remove_network(&alice, &network.id).await;
}
