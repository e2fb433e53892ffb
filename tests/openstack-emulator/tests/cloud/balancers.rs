//! How load balancers find the servers of their members.

use openstack_emulator::{Kind, Settings};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::somebody::alice;

#[tokio::test]
async fn a_member_is_searched_in_the_subnet_of_its_load_balancer() {
    let (emulator, alice) = alice(Settings::default()).await;
    let mut there = Vec::new();
    for name in ["a", "b"] {
        let (network, subnet) = alice.network("10.0.0.0/24").await;
        let server = alice.server(name, &network, json!({})).await;
        alice.server_is(&server, "ACTIVE").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        emulator.cloud.offer(&server, 80, listener.local_addr().unwrap());
        let ports = emulator.cloud.objects(Kind::Port);
        let port = ports.iter().find(|it| it.text("device_id") == server).unwrap();
        let address = port.list("fixed_ips")[0]["ip_address"].as_str().unwrap().to_owned();
        there.push((subnet, address, listener));
    }
    let (subnet, address, listener) = there.pop().unwrap();
    assert_eq!(there[0].1, address, "both networks have the same addresses");

    let pool = json!({
        "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": [{"address": address, "protocol_port": 80}],
    });
    let body = json!({"loadbalancer": {
        "name": "lb", "vip_subnet_id": subnet,
        "listeners": [{"protocol": "TCP", "protocol_port": 80, "default_pool": pool}],
    }});
    let made = alice.make("/load-balancer/v2/lbaas/loadbalancers", body).await;
    let vip = made["loadbalancer"]["vip_address"].as_str().unwrap().parse().unwrap();
    let at = emulator.cloud.wait_until(|cloud| cloud.reach(vip, 80)).await;
    let _client = TcpStream::connect(at).await.unwrap();
    tokio::select! {
        led = listener.accept() => drop(led.unwrap()),
        _ = there[0].2.accept() => panic!("it led to the other network"),
    }
}
