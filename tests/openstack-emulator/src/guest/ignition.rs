//! Resolves user data to the final Ignition config, as the first stage of Ignition does.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fetch::{Fetcher, Unfetched, ungzip};
use super::machine::GuestMachine;
use super::merge::merge;
use crate::object::ReadFields;

/// The longest chain of configs that replace each other or are merged.
const DEEPEST: usize = 10;
/// The supported versions of the Ignition specification.
const VERSIONS: [&str; 6] = ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"];

/// The reason why there is no final config.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConfig {
    #[error("the user-data is not gzip, though it begins so")]
    Compression,
    #[error("a config is not JSON")]
    Json { source: serde_json::Error },
    #[error("unsupported config version {version:?}")]
    Version { version: String },
    #[error("configs refer to each other more than {DEEPEST} times")]
    TooDeep,
    #[error("cannot fetch a config")]
    Fetch {
        #[from]
        source: Unfetched,
    },
}

/// The final config of a server: its user data with all configs that it refers to. Null if the user data is not an Ignition config.
pub(super) async fn final_config(machine: &GuestMachine) -> Result<Value, NoConfig> {
    let data = ungzip(&machine.user_data).map_err(|_| NoConfig::Compression)?;
    let first = data.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(b'{') {
        return Ok(Value::Null);
    }
    let config = parse(&data)?;
    resolve(config, Vec::new(), 0).await
}

fn parse(data: &[u8]) -> Result<Value, NoConfig> {
    let config: Value = serde_json::from_slice(data).map_err(|source| NoConfig::Json { source })?;
    let version = config["ignition"].text("version");
    if !VERSIONS.contains(&version) {
        return Err(NoConfig::Version { version: version.to_owned() });
    }
    Ok(config)
}

/// Replaces a config by the one it names in `replace`, or merges the configs it names in `merge`.
///
/// As in Ignition, the certificate authorities of earlier configs stay trusted.
fn resolve(
    config: Value,
    authorities: Vec<Value>,
    depth: usize,
) -> std::pin::Pin<Box<dyn Future<Output = Result<Value, NoConfig>> + Send>> {
    Box::pin(async move {
        if depth > DEEPEST {
            return Err(NoConfig::TooDeep);
        }
        let mut authorities = authorities;
        let own = config["ignition"]["security"]["tls"]["certificateAuthorities"].as_array();
        authorities.extend(own.into_iter().flatten().cloned());
        let fetcher = Fetcher::new(&authorities, &config["ignition"]["timeouts"]).await?;
        let replace = &config["ignition"]["config"]["replace"];
        if replace["source"].is_string() {
            let next = parse(&fetcher.resource(replace).await?)?;
            return resolve(next, authorities, depth + 1).await;
        }
        let mut whole = config.clone();
        for one in config["ignition"]["config"].list("merge").iter() {
            let child = parse(&fetcher.resource(one).await?)?;
            let child = resolve(child, authorities.clone(), depth + 1).await?;
            whole = merge(whole, child);
        }
        if let Some(inner) = whole["ignition"].as_object_mut() {
            inner.remove("config");
        }
        Ok(whole)
    })
}

/// The text files of a config by path, if their contents are inline in a `data:` URL.
pub fn files(config: &Value) -> BTreeMap<String, String> {
    let files = config["storage"].list("files").iter();
    let text = |file: &Value| {
        let contents = &file["contents"];
        let bytes = super::fetch::data_url(contents["source"].as_str()?)?;
        let bytes = if contents["compression"] == "gzip" { ungzip(&bytes).ok()? } else { bytes };
        Some((file["path"].as_str()?.to_owned(), String::from_utf8(bytes).ok()?))
    };
    files.filter_map(text).collect()
}
