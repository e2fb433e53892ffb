//! The source of programs and images: upstream, or a mirror.

use std::fmt;

use url::Url;

/// A file to download, and its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// An HTTP or HTTPS URL.
    pub url: Url,
    /// The member verifies the checksum before it uses the file.
    pub sha256: Sha256,
}

/// A SHA-256 checksum, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sha256(String);

/// Why a text is not a valid SHA-256 checksum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{raw}` is not a valid SHA-256 checksum: use 64 hexadecimal digits in lower case")]
pub struct InvalidSha256 {
    pub raw: String,
}

/// The programs that run directly on a member, outside of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    pub kubeadm: Artifact,
    pub kubelet: Artifact,
    pub kubectl: Artifact,
    /// The CNI plugins as a tar.gz archive with the programs at its top level; `None` if the image contains them in `/opt/cni/bin`.
    pub cni_plugins: Option<Artifact>,
}

/// The source of container images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// The registry and path before the images' names, such as `registry.k8s.io`.
    pub repository: String,
    /// The tag of the image `etcd`; `None` means kubeadm's default.
    pub etcd_tag: Option<String>,
    /// Images that members download as archives, because no registry has them or members must not depend on a registry.
    pub archives: Archives,
}

/// Image archives that containerd imports before any other step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archives {
    /// Images that every member needs: kube-proxy, pause.
    pub every_machine: Vec<Artifact>,
    /// Images that only control-plane members need.
    pub control_plane: Vec<Artifact>,
}

/// The programs and images of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub programs: Programs,
    pub images: Images,
}

#[cfg(feature = "samples")]
impl Source {
    /// Upstream's images, and programs on a mirror that does not exist: for tests that download nothing.
    pub fn sample() -> Self {
        let artifact = |name: &str| Artifact {
            url: format!("https://mirror.example/{name}").parse().expect("it is a URL"),
            sha256: Sha256("0a".repeat(32)),
        };
        let programs = Programs {
            kubeadm: artifact("kubeadm"),
            kubelet: artifact("kubelet"),
            kubectl: artifact("kubectl"),
            cni_plugins: None,
        };
        let repository = "registry.k8s.io".to_owned();
        let images = Images { repository, etcd_tag: None, archives: Archives::default() };
        Source { programs, images }
    }
}

impl Sha256 {
    /// Returns the checksum as 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for Sha256 {
    type Error = InvalidSha256;

    fn try_from(raw: &str) -> Result<Self, InvalidSha256> {
        let legal = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        if raw.len() == 64 && raw.chars().all(legal) {
            Ok(Sha256(raw.to_owned()))
        } else {
            Err(InvalidSha256 { raw: raw.to_owned() })
        }
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_has_64_digits_in_lower_case() {
        let good = "0123456789abcdef".repeat(4);
        let sum = Sha256::try_from(good.as_str()).unwrap();
        assert_eq!((sum.as_str(), sum.to_string()), (good.as_str(), good.clone()));
        for bad in ["", &good[1..], &format!("{good}0"), &good.to_uppercase(), &"g".repeat(64)] {
            assert!(Sha256::try_from(bad).is_err(), "{bad}");
        }
    }
}
