//! Makes sure that a stored BMC password is only sent to the machine that it was given for.
//!
//! Without this check a caller who may change the BMC address but may not see the password could have the password sent to a host of their
//! own.

use baremetal_core::CREDENTIALS;
use openstack_api::{ApiError, Operation};
use serde_json::{Map, Value};

use crate::secret;

/// Refuses a change of `driver_info` that would send a stored password to another address or weaken the certificate check, unless `patch`
/// also gives the password.
pub(super) fn check(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    patch: &[Operation],
) -> Result<(), ApiError> {
    for credential in CREDENTIALS {
        let key = credential.password;
        let has = |info: &Map<String, Value>| info.get(key).is_some_and(|it| !it.is_null());
        if !has(before) || !has(after) || given(patch, key) {
            continue;
        }
        let moved = credential.goes_to.iter().find(|key| before.get(**key) != after.get(**key));
        if let Some(moved) = moved {
            let problem = format!(
                "send the password again in the same request: {moved} changes, and the stored password was given for the \
                 previous machine"
            );
            return Err(ApiError::bad_field(&format!("driver_info.{key}"), problem));
        }
    }
    Ok(())
}

/// Whether the patch gives the password under this key, instead of keeping the stored one. The last operation on the key decides.
fn given(patch: &[Operation], key: &str) -> bool {
    let said = patch.iter().rev().find_map(|operation| match operation.path.as_str() {
        "/driver_info" => Some(operation.value.as_ref().and_then(|info| info.get(key))),
        path if path.strip_prefix("/driver_info/") == Some(key) => Some(operation.value.as_ref()),
        _ => None,
    });
    said.flatten().is_some_and(|value| !secret::is_mask(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const REFUSED: &str = "driver_info.redfish_password: send the password again in the same request: redfish_address changes, and the \
                           stored password was given for the previous machine";

    /// Checks the patch that turns a stored `driver_info` into `after`.
    #[track_caller]
    fn becomes(after: Value, patch: Value, want: Result<(), &str>) {
        let before = json!({
            "redfish_address": "https://bmc", "redfish_password": "stored", "ipmi_address": "10.0.0.1", "x": 1,
        });
        let patch: Vec<Operation> = serde_json::from_value(patch).unwrap();
        let got = check(before.as_object().unwrap(), after.as_object().unwrap(), &patch);
        assert_eq!(got.map_err(|why| why.message), want.map_err(str::to_owned), "{patch:?}");
    }

    fn set(path: &str, value: Value) -> Value {
        json!({"op": "replace", "path": path, "value": value})
    }

    #[test]
    fn a_stored_password_stays_with_its_machine() {
        let elsewhere = json!({"redfish_address": "http://evil", "redfish_password": "stored"});
        let nowhere = json!({"redfish_password": "stored"});
        let masked = json!({"redfish_address": "http://evil", "redfish_password": "******"});
        let address = set("/driver_info/redfish_address", json!("http://evil"));
        let password = set("/driver_info/redfish_password", json!("stored"));
        let mask = set("/driver_info/redfish_password", json!("******"));
        for patch in [
            json!([address]),
            json!([address, mask]),
            json!([password, mask, address]),
            json!([set("/driver_info", masked.clone())]),
            json!([password, set("/driver_info", masked)]),
        ] {
            becomes(elsewhere.clone(), patch, Err(REFUSED));
        }
        let removed = json!([{"op": "remove", "path": "/driver_info/redfish_address"}]);
        becomes(nowhere, removed, Err(REFUSED));
    }

    #[test]
    fn a_given_password_or_an_unchanged_address_is_accepted() {
        let elsewhere = json!({"redfish_address": "http://mine", "redfish_password": "new"});
        let address = set("/driver_info/redfish_address", json!("http://mine"));
        let password = set("/driver_info/redfish_password", json!("new"));
        becomes(elsewhere.clone(), json!([address, password]), Ok(()));
        becomes(elsewhere.clone(), json!([set("/driver_info", elsewhere)]), Ok(()));
        becomes(json!({}), json!([{"op": "remove", "path": "/driver_info"}]), Ok(()));

        let same = json!({"redfish_address": "https://bmc", "redfish_password": "stored", "x": 2});
        becomes(same, json!([set("/driver_info/x", json!(2))]), Ok(()));
        // IPMI has no stored password in this `driver_info`.
        let ipmi = json!({
            "redfish_address": "https://bmc", "redfish_password": "stored", "ipmi_address": "10.0.0.9",
        });
        becomes(ipmi, json!([set("/driver_info/ipmi_address", json!("10.0.0.9"))]), Ok(()));
    }

    #[test]
    fn the_certificate_check_cannot_be_weakened_without_the_password() {
        let after = json!({
            "redfish_address": "https://bmc", "redfish_password": "stored", "redfish_verify_ca": false,
        });
        let refused = REFUSED.replace("redfish_address", "redfish_verify_ca");
        becomes(after, json!([set("/driver_info/redfish_verify_ca", json!(false))]), Err(&refused));
    }
}
