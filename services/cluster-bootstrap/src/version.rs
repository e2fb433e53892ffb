//! Supported releases of Kubernetes, and what differs between them.

use std::fmt;

/// A supported release of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KubernetesVersion {
    minor: u8,
    patch: u16,
}

/// Why a version is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVersion {
    #[error("`{raw}` is not a valid Kubernetes version: write it as v1.31.2")]
    Malformed { raw: String },
    /// No test covers this minor version.
    #[error("Kubernetes {raw} is not supported: choose 1.{FIRST} to 1.{LAST}")]
    Unsupported { raw: String },
}

/// The API version of kubeadm's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KubeadmApi {
    V1Beta2,
    V1Beta3,
    V1Beta4,
}

/// The differences of one minor version that configs depend on.
pub(crate) struct MinorVersion {
    minor: u8,
    pub(crate) api: KubeadmApi,
    /// The tag of the image that holds a pod's namespaces (kubernetes, cmd/kubeadm/app/constants: PauseVersion).
    pub(crate) pause: &'static str,
}

#[rustfmt::skip]
const MINORS: &[MinorVersion] = &[
    MinorVersion { minor: 20, api: KubeadmApi::V1Beta2, pause: "3.2" },
    MinorVersion { minor: 21, api: KubeadmApi::V1Beta2, pause: "3.4.1" },
    MinorVersion { minor: 22, api: KubeadmApi::V1Beta3, pause: "3.5" },
    MinorVersion { minor: 23, api: KubeadmApi::V1Beta3, pause: "3.6" },
    MinorVersion { minor: 24, api: KubeadmApi::V1Beta3, pause: "3.7" },
    MinorVersion { minor: 25, api: KubeadmApi::V1Beta3, pause: "3.8" },
    MinorVersion { minor: 26, api: KubeadmApi::V1Beta3, pause: "3.9" },
    MinorVersion { minor: 27, api: KubeadmApi::V1Beta3, pause: "3.9" },
    MinorVersion { minor: 28, api: KubeadmApi::V1Beta3, pause: "3.9" },
    MinorVersion { minor: 29, api: KubeadmApi::V1Beta3, pause: "3.9" },
    MinorVersion { minor: 30, api: KubeadmApi::V1Beta3, pause: "3.9" },
    MinorVersion { minor: 31, api: KubeadmApi::V1Beta4, pause: "3.10" },
    MinorVersion { minor: 32, api: KubeadmApi::V1Beta4, pause: "3.10" },
    MinorVersion { minor: 33, api: KubeadmApi::V1Beta4, pause: "3.10" },
    MinorVersion { minor: 34, api: KubeadmApi::V1Beta4, pause: "3.10.1" },
    MinorVersion { minor: 35, api: KubeadmApi::V1Beta4, pause: "3.10.1" },
    MinorVersion { minor: 36, api: KubeadmApi::V1Beta4, pause: "3.10.2" },
    MinorVersion { minor: 37, api: KubeadmApi::V1Beta4, pause: "3.10.2" },
];
const FIRST: u8 = MINORS[0].minor;
const LAST: u8 = MINORS[MINORS.len() - 1].minor;

impl MinorVersion {
    /// Whether the kubelet keeps images that the container runtime marks as pinned when it frees disk space. Older kubelets need an
    /// argument that names the image that every pod needs (kubernetes, pull request 118544).
    pub(crate) fn knows_pinned_images(&self) -> bool {
        self.minor >= 29
    }

    /// Whether kubeadm takes the rights for its uploads from `super-admin.conf`, because `admin.conf` has none by itself (kubernetes, pull
    /// request 121305).
    pub(crate) fn has_super_admin(&self) -> bool {
        self.minor >= 29
    }

    /// Whether kubelets of the control plane call the API server of their own member, which cannot start before its etcd. kubeadm then joins
    /// etcd before it waits for the kubelet, and no longer in `control-plane-join` (kubernetes, cmd/kubeadm/app/features:
    /// ControlPlaneKubeletLocalMode, the default since 1.33).
    pub(crate) fn joins_etcd_before_the_kubelet(&self) -> bool {
        self.minor >= 33
    }

    /// Whether kubeadm makes etcd request disk space. A kubelet that has just started does not know its disk for a moment, and permanently
    /// rejects a static pod that requests disk space (kubernetes, issue 99305, fixed in 1.20.5; this crate works around it in all of 1.20).
    pub(crate) fn etcd_asks_for_disk(&self) -> bool {
        self.minor == 20
    }
}

impl KubernetesVersion {
    pub(crate) fn minor_version(self) -> &'static MinorVersion {
        &MINORS[usize::from(self.minor - FIRST)]
    }
}

impl KubeadmApi {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            KubeadmApi::V1Beta2 => "kubeadm.k8s.io/v1beta2",
            KubeadmApi::V1Beta3 => "kubeadm.k8s.io/v1beta3",
            KubeadmApi::V1Beta4 => "kubeadm.k8s.io/v1beta4",
        }
    }
}

impl TryFrom<&str> for KubernetesVersion {
    type Error = InvalidVersion;

    fn try_from(raw: &str) -> Result<Self, InvalidVersion> {
        let malformed = || InvalidVersion::Malformed { raw: raw.to_owned() };
        let number = |text: &str| {
            let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
            digits.then(|| text.parse::<u16>().ok()).flatten().ok_or_else(malformed)
        };
        let plain = raw.strip_prefix('v').unwrap_or(raw);
        let parts: Vec<&str> = plain.split('.').collect();
        let [major, minor, patch] = parts[..] else { return Err(malformed()) };
        let (major, minor, patch) = (number(major)?, number(minor)?, number(patch)?);
        match u8::try_from(minor) {
            Ok(minor) if major == 1 && (FIRST..=LAST).contains(&minor) => Ok(Self { minor, patch }),
            Ok(_) | Err(_) => Err(InvalidVersion::Unsupported { raw: raw.to_owned() }),
        }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minor_version_is_in_the_table_once() {
        for (index, it) in MINORS.iter().enumerate() {
            assert_eq!(usize::from(it.minor), usize::from(FIRST) + index);
        }
    }

    #[test]
    fn each_version_has_the_configuration_api_of_its_kubeadm() {
        let api = |raw| KubernetesVersion::try_from(raw).unwrap().minor_version().api;
        assert_eq!(api("v1.20.2"), KubeadmApi::V1Beta2);
        assert_eq!(api("1.21.14"), KubeadmApi::V1Beta2);
        assert_eq!(api("v1.22.0"), KubeadmApi::V1Beta3);
        assert_eq!(api("v1.30.9"), KubeadmApi::V1Beta3);
        assert_eq!(api("v1.31.0"), KubeadmApi::V1Beta4);
        let names = ["v1.21.0", "v1.22.0", "v1.31.0"].map(|raw| api(raw).as_str());
        assert_eq!(
            names,
            ["v1beta2", "v1beta3", "v1beta4"].map(|it| format!("kubeadm.k8s.io/{it}"))
        );
    }

    #[test]
    fn a_version_is_written_with_its_patch() {
        for raw in ["v1.31.2", "1.31.2"] {
            assert_eq!(KubernetesVersion::try_from(raw).unwrap().to_string(), "v1.31.2");
        }
    }

    #[test]
    fn a_refusal_tells_a_version_from_other_text() {
        let refused = |raw| KubernetesVersion::try_from(raw).unwrap_err();
        for raw in ["v1.20", "v1.20.", "v1..2", "v1.20.x", "1.20.2.3", "v1.70000.0"] {
            assert!(matches!(refused(raw), InvalidVersion::Malformed { .. }), "{raw}");
        }
        for raw in ["v1.19.0", "v1.38.0", "v0.20.0", "v1.276.0"] {
            assert!(matches!(refused(raw), InvalidVersion::Unsupported { .. }), "{raw}");
        }
    }

    #[test]
    fn an_unsupported_version_is_refused() {
        for bad in [
            "v1.19.0",
            "v1.99.0",
            "v2.20.0",
            "v1.256.0",
            "v1.20",
            "latest",
            "v1.20.2-rc.1",
            "",
            "v1.+20.2",
        ] {
            assert!(KubernetesVersion::try_from(bad).is_err(), "{bad}");
        }
    }
}
