//! The identify light, by which a person finds the machine in a rack.

use bmc::{BmcError, IdentifyLight, Result};
use serde_json::{Value, json};
use tracing::debug;

use crate::document::Document;
use crate::service::{Resource, Service};

/// The property since ComputerSystem 1.13 and Chassis 1.14, followed by the older property.
pub(crate) const ACTIVE: &str = "LocationIndicatorActive";
pub(crate) const LED: &str = "IndicatorLED";

impl Service {
    /// Switches the light of the system or, if the system has none, of its chassis.
    pub(crate) async fn switch_light(&self, light: IdentifyLight) -> Result<()> {
        let system = self.system().await?;
        if has_light(&system.body) {
            return self.switch(&system, light).await;
        }
        for chassis in self.chassis(&system.body).await? {
            if let Some(chassis) = self.find(&chassis).await?
                && has_light(&chassis.body)
            {
                return self.switch(&chassis, light).await;
            }
        }
        Err(BmcError::Unsupported { what: "switch an identify light".to_owned() })
    }

    async fn switch(&self, lamp: &Resource, light: IdentifyLight) -> Result<()> {
        let mut tried = Err(BmcError::Unsupported { what: "switch its light".to_owned() });
        for change in changes(&lamp.body, light) {
            tried = self.patch(lamp, change).await;
            match &tried {
                Err(BmcError::Refused { transient: false, answer, .. }) => {
                    debug!("the light is refused, trying another word: {answer}");
                }
                _ => break,
            }
        }
        tried
    }
}

fn has_light(resource: &Value) -> bool {
    resource.get(ACTIVE).is_some() || resource.get(LED).is_some()
}

/// Returns the bodies to try for switching the light, best first. Some BMCs accept only one of the older property's two words for lit, and
/// few list which.
fn changes(lamp: &Value, light: IdentifyLight) -> Vec<Value> {
    if lamp.get(ACTIVE).is_some() {
        return vec![json!({ACTIVE: light == IdentifyLight::On})];
    }
    let words: &[&str] = match light {
        IdentifyLight::On => &["Blinking", "Lit"],
        IdentifyLight::Off => &["Off"],
    };
    let listed = lamp.words(&format!("{LED}@Redfish.AllowableValues"));
    let takes = |word: &&&str| listed.as_ref().is_none_or(|listed| listed.contains(*word));
    words.iter().filter(takes).map(|word| json!({LED: word})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lamp: Value, light: IdentifyLight, want: Value) {
        assert_eq!(json!(changes(&lamp, light)), want);
    }

    #[test]
    fn the_newer_property_is_preferred() {
        check(json!({ACTIVE: false, LED: "Off"}), IdentifyLight::On, json!([{ACTIVE: true}]));
        check(json!({ACTIVE: null}), IdentifyLight::Off, json!([{ACTIVE: false}]));
    }

    #[test]
    fn the_older_property_gets_a_listed_word() {
        check(json!({LED: "Off"}), IdentifyLight::On, json!([{LED: "Blinking"}, {LED: "Lit"}]));
        let lists = json!({LED: "Off", "IndicatorLED@Redfish.AllowableValues": ["Lit", "Off"]});
        check(lists, IdentifyLight::On, json!([{LED: "Lit"}]));
        check(json!({LED: "Lit"}), IdentifyLight::Off, json!([{LED: "Off"}]));
    }
}
