//! `[quotas]`: what projects and users may have for whom nobody said otherwise.

use cluster_core::{Defaults, Limit, Limits, Resource};
use serde::Deserialize;

/// What projects and users may have for whom nobody said otherwise: numbers by resource, -1 where there is no limit.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasConfig {
    /// Of a project. It has 20 clusters and as much of all else as it likes, unless told otherwise.
    project: Limits,
    /// Of a user in a project. What is not named has no limit.
    user: Limits,
}

impl QuotasConfig {
    /// The same, with what is customary.
    pub fn defaults(&self) -> Defaults {
        let customary = Limits([(Resource::Clusters, Limit::AtMost(20))].into());
        Defaults { project: self.project.or(&customary), person: self.user.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<QuotasConfig, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn what_is_not_said_is_customary() {
        let defaults = QuotasConfig::default().defaults();
        assert_eq!(defaults.project.of(Resource::Clusters), Limit::AtMost(20));
        assert_eq!(defaults.project.of(Resource::Vcpus), Limit::Unlimited);
        let said = "project = { vcpus = 96 }\nuser = { clusters = 2, gpus = 0 }";
        let defaults = read(said).expect("it is valid").defaults();
        assert_eq!(defaults.project.of(Resource::Clusters), Limit::AtMost(20));
        assert_eq!(defaults.project.of(Resource::Vcpus), Limit::AtMost(96));
        assert_eq!(defaults.person.of(Resource::Gpus), Limit::AtMost(0));
        let none = read("project = { clusters = -1 }").expect("it is valid").defaults();
        assert_eq!(none.project.of(Resource::Clusters), Limit::Unlimited);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = read("project = { colours = 1 }").expect_err("no resource").to_string();
        assert!(refused.contains("\"colours\" is nothing that is limited"), "{refused}");
        let refused = read("user = { gpus = -3 }").expect_err("no limit").to_string();
        assert!(refused.contains("not -3"), "{refused}");
    }
}
