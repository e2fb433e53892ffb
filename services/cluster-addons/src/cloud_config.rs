//! Writes `cloud.conf`, the configuration file of cloud-provider-openstack.

use std::fmt::Write;

use cluster_core::{Algorithm, Provider};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::object::AddOnObjects;
use crate::{Cloud, LoadBalancing, Volumes};

/// The folder at which pods mount `cloud.conf`.
pub(crate) const FOLDER: &str = "/etc/config";
/// The path of `cloud.conf` inside pods.
pub(crate) const FILE: &str = "/etc/config/cloud.conf";

/// The section `[Global]`: Keystone's address and the credential.
pub(crate) fn global(cloud: &Cloud) -> String {
    let mut lines = vec![
        ("auth-url", cloud.auth_url.as_str()),
        ("region", cloud.region.as_str()),
        ("application-credential-id", cloud.credential.id.as_str()),
        ("application-credential-secret", cloud.credential.secret.expose_secret()),
    ];
    if cloud.authorities.is_some() {
        lines.push(("ca-file", "/etc/config/ca.crt"));
    }
    section("Global", &lines)
}

/// The section `[LoadBalancer]`.
pub(crate) fn load_balancer(balancing: &LoadBalancing) -> String {
    let algorithm = match balancing.provider {
        // Octavia's OVN provider supports no other algorithm.
        Some(Provider::Ovn) => Algorithm::SourceIpPort,
        Some(Provider::Amphora | Provider::Other(_)) | None => balancing.algorithm,
    };
    // A Service with `externalTrafficPolicy: Local` needs the monitor: the monitor finds the nodes that run a pod of the Service. OVN's
    // monitor needs a port in each subnet, which tenants do not create.
    let monitored = balancing.provider != Some(Provider::Ovn);
    let mut lines = vec![
        ("lb-method", algorithm.as_str()),
        ("create-monitor", if monitored { "true" } else { "false" }),
    ];
    match &balancing.floating_network {
        Some(network) => lines.push(("floating-network-id", network)),
        None => lines.push(("internal-lb", "true")),
    }
    lines.extend(balancing.subnet.iter().map(|subnet| ("subnet-id", subnet.as_str())));
    lines.extend(balancing.provider.iter().map(|it| ("lb-provider", it.as_str())));
    section("LoadBalancer", &lines)
}

/// The section `[BlockStorage]`.
pub(crate) fn block_storage(volumes: &Volumes) -> String {
    let ignored = if volumes.ignore_zones { "true" } else { "false" };
    section("BlockStorage", &[("ignore-volume-az", ignored)])
}

/// A Secret with `cloud.conf` and, if the cloud has its own certificate authorities, their certificates in `ca.crt`.
pub(crate) fn secret(kit: AddOnObjects, name: &str, text: &str, cloud: &Cloud) -> Value {
    let mut files = vec![("cloud.conf", text)];
    files.extend(cloud.authorities.iter().map(|pem| ("ca.crt", pem.as_str())));
    kit.secret(name, &files)
}

fn section(name: &str, lines: &[(&str, &str)]) -> String {
    let mut text = format!("[{name}]\n");
    for (key, value) in lines {
        let _ = writeln!(text, "{key} = {}", quoted(value));
    }
    text
}

/// gopkg.in/gcfg: between quotes only the quote and the backslash are special, and both are escaped; a line break is escaped too.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::Credential;

    #[test]
    fn a_credential_stays_within_its_quotes() {
        let cloud = Cloud {
            auth_url: "https://keystone.example/v3".to_owned(),
            region: "RegionOne".to_owned(),
            credential: Credential {
                generation: 1,
                id: "id-1".to_owned(),
                secret: "a\"b\\c\n[Global]\ntls-insecure = true".to_owned().into(),
            },
            authorities: Some("-----BEGIN CERTIFICATE-----\n".to_owned()),
        };
        expect![[r#"
            [Global]
            auth-url = "https://keystone.example/v3"
            region = "RegionOne"
            application-credential-id = "id-1"
            application-credential-secret = "a\"b\\c\n[Global]\ntls-insecure = true"
            ca-file = "/etc/config/ca.crt"
        "#]]
        .assert_eq(&global(&cloud));
        let cloud = Cloud { authorities: None, ..cloud };
        assert!(!global(&cloud).contains("ca-file"));
    }

    #[test]
    fn volumes_of_another_zone_are_attached_only_if_zones_are_ignored() {
        let text = |ignore_zones| {
            block_storage(&Volumes { classes: Vec::new(), ignore_zones, snapshots: false })
        };
        assert_eq!(text(true), "[BlockStorage]\nignore-volume-az = \"true\"\n");
        assert_eq!(text(false), "[BlockStorage]\nignore-volume-az = \"false\"\n");
    }

    #[test]
    fn load_balancer_settings_follow_what_the_provider_supports() {
        let mut balancing = LoadBalancing {
            floating_network: Some("net-1".to_owned()),
            subnet: Some("subnet-1".to_owned()),
            provider: Some(Provider::Amphora),
            algorithm: Algorithm::LeastConnections,
        };
        expect![[r#"
            [LoadBalancer]
            lb-method = "LEAST_CONNECTIONS"
            create-monitor = "true"
            floating-network-id = "net-1"
            subnet-id = "subnet-1"
            lb-provider = "amphora"
        "#]]
        .assert_eq(&load_balancer(&balancing));
        balancing.provider = Some(Provider::Ovn);
        balancing.floating_network = None;
        expect![[r#"
            [LoadBalancer]
            lb-method = "SOURCE_IP_PORT"
            create-monitor = "false"
            internal-lb = "true"
            subnet-id = "subnet-1"
            lb-provider = "ovn"
        "#]]
        .assert_eq(&load_balancer(&balancing));
    }

    #[test]
    fn a_load_balancer_without_settings_is_the_clouds_default() {
        let balancing = LoadBalancing {
            floating_network: None,
            subnet: None,
            provider: None,
            algorithm: Algorithm::RoundRobin,
        };
        expect![[r#"
            [LoadBalancer]
            lb-method = "ROUND_ROBIN"
            create-monitor = "true"
            internal-lb = "true"
        "#]]
        .assert_eq(&load_balancer(&balancing));
    }
}
