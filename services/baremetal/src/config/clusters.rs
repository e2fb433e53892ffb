//! Where clusterd is, and as whom it is asked.

use std::path::PathBuf;

use serde::Deserialize;
use url::Url;

/// clusterd, and as whom it is asked: as somebody with a password of its own, as somebody whom Keystone knows, or as nobody.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawClusters")]
pub struct ClustersConfig {
    /// Its base URL; what the cloud's catalogue says, where there is a cloud and it is not said.
    pub url: Option<Url>,
    /// As whom.
    pub caller: ClustersAs,
}

/// As whom clusterd is asked.
#[derive(Clone, Debug)]
pub enum ClustersAs {
    /// As nobody.
    Anyone,
    /// By a name, and the password in the first line of this file.
    Named(String, PathBuf),
    /// As who is in this clouds.yaml, in the cloud of this name where there are several.
    Known(PathBuf, Option<String>),
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

impl TryFrom<RawClusters> for ClustersConfig {
    type Error = &'static str;

    fn try_from(raw: RawClusters) -> Result<Self, Self::Error> {
        let RawClusters { url, user, password_file, clouds_yaml, cloud } = raw;
        let caller = match (user, password_file, clouds_yaml, cloud) {
            (None, None, None, None) => ClustersAs::Anyone,
            (Some(user), Some(file), None, None) => ClustersAs::Named(user, file),
            (None, None, Some(file), cloud) => ClustersAs::Known(file, cloud),
            (Some(_), None, ..) | (None, Some(_), ..) => {
                return Err("clusters: user and password_file go together");
            }
            (None, None, None, Some(_)) => return Err("clusters: cloud goes with clouds_yaml"),
            (Some(_), Some(_), ..) => {
                return Err("clusters: either user and password_file or clouds_yaml, not both");
            }
        };
        if url.is_none() && !matches!(caller, ClustersAs::Known(..)) {
            return Err("clusters: url is needed where no clouds_yaml says where clusterd is");
        }
        Ok(ClustersConfig { url, caller })
    }
}
