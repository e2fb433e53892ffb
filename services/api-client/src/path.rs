//! Paths of the APIs.

use url::Url;

use crate::error::ClientError;

/// The path of an element of a list. The name becomes one segment of the path, whatever characters it contains.
///
/// # Errors
///
/// Returns an error if `list` is not a path.
pub fn element_path(list: &str, one: &str, rest: &str) -> Result<String, ClientError> {
    let invalid = |source| ClientError::InvalidPath { path: list.to_owned(), source };
    let mut url = Url::parse(&format!("http://x{list}")).map_err(invalid)?;
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push(one);
    }
    Ok(format!("{}{rest}", url.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_segment() {
        let path = |one| element_path("/v1/nodes", one, "/states").unwrap();
        assert_eq!(path("r1u07"), "/v1/nodes/r1u07/states");
        assert_eq!(path("a/b?c"), "/v1/nodes/a%2Fb%3Fc/states");
    }
}
