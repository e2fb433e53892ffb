//! Makes sure that a stored BMC password is only sent to the machine that it was given for.
//!
//! Without this check a caller who may change the BMC address but may not see the password could have the password sent to a host of their
//! own.

use serde_json::{Map, Value};

use crate::{CREDENTIALS, RequestRefused};

/// Refuses a change of `driver_info` that would send a stored password to another address or weaken the certificate check, unless the
/// request also gives the password under one of the keys `given`.
pub(crate) fn check_passwords(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    given: &[&str],
) -> Result<(), RequestRefused> {
    for credential in CREDENTIALS {
        let key = credential.password;
        let has = |info: &Map<String, Value>| info.get(key).is_some_and(|it| !it.is_null());
        if !has(before) || !has(after) || given.contains(&key) {
            continue;
        }
        let moved = credential.goes_to.iter().find(|key| before.get(**key) != after.get(**key));
        if let Some(moved) = moved {
            let problem = format!(
                "send the password again in the same request: {moved} changes, and the stored password was given for the \
                 previous machine"
            );
            return Err(RequestRefused::Field { field: format!("driver_info.{key}"), problem });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const REFUSED: &str = "driver_info.redfish_password: send the password again in the same request: redfish_address changes, and the \
                           stored password was given for the previous machine";

    /// Checks the change of a stored `driver_info` into `after`.
    #[track_caller]
    fn becomes(after: Value, given: &[&str], want: Result<(), &str>) {
        let before = json!({
            "redfish_address": "https://bmc", "redfish_password": "stored", "ipmi_address": "10.0.0.1", "x": 1,
        });
        let got = check_passwords(before.as_object().unwrap(), after.as_object().unwrap(), given);
        assert_eq!(got.map_err(|why| why.to_string()), want.map_err(str::to_owned), "{after}");
    }

    #[test]
    fn a_stored_password_stays_with_its_machine() {
        let elsewhere = json!({"redfish_address": "http://evil", "redfish_password": "stored"});
        becomes(elsewhere.clone(), &[], Err(REFUSED));
        becomes(elsewhere, &["ipmi_password"], Err(REFUSED));
        becomes(json!({"redfish_password": "stored"}), &[], Err(REFUSED));
    }

    #[test]
    fn a_given_password_or_an_unchanged_address_is_accepted() {
        let elsewhere = json!({"redfish_address": "http://mine", "redfish_password": "new"});
        becomes(elsewhere, &["redfish_password"], Ok(()));
        becomes(json!({}), &[], Ok(()));
        let same = json!({"redfish_address": "https://bmc", "redfish_password": "stored", "x": 2});
        becomes(same, &[], Ok(()));
        // IPMI has no stored password in this `driver_info`.
        let ipmi = json!({
            "redfish_address": "https://bmc", "redfish_password": "stored", "ipmi_address": "10.0.0.9",
        });
        becomes(ipmi, &[], Ok(()));
    }

    #[test]
    fn the_certificate_check_cannot_be_weakened_without_the_password() {
        let after = json!({
            "redfish_address": "https://bmc", "redfish_password": "stored", "redfish_verify_ca": false,
        });
        let refused = REFUSED.replace("redfish_address", "redfish_verify_ca");
        becomes(after, &[], Err(&refused));
    }

    #[test]
    fn the_password_of_a_vnc_server_stays_with_its_address() {
        let info = |address: &str| json!({"vnc_address": address, "vnc_password": "stored"});
        let (before, after) = (info("10.0.0.1"), info("10.0.0.9"));
        let moves =
            |given| check_passwords(before.as_object().unwrap(), after.as_object().unwrap(), given);
        let refused = moves(&["redfish_password"]).unwrap_err().to_string();
        assert!(refused.starts_with("driver_info.vnc_password: send"), "{refused}");
        assert!(moves(&["vnc_password"]).is_ok());
    }
}
