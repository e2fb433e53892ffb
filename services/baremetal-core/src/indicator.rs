//! The lamps of a machine that a management interface knows.

use crate::{ManagementInterface, Node};

/// A lamp of a component of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indicator {
    pub component: &'static str,
    /// The name of the lamp within its component.
    pub lamp: &'static str,
    pub is_read_only: bool,
    /// The states that the lamp can have, sorted.
    pub states: &'static [&'static str],
    /// The state that the lamp has now.
    pub state: &'static str,
}

/// The indicators of the management interface `fake`, which Ironic has in `drivers/modules/fake.py`.
const FAKE: [Indicator; 2] = [
    Indicator {
        component: "chassis",
        lamp: "led-0",
        is_read_only: true,
        states: &["off", "on"],
        state: "on",
    },
    Indicator {
        component: "system",
        lamp: "led",
        is_read_only: false,
        states: &["blinking", "off", "on"],
        state: "on",
    },
];

/// Why a request for an indicator is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndicatorRefused {
    #[error("node \"{node}\" has the management interface {interface}, which knows no indicators")]
    Unsupported { node: String, interface: &'static str },
    #[error(
        "node \"{node}\" has the management interface {interface}, which cannot set indicators"
    )]
    CannotSet { node: String, interface: &'static str },
    #[error("node \"{node}\" has no indicator {name:?}; it has {}", known(.indicators))]
    Unknown { node: String, name: String, indicators: &'static [Indicator] },
}

fn known(indicators: &[Indicator]) -> String {
    indicators.iter().map(Indicator::name).collect::<Vec<_>>().join(", ")
}

impl Indicator {
    /// Returns the name in the Bare Metal API: the lamp and its component.
    pub fn name(&self) -> String {
        format!("{}@{}", self.lamp, self.component)
    }
}

/// Returns the indicators of `node`.
pub fn indicators(node: &Node) -> Result<&'static [Indicator], IndicatorRefused> {
    let interface = node.management_interface();
    match interface {
        ManagementInterface::Fake => Ok(&FAKE),
        ManagementInterface::Ipmitool
        | ManagementInterface::Noop
        | ManagementInterface::Redfish
        | ManagementInterface::Idrac => {
            let (node, interface) = (node.label(), interface.as_str());
            Err(IndicatorRefused::Unsupported { node, interface })
        }
    }
}

/// Returns the indicator `name` of `node`.
pub fn find_indicator(node: &Node, name: &str) -> Result<&'static Indicator, IndicatorRefused> {
    let indicators = indicators(node)?;
    let found = indicators.iter().find(|indicator| indicator.name() == name);
    found.ok_or_else(|| IndicatorRefused::Unknown {
        node: node.label(),
        name: name.chars().take(64).collect(),
        indicators,
    })
}

/// Returns why the indicator `name` of `node` cannot be set. No management interface sets indicators, as Ironic's `fake`.
pub fn setting_refused(node: &Node, name: &str) -> IndicatorRefused {
    match find_indicator(node, name) {
        Ok(_) => IndicatorRefused::CannotSet {
            node: node.label(),
            interface: node.management_interface().as_str(),
        },
        Err(refused) => refused,
    }
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
        let node = node(Driver::FakeHardware);
        assert_eq!(find_indicator(&node, "led@system"), Ok(&FAKE[1]));
        for wrong in ["led", "led@chassis", "led-0@system", ""] {
            let refused = find_indicator(&node, wrong).unwrap_err().to_string();
            let words = format!("has no indicator {wrong:?}; it has led-0@chassis, led@system");
            assert!(refused.ends_with(&words), "{refused}");
            assert_eq!(setting_refused(&node, wrong).to_string(), refused);
        }
        let refused = setting_refused(&node, "led@system");
        assert!(matches!(refused, IndicatorRefused::CannotSet { interface: "fake", .. }));
    }

    #[test]
    fn other_management_interfaces_have_none() {
        for driver in [Driver::Ipmi, Driver::Redfish] {
            let refused = indicators(&node(driver)).unwrap_err();
            assert!(matches!(refused, IndicatorRefused::Unsupported { .. }), "{refused}");
        }
    }
}
