//! `[leases]`: how long clusters and VMs are lent, and the stages at the end of a lease.

use lease::{LeaseSchedule, Terms};
use serde::Deserialize;

/// How long clusters and VMs are lent, and the stages at the end of a lease.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeasesConfig {
    /// The default and maximum duration of cluster leases. Without values clusters are lent without end. A lease lasts at least one hour,
    /// unless `shortest` says otherwise.
    pub clusters: Terms,
    pub machines: Terms,
    /// The stages before and after the end of a lease.
    pub schedule: LeaseSchedule,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_read() {
        let text =
            "clusters = { default = '30d', longest = '90d' }\nschedule = { undo_window = '3d' }";
        let config: LeasesConfig = toml::from_str(text).expect("it is valid");
        assert_eq!(config.clusters.longest().map(|it| it.to_string()).as_deref(), Some("90d"));
        assert_eq!(config.machines, Terms::default());
        assert_eq!(config.schedule.undo_window().to_string(), "3d");
        let wrong =
            toml::from_str::<LeasesConfig>("clusters = { longest = '5' }").expect_err("no length");
        assert!(wrong.to_string().contains("such as 14d"), "{wrong}");
    }
}
