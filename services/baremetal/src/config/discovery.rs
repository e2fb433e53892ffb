//! The sections `[auto_discovery]`, `[[bmc.credentials]]` and `[bmc.crawl]`: how machines and BMCs are found and become nodes.

use std::fs;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use baremetal_conductor::{AcceptedBy, CrawlSettings, DiscoverySettings};
use baremetal_core::{BmcCredentials, CrawlRange, Driver, SecretText};
use hardware::Network;
use jiff::SignedDuration;
use serde::Deserialize;

/// The section `[auto_discovery]`, with Ironic's keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoDiscoveryConfig {
    /// Whether an unknown machine becomes a node as soon as its inventory arrives. The inspection rules run for the node, and recognize it by
    /// `plugin_data[auto_discovered]`.
    pub enabled: bool,
    /// The driver of nodes whose BMC does not tell the protocol, also of those that a person accepts.
    pub driver: Driver,
}

impl Default for AutoDiscoveryConfig {
    fn default() -> Self {
        AutoDiscoveryConfig { enabled: false, driver: Driver::Redfish }
    }
}

/// The credentials of the BMCs in a network, for nodes that are accepted without credentials.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BmcCredentialsConfig {
    pub network: Network,
    pub username: String,
    /// A file whose first line is the password.
    pub password_file: PathBuf,
    /// The value of `redfish_verify_ca`: a boolean or a fingerprint.
    #[serde(default)]
    pub verify_ca: Option<VerifyCa>,
}

/// The search for BMCs: each address of the ranges, and each address that `[bmc.dhcp]` leased, is asked for a Redfish service root and for
/// IPMI, without credentials.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrawlConfig {
    /// Networks, such as `10.0.1.0/24`, and ranges, such as `10.0.2.10-10.0.2.99`. Addresses outside of `bmc.networks` are not asked.
    #[serde(default)]
    pub ranges: Vec<CrawlRange>,
    /// The interval between the starts of two searches.
    #[serde(default = "hour")]
    pub every: SignedDuration,
    /// How many addresses are asked in a second.
    #[serde(default = "per_second")]
    pub per_second: NonZeroU32,
    /// The ports on which Redfish services are looked for.
    #[serde(default = "https")]
    pub redfish_ports: Vec<u16>,
    #[serde(default = "rmcp")]
    pub ipmi_port: u16,
}

impl CrawlConfig {
    /// Returns the settings of the conductor.
    pub fn settings(&self) -> CrawlSettings {
        CrawlSettings {
            ranges: self.ranges.clone(),
            every: self.every.unsigned_abs().max(Duration::from_secs(1)),
            per_second: self.per_second.get(),
            redfish_ports: self.redfish_ports.clone(),
            ipmi_port: self.ipmi_port,
        }
    }
}

fn hour() -> SignedDuration {
    SignedDuration::from_hours(1)
}

const fn per_second() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(19)
}

fn https() -> Vec<u16> {
    vec![443]
}

const fn rmcp() -> u16 {
    623
}

/// How the certificate of a BMC is verified.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum VerifyCa {
    Switch(bool),
    Pin(String),
}

impl AutoDiscoveryConfig {
    /// Returns the settings of the conductor, with the passwords of the files.
    pub fn settings(
        &self,
        credentials: &[BmcCredentialsConfig],
    ) -> anyhow::Result<DiscoverySettings> {
        let accepted_by =
            if self.enabled { AcceptedBy::InspectionRules } else { AcceptedBy::Person };
        let credentials = credentials.iter().map(BmcCredentialsConfig::read);
        let credentials = credentials.collect::<anyhow::Result<_>>()?;
        Ok(DiscoverySettings { accepted_by, driver: self.driver, credentials })
    }
}

impl BmcCredentialsConfig {
    fn read(&self) -> anyhow::Result<BmcCredentials> {
        let file = &self.password_file;
        let text = fs::read_to_string(file);
        let text = text.with_context(|| {
            format!("cannot read {} (bmc.credentials.password_file)", file.display())
        })?;
        let password = text.lines().next().unwrap_or_default();
        let verify_ca = self.verify_ca.clone().map(|verify| match verify {
            VerifyCa::Switch(verify) => verify.into(),
            VerifyCa::Pin(pin) => pin.into(),
        });
        Ok(BmcCredentials {
            network: self.network,
            username: self.username.clone(),
            password: SecretText::from(password.to_owned()),
            verify_ca,
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::tests::check;
    use super::*;

    #[test]
    fn a_discovery_is_accepted_by_rules_with_the_credentials_of_its_network() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "hunter2\nignored\n").unwrap();
        let text = format!(
            "state_dir = '/tmp/s'\n[auto_discovery]\nenabled = true\ndriver = 'ipmi'\n[[bmc.credentials]]\nnetwork = '10.0.0.0/24'\n\
             username = 'admin'\npassword_file = '{}'\nverify_ca = false",
            file.display()
        );
        let config: crate::Config = toml::from_str(&text).unwrap();
        let settings = config.auto_discovery.settings(&config.bmc.credentials).unwrap();
        assert_eq!(settings.accepted_by, AcceptedBy::InspectionRules);
        assert_eq!(settings.driver, Driver::Ipmi);
        let [known] = &*settings.credentials else { panic!() };
        assert_eq!((known.password.expose(), &known.verify_ca), ("hunter2", &Some(false.into())));
        std::fs::remove_file(&file).unwrap();
        let refused = config.auto_discovery.settings(&config.bmc.credentials).unwrap_err();
        assert!(refused.to_string().contains("bmc.credentials.password_file"), "{refused}");
    }

    #[test]
    fn a_crawl_needs_ranges_or_leases_alone() {
        let settings = |text: &str| {
            let config: crate::Config =
                toml::from_str(&format!("state_dir = '/s'\n{text}")).unwrap();
            config.bmc.crawl_settings()
        };
        let refused = settings("[bmc.crawl]").unwrap_err().to_string();
        assert_eq!(refused, "bmc.crawl: set ranges, or have BMCs get addresses by [bmc.dhcp]");
        let dhcp =
            "[bmc.dhcp]\ninterface='b'\nserver='10.0.1.1'\nprefix=24\nrange='10.0.1.9-10.0.1.9'";
        assert!(settings(&format!("[bmc.crawl]\n{dhcp}")).unwrap().is_some());
        let ranges = "[bmc.crawl]\nranges = ['10.0.1.0/24', '10.0.2.7']";
        let settings = settings(ranges).unwrap().unwrap();
        assert_eq!((settings.ranges.len(), settings.per_second), (2, 20));
        assert_eq!((&*settings.redfish_ports, settings.ipmi_port), (&[443][..], 623));
        check(
            "state_dir = '/tmp/s'\n[bmc.crawl]\nranges = ['10.0.0.0/8']",
            expect![[
                r#""10.0.0.0/8" is not a range of at most 65536 IPv4 addresses, such as 10.0.1.0/24 or 10.0.1.10-10.0.1.99"#
            ]],
        );
        check(
            "state_dir = '/tmp/s'\n[bmc.crawl]\nranges = []\nper_second = 0",
            expect!["invalid value: integer `0`, expected a nonzero u32"],
        );
    }

    #[test]
    fn an_unknown_driver_is_refused() {
        check(
            "state_dir = '/tmp/s'\n[auto_discovery]\ndriver = 'ilo'",
            expect![[
                r#"unknown variant `ilo`, expected one of `fake-hardware`, `idrac`, `ipmi`, `manual-management`, `redfish`"#
            ]],
        );
    }
}
