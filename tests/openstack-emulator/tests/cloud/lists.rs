//! How many objects a list visits: few if the list asks for few.

use openstack_emulator::{Kind, Settings};
use reqwest::Method;
use serde_json::{Value, json};

use crate::somebody::{TestUser, alice, text};

/// How many objects of each kind the test creates.
const MANY: usize = 40;
/// How many objects a list may visit beyond those that it shows.
const BESIDES: u64 = 6;

/// The ids of one of the many groups of objects.
struct One {
    network: String,
    subnet: String,
    router: String,
    port: String,
    address: String,
    mac: String,
    group: String,
    server: String,
    balancer: String,
    listener: String,
    pool: String,
    zone: String,
}

async fn make(alice: &TestUser, number: usize) -> One {
    let cidr = format!("10.0.{number}.0/24");
    let net = json!({"network": {"name": format!("net-{number}")}});
    let net = alice.make("/network/v2.0/networks", net).await;
    let network = text(&net["network"]["id"]);
    let tags = format!("/network/v2.0/networks/{network}/tags");
    let tagged = json!({"tags": [format!("tag-{number}"), "many"]});
    assert_eq!(alice.ask(Method::PUT, &tags, tagged).await.0, 200);
    let body = json!({"subnet": {"name": format!("sub-{number}"), "network_id": network, "cidr": cidr, "ip_version": 4}});
    let subnet = text(&alice.make("/network/v2.0/subnets", body).await["subnet"]["id"]);
    let body = json!({"router": {"name": format!("router-{number}")}});
    let router = text(&alice.make("/network/v2.0/routers", body).await["router"]["id"]);
    let attach = format!("/network/v2.0/routers/{router}/add_router_interface");
    let attached = alice.ask(Method::PUT, &attach, json!({"subnet_id": subnet})).await;
    assert_eq!(attached.0, 200, "{}", attached.1);
    let body = json!({"security_group": {"name": format!("group-{number}")}});
    let group = alice.make("/network/v2.0/security-groups", body).await;
    let group = text(&group["security_group"]["id"]);
    let body = json!({"port": {"name": format!("port-{number}"), "network_id": network, "security_groups": [group]}});
    let port = alice.make("/network/v2.0/ports", body).await["port"].clone();
    let more = json!({"tags": [format!("tag-{number}")]});
    let server = alice.server(&format!("server-{number}"), &network, more).await;
    let member = json!({"address": port["fixed_ips"][0]["ip_address"], "protocol_port": 80});
    let pool = json!({"name": format!("pool-{number}"), "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": [member]});
    let listener = json!({"name": format!("listener-{number}"), "protocol": "TCP", "protocol_port": 80, "default_pool": pool});
    let body = json!({"loadbalancer": {"name": format!("lb-{number}"), "vip_subnet_id": subnet, "listeners": [listener]}});
    let made = alice.make("/load-balancer/v2/lbaas/loadbalancers", body).await;
    let made = &made["loadbalancer"];
    let zone = json!({"name": format!("z{number}.example.org."), "email": "a@example.org"});
    let zone = text(&alice.make("/dns/v2/zones", zone).await["id"]);
    One {
        network,
        subnet,
        router,
        port: text(&port["id"]),
        address: text(&port["fixed_ips"][0]["ip_address"]),
        mac: text(&port["mac_address"]),
        group,
        server,
        balancer: text(&made["id"]),
        listener: text(&made["listeners"][0]["id"]),
        pool: text(&made["listeners"][0]["default_pool"]["id"]),
        zone,
    }
}

/// The number of rows that a list shows, and of objects that the list visited.
async fn listed(who: &TestUser, path: &str) -> (u64, u64) {
    let before = who.cloud.looked_at();
    let body = who.get(path).await;
    let looked_at = who.cloud.looked_at() - before;
    let rows = body.as_object().unwrap().values().filter_map(Value::as_array);
    let rows = rows.map(Vec::len).max().unwrap();
    (rows.try_into().unwrap(), looked_at)
}

#[tokio::test]
async fn a_list_of_few_objects_visits_few() {
    // Opening addresses visits many objects, at unpredictable times.
    let mut settings = Settings { open_addresses: false, ..Settings::default() };
    let quotas = "network subnet port router security_group security_group_rule instances cores ram zones load_balancer listener pool member";
    settings.quotas.extend(quotas.split(' ').map(|name| (name.to_owned(), -1)));
    let (emulator, alice) = alice(settings).await;
    let mut all = Vec::new();
    for number in 0..MANY {
        all.push(make(&alice, number).await);
    }
    let ready = |kind, field: &str, status: &str| {
        emulator.cloud.objects(kind).iter().all(|one| one.text(field) == status)
    };
    let rest = emulator.cloud.wait_until(|_| {
        (ready(Kind::Server, "status", "ACTIVE")
            && ready(Kind::LoadBalancer, "provisioning_status", "ACTIVE")
            && ready(Kind::Zone, "status", "ACTIVE"))
        .then_some(())
    });
    rest.await;

    let admin = TestUser::log_in(&emulator.cloud, "admin", "admin").await;
    let One { network, subnet, router, port, address, mac, group, server, .. } = &all[7];
    let One { balancer, listener, pool, zone, .. } = &all[7];
    let (net, lb) = ("/network/v2.0", "/load-balancer/v2/lbaas");
    let lists = [
        (format!("{net}/networks?name=net-7"), 1),
        (format!("{net}/networks?id={network}"), 1),
        (format!("{net}/networks?tags=tag-7"), 1),
        (format!("{net}/networks?tags=many,tag-7"), 1),
        (format!("{net}/networks?tags-any=tag-7,tag-8"), 2),
        (format!("{net}/networks?router:external=true"), 1),
        (format!("{net}/subnets?network_id={network}"), 1),
        (format!("{net}/subnets?name=sub-7&project_id={}", alice.project), 1),
        (format!("{net}/routers?name=router-7"), 1),
        (format!("{net}/ports?network_id={network}"), 5),
        (format!("{net}/ports?device_id={router}"), 1),
        (format!("{net}/ports?device_id={server}&network_id={network}"), 1),
        (format!("{net}/ports?device_owner=network:router_interface&network_id={network}"), 1),
        (format!("{net}/ports?fixed_ips=subnet_id={subnet}"), 5),
        (format!("{net}/ports?fixed_ips=ip_address={address}"), 1),
        (format!("{net}/ports?mac_address={mac}"), 1),
        (format!("{net}/ports?security_groups={group}"), 1),
        (format!("{net}/ports?id={port}"), 1),
        (format!("{net}/security-groups?name=group-7"), 1),
        (format!("{net}/security-group-rules?security_group_id={group}"), 2),
        (format!("{lb}/loadbalancers?name=lb-7"), 1),
        (format!("{lb}/listeners?loadbalancer_id={balancer}"), 1),
        (format!("{lb}/pools?loadbalancer_id={balancer}"), 1),
        (format!("{lb}/pools?listener_id={listener}"), 1),
        (format!("{lb}/pools/{pool}/members"), 1),
        ("/compute/v2.1/servers/detail?name=^server-7$".to_owned(), 1),
        ("/compute/v2.1/servers?tags=tag-7".to_owned(), 1),
        ("/dns/v2/zones?name=z7.example.org.".to_owned(), 1),
        (format!("/dns/v2/zones/{zone}/recordsets"), 2),
    ];
    for (path, want) in &lists {
        let (shown, looked_at) = listed(&alice, path).await;
        assert_eq!(shown, *want, "{path}");
        assert!(looked_at <= shown + BESIDES, "{path} looked at {looked_at} for {shown}");
    }

    // A list in a project with few objects visits few, even without a filter.
    let bob = TestUser::log_in(&emulator.cloud, "bob", "tenant-b").await;
    for path in [
        format!("{net}/networks"),
        format!("{net}/ports"),
        format!("{lb}/pools"),
        "/compute/v2.1/servers".into(),
    ] {
        let (shown, looked_at) = listed(&bob, &path).await;
        assert!(shown <= 1 && looked_at <= BESIDES, "{path} looked at {looked_at} for {shown}");
    }

    // Changed objects are found by their new fields, and deleted objects are not found.
    let renamed = format!("{net}/networks/{network}");
    let body = json!({"network": {"name": "renamed"}});
    assert_eq!(alice.ask(Method::PUT, &renamed, body).await.0, 200);
    assert_eq!(listed(&admin, &format!("{net}/networks?name=net-7")).await.0, 0);
    assert_eq!(listed(&admin, &format!("{net}/networks?name=renamed")).await.0, 1);
    assert_eq!(alice.delete(&format!("{net}/ports/{port}")).await, 204);
    assert_eq!(listed(&admin, &format!("{net}/ports?mac_address={mac}")).await.0, 0);
    // A list of all objects shows all of them.
    let (shown, looked_at) = listed(&admin, &format!("{net}/networks?limit=100")).await;
    assert!(shown > u64::try_from(MANY).unwrap() && looked_at >= shown, "{shown}, {looked_at}");
}
