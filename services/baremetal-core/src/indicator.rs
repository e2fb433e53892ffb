//! The indicators of nodes: lamps by which a person finds a component.

use hardware::{Indicator, IndicatorComponent, IndicatorState};

use crate::{ManagementInterface, Node};

/// Where the indicators of a node are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndicatorSource {
    /// These are all, and cannot be set.
    Fixed(Vec<Indicator>),
    Bmc,
}

/// Why a request for an indicator is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndicatorRefused {
    #[error("node \"{node}\" has the management interface {interface}, which knows no indicators")]
    Unsupported { node: String, interface: &'static str },
    #[error(
        "node \"{node}\" has the management interface {interface}, which cannot set indicators"
    )]
    CannotSet { node: String, interface: &'static str },
    #[error("node \"{node}\" has no indicator {name:?}; it has {known}")]
    Unknown {
        node: String,
        name: String,
        /// The names of the indicators of the node.
        known: String,
    },
    #[error("state: the indicator {name} cannot be {state:?}; it can be {states}")]
    State {
        name: String,
        state: String,
        /// The states that the indicator can have.
        states: String,
    },
}

/// Returns where the indicators of `node` are.
pub fn indicator_source(node: &Node) -> Result<IndicatorSource, IndicatorRefused> {
    let interface = node.management_interface();
    match interface {
        ManagementInterface::Fake => Ok(IndicatorSource::Fixed(fake())),
        ManagementInterface::Redfish | ManagementInterface::Idrac => Ok(IndicatorSource::Bmc),
        ManagementInterface::Ipmitool | ManagementInterface::Noop => {
            let (node, interface) = (node.label(), interface.as_str());
            Err(IndicatorRefused::Unsupported { node, interface })
        }
    }
}

/// The indicators of the management interface `fake`, which Ironic has in `drivers/modules/fake.py`.
fn fake() -> Vec<Indicator> {
    use IndicatorState::{Blinking, Off, On};
    let chassis = Indicator {
        component: IndicatorComponent::Chassis,
        id: "led-0".to_owned(),
        is_read_only: true,
        states: vec![Off, On],
        state: On,
    };
    let system = Indicator {
        component: IndicatorComponent::System,
        id: "led".to_owned(),
        is_read_only: false,
        states: vec![Blinking, Off, On],
        state: On,
    };
    vec![chassis, system]
}

/// Returns the indicator `name` among the `indicators` of `node`.
pub fn find_indicator<'a>(
    node: &Node,
    indicators: &'a [Indicator],
    name: &str,
) -> Result<&'a Indicator, IndicatorRefused> {
    let found = indicators.iter().find(|indicator| indicator.name() == name);
    found.ok_or_else(|| {
        let known: Vec<String> = indicators.iter().map(Indicator::name).collect();
        IndicatorRefused::Unknown {
            node: node.label(),
            name: name.chars().take(64).collect(),
            known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
        }
    })
}

/// Returns the state that `wanted` names, if the indicator of `node` can be set to it.
pub fn settable_state(
    node: &Node,
    source: &IndicatorSource,
    indicator: &Indicator,
    wanted: &str,
) -> Result<IndicatorState, IndicatorRefused> {
    match source {
        IndicatorSource::Bmc => {}
        // As Ironic's interface `fake`.
        IndicatorSource::Fixed(_) => {
            let interface = node.management_interface().as_str();
            return Err(IndicatorRefused::CannotSet { node: node.label(), interface });
        }
    }
    let state = indicator.states.iter().find(|state| state.as_str() == wanted);
    state.copied().ok_or_else(|| {
        let states: Vec<&str> = indicator.states.iter().map(|state| state.as_str()).collect();
        IndicatorRefused::State {
            name: indicator.name(),
            state: wanted.chars().take(64).collect(),
            states: states.join(", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Driver, NodeUuid};

    fn node(driver: Driver) -> Node {
        Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_indicator_is_found_by_lamp_and_component() {
        let (node, all) = (node(Driver::FakeHardware), fake());
        assert_eq!(find_indicator(&node, &all, "led@system"), Ok(&all[1]));
        for wrong in ["led", "led@chassis", "led-0@system", ""] {
            let refused = find_indicator(&node, &all, wrong).unwrap_err().to_string();
            let words = format!("has no indicator {wrong:?}; it has led-0@chassis, led@system");
            assert!(refused.ends_with(&words), "{refused}");
        }
        let refused = find_indicator(&node, &[], "led@system").unwrap_err().to_string();
        assert!(refused.ends_with("it has none"), "{refused}");
    }

    #[test]
    fn a_bmc_sets_the_states_that_the_indicator_has() {
        let node = node(Driver::Redfish);
        let source = indicator_source(&node).unwrap();
        assert_eq!(source, IndicatorSource::Bmc);
        let lamp =
            Indicator { states: vec![IndicatorState::Off, IndicatorState::On], ..fake().remove(1) };
        assert_eq!(settable_state(&node, &source, &lamp, "on"), Ok(IndicatorState::On));
        for wrong in ["blinking", "unknown", "ON", ""] {
            let refused = settable_state(&node, &source, &lamp, wrong).unwrap_err().to_string();
            let want =
                format!("state: the indicator led@system cannot be {wrong:?}; it can be off, on");
            assert_eq!(refused, want);
        }
        let fixed = IndicatorSource::Fixed(fake());
        let refused = settable_state(&node, &fixed, &lamp, "on").unwrap_err();
        assert!(matches!(refused, IndicatorRefused::CannotSet { .. }), "{refused}");
    }

    #[test]
    fn other_management_interfaces_have_none() {
        for driver in [Driver::Ipmi, Driver::ManualManagement] {
            let refused = indicator_source(&node(driver)).unwrap_err();
            assert!(matches!(refused, IndicatorRefused::Unsupported { .. }), "{refused}");
        }
    }
}
