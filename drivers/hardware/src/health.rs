//! The health of a machine.

use serde::{Deserialize, Serialize};

words::words! {
    /// The health that a BMC reports for the whole machine, with Redfish's words (DSP0268, `Health`), which Ironic shows too.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Health {
        #[serde(rename = "OK")]
        Ok = "OK",
        /// A part needs attention.
        Warning = "Warning",
        /// A part needs attention at once.
        Critical = "Critical",
    }
}
