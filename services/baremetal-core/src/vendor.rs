//! The methods of the vendor interfaces, which clients call by HTTP.

use serde_json::{Map, Value};

use crate::{ChangeRefused, Node, VendorInterface, check_idle};

/// A method of a vendor interface.
#[derive(Clone, Copy, Debug)]
pub struct VendorMethod {
    pub name: &'static str,
    /// The HTTP methods by which clients call the method.
    pub http_methods: &'static [&'static str],
    pub description: &'static str,
    pub answers: VendorAnswer,
    /// Whether the method needs the node for itself, and is refused while the node has work.
    pub needs_idle_node: bool,
    arguments: VendorArguments,
}

/// When a method of a vendor interface answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VendorAnswer {
    /// The method runs before the answer is sent, and tells whether `bar` is this word.
    IsWord(&'static str),
    /// The method runs after the answer was sent, which tells nothing.
    Later,
}

#[derive(Clone, Copy, Debug)]
enum VendorArguments {
    /// Exactly `bar`.
    Bar,
    Any,
}

/// The methods of the vendor interface `fake`, which Ironic has in `drivers/modules/fake.py`.
const FAKE: [VendorMethod; 4] = {
    let method = VendorMethod {
        name: "second_method",
        http_methods: &["POST"],
        description: "Test if the value of bar is kazoo",
        answers: VendorAnswer::Later,
        needs_idle_node: true,
        arguments: VendorArguments::Bar,
    };
    [
        method,
        VendorMethod {
            name: "third_method_sync",
            description: "Test if the value of bar is meow",
            answers: VendorAnswer::IsWord("meow"),
            ..method
        },
        VendorMethod {
            name: "fourth_method_shared_lock",
            description: "Test if the value of bar is woof",
            needs_idle_node: false,
            ..method
        },
        VendorMethod {
            name: "log_passthrough",
            description: "Test pass-through to wait.",
            arguments: VendorArguments::Any,
            ..method
        },
    ]
};

/// Why a call of a vendor method is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VendorRefused {
    #[error("method: is required")]
    Unnamed,
    #[error("there is no vendor method {name:?}{}", others(.known))]
    Unknown { name: String, known: Vec<&'static str> },
    #[error("the vendor method {name} cannot be called by {http_method}; use {}", .supported.join(" or "))]
    HttpMethod { name: &'static str, http_method: String, supported: &'static [&'static str] },
    #[error("{field}: {problem}")]
    Field { field: String, problem: &'static str },
    #[error(transparent)]
    Busy(#[from] ChangeRefused),
}

fn others(names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!("; use {}", names.join(", ")) }
}

impl VendorInterface {
    /// Returns the methods of the interface that are called on a node.
    pub const fn methods(self) -> &'static [VendorMethod] {
        match self {
            VendorInterface::Fake => &FAKE,
            VendorInterface::NoVendor => &[],
        }
    }
}

/// Calls a vendor method of `node`. Returns the answer; `None` if the method runs later.
pub fn call_vendor_method(
    node: &Node,
    name: Option<&str>,
    http_method: &str,
    arguments: &Map<String, Value>,
) -> Result<Option<bool>, VendorRefused> {
    let methods = node.vendor_interface().methods();
    let method = find(methods, name, http_method)?;
    if method.needs_idle_node {
        check_idle(node)?;
    }
    method.check(arguments)?;
    Ok(match method.answers {
        VendorAnswer::IsWord(word) => Some(arguments["bar"] == word),
        VendorAnswer::Later => None,
    })
}

/// Returns the refusal of a vendor method that is called on a driver instead of a node. No driver has such methods.
pub fn driver_call_refused(name: Option<&str>) -> VendorRefused {
    match named(name) {
        Ok(name) => unknown(name, &[]),
        Err(refused) => refused,
    }
}

fn find(
    methods: &'static [VendorMethod],
    name: Option<&str>,
    http_method: &str,
) -> Result<&'static VendorMethod, VendorRefused> {
    let name = named(name)?;
    let method = methods.iter().find(|method| method.name == name);
    let method = method.ok_or_else(|| unknown(name, methods))?;
    if method.http_methods.contains(&http_method) {
        return Ok(method);
    }
    Err(VendorRefused::HttpMethod {
        name: method.name,
        http_method: http_method.chars().take(64).collect(),
        supported: method.http_methods,
    })
}

fn named(name: Option<&str>) -> Result<&str, VendorRefused> {
    name.filter(|name| !name.is_empty()).ok_or(VendorRefused::Unnamed)
}

fn unknown(name: &str, methods: &[VendorMethod]) -> VendorRefused {
    let known = methods.iter().map(|method| method.name).collect();
    VendorRefused::Unknown { name: name.chars().take(64).collect(), known }
}

impl VendorMethod {
    fn check(&self, arguments: &Map<String, Value>) -> Result<(), VendorRefused> {
        match self.arguments {
            VendorArguments::Any => Ok(()),
            VendorArguments::Bar => {
                let refuse = |field: &str, problem| {
                    let field = field.chars().take(64).collect();
                    Err(VendorRefused::Field { field, problem })
                };
                if let Some(unknown) = arguments.keys().find(|name| *name != "bar") {
                    return refuse(unknown, "is not an argument of the method");
                }
                match arguments.get("bar") {
                    None | Some(Value::Null) => refuse("bar", "is required"),
                    Some(Value::String(bar)) if bar.is_empty() => refuse("bar", "is required"),
                    Some(_) => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, NodeUuid, State};

    fn node(driver: Driver) -> Node {
        Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH)
    }

    #[track_caller]
    fn check(name: &str, http_method: &str, arguments: Value, want: Result<Option<bool>, &str>) {
        let node = node(Driver::FakeHardware);
        let arguments = arguments.as_object().unwrap();
        let got = call_vendor_method(&node, Some(name), http_method, arguments);
        assert_eq!(got.map_err(|why| why.to_string()), want.map_err(str::to_owned));
    }

    #[test]
    fn a_method_answers_at_once_or_later() {
        check("third_method_sync", "POST", json!({"bar": "meow"}), Ok(Some(true)));
        check("third_method_sync", "POST", json!({"bar": "woof"}), Ok(Some(false)));
        check("second_method", "POST", json!({"bar": "kazoo"}), Ok(None));
        check("log_passthrough", "POST", json!({"anything": [1]}), Ok(None));
    }

    #[test]
    fn the_fake_methods_are_described_as_in_ironic() {
        let described = FAKE.map(|method| (method.name, method.description));
        let want = [
            ("second_method", "Test if the value of bar is kazoo"),
            ("third_method_sync", "Test if the value of bar is meow"),
            ("fourth_method_shared_lock", "Test if the value of bar is woof"),
            ("log_passthrough", "Test pass-through to wait."),
        ];
        assert_eq!(described, want);
    }

    #[test]
    fn a_wrong_call_is_refused() {
        check("second_method", "POST", json!({}), Err("bar: is required"));
        check("second_method", "POST", json!({"bar": ""}), Err("bar: is required"));
        let more = json!({"bar": "a", "color": "red"});
        check("second_method", "POST", more, Err("color: is not an argument of the method"));
        let words = "the vendor method second_method cannot be called by PUT; use POST";
        check("second_method", "PUT", json!({"bar": "a"}), Err(words));
        let words = "there is no vendor method \"zz\"; use second_method, third_method_sync, fourth_method_shared_lock, log_passthrough";
        check("zz", "POST", json!({}), Err(words));
        check("", "POST", json!({}), Err("method: is required"));
    }

    #[test]
    fn a_node_without_a_vendor_interface_has_no_methods() {
        let refused =
            call_vendor_method(&node(Driver::Ipmi), Some("second_method"), "POST", &Map::new());
        let words = "there is no vendor method \"second_method\"";
        assert_eq!(refused.unwrap_err().to_string(), words);
        assert_eq!(driver_call_refused(Some("second_method")).to_string(), words);
        assert_eq!(driver_call_refused(None), VendorRefused::Unnamed);
    }

    #[test]
    fn some_methods_run_beside_the_work_of_the_node() {
        let busy = Node { provision_state: State::Cleaning, ..node(Driver::FakeHardware) };
        let bar = json!({"bar": "meow"});
        let call = |name| call_vendor_method(&busy, Some(name), "POST", bar.as_object().unwrap());
        assert_eq!(call("fourth_method_shared_lock"), Ok(None));
        assert!(matches!(call("third_method_sync"), Err(VendorRefused::Busy(_))));
    }
}
