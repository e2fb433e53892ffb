//! The disks that no step writes to: `skip_block_devices` in the properties of the node, a list of root device hints as in
//! ironic-python-agent.

use agent_protocol::{CommandError, Disk, RootDeviceHints};
use serde_json::{Map, Value};
use tracing::info;

use crate::error::failure;

const PROPERTY: &str = "skip_block_devices";

/// Returns the disks that may be written to. A property that is not understood fails, because it was meant to keep something.
pub fn usable(disks: Vec<Disk>, node: &Map<String, Value>) -> Result<Vec<Disk>, CommandError> {
    let skipped = skipped(node).map_err(|why| {
        let text = format!("{PROPERTY} of the node's properties: {why}. No disk was changed.");
        failure("DeviceNotFound", "cannot tell which disks to leave alone", &text)
    })?;
    let is_skipped = |disk: &Disk| skipped.iter().any(|hints| hints.match_disk(disk));
    let (left_alone, usable): (Vec<Disk>, Vec<Disk>) = disks.into_iter().partition(is_skipped);
    for disk in left_alone {
        info!(disk.name = %disk.name, "{} is skipped, as {PROPERTY} says", disk.name);
    }
    Ok(usable)
}

fn skipped(node: &Map<String, Value>) -> Result<Vec<RootDeviceHints>, String> {
    let listed = match node.get("properties").and_then(|properties| properties.get(PROPERTY)) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(listed)) => listed,
        Some(_) => return Err("it must be a list".to_owned()),
    };
    listed.iter().map(hints).collect()
}

fn hints(item: &Value) -> Result<RootDeviceHints, String> {
    let hints = item.as_object().ok_or("each item must be an object of root device hints")?;
    if hints.contains_key("volume_name") {
        let problem = "this agent cannot keep an array; boot a released ironic-python-agent";
        return Err(format!("volume_name: {problem}"));
    }
    RootDeviceHints::parse(hints).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(property: Value) -> Result<Vec<String>, String> {
        let disk = |name: &str, gib: u64| Disk {
            name: format!("/dev/{name}"),
            size: gib << 30,
            serial: Some(format!("S-{name}")),
            ..Disk::default()
        };
        let disks = vec![disk("sda", 100), disk("sdb", 2000), disk("sdc", 2000)];
        let node = json!({"properties": {PROPERTY: property}});
        let usable = usable(disks, node.as_object().unwrap());
        let names = |disks: Vec<Disk>| disks.into_iter().map(|disk| disk.name).collect();
        usable.map(names).map_err(|error| error.details)
    }

    #[test]
    fn the_disks_of_the_list_are_left_alone() {
        let all = ["/dev/sda", "/dev/sdb", "/dev/sdc"].map(str::to_owned).to_vec();
        for nothing in [json!(null), json!([])] {
            assert_eq!(names(nothing), Ok(all.clone()));
        }
        assert_eq!(usable(Vec::new(), &Map::new()).map_err(|error| error.details), Ok(Vec::new()));
        assert_eq!(names(json!([{"size": "> 1000"}])), Ok(all[..1].to_vec()));
        let two = json!([{"name": "/dev/sda"}, {"serial": "S-sdb"}]);
        assert_eq!(names(two), Ok(all[2..].to_vec()));
        let both = json!([{"name": "/dev/sda", "serial": "S-sdb"}]);
        assert_eq!(names(both), Ok(all), "one disk has to match all hints of an item");
    }

    #[test]
    fn a_list_that_is_not_understood_fails() {
        for (property, why) in [
            (json!({"name": "/dev/sda"}), "it must be a list"),
            (json!(["/dev/sda"]), "each item must be an object of root device hints"),
            (json!([{"volume_name": "data"}]), "volume_name: this agent cannot keep an array"),
            (json!([{"colour": "red"}]), "colour"),
        ] {
            let said = names(property).unwrap_err();
            assert!(said.starts_with("skip_block_devices of the node's properties: "), "{said}");
            assert!(said.contains(why) && said.ends_with(". No disk was changed."), "{said}");
        }
    }
}
