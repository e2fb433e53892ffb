//! The indicators of the system, its chassis and its drives (DSP0268 `IndicatorLED`, and its successor `LocationIndicatorActive`).

use async_trait::async_trait;
use bmc::{BmcError, Indicators, Result};
use hardware::{Indicator, IndicatorComponent, IndicatorState};
use serde_json::{Value, json};
use url::Url;

use crate::document::Document;
use crate::identify::{ACTIVE, LED};
use crate::service::Service;

#[async_trait]
impl Indicators for Service {
    async fn indicators(&self) -> Result<Vec<Indicator>> {
        let placed = self.placed_indicators().await?;
        Ok(placed.into_iter().map(|(indicator, _)| indicator).collect())
    }

    async fn set_indicator(
        &self,
        component: IndicatorComponent,
        id: &str,
        state: IndicatorState,
    ) -> Result<()> {
        let none = || BmcError::Unsupported { what: format!("set the indicator {id}@{component}") };
        let mut placed = self.placed_indicators().await?.into_iter();
        let is_meant = |(it, _): &(Indicator, Url)| it.component == component && it.id == id;
        let (_, url) = placed.find(is_meant).ok_or_else(none)?;
        let lamp = self.find(&url).await?.ok_or_else(none)?;
        let change = change(&lamp.body, state);
        self.patch(&lamp, change).await
    }
}

impl Service {
    /// Returns the indicators with the addresses of their components, in Ironic's order.
    async fn placed_indicators(&self) -> Result<Vec<(Indicator, Url)>> {
        let system = self.system().await?;
        let mut placed = Vec::new();
        for url in self.chassis(&system.body).await? {
            if let Some(chassis) = self.find(&url).await? {
                let id = id_of(&chassis.body);
                let found = indicator(IndicatorComponent::Chassis, id, &chassis.body);
                placed.extend(found.map(|found| (found, url)));
            }
        }
        let found = indicator(IndicatorComponent::System, id_of(&system.body), &system.body);
        placed.extend(found.map(|found| (found, system.url.clone())));
        let storage = match self.link(&system.body, "Storage") {
            Some(storage) => self.members(&storage).await?,
            None => Vec::new(),
        };
        for storage in storage {
            for drive in self.each(storage.items("Drives")).await? {
                let url = drive.id().and_then(|id| self.origin.follow(id).ok());
                // As in Ironic, because the ids of drives are unique within their storage subsystem only.
                let id = storage.text("Id").zip(drive.text("Id"));
                let id = id.map(|(storage, drive)| format!("{storage}:{drive}"));
                placed.extend(indicator(IndicatorComponent::Disk, id, &drive).zip(url));
            }
        }
        Ok(placed)
    }
}

/// Returns the id of the indicator of a system or a chassis: as in Ironic, the UUID of the component.
fn id_of(component: &Value) -> Option<String> {
    component.text("UUID").or_else(|| component.text("Id"))
}

/// Returns the indicator that `body` describes, if it has one.
fn indicator(component: IndicatorComponent, id: Option<String>, body: &Value) -> Option<Indicator> {
    let settable = [IndicatorState::Blinking, IndicatorState::Off, IndicatorState::On];
    let (states, state) = match (body.at(LED).as_str(), body.truth(ACTIVE)) {
        (Some(led), _) => {
            let listed = body.words(&format!("{LED}@Redfish.AllowableValues"));
            let is_listed = |state: &IndicatorState| {
                listed.as_ref().is_none_or(|listed| listed.contains(&word(*state)))
            };
            let known = settable.into_iter().find(|state| word(*state) == led);
            let states: Vec<IndicatorState> = settable.into_iter().filter(is_listed).collect();
            (states, known.unwrap_or(IndicatorState::Unknown))
        }
        (None, Some(true)) => (settable[1..].to_vec(), IndicatorState::On),
        (None, Some(false)) => (settable[1..].to_vec(), IndicatorState::Off),
        (None, None) => return None,
    };
    Some(Indicator { component, id: id?, is_read_only: false, states, state })
}

/// Returns the body that sets the indicator of `body`. The older property can blink, so it is preferred.
fn change(body: &Value, state: IndicatorState) -> Value {
    match body.at(LED).is_string() {
        true => json!({LED: word(state)}),
        false => json!({ACTIVE: state != IndicatorState::Off}),
    }
}

/// The word of `IndicatorLED`.
const fn word(state: IndicatorState) -> &'static str {
    match state {
        IndicatorState::Blinking => "Blinking",
        IndicatorState::Off => "Off",
        IndicatorState::On => "Lit",
        IndicatorState::Unknown => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Option<(String, IndicatorState)> {
        let found = indicator(IndicatorComponent::System, Some("u".to_owned()), body)?;
        let states: Vec<&str> = found.states.iter().map(|state| state.as_str()).collect();
        Some((states.join(" "), found.state))
    }

    #[test]
    fn both_properties_are_read_and_set() {
        let older = json!({LED: "Lit", ACTIVE: false});
        assert_eq!(read(&older), Some(("blinking off on".to_owned(), IndicatorState::On)));
        assert_eq!(change(&older, IndicatorState::Blinking), json!({LED: "Blinking"}));
        let newer = json!({LED: null, ACTIVE: true});
        assert_eq!(read(&newer), Some(("off on".to_owned(), IndicatorState::On)));
        assert_eq!(change(&newer, IndicatorState::Off), json!({ACTIVE: false}));
        let lists = json!({LED: "Odd", "IndicatorLED@Redfish.AllowableValues": ["Lit", "Off"]});
        assert_eq!(read(&lists), Some(("off on".to_owned(), IndicatorState::Unknown)));
        assert_eq!(read(&json!({LED: null})), None);
    }
}
