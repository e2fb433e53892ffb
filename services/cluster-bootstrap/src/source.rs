//! Where programs and images come from: upstream, or a mirror.

use std::fmt;

use url::Url;

/// A file, and what it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// HTTP or HTTPS.
    pub url: Url,
    /// Checked by the machine before it uses the file.
    pub sha256: Sha256,
}

/// A SHA-256, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sha256(String);

/// Why a text is no SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{raw}` is no SHA-256: 64 of 0-9 and a-f")]
pub struct InvalidSha256 {
    /// What was given.
    pub raw: String,
}

/// The programs that run on the machine itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// Of the cluster's version.
    pub kubeadm: Artifact,
    /// Of the cluster's version.
    pub kubelet: Artifact,
    /// Of the cluster's version.
    pub kubectl: Artifact,
    /// The CNI plugins as a gzip'd tar file, the programs at its top; none where the image has them in `/opt/cni/bin`.
    pub cni_plugins: Option<Artifact>,
}

/// Where images come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// The registry and path before the images' names, such as `registry.k8s.io`.
    pub repository: String,
    /// The tag of `etcd`, where it is not kubeadm's choice.
    pub etcd_tag: Option<String>,
    /// Images that machines fetch as files, because no registry has them or they are not to depend on one.
    pub archives: Archives,
}

/// Image archives that containerd imports before anything is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archives {
    /// What every machine needs: kube-proxy, pause.
    pub every_machine: Vec<Artifact>,
    /// What the control plane needs.
    pub control_plane: Vec<Artifact>,
}

/// Everything a cluster is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Programs.
    pub programs: Programs,
    /// Images.
    pub images: Images,
}

#[cfg(feature = "samples")]
impl Source {
    /// Upstream's images, and programs of a mirror that there is not: for tests that fetch nothing.
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
    /// The digits.
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
