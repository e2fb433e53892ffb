//! `[backups]`: where backups of etcd are kept, how often clusters get one, and how many are kept.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use cluster_conductor::{BackupPlace, BackupSettings};
use cluster_core::BackupRules;
use jiff::SignedDuration;
use serde::Deserialize;

/// Backups of the etcd of every cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawBackups")]
pub struct BackupsConfig(pub BackupSettings);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBackups {
    /// The directory of the backups. Several clusterd on one database need the same directory, as a mounted share.
    #[serde(default)]
    directory: Option<PathBuf>,
    /// The container of Swift for the backups, in clusterd's own project of the cloud.
    #[serde(default)]
    container: Option<String>,
    /// How often each cluster gets a backup; `0s`: only on request.
    #[serde(default = "a_day")]
    every: SignedDuration,
    /// How many scheduled backups of each cluster are kept.
    #[serde(default = "a_week_of_days")]
    keep: NonZeroUsize,
    /// How long scheduled backups are kept. The newest tested one of each cluster is always kept.
    #[serde(default = "thirty_days")]
    keep_for: SignedDuration,
}

/// The shortest time between two scheduled backups.
const SHORTEST: SignedDuration = SignedDuration::from_mins(5);

fn a_day() -> SignedDuration {
    SignedDuration::from_hours(24)
}

fn a_week_of_days() -> NonZeroUsize {
    NonZeroUsize::MIN.saturating_add(6)
}

fn thirty_days() -> SignedDuration {
    SignedDuration::from_hours(30 * 24)
}

impl TryFrom<RawBackups> for BackupsConfig {
    type Error = &'static str;

    fn try_from(raw: RawBackups) -> Result<Self, Self::Error> {
        let place = match (raw.directory, raw.container) {
            (Some(directory), None) if !directory.is_absolute() => {
                return Err("directory: must be an absolute path");
            }
            (Some(directory), None) => BackupPlace::Directory(directory),
            (None, Some(container)) if !is_container(&container) => {
                return Err(
                    "container: must have 1 to 256 of the characters A-Z a-z 0-9 . _ -, and not begin with a dot",
                );
            }
            (None, Some(container)) => BackupPlace::Container(container),
            (None, None) | (Some(_), Some(_)) => {
                return Err("set one of directory and container");
            }
        };
        let every = match raw.every {
            every if every.is_zero() => None,
            every if every < SHORTEST => {
                return Err("every: must be at least 5m, or 0s for backups on request only");
            }
            every => Some(every),
        };
        if raw.keep_for < SHORTEST {
            return Err("keep_for: must be at least 5m");
        }
        let rules = BackupRules { every, keep: raw.keep.get(), keep_for: raw.keep_for };
        Ok(BackupsConfig(BackupSettings { place, rules }))
    }
}

fn is_container(name: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=256).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BackupSettings, String> {
        let read = toml::from_str::<BackupsConfig>(text);
        read.map(|config| config.0).map_err(|error| error.to_string())
    }

    #[test]
    fn a_directory_is_enough_for_daily_backups() {
        let settings = read("directory = '/b'").expect("it is valid");
        let rules = BackupRules { every: Some(a_day()), keep: 7, keep_for: thirty_days() };
        assert_eq!(settings.rules, rules);
        assert_eq!(settings.place, BackupPlace::Directory("/b".into()));
        let swift = read("container = 'etcd-backups'").expect("it is valid");
        assert_eq!(swift.place, BackupPlace::Container("etcd-backups".to_owned()));
        let requested = read("directory = '/b'\nevery = '0s'").expect("it is valid");
        assert_eq!(requested.rules.every, None);
    }

    #[test]
    fn an_invalid_setting_is_refused_by_name() {
        for (text, words) in [
            ("directory = 'b'", "directory: must be an absolute path"),
            ("directory = '/b'\nevery = '1m'", "every: must be at least 5m"),
            ("directory = '/b'\nkeep_for = '1s'", "keep_for: must be at least 5m"),
            ("directory = '/b'\nkeep = 0", "nonzero"),
            ("directory = '/b'\nbucket = 'x'", "unknown field `bucket`"),
            ("every = '24h'", "set one of directory and container"),
            ("directory = '/b'\ncontainer = 'b'", "set one of directory and container"),
            ("container = 'a/b'", "container: must have 1 to 256"),
            ("container = '.a'", "container: must have 1 to 256"),
        ] {
            let error = read(text).expect_err("it is not valid");
            assert!(error.contains(words), "{error}");
        }
    }
}
