//! The switch port at the other end of a network card's cable, from the values that the switch sends by LLDP (IEEE 802.1AB).

use std::str;

use agent_protocol::{InspectionData, Interface};
use hardware::MacAddress;
use serde_json::{Map, Value};

/// The types of values that are read.
const CHASSIS_ID: u8 = 1;
const PORT_ID: u8 = 2;
const SYSTEM_NAME: u8 = 5;

/// The subtypes of ids that are MAC addresses: 4 of a chassis, 3 of a port. All others are read as text.
const CHASSIS_MAC: u8 = 4;
const PORT_MAC: u8 = 3;

/// The longest id that is read, in bytes; the standard's limit.
const MOST_BYTES: usize = 255;

/// The switch port that a network card is connected to, as the switch names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The name of the network card in the ramdisk.
    pub interface: String,
    /// The MAC address of the network card.
    pub address: Option<MacAddress>,
    /// The chassis id of the switch, most often a MAC address.
    pub switch_id: Option<String>,
    /// The name of the port of the switch.
    pub port_id: Option<String>,
    /// The host name of the switch.
    pub switch_name: Option<String>,
}

impl Neighbour {
    /// Returns the neighbour as the local link connection of a port, as Ironic's inspection hook `local_link_connection` sets it.
    pub fn link(&self) -> Map<String, Value> {
        let values = [
            ("switch_id", &self.switch_id),
            ("port_id", &self.port_id),
            ("switch_info", &self.switch_name),
        ];
        let known = values.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)));
        known.map(|(key, value)| (key.to_owned(), value.into())).collect()
    }
}

/// Returns the neighbours of a machine's network cards. ironic-python-agent puts the values into the interfaces, or by name into `lldp_raw`.
pub fn neighbours(data: &InspectionData) -> Vec<Neighbour> {
    let raw = data.more.get("lldp_raw");
    let of = |interface: &Interface| {
        let elsewhere = || {
            let listed = raw.and_then(|raw| raw.get(&interface.name)).cloned();
            serde_json::from_value(listed.unwrap_or_default()).ok()
        };
        let values: Vec<(u8, String)> =
            interface.lldp.clone().filter(|it| !it.is_empty()).or_else(elsewhere)?;
        neighbour(interface, &values)
    };
    data.inventory.interfaces.iter().filter_map(of).collect()
}

/// Reads the values of one interface; `None` if they name neither a switch nor a port.
fn neighbour(interface: &Interface, values: &[(u8, String)]) -> Option<Neighbour> {
    let of = |kind| {
        let (_, value) = values.iter().find(|(found, _)| *found == kind)?;
        bytes(value)
    };
    let id = |kind, mac| {
        let value = of(kind)?;
        match value.split_first()? {
            (subtype, id) if *subtype == mac => {
                Some(MacAddress::new(id.try_into().ok()?).to_string())
            }
            (_, id) => text(id),
        }
    };
    let (switch_id, port_id) = (id(CHASSIS_ID, CHASSIS_MAC), id(PORT_ID, PORT_MAC));
    if switch_id.is_none() && port_id.is_none() {
        return None;
    }
    Some(Neighbour {
        interface: interface.name.clone(),
        address: interface.mac_address.as_deref().and_then(|mac| mac.parse().ok()),
        switch_id,
        port_id,
        switch_name: of(SYSTEM_NAME).and_then(|value| text(&value)),
    })
}

/// Decodes hexadecimal digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() / 2 > MOST_BYTES {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Returns printable text; the switch is not trusted.
fn text(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?.trim_matches(['\0', ' ']);
    let is_printable = !text.is_empty() && !text.chars().any(char::is_control);
    is_printable.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(lldp: Value, raw: Value) -> Vec<Neighbour> {
        let data = json!({
            "inventory": {"interfaces": [
                {"name": "eth0", "mac_address": "52:54:00:00:00:01", "lldp": lldp}, {"name": "eth1"},
            ]},
            "lldp_raw": raw,
        });
        neighbours(&serde_json::from_value(data).unwrap())
    }

    #[test]
    fn a_neighbour_becomes_a_local_link_connection() {
        let sent = json!([
            [1, "04020000000700"],
            [2, "0545746865726e65743100"],
            [3, "0078"],
            [5, "746f72"],
        ]);
        let [found] = &*read(sent.clone(), Value::Null) else { panic!() };
        assert_eq!(found.address, Some("52:54:00:00:00:01".parse().unwrap()));
        let want =
            json!({"switch_id": "02:00:00:00:07:00", "port_id": "Ethernet1", "switch_info": "tor"});
        assert_eq!(Value::Object(found.link()), want);
        let [other] = &*read(Value::Null, json!({ "eth1": sent })) else { panic!() };
        assert_eq!((&*other.interface, other.address), ("eth1", None));
        assert_eq!(other.link(), found.link());
    }

    #[test]
    fn ids_that_are_no_addresses_are_text() {
        let sent = json!([[1, "07737769746368"], [2, "0302000000000b"], [5, "0a"]]);
        let [found] = &*read(sent, Value::Null) else { panic!() };
        assert_eq!(found.switch_id.as_deref(), Some("switch"));
        assert_eq!(found.port_id.as_deref(), Some("02:00:00:00:00:0b"));
        assert_eq!(found.switch_name, None, "a line break is not a name");
    }

    #[test]
    fn a_port_alone_is_a_neighbour_and_its_name_may_be_long() {
        let hex = format!("05{}", "41".repeat(254));
        let [found] = &*read(json!([[2, hex]]), Value::Null) else { panic!() };
        let name = "A".repeat(254);
        assert_eq!((&found.switch_id, found.port_id.as_ref()), (&None, Some(&name)));
    }

    #[test]
    fn nonsense_is_no_neighbour() {
        let long = "41".repeat(256);
        for sent in [
            json!([]),
            json!([[1, ""], [2, "zz"]]),
            json!([[1, "04ab"], [2, "05"]]),
            json!([[2, "0"], [5, "746f72"]]),
            json!([[2, long]]),
        ] {
            assert_eq!(read(sent.clone(), Value::Null), [], "{sent}");
        }
        assert_eq!(read(Value::Null, json!({"eth0": "nonsense"})), []);
    }

    proptest! {
        #[test]
        fn no_value_panics(values: Vec<(u8, String)>) {
            neighbour(&Interface::default(), &values);
        }
    }
}
