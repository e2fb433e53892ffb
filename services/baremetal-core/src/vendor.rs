//! The methods of the vendor interfaces, which clients call by HTTP.

use hardware::{MediaKind, NewSubscription};
use serde_json::{Map, Value};

use crate::subscription::read_subscription;
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
    /// The names of the arguments; `None` if the method takes any.
    arguments: Option<&'static [&'static str]>,
    /// Reads the arguments.
    read: fn(&Map<String, Value>) -> Result<VendorCall, VendorRefused>,
}

/// When a method of a vendor interface answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VendorAnswer {
    /// The answer tells the result of the method.
    Now,
    /// The answer tells nothing.
    Later,
}

/// A call of a vendor method, checked and ready to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VendorCall {
    /// The interface `fake`: nothing is done, and the answer is known.
    Fake(Option<bool>),
    /// Empties the virtual drives that take this kind of media, or all.
    EjectMedia(Option<MediaKind>),
    ListSubscriptions,
    GetSubscription {
        id: String,
    },
    CreateSubscription(NewSubscription),
    DeleteSubscription {
        id: String,
    },
}

/// The methods of the vendor interface `fake`, which Ironic has in `drivers/modules/fake.py`.
const FAKE: [VendorMethod; 4] = {
    let method = VendorMethod {
        name: "second_method",
        http_methods: &["POST"],
        description: "Test if the value of bar is kazoo",
        answers: VendorAnswer::Later,
        needs_idle_node: true,
        arguments: Some(&["bar"]),
        read: |arguments| require("bar", arguments).map(|_| VendorCall::Fake(None)),
    };
    [
        method,
        VendorMethod {
            name: "third_method_sync",
            description: "Test if the value of bar is meow",
            answers: VendorAnswer::Now,
            read: |arguments| {
                require("bar", arguments).map(|bar| VendorCall::Fake(Some(bar == "meow")))
            },
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
            arguments: None,
            read: |_| Ok(VendorCall::Fake(None)),
            ..method
        },
    ]
};

/// The methods of the vendor interface `redfish`, which Ironic has in `drivers/modules/redfish/vendor.py`.
const REDFISH: [VendorMethod; 5] = {
    let method = VendorMethod {
        name: "create_subscription",
        http_methods: &["POST"],
        description: "Creates a subscription on a node. Required argument: a dictionary of {'Destination': 'destination_url'}",
        answers: VendorAnswer::Now,
        needs_idle_node: true,
        arguments: Some(&["Destination", "Protocol", "Context", "EventTypes", "HttpHeaders"]),
        read: |arguments| {
            let read = read_subscription(arguments).map_err(|(name, why)| wrong(name, why));
            read.map(VendorCall::CreateSubscription)
        },
    };
    [
        method,
        VendorMethod {
            name: "delete_subscription",
            http_methods: &["DELETE"],
            description: "Delete a subscription on a node. Required argument: a dictionary of {'id': 'subscription_bmc_id'}",
            arguments: Some(&["id"]),
            read: |arguments| read_id(arguments).map(|id| VendorCall::DeleteSubscription { id }),
            ..method
        },
        VendorMethod {
            name: "eject_vmedia",
            description: "Eject a virtual media device. If no device is provided then all attached devices will be ejected. Optional arguments: 'boot_device' - the boot device to eject, either 'cd', 'dvd', 'usb', or 'floppy'",
            answers: VendorAnswer::Later,
            arguments: Some(&["boot_device"]),
            read: |arguments| read_media_kind(arguments).map(VendorCall::EjectMedia),
            ..method
        },
        VendorMethod {
            name: "get_all_subscriptions",
            http_methods: &["GET"],
            description: "Returns all subscriptions on the node.",
            arguments: Some(&[]),
            read: |_| Ok(VendorCall::ListSubscriptions),
            ..method
        },
        VendorMethod {
            name: "get_subscription",
            http_methods: &["GET"],
            description: "Get a subscription on the node. Required argument: a dictionary of {'id': 'subscription_bmc_id'}",
            arguments: Some(&["id"]),
            read: |arguments| read_id(arguments).map(|id| VendorCall::GetSubscription { id }),
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
    #[error("EventTypes: the BMC has no {unknown:?}; use {}", .known.join(", "))]
    EventType { unknown: String, known: Vec<String> },
    #[error("Subscription {id} could not be found.")]
    NoSubscription { id: String },
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
            VendorInterface::Redfish | VendorInterface::Idrac => &REDFISH,
            VendorInterface::NoVendor => &[],
        }
    }
}

/// Checks a call of a vendor method of `node`. Returns the method and the checked call.
pub fn check_vendor_call(
    node: &Node,
    name: Option<&str>,
    http_method: &str,
    arguments: &Map<String, Value>,
) -> Result<(&'static VendorMethod, VendorCall), VendorRefused> {
    let methods = node.vendor_interface().methods();
    let method = find(methods, name, http_method)?;
    if method.needs_idle_node {
        check_idle(node)?;
    }
    let is_known = |name: &&String| method.arguments.is_none_or(|all| all.contains(&name.as_str()));
    if let Some(unknown) = arguments.keys().find(|name| !is_known(name)) {
        return Err(wrong(unknown, "is not an argument of the method"));
    }
    Ok((method, (method.read)(arguments)?))
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

fn wrong(field: &str, problem: &'static str) -> VendorRefused {
    VendorRefused::Field { field: field.chars().take(64).collect(), problem }
}

fn require<'a>(
    name: &'static str,
    arguments: &'a Map<String, Value>,
) -> Result<&'a Value, VendorRefused> {
    match arguments.get(name) {
        None | Some(Value::Null) => Err(wrong(name, "is required")),
        Some(Value::String(text)) if text.is_empty() => Err(wrong(name, "is required")),
        Some(value) => Ok(value),
    }
}

/// Reads the id of a subscription. The driver looks the id up and puts no id into a path.
fn read_id(arguments: &Map<String, Value>) -> Result<String, VendorRefused> {
    let id = require("id", arguments)?.as_str().filter(|id| id.len() <= 255);
    id.map(str::to_owned).ok_or_else(|| wrong("id", "must be a text of up to 255 bytes"))
}

fn read_media_kind(arguments: &Map<String, Value>) -> Result<Option<MediaKind>, VendorRefused> {
    let device = match arguments.get("boot_device") {
        None | Some(Value::Null) => return Ok(None),
        Some(device) => device.as_str().unwrap_or_default(),
    };
    let kind = MediaKind::ALL.into_iter().find(|kind| kind.as_str() == device);
    kind.map(Some).ok_or_else(|| wrong("boot_device", "must be cd, dvd, usb or floppy"))
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
        let want = want.map(VendorCall::Fake);
        check_on(Driver::FakeHardware, name, http_method, arguments, want);
    }

    #[track_caller]
    fn check_on(
        driver: Driver,
        name: &str,
        http_method: &str,
        arguments: Value,
        want: Result<VendorCall, &str>,
    ) {
        let arguments = arguments.as_object().unwrap();
        let got = check_vendor_call(&node(driver), Some(name), http_method, arguments);
        let got = got.map(|(_, call)| call);
        assert_eq!(got.map_err(|why| why.to_string()), want.map_err(str::to_owned));
    }

    #[test]
    fn the_methods_of_redfish_are_read() {
        let check = |name, http_method, arguments, want| {
            check_on(Driver::Redfish, name, http_method, arguments, want);
        };
        check("get_all_subscriptions", "GET", json!({}), Ok(VendorCall::ListSubscriptions));
        let id = || "7".to_owned();
        let get = VendorCall::GetSubscription { id: id() };
        check("get_subscription", "GET", json!({"id": "7"}), Ok(get));
        let delete = VendorCall::DeleteSubscription { id: id() };
        check("delete_subscription", "DELETE", json!({"id": "7"}), Ok(delete));
        check("delete_subscription", "DELETE", json!({}), Err("id: is required"));
        let long = Err("id: must be a text of up to 255 bytes");
        check("get_subscription", "GET", json!({"id": 7}), long);
        let words = "the vendor method delete_subscription cannot be called by POST; use DELETE";
        check("delete_subscription", "POST", json!({"id": "7"}), Err(words));

        for (device, kind) in [(json!("cd"), Some(MediaKind::Cd)), (json!(null), None)] {
            let want = Ok(VendorCall::EjectMedia(kind));
            check("eject_vmedia", "POST", json!({"boot_device": device}), want);
        }
        check_on(
            Driver::Idrac,
            "eject_vmedia",
            "POST",
            json!({}),
            Ok(VendorCall::EjectMedia(None)),
        );
        let words = Err("boot_device: must be cd, dvd, usb or floppy");
        check("eject_vmedia", "POST", json!({"boot_device": "tape"}), words);
        let words = Err("Destination: is required");
        check("create_subscription", "POST", json!({}), words);
        let words = Err("color: is not an argument of the method");
        check("create_subscription", "POST", json!({"color": "red"}), words);
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
            check_vendor_call(&node(Driver::Ipmi), Some("second_method"), "POST", &Map::new());
        let words = "there is no vendor method \"second_method\"";
        assert_eq!(refused.unwrap_err().to_string(), words);
        assert_eq!(driver_call_refused(Some("second_method")).to_string(), words);
        assert_eq!(driver_call_refused(None), VendorRefused::Unnamed);
    }

    #[test]
    fn some_methods_run_beside_the_work_of_the_node() {
        let busy = Node { provision_state: State::Cleaning, ..node(Driver::FakeHardware) };
        let bar = json!({"bar": "meow"});
        let call = |name| {
            let called = check_vendor_call(&busy, Some(name), "POST", bar.as_object().unwrap());
            called.map(|(_, call)| call)
        };
        assert_eq!(call("fourth_method_shared_lock"), Ok(VendorCall::Fake(None)));
        assert!(matches!(call("third_method_sync"), Err(VendorRefused::Busy(_))));
    }
}
