//! Parses the values of labels. Each error is a sentence that follows the name of the label in the message.

use std::net::IpAddr;

use crate::Cidr;
use crate::settings::{Algorithm, Delivery, PodNetwork, Provider, Settings, Volume};

/// Parses a boolean, in the spellings that Magnum's users write.
pub(super) fn flag(raw: &str) -> Result<bool, String> {
    match raw.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

pub(super) fn number(raw: &str) -> Result<u32, String> {
    raw.parse().map_err(|_| "must be a whole number".to_owned())
}

pub(super) fn cidr(raw: &str) -> Result<Cidr, String> {
    raw.parse::<Cidr>().map_err(|why| why.to_string())
}

/// Sets the size of an optional volume.
pub(super) fn size(volume: &mut Option<Volume>, raw: &str) -> Result<(), String> {
    let size = number(raw)?;
    match volume {
        // Magnum writes 0 for "no volume".
        None if size == 0 => {}
        None => *volume = Some(Volume { size, kind: None }),
        Some(volume) => volume.size = size,
    }
    Ok(())
}

/// Sets the Cinder type of an optional volume.
pub(super) fn kind(volume: &mut Option<Volume>, raw: &str) -> Result<(), String> {
    let kind = Some(word(raw)?);
    match volume {
        None => *volume = Some(Volume { size: 0, kind }),
        Some(volume) => volume.kind = kind,
    }
    Ok(())
}

/// Checks a name that only the cloud can resolve, such as a volume type.
pub(super) fn word(raw: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/@ ".contains(c);
    if raw.is_empty() || raw.len() > 255 || !raw.chars().all(legal) {
        return Err("must have 1 to 255 letters, digits and -._:/@".to_owned());
    }
    Ok(raw.to_owned())
}

/// Parses an availability zone. A colon is refused: Nova reads the text after the colon as a host, and tenants must not choose hosts.
pub(super) fn zone(raw: &str) -> Result<String, String> {
    let zone = word(raw)?;
    match zone.contains(':') {
        true => Err("must name an availability zone without a host".to_owned()),
        false => Ok(zone),
    }
}

/// Parses a list of names that `by` separates.
pub(super) fn words(
    raw: &str,
    by: char,
    legal: impl Fn(char) -> bool,
) -> Result<Vec<String>, String> {
    let words: Vec<String> = raw.split(by).map(|word| word.trim().to_owned()).collect();
    match words.iter().all(|word| !word.is_empty() && word.chars().all(&legal)) {
        true => Ok(words),
        false => Err(format!("must be a list of names separated by {by:?}")),
    }
}

/// Parses an image registry, with or without a path.
pub(super) fn registry(raw: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._:/".contains(c);
    let plain = raw.trim_end_matches('/');
    match plain.is_empty() || plain.len() > 255 || raw.contains("//") || !raw.chars().all(legal) {
        true => Err("must be a registry such as registry.example/kubernetes/".to_owned()),
        false => Ok(plain.to_owned()),
    }
}

/// Parses a domain in lower case; the final dot is removed.
pub(super) fn domain(raw: &str) -> Result<String, String> {
    let raw = raw.strip_suffix('.').unwrap_or(raw);
    let label = |label: &str| {
        let legal =
            label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        (1..=63).contains(&label.len()) && legal && !label.starts_with('-') && !label.ends_with('-')
    };
    match raw.len() <= 180 && raw.split('.').all(label) {
        true => Ok(raw.to_owned()),
        false => Err("must be a domain name in lower case, with at most 180 characters".to_owned()),
    }
}

pub(super) fn provider(raw: &str) -> Result<Provider, String> {
    Ok(match raw {
        "amphora" | "octavia" => Provider::Amphora,
        "ovn" => Provider::Ovn,
        other if other.chars().any(|c| "@ ".contains(c)) => {
            return Err("must be the name of an Octavia provider".to_owned());
        }
        other => Provider::Other(word(other)?),
    })
}

pub(super) fn algorithm(raw: &str) -> Result<Algorithm, String> {
    match raw {
        "ROUND_ROBIN" => Ok(Algorithm::RoundRobin),
        "LEAST_CONNECTIONS" => Ok(Algorithm::LeastConnections),
        "SOURCE_IP" => Ok(Algorithm::SourceIp),
        "SOURCE_IP_PORT" => Ok(Algorithm::SourceIpPort),
        _ => Err("must be ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE_IP or SOURCE_IP_PORT".to_owned()),
    }
}

/// Parses a server group policy: whether anti-affinity is mandatory.
pub(super) fn affinity(raw: &str) -> Result<bool, String> {
    match raw {
        "soft-anti-affinity" => Ok(false),
        "anti-affinity" => Ok(true),
        _ => Err("must be soft-anti-affinity or anti-affinity".to_owned()),
    }
}

pub(super) fn pod_network(raw: &str) -> Result<PodNetwork, String> {
    match raw {
        "driver" => Ok(PodNetwork::Driver),
        "routes" => Ok(PodNetwork::Routes),
        _ => Err("must be driver or routes".to_owned()),
    }
}

/// Parses the tag of an image, by the grammar of distribution/reference. `latest` is refused: the tag names another image each time.
pub(super) fn tag(raw: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if raw.is_empty() || raw.len() > 128 || raw.starts_with(['.', '-']) || !raw.chars().all(legal) {
        return Err("must be an image's tag such as v1.34.1".to_owned());
    }
    if raw == "latest" {
        return Err("must name a fixed version, and latest changes".to_owned());
    }
    Ok(raw.to_owned())
}

pub(super) fn delivery(raw: &str) -> Result<Delivery, String> {
    match raw {
        "claim" => Ok(Delivery::Claim),
        "inline" => Ok(Delivery::Inline),
        _ => Err("must be claim or inline".to_owned()),
    }
}

/// Adds command-line arguments of a component to those of other labels.
pub(super) fn arguments(
    settings: &mut Settings,
    component: &'static str,
    more: Vec<(String, String)>,
) -> Result<(), String> {
    settings.arguments.entry(component).or_default().extend(more);
    Ok(())
}

pub(super) fn argument(
    settings: &mut Settings,
    component: &'static str,
    name: &str,
    value: String,
) -> Result<(), String> {
    arguments(settings, component, vec![(name.to_owned(), value)])
}

/// Parses a setting of OpenID Connect, which the API server reads as an argument. Empty text is no setting, as in magnum-cluster-api.
pub(super) fn oidc(settings: &mut Settings, name: &str, raw: &str) -> Result<(), String> {
    if raw.is_empty() {
        return Ok(());
    }
    if raw.len() > 255 || !raw.chars().all(|c| c.is_ascii_graphic() && !"\"'\\`$".contains(c)) {
        return Err(
            "must have at most 255 characters without spaces, quotes, backslashes, backticks and $"
                .to_owned(),
        );
    }
    if name == "oidc-issuer-url" && !raw.starts_with("https://") {
        return Err("must be a URL that begins with https://".to_owned());
    }
    argument(settings, "kube-apiserver", name, raw.to_owned())
}

/// Parses additional names and addresses of the Kubernetes API, which commas separate.
pub(super) fn api_names(raw: &str) -> Result<Vec<String>, String> {
    let name = |one: &str| match one.parse::<IpAddr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) => domain(one)
            .map_err(|_| format!("{:?} is no DNS name in lower case and no address", cut(one))),
    };
    raw.split(',').map(|one| name(one.trim())).collect()
}

fn cut(raw: &str) -> String {
    raw.chars().take(64).collect()
}

/// The cipher suites that every supported version of Kubernetes knows and calls secure (Kubernetes, `--tls-cipher-suites`). A component that
/// is told another one does not start.
const CIPHER_SUITES: [&str; 15] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// One of these suites must be among the others: RFC 9113 §9.2.2, which Go's HTTP/2 server enforces.
const HTTP2_NEEDS: [&str; 2] =
    ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"];

/// Parses cipher suites, which commas separate.
pub(super) fn cipher_suites(raw: &str) -> Result<String, String> {
    let suites: Vec<&str> = raw.split(',').map(str::trim).collect();
    if let Some(other) = suites.iter().find(|it| !CIPHER_SUITES.contains(*it)) {
        return Err(format!("{:?} is no cipher suite that Kubernetes calls secure", cut(other)));
    }
    if !suites.iter().any(|it| HTTP2_NEEDS.contains(it)) {
        return Err(format!(
            "must have {}, because HTTP/2 needs one of them",
            HTTP2_NEEDS.join(" or ")
        ));
    }
    Ok(suites.join(","))
}

#[cfg(test)]
mod tests;
