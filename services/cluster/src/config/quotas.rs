//! `[quotas]`: the limits of projects and users for whom an administrator set no limits.

use cluster_core::{DefaultLimits, Limit, Limits, Resource};
use serde::Deserialize;

/// The limits of projects and users for whom an administrator set no limits: numbers by resource, -1 means no limit.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasConfig {
    /// The limits of a project. The default is 20 clusters and no limit for other resources.
    project: Limits,
    /// The limits of a user in a project. A resource that is not named has no limit.
    user: Limits,
}

impl QuotasConfig {
    /// Returns the configured limits, completed with the built-in defaults.
    pub fn defaults(&self) -> DefaultLimits {
        let customary = Limits([(Resource::Clusters, Limit::AtMost(20))].into());
        DefaultLimits { project: self.project.or(&customary), person: self.user.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<QuotasConfig, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn limits_that_are_not_configured_have_defaults() {
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
    fn an_unknown_resource_or_an_invalid_limit_is_refused() {
        let refused = read("project = { colours = 1 }").expect_err("no resource").to_string();
        assert!(refused.contains("\"colours\" is not a resource with a limit"), "{refused}");
        let refused = read("user = { gpus = -3 }").expect_err("no limit").to_string();
        assert!(refused.contains("-3 is not a limit"), "{refused}");
    }
}
