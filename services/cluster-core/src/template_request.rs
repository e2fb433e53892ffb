//! The values of a template's fields that have rules of their own.

use std::net::IpAddr;

use crate::{ClusterParameters, Name, NetworkDriver, Refusal, VolumeDriver};

fn refuse<T>(field: &'static str, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Field { field, why: why.into() })
}

/// Returns the name of a resource without a name: its kind and the beginning of its id.
pub fn default_name(kind: &str, id: &str) -> Name {
    let begin: String = id.chars().take(8).collect();
    let name = format!("{kind}-{begin}");
    name.parse().expect("it begins with a letter, and has only letters, digits and '-'")
}

/// Returns the pod network with this name of Magnum; the default is flannel.
pub fn network_driver(raw: Option<&str>) -> Result<NetworkDriver, Refusal> {
    let Some(raw) = raw else { return Ok(NetworkDriver::Flannel) };
    NetworkDriver::find(raw)
        .map_or_else(|| refuse("network_driver", "must be flannel or calico"), Ok)
}

/// Returns the driver of volumes with this name of Magnum.
pub fn volume_driver(raw: Option<&str>) -> Result<Option<VolumeDriver>, Refusal> {
    match raw {
        None => Ok(None),
        Some(raw) if raw == VolumeDriver::Cinder.as_str() => Ok(Some(VolumeDriver::Cinder)),
        Some(_) => refuse("volume_driver", "must be cinder"),
    }
}

/// Parses the addresses of name servers, which commas separate.
pub fn name_servers(raw: Option<&str>) -> Result<Vec<IpAddr>, Refusal> {
    let Some(raw) = raw else {
        return Ok(ClusterParameters::new(String::new()).dns_nameservers);
    };
    let parse = |one: &str| one.trim().parse::<IpAddr>().ok();
    let read: Option<Vec<_>> = raw.split(',').map(parse).collect();
    let why = "must be addresses separated by commas";
    read.map_or_else(|| refuse("dns_nameserver", why), Ok)
}

/// Checks the port of the Kubernetes API.
pub fn api_port(raw: Option<u32>) -> Result<Option<u16>, Refusal> {
    let fits = |port: &u16| *port >= 1024;
    match raw.map(|port| u16::try_from(port).ok().filter(fits)) {
        None => Ok(None),
        Some(Some(port)) => Ok(Some(port)),
        Some(None) => refuse("apiserver_port", "must be between 1024 and 65535"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    #[track_caller]
    fn check<T: Debug>(got: Result<T, Refusal>, want: &str) {
        let reported = got.map_or_else(|why| why.to_string(), |value| format!("{value:?}"));
        assert_eq!(reported, want);
    }

    #[test]
    fn each_value_is_parsed_or_refused_by_field() {
        check(network_driver(None), "Flannel");
        check(network_driver(Some("calico")), "Calico");
        check(network_driver(Some("cilium")), "network_driver: must be flannel or calico");
        check(volume_driver(None), "None");
        check(volume_driver(Some("cinder")), "Some(Cinder)");
        check(volume_driver(Some("rexray")), "volume_driver: must be cinder");
        check(name_servers(None), "[8.8.8.8]");
        check(name_servers(Some("192.0.2.1, 2001:db8::1")), "[192.0.2.1, 2001:db8::1]");
        let separated = "dns_nameserver: must be addresses separated by commas";
        check(name_servers(Some("here")), separated);
        check(name_servers(Some("192.0.2.1,")), separated);
        check(api_port(None), "None");
        check(api_port(Some(1024)), "Some(1024)");
        let range = "apiserver_port: must be between 1024 and 65535";
        check(api_port(Some(80)), range);
        check(api_port(Some(65536)), range);
    }

    #[test]
    fn a_name_is_made_from_the_id() {
        let id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
        assert_eq!(default_name("template", id).as_str(), "template-7c9e6679");
    }
}
