//! The body of `POST /bedplate/v1/racks`: a manifest with its passwords filled in.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Bmc, BmcKind, Machine, Manifest, ManifestError, Password};

/// A request to enroll a rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackRequest {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub machines: Vec<MachineRequest>,
}

/// A machine to enroll, with the field names of the Bare Metal API.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineRequest {
    /// The line in the manifest, for error messages.
    #[serde(default)]
    pub line: u64,
    pub name: String,
    pub position: u32,
    /// MAC addresses of the ports the machine may boot from.
    #[serde(default)]
    pub ports: Vec<String>,
    /// `redfish`, `ipmi` or `fake-hardware`.
    pub driver: String,
    /// How to reach the BMC, including the password.
    #[serde(default)]
    pub driver_info: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_interface: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_class: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub properties: Map<String, Value>,
}

impl fmt::Debug for MachineRequest {
    /// Prints only which machine this is. `driver_info` holds a password and is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MachineRequest { line, name, position, .. } = self;
        write!(f, "MachineRequest({name}, line {line}, position {position})")
    }
}

/// Why a password could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PasswordError(pub String);

/// Builds the request that enrolls `manifest`. `resolve` reads the passwords; every password that cannot be read is reported.
pub fn request(
    manifest: &Manifest,
    mut resolve: impl FnMut(&Password) -> Result<String, PasswordError>,
) -> Result<RackRequest, Vec<ManifestError>> {
    let (mut machines, mut mistakes) = (Vec::new(), Vec::new());
    for machine in &manifest.machines {
        match machine.bmc.password.as_ref().map(&mut resolve).transpose() {
            Ok(password) => machines.push(machine_request(machine, password)),
            Err(error) => mistakes.push(ManifestError {
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
            BmcKind::Idrac => "idrac",
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

/// The `driver_info` of the BMC, with the keys of the Bare Metal API.
fn driver_info(bmc: &Bmc, password: Option<String>) -> Map<String, Value> {
    let text = |value: &Option<String>| value.clone().map(Value::String);
    let password = password.map(Value::String);
    let entries: Vec<(&str, Option<Value>)> = match bmc.kind {
        BmcKind::Fake => Vec::new(),
        BmcKind::Redfish | BmcKind::Idrac => vec![
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
    fn a_request_uses_the_field_names_of_the_bare_metal_api() {
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
    fn an_unreadable_password_is_reported_with_its_line() {
        let text = "name,mac,bmc_type,bmc_address,user,password_env\na,52:54:00:00:00:01,redfish,x,admin,PW\n";
        let mistakes = request(&read_csv("r1", text).unwrap(), |_| {
            Err(PasswordError("PW is not set".to_owned()))
        });
        assert_eq!(mistakes.unwrap_err()[0].to_string(), "line 2: bmc.password: PW is not set");
    }
}
