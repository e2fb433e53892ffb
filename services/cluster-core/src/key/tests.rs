use super::*;

fn machine() -> MemberName {
    "default-worker-3".parse().expect("it is the name of a member")
}

/// Every kind of key: its text, its kind, and whether a repeated create may leave a duplicate.
fn every_key() -> Vec<(Key, &'static str, Kind, bool)> {
    let group: Name = "default-worker".parse().expect("it is a name");
    vec![
        (Key::Network, "network", Kind::Network, true),
        (Key::Subnet, "subnet", Kind::Subnet, true),
        (Key::Router, "router", Kind::Router, true),
        (Key::RouterInterface, "router-interface", Kind::RouterInterface, false),
        (
            Key::SecurityGroup(SecurityGroupRole::Node),
            "security-group/node",
            Kind::SecurityGroup,
            true,
        ),
        (
            Key::SecurityGroup(SecurityGroupRole::ControlPlane),
            "security-group/control-plane",
            Kind::SecurityGroup,
            true,
        ),
        (Key::ServerGroup(group), "server-group/default-worker", Kind::ServerGroup, true),
        (Key::VipPort(BalancerPurpose::Api), "vip-port/api", Kind::Port, true),
        (Key::VipPort(BalancerPurpose::Ingress), "vip-port/ingress", Kind::Port, true),
        (Key::LoadBalancer(BalancerPurpose::Api), "load-balancer/api", Kind::LoadBalancer, true),
        (
            Key::BalancerAddress(BalancerPurpose::Ingress),
            "balancer-address/ingress",
            Kind::FloatingIp,
            true,
        ),
        (Key::Port(machine()), "port/default-worker-3", Kind::Port, true),
        (
            Key::MachineAddress(machine()),
            "machine-address/default-worker-3",
            Kind::FloatingIp,
            true,
        ),
        (Key::Record(DnsName::Api), "record/api", Kind::Record, false),
        (Key::Record(DnsName::Apps), "record/apps", Kind::Record, false),
        (
            Key::Record(DnsName::Machine(machine())),
            "machine-record/default-worker-3",
            Kind::Record,
            false,
        ),
        (Key::Server(machine()), "server/default-worker-3", Kind::Server, true),
        (Key::Credential(7), "credential/7", Kind::Credential, false),
        (
            Key::ServiceBalancer("lb-1".to_owned()),
            "service-balancer/lb-1",
            Kind::ServiceBalancer,
            false,
        ),
        (Key::Volume("v-1".to_owned()), "volume/v-1", Kind::Volume, false),
        (Key::RootVolume, "root-volume", Kind::RootVolume, true),
    ]
}

#[test]
fn every_key_is_read_back_from_its_text() {
    for (key, text, kind, has_duplicate) in every_key() {
        assert_eq!((key.to_string().as_str(), text.parse().as_ref()), (text, Ok(&key)));
        assert_eq!(Key::try_from(text.to_owned()), Ok(key.clone()));
        assert_eq!(String::from(key.clone()), text);
        assert_eq!((key.kind(), key.duplicate().is_some()), (kind, has_duplicate), "{text}");
        let twin = format!("twin/{text}");
        assert_eq!(twin.parse().ok(), key.duplicate(), "{twin}");
    }
}

#[test]
fn keys_of_a_member_name_it() {
    for (key, text, ..) in every_key() {
        let want = text.ends_with("default-worker-3").then(machine);
        assert_eq!(key.member(), want.as_ref(), "{text}");
        let is_made_inside = ["service-balancer/lb-1", "volume/v-1"].contains(&text);
        assert_eq!(key.is_made_inside(), is_made_inside, "{text}");
    }
}

#[test]
fn other_texts_are_no_keys() {
    for bad in [
        "",
        "network/a",
        "subnet/a",
        "router/a",
        "router-interface/a",
        "security-group/other",
        "server-group/",
        "vip-port/other",
        "record/other",
        "server/x",
        "port/a-b",
        "credential/x",
        "service-balancer/",
        "volume/",
        "root-volume/a",
        "twin/network/a",
        "colour",
    ] {
        assert!(bad.parse::<Key>().is_err(), "{bad}");
    }
    for bad in ["", "a", "-1", "a-", "a-b", "a-4294967296"] {
        assert!(bad.parse::<MemberName>().is_err(), "{bad}");
    }
    assert_eq!(MemberName::try_from("a-0".to_owned()).map(String::from), Ok("a-0".to_owned()));
}

#[test]
fn an_object_depends_on_the_objects_that_its_create_request_names() {
    let depends = |one: &str, other: &str| {
        let key = |text: &str| text.parse::<Key>().unwrap();
        key(one).depends_on(&key(other))
    };
    for (one, other) in [
        ("subnet", "network"),
        ("router-interface", "router"),
        ("router-interface", "subnet"),
        ("vip-port/api", "subnet"),
        ("vip-port/api", "security-group/node"),
        ("port/a-1", "subnet"),
        ("port/a-1", "security-group/node"),
        ("balancer-address/api", "router-interface"),
        ("machine-address/a-1", "router-interface"),
        ("load-balancer/api", "vip-port/api"),
        ("balancer-address/api", "vip-port/api"),
        ("machine-address/a-1", "port/a-1"),
        ("server/a-1", "port/a-1"),
        ("server/a-1", "server-group/a"),
        ("server/a-1", "root-volume"),
        ("service-balancer/x", "subnet"),
        ("twin/subnet", "network"),
    ] {
        assert!(depends(one, other), "{one} {other}");
        assert!(!depends(other, one), "{other} {one}");
    }
    for (one, other) in [
        ("load-balancer/api", "vip-port/ingress"),
        ("balancer-address/api", "vip-port/ingress"),
        ("machine-address/a-1", "port/a-2"),
        ("server/a-1", "port/a-2"),
        ("server/a-1", "server-group/b"),
        ("volume/x", "subnet"),
        ("subnet", "twin/network"),
        ("twin/subnet", "subnet"),
    ] {
        assert!(!depends(one, other), "{one} {other}");
    }
}

#[test]
fn servers_are_deleted_before_the_objects_that_kubernetes_creates() {
    let server = Key::Server(machine());
    for (key, text, ..) in every_key() {
        let last = ["service-balancer/lb-1", "volume/v-1", "credential/7"].contains(&text);
        let is_own = ["port/default-worker-3", "server-group/default-worker", "root-volume"];
        assert_eq!(server.is_deleted_before(&key), last || is_own.contains(&text), "{text}");
    }
    assert!(!Key::Network.is_deleted_before(&Key::Credential(7)));
}
