//! Decides whether a node has a console, and enables or disables the console.

use crate::{ConsoleInterface, Driver, Interface, Node};

/// The error for a node without a console that could be enabled or disabled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node \"{node}\" has no console: its console_interface is no-console{}", instead(*driver))]
pub struct NoConsole {
    pub node: String,
    pub driver: Driver,
}

/// Returns the end of the message: which other implementations the operator can choose.
fn instead(driver: Driver) -> String {
    let others: Vec<&str> = driver
        .supported(Interface::Console)
        .iter()
        .copied()
        .filter(|implementation| *implementation != ConsoleInterface::NoConsole.as_str())
        .collect();
    match others.as_slice() {
        [] => format!(", and driver {driver} supports no other"),
        others => format!("; set it to {} first", others.join(" or ")),
    }
}

/// Returns the node with its console enabled or disabled. Repeating a request succeeds.
///
/// # Errors
///
/// Fails if the node has no console.
pub fn switch_console(node: &Node, enabled: bool) -> Result<Node, NoConsole> {
    if node.console_interface() == ConsoleInterface::NoConsole {
        return Err(NoConsole { node: node.label(), driver: node.driver });
    }
    Ok(Node { console_enabled: enabled, ..node.clone() })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::NodeUuid;

    #[track_caller]
    fn check(driver: Driver, interface: Option<ConsoleInterface>, want: Result<bool, &str>) {
        let mut node = Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH);
        node.interfaces.console = interface;
        let got = switch_console(&node, true).map(|node| node.console_enabled);
        assert_eq!(got.map_err(|why| why.to_string()), want.map_err(str::to_owned));
    }

    #[test]
    fn a_node_without_a_console_refuses_to_enable_it() {
        check(Driver::Ipmi, Some(ConsoleInterface::IpmitoolSocat), Ok(true));
        check(Driver::FakeHardware, Some(ConsoleInterface::Fake), Ok(true));
        let none = "node \"00000000-0000-0000-0000-000000000000\" has no console: its console_interface is no-console";
        check(
            Driver::Ipmi,
            None,
            Err(&format!("{none}; set it to ipmitool-socat or bmc-vnc first")),
        );
        check(Driver::Redfish, Some(ConsoleInterface::BmcVnc), Ok(true));
        check(Driver::Redfish, Some(ConsoleInterface::RedfishSerial), Ok(true));
        let others = ", and driver manual-management supports no other";
        check(Driver::ManualManagement, None, Err(&format!("{none}{others}")));
    }
}
