//! `[machines]`: what people's own machines are made of, where they are, and how long they are lent.

use cluster_conductor::{OfferedImage, VmSettings};
use cluster_core::Told;
use lease::{Ladder, Length, Terms};
use serde::Deserialize;

/// What people's own machines are made of, where they are, and how long they are lent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachinesConfig {
    /// The network they are on where nobody names one, by name or id.
    network: Option<String>,
    /// The network their floating addresses are of, by name or id.
    external_network: Option<String>,
    /// The DNS zone their names are in, with the dot at its end; without it they have none.
    zone: Option<String>,
    /// What they boot. Besides, people boot snapshots of their own project's.
    images: Vec<ImageConfig>,
    /// How long they are lent, unless told and at most.
    lease: Terms,
    /// What comes before the end of their lease and after it.
    ladder: Ladder,
    /// How long the copy of a machine whose lease ended is kept once it is gone.
    keep_copies: Option<Length>,
    /// How often it is looked at whether they do anything.
    idle_every: Option<Length>,
}

/// An image that is offered, and what it wants.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageConfig {
    /// Its name in the cloud.
    name: String,
    /// How the system on it is told who may log in.
    #[serde(default)]
    told: Told,
    /// The least disk, in GiB; what Glance says of it holds as well.
    #[serde(default)]
    min_disk_gib: u64,
    /// The least memory, in MiB; what Glance says of it holds as well.
    #[serde(default)]
    min_ram_mib: u64,
}

impl MachinesConfig {
    /// What the conductor has to know of it.
    pub fn settings(&self) -> VmSettings {
        let offered = |image: &ImageConfig| OfferedImage {
            name: image.name.clone(),
            told: image.told,
            min_disk_gib: image.min_disk_gib,
            min_ram_mib: image.min_ram_mib,
        };
        let usual = VmSettings::default();
        let length = |given: Option<Length>, usual| given.map_or(usual, |it| it.as_duration());
        VmSettings {
            ladder: self.ladder.clone(),
            images: self.images.iter().map(offered).collect(),
            network: self.network.clone(),
            external_network: self.external_network.clone(),
            zone: self.zone.clone(),
            keep_copies: length(self.keep_copies, usual.keep_copies),
            idle_every: length(self.idle_every, usual.idle_every),
            ..usual
        }
    }

    /// What the API has to know of it.
    pub fn lending(&self) -> cluster_api::Lending {
        cluster_api::Lending { terms: self.lease, ladder: self.ladder.clone() }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn read(text: &str) -> Result<MachinesConfig, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn what_is_said_is_what_holds() {
        let text = "network = 'lab'\nlease = { default = '30d', longest = '90d' }\nkeep_copies = '2w'\n\
                    images = [{ name = 'debian', min_disk_gib = 10 }, { name = 'fcos', told = 'ignition' }]";
        let config = read(text).expect("it is valid");
        let settings = config.settings();
        assert_eq!(settings.network.as_deref(), Some("lab"));
        assert_eq!(settings.images.len(), 2);
        assert_eq!(settings.keep_copies, SignedDuration::from_hours(14 * 24));
        assert!(config.lending().terms.longest().is_some());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refuses = |text: &str, words: &str| {
            let error = read(text).expect_err("it is no configuration").to_string();
            assert!(error.contains(words), "{error}");
        };
        refuses("colour = 'red'", "unknown field `colour`");
        refuses(
            "lease = { default = '90d', longest = '30d' }",
            "default: what nobody said anything of",
        );
        refuses(
            "ladder = { warn_before = ['1h'], notice = '2h' }",
            "warn_before: the earliest warning",
        );
        refuses("images = [{ name = 'x', told = 'by-hand' }]", "unknown variant `by-hand`");
        refuses("images = [{}]", "missing field `name`");
    }
}
