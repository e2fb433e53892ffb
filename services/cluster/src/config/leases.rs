//! `[leases]`: how long things are lent, and what happens at the end.

use lease::{Ladder, Terms};
use serde::Deserialize;

/// How long things are lent, and what happens at the end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeasesConfig {
    /// How long clusters are lent by default and at most; without end, where nothing is said. An hour at least, unless `shortest` says otherwise.
    pub clusters: Terms,
    /// The same of machines.
    pub machines: Terms,
    /// What comes before the end, and after it.
    pub ladder: Ladder,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_read() {
        let text =
            "clusters = { default = '30d', longest = '90d' }\nladder = { undo_window = '3d' }";
        let config: LeasesConfig = toml::from_str(text).expect("it is valid");
        assert_eq!(config.clusters.longest().map(|it| it.to_string()).as_deref(), Some("90d"));
        assert_eq!(config.machines, Terms::default());
        assert_eq!(config.ladder.undo_window().to_string(), "3d");
        let wrong =
            toml::from_str::<LeasesConfig>("clusters = { longest = '5' }").expect_err("no length");
        assert!(wrong.to_string().contains("such as 14d"), "{wrong}");
    }
}
