//! Versions of Kubernetes that clusterd can install.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A version of Kubernetes as the label `kube_tag` names it: `v1.34.1`. The major version is always 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KubernetesVersion {
    pub minor: u16,
    pub patch: u16,
}

/// The text is not a version that clusterd can install.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownVersion {
    #[error("{raw:?} is not a valid Kubernetes version: write it as v1.34.1")]
    Unreadable {
        /// The text that was given, cut to 64 characters so that it fits in a message.
        raw: String,
    },
    /// The version is outside the range for which clusterd writes kubeadm configurations.
    #[error("{version} is not supported: choose v1.{oldest} to v1.{newest}")]
    Unsupported { version: KubernetesVersion, oldest: u16, newest: u16 },
}

impl KubernetesVersion {
    /// The version of a cluster whose labels name none.
    pub const DEFAULT: KubernetesVersion = KubernetesVersion { minor: 34, patch: 1 };
    /// The oldest supported minor version: kubeadm reads `v1beta2` since this version.
    pub const OLDEST: u16 = 20;
    /// The newest supported minor version.
    pub const NEWEST: u16 = 37;

    /// Whether an API server of this version admits a kubelet of version `kubelet`: it must not be newer, nor more than two minor versions
    /// older; from 1.28 on three, if it is at least 1.25.
    ///
    /// Source: kubernetes.io/releases/version-skew-policy, "kubelet".
    pub fn admits_kubelet(self, kubelet: KubernetesVersion) -> bool {
        let most = if self.minor >= 28 && kubelet.minor >= 25 { 3 } else { 2 };
        self.minor.checked_sub(kubelet.minor).is_some_and(|age| age <= most)
    }

    /// Why a control plane of this version cannot be upgraded to `wanted`.
    ///
    /// Source: kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-upgrade: kubeadm skips no minor version.
    pub fn upgrade_objection(self, wanted: KubernetesVersion) -> Option<String> {
        if wanted < self {
            return Some(format!(
                "{wanted} is older than {self}, the version of the cluster; Kubernetes cannot be downgraded"
            ));
        }
        (wanted.minor > self.minor + 1).then(|| {
            format!(
                "{wanted} skips a minor version after {self}, the version of the cluster: upgrade to v1.{} first",
                self.minor + 1
            )
        })
    }
}

impl FromStr for KubernetesVersion {
    type Err = UnknownVersion;

    fn from_str(raw: &str) -> Result<Self, UnknownVersion> {
        let read = || {
            let (minor, patch) = raw.strip_prefix("v1.")?.split_once('.')?;
            let number = |text: &str| {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u16>().ok().filter(|_| digits)
            };
            Some(KubernetesVersion { minor: number(minor)?, patch: number(patch)? })
        };
        let version = read()
            .ok_or_else(|| UnknownVersion::Unreadable { raw: raw.chars().take(64).collect() })?;
        let (oldest, newest) = (Self::OLDEST, Self::NEWEST);
        if !(oldest..=newest).contains(&version.minor) {
            return Err(UnknownVersion::Unsupported { version, oldest, newest });
        }
        Ok(version)
    }
}

words::strings!(KubernetesVersion);

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_told_apart_from_other_text() {
        assert_eq!("v1.34.1".parse(), Ok(KubernetesVersion { minor: 34, patch: 1 }));
        for bad in ["1.34.1", "v1.34", "v2.34.1", "v1.34.1-rancher1", "latest", "v1.+4.1"] {
            assert!(
                matches!(bad.parse::<KubernetesVersion>(), Err(UnknownVersion::Unreadable { .. })),
                "{bad}"
            );
        }
        let old = "v1.19.0".parse::<KubernetesVersion>().unwrap_err();
        assert_eq!(old.to_string(), "v1.19.0 is not supported: choose v1.20 to v1.37");
    }

    #[test]
    fn an_api_server_admits_kubelets_of_a_few_older_versions() {
        let version = |minor| KubernetesVersion { minor, patch: 0 };
        let rows = [
            (24, 24, true),
            (24, 25, false),
            (24, 22, true),
            (24, 21, false),
            (27, 24, false),
            (28, 25, true),
            (28, 24, false),
            (34, 31, true),
            (34, 30, false),
        ];
        for (api, kubelet, want) in rows {
            assert_eq!(version(api).admits_kubelet(version(kubelet)), want, "{api} {kubelet}");
        }
        let patch = |patch| KubernetesVersion { minor: 30, patch };
        assert!(patch(1).admits_kubelet(patch(2)), "patches do not count");
    }

    #[test]
    fn an_upgrade_goes_forward_and_skips_no_minor_version() {
        let objection = |wanted: &str| {
            let now = KubernetesVersion { minor: 30, patch: 4 };
            now.upgrade_objection(wanted.parse().unwrap())
        };
        for good in ["v1.30.4", "v1.30.9", "v1.31.0", "v1.31.12"] {
            assert_eq!(objection(good), None, "{good}");
        }
        for bad in ["v1.30.3", "v1.29.9"] {
            assert!(objection(bad).unwrap().contains("cannot be downgraded"), "{bad}");
        }
        let said = "v1.32.0 skips a minor version after v1.30.4, the version of the cluster: upgrade to v1.31 first";
        assert_eq!(objection("v1.32.0").as_deref(), Some(said));
    }

    #[test]
    fn a_version_is_a_string_in_json() {
        let version = KubernetesVersion { minor: 33, patch: 2 };
        let json = serde_json::to_string(&version).unwrap();
        assert_eq!(json, "\"v1.33.2\"");
        assert_eq!(serde_json::from_str::<KubernetesVersion>(&json).unwrap(), version);
    }
}
