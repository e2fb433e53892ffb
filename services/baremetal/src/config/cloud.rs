//! The section `[cloud]`: the OpenStack that machines join, and the networks and the DNS zone in it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use baremetal_conductor::{FailedBinding, NameSettings, NetworkSettings};
use baremetal_core::{DnsZone, ServiceNetwork};
use jiff::SignedDuration;
use serde::Deserialize;

/// The OpenStack that machines join as hypervisors, and the credentials for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudConfig {
    /// A clouds.yaml. A secure.yaml beside it takes precedence.
    pub clouds_yaml: PathBuf,
    /// The cloud's name in the file; needed if the file contains several clouds.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub networks: NetworksConfig,
    /// The names of machines in Designate; absent if machines get none.
    #[serde(default)]
    pub dns: Option<DnsConfig>,
}

/// A zone of Designate in which nodes have names, for the addresses that their ports have by DHCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DnsConfig {
    /// The zone, in the project of the credentials.
    pub zone: DnsZone,
    /// The pause between two comparisons of the zone with the nodes.
    #[serde(default = "minute")]
    pub every: SignedDuration,
}

fn minute() -> SignedDuration {
    SignedDuration::from_mins(1)
}

impl DnsConfig {
    /// Returns the settings of the conductor.
    pub fn settings(&self) -> NameSettings {
        let every = self.every.unsigned_abs().max(Duration::from_secs(1));
        NameSettings { zone: self.zone.clone(), every }
    }
}

/// The names or ids of the networks in Neutron to which machines with the network interface `neutron` are connected while a ramdisk runs on
/// them. A node overrides each of them by `driver_info`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworksConfig {
    pub provisioning: Option<String>,
    pub cleaning: Option<String>,
    pub rescuing: Option<String>,
    pub inspection: Option<String>,
    pub servicing: Option<String>,
    /// The ids of the security groups of the ports in these networks.
    pub security_groups: Vec<String>,
    /// Whether work goes on if Neutron cannot connect a port.
    pub ignore_failed_binding: bool,
}

impl NetworksConfig {
    /// Returns the settings of the conductor.
    pub fn settings(&self) -> NetworkSettings {
        let names: BTreeMap<ServiceNetwork, String> = [
            (ServiceNetwork::Provisioning, &self.provisioning),
            (ServiceNetwork::Cleaning, &self.cleaning),
            (ServiceNetwork::Rescuing, &self.rescuing),
            (ServiceNetwork::Inspection, &self.inspection),
            (ServiceNetwork::Servicing, &self.servicing),
        ]
        .into_iter()
        .filter_map(|(network, name)| Some((network, name.clone()?)))
        .collect();
        NetworkSettings {
            names,
            security_groups: self.security_groups.clone(),
            failed_binding: match self.ignore_failed_binding {
                true => FailedBinding::IsIgnored,
                false => FailedBinding::Fails,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::config::tests::check;

    #[test]
    fn networks_are_known_by_their_names() {
        let text = "clouds_yaml = 'c'\n[networks]\nprovisioning = 'p'\nservicing = 's'\nignore_failed_binding = true";
        let settings = toml::from_str::<CloudConfig>(text).unwrap().networks.settings();
        let names: Vec<_> = settings.names.into_iter().collect();
        let want = [(ServiceNetwork::Provisioning, "p"), (ServiceNetwork::Servicing, "s")];
        assert_eq!(names, want.map(|(network, name)| (network, name.to_owned())));
        assert_eq!(settings.failed_binding, FailedBinding::IsIgnored);
    }

    #[test]
    fn an_unknown_network_is_refused_by_name() {
        check(
            "state_dir = '/tmp/s'\n[cloud]\nclouds_yaml = 'c'\n[cloud.networks]\ntenants = 'x'",
            expect![[
                r#"unknown field `tenants`, expected one of `provisioning`, `cleaning`, `rescuing`, `inspection`, `servicing`, `security_groups`, `ignore_failed_binding`"#
            ]],
        );
    }

    #[test]
    fn names_need_a_zone() {
        let text = "clouds_yaml = 'c'\n[dns]\nzone = 'machines.example'";
        let names = toml::from_str::<CloudConfig>(text).unwrap().dns.unwrap().settings();
        assert_eq!(
            (names.zone.as_str(), names.every),
            ("machines.example.", Duration::from_secs(60))
        );
        check(
            "state_dir = '/tmp/s'\n[cloud]\nclouds_yaml = 'c'\n[cloud.dns]\nzone = 'a_b'",
            expect![[r#""a_b" is not the name of a DNS zone, such as machines.example"#]],
        );
    }
}
