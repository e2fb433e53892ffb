//! The vendors under which calls of BMCs are counted.

use baremetal_core::Node;
use serde_json::Value;

/// Words in the names that vendors give themselves, in lower case, and the label for each of them.
const VENDORS: [(&str, &str); 19] = [
    ("dell", "dell"),
    ("hewlett", "hpe"),
    ("hpe", "hpe"),
    ("lenovo", "lenovo"),
    ("supermicro", "supermicro"),
    ("super micro", "supermicro"),
    ("fujitsu", "fujitsu"),
    ("cisco", "cisco"),
    ("huawei", "huawei"),
    ("xfusion", "xfusion"),
    ("inspur", "inspur"),
    ("quanta", "quanta"),
    ("giga", "gigabyte"),
    ("asus", "asus"),
    ("asrock", "asrock"),
    ("intel", "intel"),
    ("nvidia", "nvidia"),
    ("ampere", "ampere"),
    ("qemu", "qemu"),
];

/// Returns the label for the vendor of a node's machine: a word of the table, `other`, or `unknown` if no inspection has found the vendor.
pub(crate) fn vendor(node: &Node) -> &'static str {
    let Some(name) = node.properties.get("vendor").and_then(Value::as_str) else {
        return "unknown";
    };
    let name = name.to_lowercase();
    let known = VENDORS.iter().find(|(word, _)| name.contains(*word));
    known.map_or("other", |(_, label)| *label)
}

#[cfg(test)]
mod tests {
    use baremetal_core::{Driver, NodeUuid};
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_vendor_is_one_of_a_few_words() {
        let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        assert_eq!(vendor(&node), "unknown");
        for (name, label) in [
            ("Dell Inc.", "dell"),
            ("HPE", "hpe"),
            ("Hewlett Packard Enterprise", "hpe"),
            ("Supermicro", "supermicro"),
            ("GIGABYTE", "gigabyte"),
            ("A vendor that made up its name", "other"),
        ] {
            node.properties.insert("vendor".to_owned(), name.into());
            assert_eq!(vendor(&node), label, "{name}");
        }
    }
}
