//! Reads the RAID configuration that an agent reports after a step. The machine behind an agent is not trusted.

use baremetal_core::CommandSeen;
use serde_json::Value;

/// The keys of a step's result, for each kind of step (`ironic_python_agent/extensions`).
const RESULTS: [&str; 3] = ["clean_result", "deploy_result", "service_result"];

/// The most bytes of JSON that a configuration may have.
const MAX_CONFIG: usize = 64 << 10;

/// Reads the result of a command that succeeded. Any result that is no RAID configuration is of another step and is ignored.
pub(super) fn built(result: Option<&Value>) -> CommandSeen {
    let result = result.and_then(|result| RESULTS.iter().find_map(|key| result.get(key)));
    let config = result.and_then(Value::as_object);
    let config = config.filter(|config| config.get("logical_disks").is_some_and(Value::is_array));
    match config {
        None => CommandSeen::Succeeded,
        Some(config) => {
            match serde_json::to_string(config).is_ok_and(|it| it.len() <= MAX_CONFIG) {
                true => CommandSeen::BuiltRaid(config.clone()),
                false => CommandSeen::Failed(format!(
                    "the agent reports a RAID configuration of more than {MAX_CONFIG} bytes"
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_result_of_each_kind_of_step_is_read() {
        let config = json!({"logical_disks": [{"size_gb": 1}]});
        let read = config.as_object().unwrap().clone();
        for key in RESULTS {
            assert_eq!(built(Some(&json!({key: config}))), CommandSeen::BuiltRaid(read.clone()));
        }
        for other in [json!(null), json!({}), json!({"logical_disks": {}}), json!([config])] {
            assert_eq!(built(Some(&json!({"clean_result": other}))), CommandSeen::Succeeded);
        }
        assert_eq!(built(None), CommandSeen::Succeeded);
        let long = json!({"logical_disks": ["x".repeat(MAX_CONFIG)]});
        let refused = built(Some(&json!({"clean_result": long})));
        assert!(
            matches!(refused, CommandSeen::Failed(why) if why.contains("more than 65536 bytes"))
        );
    }
}
