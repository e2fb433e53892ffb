//! References to images in OCI registries: `oci://HOST[:PORT]/REPOSITORY:TAG` and `oci://HOST[:PORT]/REPOSITORY@sha256:DIGEST`.
//!
//! The form is that of Ironic (`ironic/common/oci_registry.py`): a reference with neither a tag nor a digest means the tag `latest`, and
//! beside a digest a tag has no meaning. The characters of names and tags are those of the OCI distribution specification 1.1 ("Pulling
//! manifests"), and those of digests are of the OCI image specification 1.1 ("Digests").

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use agent_protocol::ChecksumAlgorithm;
use serde::Deserialize;

use crate::checksum_file::algorithm_of;

/// The beginning of a reference to an image in an OCI registry.
pub const OCI_SCHEME: &str = "oci://";

/// The longest name of a repository: a common limit of registries, which the distribution specification mentions.
const LONGEST_REPOSITORY: usize = 255;

/// The longest name of a host in DNS.
const LONGEST_HOST: usize = 253;

/// An image in an OCI registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciReference {
    /// The host of the registry, with a port if the reference names one.
    pub registry: String,
    /// The name of the repository, such as `images/debian`.
    pub repository: String,
    pub version: OciVersion,
}

/// A registry, as an operator names it: `HOST` or `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct OciRegistry(String);

/// The error for a text that names no registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a registry is named as HOST or HOST:PORT, such as registry.example:5000")]
pub struct InvalidRegistry;

/// The name of a manifest in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OciVersion {
    /// A name that its owner may give to another manifest later.
    Tag(String),
    Digest(OciDigest),
}

/// The digest of a manifest or a blob: `sha256:` or `sha512:`, with lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct OciDigest {
    algorithm: ChecksumAlgorithm,
    hex: String,
}

/// The text is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is sha256: with 64 or sha512: with 128 digits of 0-9 and a-f")]
pub struct InvalidDigest;

impl OciReference {
    /// Parses a reference. The error tells what is wrong with the text.
    pub fn parse(text: &str) -> Result<OciReference, String> {
        let rest = text.strip_prefix(OCI_SCHEME).ok_or("must begin with oci://")?;
        let (registry, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_registry(registry) {
            return Err("must name a registry as HOST or HOST:PORT after oci://".to_owned());
        }
        let (name, digest) = match path.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (path, None),
        };
        let (repository, tag) = match name.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (name, None),
        };
        if repository.is_empty() {
            return Err("names no repository; write oci://HOST/REPOSITORY:TAG".to_owned());
        }
        let is_short = repository.len() <= LONGEST_REPOSITORY;
        if !is_short || !repository.split('/').all(is_component) {
            let problem = format!(
                "a repository has at most {LONGEST_REPOSITORY} characters: words of a-z and 0-9 with '.', '_' or '-' inside, separated by '/'"
            );
            return Err(problem);
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            let problem = "a tag has 1 to 128 letters, digits, '_', '.' and '-', and does not begin with '.' or '-'";
            return Err(problem.to_owned());
        }
        let version = match (digest, tag) {
            (Some(digest), _) => {
                OciVersion::Digest(digest.parse().map_err(|why: InvalidDigest| why.to_string())?)
            }
            (None, Some(tag)) => OciVersion::Tag(tag.to_owned()),
            (None, None) => OciVersion::Tag("latest".to_owned()),
        };
        let (registry, repository) = (registry.to_owned(), repository.to_owned());
        Ok(OciReference { registry, repository, version })
    }
}

impl OciRegistry {
    /// Returns whether a reference to an image names this registry.
    pub(crate) fn is(&self, registry: &str) -> bool {
        self.0.eq_ignore_ascii_case(registry)
    }
}

impl TryFrom<String> for OciRegistry {
    type Error = InvalidRegistry;

    fn try_from(text: String) -> Result<OciRegistry, InvalidRegistry> {
        match is_registry(&text) {
            true => Ok(OciRegistry(text)),
            false => Err(InvalidRegistry),
        }
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = match self.version {
            OciVersion::Tag(_) => ':',
            OciVersion::Digest(_) => '@',
        };
        let OciReference { registry, repository, version } = self;
        write!(f, "{OCI_SCHEME}{registry}/{repository}{separator}{version}")
    }
}

impl fmt::Display for OciVersion {
    /// Prints the text by which the API of a registry names the manifest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OciVersion::Tag(tag) => f.write_str(tag),
            OciVersion::Digest(digest) => digest.fmt(f),
        }
    }
}

impl OciDigest {
    /// Returns the algorithm.
    pub fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// Returns the digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl fmt::Display for OciDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = match self.algorithm {
            ChecksumAlgorithm::Sha256 => "sha256",
            ChecksumAlgorithm::Sha512 => "sha512",
        };
        write!(f, "{algorithm}:{}", self.hex)
    }
}

impl FromStr for OciDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<OciDigest, InvalidDigest> {
        let (name, hex) = text.split_once(':').ok_or(InvalidDigest)?;
        let algorithm = match name {
            "sha256" => ChecksumAlgorithm::Sha256,
            "sha512" => ChecksumAlgorithm::Sha512,
            _ => return Err(InvalidDigest),
        };
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match hex.bytes().all(is_digit) && algorithm_of(hex.len()) == Some(algorithm) {
            true => Ok(OciDigest { algorithm, hex: hex.to_owned() }),
            false => Err(InvalidDigest),
        }
    }
}

impl TryFrom<String> for OciDigest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<OciDigest, InvalidDigest> {
        text.parse()
    }
}

/// Whether the text is a host name or an address, with or without a port.
fn is_registry(text: &str) -> bool {
    let (is_host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address.parse::<Ipv6Addr>().is_ok(), port),
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (is_host_name(name), port)
        }
    };
    let is_port = |port: &str| {
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        is_number && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

fn is_host_name(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    name.len() <= LONGEST_HOST
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_legal)
}

/// Whether the text is one part of a repository's name: `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`.
fn is_component(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator =
        |text: &str| matches!(text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    text.starts_with(is_letter)
        && text.ends_with(is_letter)
        && text.split(is_letter).all(is_separator)
}

/// Whether the text is a tag: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`.
fn is_tag(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && text.bytes().all(is_legal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn parsed(text: &str) -> (String, String, String) {
        let OciReference { registry, repository, version } = OciReference::parse(text).unwrap();
        (registry, repository, version.to_string())
    }

    #[track_caller]
    fn refuses(text: &str, words: &str) {
        let why = OciReference::parse(text).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }

    #[test]
    fn a_reference_names_registry_repository_and_version() {
        let digest = format!("sha256:{}", "a1".repeat(32));
        let long = format!("sha512:{}", "a1".repeat(64));
        for (text, registry, repository, version) in [
            ("oci://h/debian:12".to_owned(), "h", "debian", "12"),
            (
                "oci://h.example:5000/a/b.c/d__e--f:V1.0_x-y".to_owned(),
                "h.example:5000",
                "a/b.c/d__e--f",
                "V1.0_x-y",
            ),
            ("oci://[2001:db8::1]:5000/a:1".to_owned(), "[2001:db8::1]:5000", "a", "1"),
            ("oci://[::1]/a:1".to_owned(), "[::1]", "a", "1"),
            ("oci://10.0.0.1/a".to_owned(), "10.0.0.1", "a", "latest"),
            (format!("oci://h/a@{digest}"), "h", "a", &*digest),
            (format!("oci://h/a@{long}"), "h", "a", &*long),
            (format!("oci://h/a:12@{digest}"), "h", "a", &*digest),
        ] {
            let want = (registry.to_owned(), repository.to_owned(), version.to_owned());
            assert_eq!(parsed(&text), want, "{text}");
        }
    }

    #[test]
    fn a_malformed_reference_is_refused_by_its_part() {
        refuses("http://h/a:1", "must begin with oci://");
        refuses("OCI://h/a:1", "must begin with oci://");
        for registry in [
            "", ":5000", "h:", "h:0", "h:65536", "h:+5", "h:5000:1", "user@h", "h_x", "-h", "[::1",
            "[h]", "[::1]x", "h?x", "%68", "ä",
        ] {
            refuses(&format!("oci://{registry}/a:1"), "must name a registry");
        }
        for text in ["oci://h", "oci://h/", "oci://h/:1", "oci://debian:12"] {
            refuses(text, "names no repository");
        }
        for repository in [
            "A", "a//b", "/a", "a/", "a/../b", ".", "a..b", "a___b", "_a", "a-", "a b", "a%2fb",
            "a?b", "a#b",
        ] {
            refuses(&format!("oci://h/{repository}:1"), "a repository has at most 255 characters");
        }
        for tag in ["", ".1", "-1", "a:b", "a/b", "a b", "ä", &"x".repeat(129)] {
            refuses(&format!("oci://h/a:{tag}"), "a tag has 1 to 128 letters");
        }
        for digest in [
            "",
            "sha256",
            "sha256:",
            "md5:d41d8cd98f00b204e9800998ecf8427e",
            "sha256:@",
            &"a".repeat(64),
            &format!("sha256:{}", "a".repeat(63)),
            &format!("sha256:{}", "A".repeat(64)),
            &format!("sha512:{}", "a".repeat(64)),
            &format!("sha256:{}@x", "a".repeat(64)),
        ] {
            refuses(&format!("oci://h/a@{digest}"), "a digest is sha256:");
        }
        // Ironic's documents contain such a reference; Ironic cuts it at the colon.
        refuses(&format!("oci://h/a:@sha256:{}", "a".repeat(64)), "a tag has");
    }

    #[test]
    fn the_limits_of_lengths_are_those_of_the_specification() {
        let of = |repository: usize, tag: usize, host: usize| {
            let (host, repository, tag) =
                ("h".repeat(host), "r".repeat(repository), "t".repeat(tag));
            OciReference::parse(&format!("oci://{host}/{repository}:{tag}")).is_ok()
        };
        assert!(of(255, 128, 253));
        assert!(!of(256, 1, 1) && !of(1, 129, 1) && !of(1, 1, 254));
    }

    #[test]
    fn a_reference_is_printed_as_it_is_read() {
        let digest = format!("oci://h:5000/a/b@sha256:{}", "a".repeat(64));
        for text in ["oci://h:5000/a/b:1", &digest] {
            assert_eq!(OciReference::parse(text).unwrap().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = OciReference::parse(&format!("oci://{text}"));
            let _ = text.parse::<OciDigest>();
        }
    }
}
