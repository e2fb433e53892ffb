//! The section `[clusters]`: the address of clusterd, and the identity for calls to it.

use std::path::PathBuf;

use serde::Deserialize;
use url::Url;

/// The address of clusterd, and the identity for calls: a user of clusterd's own, a Keystone user, or none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawClusters")]
pub struct ClusterdConfig {
    /// The base URL; by default the URL in the cloud's service catalogue.
    pub url: Option<Url>,
    pub caller: ClusterdIdentityConfig,
}

/// The identity for calls to clusterd.
#[derive(Clone, Debug)]
pub enum ClusterdIdentityConfig {
    /// No identity, for a clusterd without authentication.
    Anonymous,
    /// A user name, and a file whose first line is the password.
    Basic(String, PathBuf),
    /// A clouds.yaml, and the cloud's name if the file contains several clouds.
    Keystone(PathBuf, Option<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClusters {
    #[serde(default)]
    url: Option<Url>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    password_file: Option<PathBuf>,
    #[serde(default)]
    clouds_yaml: Option<PathBuf>,
    #[serde(default)]
    cloud: Option<String>,
}

impl TryFrom<RawClusters> for ClusterdConfig {
    type Error = &'static str;

    fn try_from(raw: RawClusters) -> Result<Self, Self::Error> {
        let RawClusters { url, user, password_file, clouds_yaml, cloud } = raw;
        let caller = match (user, password_file, clouds_yaml, cloud) {
            (None, None, None, None) => ClusterdIdentityConfig::Anonymous,
            (Some(user), Some(file), None, None) => ClusterdIdentityConfig::Basic(user, file),
            (None, None, Some(file), cloud) => ClusterdIdentityConfig::Keystone(file, cloud),
            (Some(_), None, ..) | (None, Some(_), ..) => {
                return Err("clusters: user and password_file have to be set together");
            }
            (None, None, None, Some(_)) => return Err("clusters: cloud needs clouds_yaml"),
            (Some(_), Some(_), ..) => {
                return Err("clusters: set either user and password_file or clouds_yaml, not both");
            }
        };
        if url.is_none() && !matches!(caller, ClusterdIdentityConfig::Keystone(..)) {
            return Err(
                "clusters: set url, or clouds_yaml with the cloud whose catalogue contains clusterd",
            );
        }
        Ok(ClusterdConfig { url, caller })
    }
}
