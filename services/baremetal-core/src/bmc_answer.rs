//! The answers of a BMC that the crawler found, as a discovery contains them.

use serde::{Deserialize, Serialize};

use crate::Driver;

/// The protocols that a BMC speaks at one address, without any credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcAnswer {
    pub redfish: Option<RedfishAnswer>,
    pub ipmi: Option<IpmiAnswer>,
}

/// The public part of a Redfish service root (DSP0266 §8.5: `/redfish/v1/` needs no authentication).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RedfishAnswer {
    /// The URL of the BMC.
    pub address: String,
    pub version: Option<String>,
    pub vendor: Option<String>,
    pub product: Option<String>,
    pub uuid: Option<String>,
}

/// The answer to an RMCP presence ping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IpmiAnswer {
    pub address: String,
    pub port: u16,
}

impl BmcAnswer {
    /// Returns the driver for the BMC: Redfish tells more, so it is preferred.
    pub fn driver(&self) -> Option<Driver> {
        match self {
            BmcAnswer { redfish: Some(_), .. } => Some(Driver::Redfish),
            BmcAnswer { ipmi: Some(_), .. } => Some(Driver::Ipmi),
            BmcAnswer { redfish: None, ipmi: None } => None,
        }
    }
}
