//! Checks that BMCs, images and receivers of events are at addresses that the administrator allows.
//!
//! The owner of a node chooses these addresses. Without these checks an owner could make the service send requests to itself or to other
//! services on its host, make a machine fetch documents that only the machine can reach, and make a BMC send requests into its network.

use std::borrow::Cow;

use baremetal_core::{Node, OCI_SCHEME, RequestRefused};
use hardware::{AllowedHosts, HostRefused};
use serde_json::{Map, Value};
use url::Url;

/// The keys of `driver_info` with a BMC's address.
const BMC_KEYS: [&str; 3] = ["redfish_address", "ipmi_address", "vnc_address"];

/// The keys of `instance_info` with addresses of images, of files with their checksums, and of config drives.
const IMAGE_KEYS: [&str; 7] = [
    "image_source",
    "image_checksum",
    "image_os_hash_value",
    "boot_iso",
    "kernel",
    "ramdisk",
    "configdrive",
];

/// The keys of `driver_info` with addresses of a ramdisk that belongs to a single node, or of the service as its BMC sees it.
const AGENT_IMAGE_KEYS: [&str; 7] = [
    "deploy_kernel",
    "deploy_ramdisk",
    "deploy_iso",
    "rescue_kernel",
    "rescue_ramdisk",
    "rescue_iso",
    "external_http_url",
];

/// Checks the addresses of a node's BMC and images, except addresses that did not change since `before`.
pub(crate) fn check_hosts(
    bmcs: &AllowedHosts,
    images: &AllowedHosts,
    before: Option<&Node>,
    node: &Node,
) -> Result<(), RequestRefused> {
    for key in BMC_KEYS {
        let is_new = before.and_then(|it| it.driver_info.get(key)) != node.driver_info.get(key);
        if let Some(address) = node.driver_info.get(key).and_then(Value::as_str).filter(|_| is_new)
        {
            check_bmc(bmcs, address).map_err(|problem| RequestRefused::Field {
                field: format!("driver_info.{key}"),
                problem,
            })?;
        }
    }
    let is_new = |of: fn(&Node) -> &Map<String, Value>, key: &str| {
        before.and_then(|it| of(it).get(key)) != of(node).get(key)
    };
    for key in IMAGE_KEYS.into_iter().filter(|key| is_new(|it| &it.instance_info, key)) {
        check_url_of(images, "instance_info", &node.instance_info, key)?;
    }
    for key in AGENT_IMAGE_KEYS.into_iter().filter(|key| is_new(|it| &it.driver_info, key)) {
        check_url_of(images, "driver_info", &node.driver_info, key)?;
    }
    Ok(())
}

/// Checks a BMC's address, which is a URL, or a host with or without a port. The error is the reason for the refusal.
pub(crate) fn check_bmc(allowed: &AllowedHosts, address: &str) -> Result<(), String> {
    let spelled = match address.contains("://") {
        true => address.to_owned(),
        // An IPv6 address for IPMI has no brackets.
        false if address.parse::<std::net::Ipv6Addr>().is_ok() => format!("https://[{address}]"),
        false => format!("https://{address}"),
    };
    // Text that is not a URL is refused when the BMC's client is made of it.
    let Ok(url) = Url::parse(&spelled) else { return Ok(()) };
    check(allowed, &url).map_err(|why| {
        format!("{why}; allow the address with bmc.networks in the configuration of the service")
    })
}

/// Checks the addresses of the images in `instance_info`.
pub(crate) fn check_image(
    allowed: &AllowedHosts,
    instance_info: &Map<String, Value>,
) -> Result<(), RequestRefused> {
    let mut keys = IMAGE_KEYS.into_iter();
    keys.try_for_each(|key| check_url_of(allowed, "instance_info", instance_info, key))
}

/// Checks the addresses of the ramdisk that belongs to the node alone.
pub(crate) fn check_agent_images(
    allowed: &AllowedHosts,
    node: &Node,
) -> Result<(), RequestRefused> {
    let mut keys = AGENT_IMAGE_KEYS.into_iter();
    keys.try_for_each(|key| check_url_of(allowed, "driver_info", &node.driver_info, key))
}

fn check_url_of(
    allowed: &AllowedHosts,
    field: &str,
    info: &Map<String, Value>,
    key: &str,
) -> Result<(), RequestRefused> {
    let url = info.get(key).and_then(Value::as_str);
    // An OCI registry is asked by https. Without a scheme that it knows, the URL parser would not read the host as an address.
    let url = url.map(|url| match url.strip_prefix(OCI_SCHEME) {
        Some(rest) => Cow::Owned(format!("https://{rest}")),
        None => Cow::Borrowed(url),
    });
    // Text that is not a URL, such as a checksum, is refused together with all other problems of the image. An image in Glance and a file
    // have no address.
    let url = url.and_then(|url| Url::parse(&url).ok());
    let url = url.filter(|url| !matches!(url.scheme(), "glance" | "file"));
    let Some(url) = url else { return Ok(()) };
    check_image_host(allowed, &format!("{field}.{key}"), &url)
}

/// Checks the address of an image, which is the value of `field`.
pub(crate) fn check_image_host(
    allowed: &AllowedHosts,
    field: &str,
    url: &Url,
) -> Result<(), RequestRefused> {
    check(allowed, url).map_err(|why| RequestRefused::Field {
        field: field.to_owned(),
        problem: format!(
            "{why}; allow the host with images.hosts in the configuration of the service"
        ),
    })
}

/// Checks the destination of a BMC's events. A host name is checked as a name only, because the BMC resolves it.
pub(crate) fn check_event_host(
    allowed: &AllowedHosts,
    destination: &str,
) -> Result<(), RequestRefused> {
    let refuse =
        |problem: String| RequestRefused::Field { field: "Destination".to_owned(), problem };
    let url = Url::parse(destination).map_err(|_| refuse("is not a URL".to_owned()))?;
    check(allowed, &url).map_err(|why| {
        refuse(format!(
            "{why}; allow the host with bmc.event_hosts in the configuration of the service"
        ))
    })
}

/// Checks the host as the URL parser reads it: `0x7f.1` is 127.0.0.1.
fn check(allowed: &AllowedHosts, url: &Url) -> Result<(), HostRefused> {
    allowed.check(url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_spelling_of_a_local_bmc_address_is_refused() {
        let any = AllowedHosts::default();
        for address in [
            "127.0.0.1",
            "127.0.0.1:8000",
            "https://127.0.0.1/redfish",
            "http://127.1:6385",
            "2130706433",
            "https://0x7f.1",
            "[::1]",
            "::1",
            "https://[::ffff:127.0.0.1]:1",
            "localhost:1",
            "HTTP://LOCALHOST",
            "169.254.169.254",
            "fe80::1",
            "0.0.0.0",
            "224.0.0.1",
        ] {
            let refused = check_bmc(&any, address).expect_err(address);
            assert!(
                refused.ends_with(
                    "allow the address with bmc.networks in the configuration of the service"
                ),
                "{refused}"
            );
        }
        for address in [
            "10.0.0.1",
            "2001:db8::1",
            "[2001:db8::1]:443",
            "https://bmc.example",
            "bmc.example:8000",
            "",
        ] {
            assert_eq!(check_bmc(&any, address), Ok(()), "{address}");
        }
        let here = AllowedHosts::within(Some(vec!["127.0.0.0/8".parse().unwrap()]));
        assert_eq!(check_bmc(&here, "https://127.0.0.1:8000"), Ok(()));
        assert!(check_bmc(&here, "10.0.0.1").is_err());
    }

    #[test]
    fn an_image_address_has_to_be_allowed() {
        let checked = |allowed: &AllowedHosts, url: &str| {
            let info = json!({"image_source": url});
            check_image(allowed, info.as_object().unwrap()).map_err(|why| why.to_string())
        };
        let any = AllowedHosts::default();
        assert_eq!(checked(&any, "http://images.example/x"), Ok(()));
        assert_eq!(checked(&any, "glance://b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11"), Ok(()));
        assert_eq!(checked(&any, "oci://registry.example:5000/debian:12"), Ok(()));
        for local in ["oci://127.0.0.1:5000/a:1", "oci://0x7f.1/a:1", "oci://[::1]:5000/a:1"] {
            assert!(checked(&any, local).is_err(), "{local}");
        }
        let refused = checked(&any, "http://169.254.169.254/latest/meta-data").unwrap_err();
        assert_eq!(
            refused,
            "instance_info.image_source: 169.254.169.254 is a link-local address; allow the host with images.hosts in the configuration of the service"
        );
        for key in IMAGE_KEYS {
            let info = json!({key: "http://169.254.169.254/x"});
            let refused = check_image(&any, info.as_object().unwrap()).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("instance_info.{key}: ")), "{refused}");
        }
        let some = AllowedHosts::new(Some(vec!["images.example".to_owned().try_into().unwrap()]));
        assert_eq!(checked(&some, "https://images.example:8443/x"), Ok(()));
        assert!(checked(&some, "https://images.example@evil.example/x").is_err());
        assert_eq!(checked(&some, "oci://images.example:5000/x:1"), Ok(()));
        assert!(checked(&some, "oci://evil.example/x:1").is_err());
    }

    #[test]
    fn a_destination_of_events_has_to_be_allowed() {
        let any = AllowedHosts::default();
        assert_eq!(check_event_host(&any, "https://events.example/bmc"), Ok(()));
        assert_eq!(
            check_event_host(&any, "http://169.254.169.254/").unwrap_err().to_string(),
            "Destination: 169.254.169.254 is a link-local address; allow the host with bmc.event_hosts in the configuration of the service"
        );
        let some = AllowedHosts::new(Some(vec!["events.example".to_owned().try_into().unwrap()]));
        assert_eq!(check_event_host(&some, "https://events.example:8443/"), Ok(()));
        assert!(check_event_host(&some, "https://10.0.0.1/").is_err());
        assert!(check_event_host(&some, "https://evil.example/").is_err());
    }

    #[test]
    fn the_addresses_of_a_ramdisk_of_a_node_have_to_be_allowed() {
        let any = AllowedHosts::default();
        let id = baremetal_core::NodeUuid::nil();
        let node = |info: Value| {
            let driver = baremetal_core::Driver::Redfish;
            let mut node = Node::new(id, driver, jiff::Timestamp::UNIX_EPOCH);
            node.driver_info = info.as_object().unwrap().clone();
            node
        };
        for key in AGENT_IMAGE_KEYS {
            let wrong = node(json!({key: "http://127.0.0.1/x"}));
            let refused = check_hosts(&any, &any, None, &wrong).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("driver_info.{key}: ")), "{refused}");
            assert_eq!(check_hosts(&any, &any, Some(&wrong), &wrong), Ok(()), "it is not new");
            assert!(check_agent_images(&any, &wrong).is_err());
            assert_eq!(check_agent_images(&any, &node(json!({key: "http://h/x"}))), Ok(()));
        }
    }
}
