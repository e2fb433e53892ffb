//! What `POST /bedplate/v1/racks` takes: a manifest whose passwords have been looked up.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Bmc, BmcKind, Machine, Manifest, Mistake, Password};

/// A rack to be enrolled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackRequest {
    /// Its name.
    pub name: String,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What stands in it.
    pub machines: Vec<MachineRequest>,
}

/// A machine to be enrolled, in the words of the Bare Metal API.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineRequest {
    /// Its line in the manifest, for messages.
    #[serde(default)]
    pub line: u64,
    /// Its name.
    pub name: String,
    /// Its place in the rack.
    pub position: u32,
    /// Addresses of the network ports it may boot from.
    #[serde(default)]
    pub ports: Vec<String>,
    /// `redfish`, `ipmi` or `fake-hardware`.
    pub driver: String,
    /// How to reach its BMC.
    #[serde(default)]
    pub driver_info: Map<String, Value>,
    /// How the ramdisk gets onto it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_interface: Option<String>,
    /// A group of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What kind of machine it is, for scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_class: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub properties: Map<String, Value>,
}

impl fmt::Debug for MachineRequest {
    /// Which machine, and nothing of how its BMC is reached: that holds a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MachineRequest { line, name, position, .. } = self;
        write!(f, "MachineRequest({name}, line {line}, position {position})")
    }
}

/// Why a password could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unresolved(pub String);

/// The request that enrolls `manifest`; `resolve` looks passwords up. Every one that cannot be had is told.
pub fn request(
    manifest: &Manifest,
    mut resolve: impl FnMut(&Password) -> Result<String, Unresolved>,
) -> Result<RackRequest, Vec<Mistake>> {
    let (mut machines, mut mistakes) = (Vec::new(), Vec::new());
    for machine in &manifest.machines {
        match machine.bmc.password.as_ref().map(&mut resolve).transpose() {
            Ok(password) => machines.push(machine_request(machine, password)),
            Err(error) => mistakes.push(Mistake {
                line: machine.line,
                field: "bmc.password".to_owned(),
                problem: error.to_string(),
            }),
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    Ok(RackRequest {
        name: manifest.rack.clone(),
        description: manifest.description.clone(),
        machines,
    })
}

fn machine_request(machine: &Machine, password: Option<String>) -> MachineRequest {
    MachineRequest {
        line: machine.line,
        name: machine.name.clone(),
        position: machine.position,
        ports: machine.macs.clone(),
        driver: match machine.bmc.kind {
            BmcKind::Redfish => "redfish",
            BmcKind::Ipmi => "ipmi",
            BmcKind::Fake => "fake-hardware",
        }
        .to_owned(),
        driver_info: driver_info(&machine.bmc, password),
        boot_interface: machine.boot.clone(),
        group: machine.group.clone(),
        role: machine.role.clone(),
        resource_class: machine.resource_class.clone(),
        properties: machine.properties.clone(),
    }
}

/// The BMC in the words of the Bare Metal API.
fn driver_info(bmc: &Bmc, password: Option<String>) -> Map<String, Value> {
    let text = |value: &Option<String>| value.clone().map(Value::String);
    let password = password.map(Value::String);
    let entries: Vec<(&str, Option<Value>)> = match bmc.kind {
        BmcKind::Fake => Vec::new(),
        BmcKind::Redfish => vec![
            ("redfish_address", Some(bmc.address.clone().into())),
            ("redfish_username", text(&bmc.user)),
            ("redfish_password", password),
            ("redfish_system_id", text(&bmc.system)),
            ("redfish_verify_ca", bmc.verify.clone()),
        ],
        BmcKind::Ipmi => {
            let (address, port) = match bmc.address.parse::<SocketAddr>() {
                Ok(both) => (both.ip().to_string(), Some(both.port().into())),
                Err(_) => (bmc.address.clone(), None),
            };
            vec![
                ("ipmi_address", Some(address.into())),
                ("ipmi_port", port),
                ("ipmi_username", text(&bmc.user)),
                ("ipmi_password", password),
                ("ipmi_cipher_suite", bmc.cipher_suite.map(Value::from)),
            ]
        }
    };
    entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::read_csv;

    #[test]
    fn a_machine_is_told_in_the_words_of_the_bare_metal_api() {
        let text = "name,mac,bmc_type,bmc_address,user,password_env,boot\n\
                    a,52:54:00:00:00:01,ipmi,10.0.0.1:6230,admin,PW,ipxe\n";
        let manifest = read_csv("r1", text).unwrap();
        let made = request(&manifest, |_| Ok("secret".to_owned())).unwrap();
        assert_eq!(
            serde_json::to_value(&made.machines[0]).unwrap(),
            json!({
                "line": 2, "name": "a", "position": 1, "ports": ["52:54:00:00:00:01"], "driver": "ipmi",
                "driver_info": {
                    "ipmi_address": "10.0.0.1", "ipmi_port": 6230, "ipmi_username": "admin", "ipmi_password": "secret"
                },
                "boot_interface": "ipxe",
            })
        );
    }

    #[test]
    fn a_password_that_cannot_be_had_names_its_line() {
        let text = "name,mac,bmc_type,bmc_address,user,password_env\na,52:54:00:00:00:01,redfish,x,admin,PW\n";
        let mistakes = request(&read_csv("r1", text).unwrap(), |_| {
            Err(Unresolved("PW is not set".to_owned()))
        });
        assert_eq!(mistakes.unwrap_err()[0].to_string(), "line 2: bmc.password: PW is not set");
    }
}
