//! Whether BMCs and images are where an operator allows them to be.
//!
//! A node's owner names both. Without this the owner could have this service ask itself, or whatever else is on this machine, and a
//! machine fetch what the machine alone can reach.

use baremetal_core::{Node, Refusal};
use hardware::{AllowedHosts, HostRefused};
use serde_json::{Map, Value};
use url::Url;

use crate::Conductor;

/// The keys of `driver_info` that say where a BMC is.
const BMC_KEYS: [&str; 2] = ["redfish_address", "ipmi_address"];

/// The key of `instance_info` that says where an image is.
const IMAGE_KEY: &str = "image_source";

impl Conductor {
    /// Refuses a node that says of its BMC or its image that they are where none is allowed. What it said `before` is not looked at:
    /// the list may have become shorter since. Of a name, the addresses are looked at when a connection is made.
    ///
    /// # Errors
    ///
    /// The field, and why not.
    pub fn check_hosts(&self, before: Option<&Node>, node: &Node) -> Result<(), Refusal> {
        let allowed = &self.world.settings.bmc.allowed;
        for key in BMC_KEYS {
            let is_new = before.and_then(|it| it.driver_info.get(key)) != node.driver_info.get(key);
            if let Some(address) =
                node.driver_info.get(key).and_then(Value::as_str).filter(|_| is_new)
            {
                check_bmc(allowed, address).map_err(|problem| Refusal::Field {
                    field: format!("driver_info.{key}"),
                    problem,
                })?;
            }
        }
        let image = |node: &Node| node.instance_info.get(IMAGE_KEY).cloned();
        match before.and_then(image) == image(node) {
            true => Ok(()),
            false => self.check_image_host(&node.instance_info),
        }
    }

    /// Refuses an image that is where none is allowed.
    ///
    /// # Errors
    ///
    /// The field, and why not.
    pub fn check_image_host(&self, instance_info: &Map<String, Value>) -> Result<(), Refusal> {
        check_image(&self.world.settings.image_hosts, instance_info)
    }
}

/// What is wrong with where a BMC is said to be: a URL, or a host with a port or without.
pub(crate) fn check_bmc(allowed: &AllowedHosts, address: &str) -> Result<(), String> {
    let spelled = match address.contains("://") {
        true => address.to_owned(),
        // Of IPv6, an IPMI address has no brackets.
        false if address.parse::<std::net::Ipv6Addr>().is_ok() => format!("https://[{address}]"),
        false => format!("https://{address}"),
    };
    // What is no URL is refused where a BMC is made of it.
    let Ok(url) = Url::parse(&spelled) else { return Ok(()) };
    check(allowed, &url)
        .map_err(|why| format!("{why}; bmc.networks of the service says where BMCs may be"))
}

/// As [`Conductor::check_image_host`].
pub(crate) fn check_image(
    allowed: &AllowedHosts,
    instance_info: &Map<String, Value>,
) -> Result<(), Refusal> {
    let url = instance_info.get(IMAGE_KEY).and_then(Value::as_str);
    // What is no URL is refused with everything else that is wrong with the image.
    let Some(url) = url.and_then(|url| Url::parse(url).ok()) else { return Ok(()) };
    check(allowed, &url).map_err(|why| Refusal::Field {
        field: format!("instance_info.{IMAGE_KEY}"),
        problem: format!("{why}; images.hosts of the service says where images may be"),
    })
}

/// As the URL's parser reads the host: `0x7f.1` is 127.0.0.1.
fn check(allowed: &AllowedHosts, url: &Url) -> Result<(), HostRefused> {
    allowed.check(url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bmc_on_this_machine_is_refused_however_it_is_spelled() {
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
                refused.ends_with("bmc.networks of the service says where BMCs may be"),
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
    fn an_image_is_where_images_may_be() {
        let checked = |allowed: &AllowedHosts, url: &str| {
            let info = json!({"image_source": url});
            check_image(allowed, info.as_object().unwrap()).map_err(|why| why.to_string())
        };
        let any = AllowedHosts::default();
        assert_eq!(checked(&any, "http://images.example/x"), Ok(()));
        let refused = checked(&any, "http://169.254.169.254/latest/meta-data").unwrap_err();
        assert_eq!(
            refused,
            "instance_info.image_source: 169.254.169.254 is a link-local address; images.hosts of the service says where images may be"
        );
        let some = AllowedHosts::new(Some(vec!["images.example".to_owned().try_into().unwrap()]));
        assert_eq!(checked(&some, "https://images.example:8443/x"), Ok(()));
        assert!(checked(&some, "https://images.example@evil.example/x").is_err());
    }
}
