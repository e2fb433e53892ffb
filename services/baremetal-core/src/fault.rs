//! The faults for which the conductor puts a node into maintenance.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

words::words! {
    /// A fault of a node, as in Ironic (`ironic/common/faults.py`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Fault {
        /// The BMC did not report the power state for several sweeps in a row.
        PowerFailure = "power failure",
        CleanFailure = "clean failure",
        /// Ironic could not end an aborted rescue. Only an imported node has this fault.
        RescueAbortFailure = "rescue abort failure",
        ServiceFailure = "service failure",
    }
}

impl Fault {
    /// Returns the advice for operators: a sentence without a full stop.
    pub(crate) const fn next_action(self) -> &'static str {
        match self {
            Fault::PowerFailure => {
                "check the BMC's address, cable and credentials; the maintenance ends when the BMC answers again"
            }
            Fault::CleanFailure | Fault::ServiceFailure => {
                "look at the step that failed, end maintenance, then repeat the request"
            }
            Fault::RescueAbortFailure => "look at the machine, then end maintenance",
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Fault::find(name)
            .ok_or_else(|| format!("must be one of: {}", Fault::ALL.map(Fault::as_str).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_by_its_name() {
        for fault in Fault::ALL {
            assert_eq!(fault.as_str().parse(), Ok(fault));
        }
        assert!("power".parse::<Fault>().unwrap_err().contains("clean failure"));
    }
}
