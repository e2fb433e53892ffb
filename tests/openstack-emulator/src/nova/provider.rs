//! The resources of hosts, and their use by servers.

use serde_json::Value;

use crate::object::Object;

/// The overcommit ratio of processors.
const OVERCOMMIT: i64 = 4;

/// The capacity of a provider for a resource class, with overcommit.
pub(crate) fn capacity(provider: &Object, class: &str) -> i64 {
    let total = provider.hidden.get(class).and_then(Value::as_i64).unwrap_or_default();
    if class == "VCPU" { total * OVERCOMMIT } else { total }
}

/// The used amount of a resource class.
pub(crate) fn used(provider: &Object, class: &str) -> i64 {
    provider.hidden.get(&format!("used {class}")).and_then(Value::as_i64).unwrap_or_default()
}

/// The resources that a flavor needs.
pub(crate) fn resources(flavor: &Object) -> Vec<(String, i64)> {
    let mut all = vec![
        ("VCPU".to_owned(), flavor.number("vcpus")),
        ("MEMORY_MB".into(), flavor.number("ram")),
        ("DISK_GB".into(), flavor.number("disk")),
    ];
    for (key, value) in
        flavor.hidden.get("extra_specs").and_then(Value::as_object).into_iter().flatten()
    {
        let amount = value.as_str().and_then(|text| text.parse().ok());
        if let (Some(class), Some(amount)) = (key.strip_prefix("resources:"), amount) {
            all.retain(|(known, _)| known != class);
            all.push((class.to_owned(), amount));
        }
    }
    all.retain(|(_, amount)| *amount > 0);
    all
}

/// The resources of a server on its host.
pub(crate) fn allocations(server: &Object) -> Vec<(String, i64)> {
    let all = server.hidden.get("allocations").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|one| Some((one[0].as_str()?.to_owned(), one[1].as_i64()?))).collect()
}
