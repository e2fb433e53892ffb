//! `[machines]`: images, networks and leases of VMs.

use cluster_conductor::{OfferedImage, VmSettings};
use cluster_core::UserDataFormat;
use lease::{LeaseSchedule, Length, Terms};
use serde::Deserialize;

/// The images, networks and leases of VMs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VmsConfig {
    /// The network of a VM whose request names none, by name or id.
    network: Option<String>,
    /// The network of floating IPs, by name or id.
    external_network: Option<String>,
    /// The DNS zone of VM names, with the final dot. Without a zone VMs have no DNS names.
    zone: Option<String>,
    /// The images that a VM can boot. Besides these images, VMs can boot the snapshots of their own project.
    images: Vec<ImageConfig>,
    /// The default and maximum duration of VM leases.
    lease: Terms,
    /// The stages before and after the end of a lease.
    schedule: LeaseSchedule,
    /// How long the snapshot of a VM is kept after its lease ended and the VM was deleted.
    keep_copies: Option<Length>,
    /// The interval at which VMs are checked for idleness.
    idle_every: Option<Length>,
}

/// An image that VMs can boot, and its requirements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageConfig {
    /// The image's name in Glance.
    name: String,
    #[serde(default)]
    user_data_format: UserDataFormat,
    /// The minimum disk in GiB. Glance's own minimum for the image applies too.
    #[serde(default)]
    min_disk_gib: u64,
    /// The minimum memory in MiB. Glance's own minimum for the image applies too.
    #[serde(default)]
    min_ram_mib: u64,
}

impl VmsConfig {
    /// Returns the settings for the conductor.
    pub fn settings(&self) -> VmSettings {
        let offered = |image: &ImageConfig| OfferedImage {
            name: image.name.clone(),
            user_data_format: image.user_data_format,
            min_disk_gib: image.min_disk_gib,
            min_ram_mib: image.min_ram_mib,
        };
        let usual = VmSettings::default();
        let length = |given: Option<Length>, usual| given.map_or(usual, |it| it.as_duration());
        VmSettings {
            schedule: self.schedule.clone(),
            images: self.images.iter().map(offered).collect(),
            network: self.network.clone(),
            external_network: self.external_network.clone(),
            zone: self.zone.clone(),
            keep_copies: length(self.keep_copies, usual.keep_copies),
            idle_every: length(self.idle_every, usual.idle_every),
            ..usual
        }
    }

    /// Returns the settings for the API.
    pub fn lease_settings(&self) -> cluster_api::LeaseSettings {
        cluster_api::LeaseSettings { terms: self.lease, schedule: self.schedule.clone() }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn read(text: &str) -> Result<VmsConfig, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn configured_values_reach_the_settings() {
        let text = "network = 'lab'\nlease = { default = '30d', longest = '90d' }\nkeep_copies = '2w'\n\
                    images = [{ name = 'debian', min_disk_gib = 10 }, { name = 'fcos', user_data_format = 'ignition' }]";
        let config = read(text).expect("it is valid");
        let settings = config.settings();
        assert_eq!(settings.network.as_deref(), Some("lab"));
        assert_eq!(settings.images.len(), 2);
        assert_eq!(settings.keep_copies, SignedDuration::from_hours(14 * 24));
        assert!(config.lease_settings().terms.longest().is_some());
    }

    #[test]
    fn an_invalid_section_is_refused_by_key() {
        let refuses = |text: &str, words: &str| {
            let error = read(text).expect_err("it is no configuration").to_string();
            assert!(error.contains(words), "{error}");
        };
        refuses("colour = 'red'", "unknown field `colour`");
        refuses(
            "lease = { default = '90d', longest = '30d' }",
            "default: longer than the longest lease",
        );
        refuses(
            "schedule = { warn_before = ['1h'], notice = '2h' }",
            "warn_before: the earliest warning",
        );
        refuses(
            "images = [{ name = 'x', user_data_format = 'by-hand' }]",
            "unknown variant `by-hand`",
        );
        refuses("images = [{}]", "missing field `name`");
    }
}
