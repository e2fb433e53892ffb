//! Paths of the APIs.

use anyhow::Context;
use url::Url;

/// The path of an element of a list. The name becomes one segment of the path, whatever characters it contains.
pub(crate) fn element_path(list: &str, one: &str, rest: &str) -> anyhow::Result<String> {
    let mut url: Url = format!("http://x{list}").parse().context("no URL")?;
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push(one);
    }
    Ok(format!("{}{rest}", url.path()))
}
