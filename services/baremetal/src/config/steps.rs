//! The section `[steps]`: priorities of the steps of cleaning and deployment.

use std::collections::BTreeMap;

use baremetal_core::{StepName, StepPriorities};
use serde::{Deserialize, Deserializer};

/// The section `[steps]`. A key is a step, such as `"deploy.erase_devices_metadata"`; its value replaces the priority that the step is
/// offered with, and 0 takes the step out. The disks of a machine that a lessee used are erased nevertheless.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepsConfig {
    /// Steps of automated cleaning.
    #[serde(deserialize_with = "priorities")]
    pub clean: BTreeMap<StepName, u32>,
    /// Steps of deployments.
    #[serde(deserialize_with = "priorities")]
    pub deploy: BTreeMap<StepName, u32>,
}

impl StepsConfig {
    pub(crate) fn priorities(&self) -> StepPriorities {
        StepPriorities { clean: self.clean.clone(), deploy: self.deploy.clone() }
    }
}

fn priorities<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<StepName, u32>, D::Error> {
    let by_text = BTreeMap::<String, u32>::deserialize(deserializer)?;
    let parsed = by_text.into_iter().map(|(text, priority)| Ok((text.parse()?, priority)));
    parsed
        .collect::<Result<_, _>>()
        .map_err(|why: baremetal_core::InvalidStepName| serde::de::Error::custom(why))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::config::tests::check;

    #[test]
    fn a_priority_belongs_to_a_step_of_an_interface() {
        check("state_dir = '/s'\n[steps.clean]\n'deploy.erase_devices' = 0", expect!["ok"]);
        check(
            "state_dir = '/s'\n[steps.clean]\nerase_devices = 0",
            expect![[
                r#""erase_devices" is no step: a step has an interface and a name, such as "deploy.erase_devices""#
            ]],
        );
        check(
            "state_dir = '/s'\n[steps.service]\n'deploy.x' = 1",
            expect!["unknown field `service`, expected `clean` or `deploy`"],
        );
        let config: StepsConfig =
            toml::from_str("[deploy]\n'bios.apply_configuration' = 7").unwrap();
        let name: StepName = "bios.apply_configuration".parse().unwrap();
        assert_eq!(config.priorities().deploy, [(name, 7)].into());
    }
}
