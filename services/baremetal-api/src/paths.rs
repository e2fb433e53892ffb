//! Paths that Ironic serves like other paths.

use openstack_api::Microversion;

use crate::microversion::NO_JSON_SUFFIX;
use crate::root::VERSIONS;

/// Returns the path that serves a request for `path`: Ironic serves the resources of version 1 also without `/v1`, and also with the suffix
/// `.json` if the client requests a version before 1.91.
pub(crate) fn alias(path: &str, asked: Option<Microversion>) -> Option<String> {
    let had_suffix = asked.is_some_and(|asked| !asked.has(NO_JSON_SUFFIX));
    let stem = path.strip_suffix(".json").filter(|_| had_suffix).filter(|stem| {
        // The document of the API itself has this suffix, too.
        stem.starts_with("/v1") || is_resource(stem)
    });
    let served = stem.unwrap_or(path);
    match is_resource(served) {
        true => Some(format!("/v1{served}")),
        false => stem.map(str::to_owned),
    }
}

/// Whether the first part of the path is the name of a resource of version 1.
fn is_resource(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    VERSIONS.resources.iter().any(|(name, _)| *name == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_lack_its_version_and_have_a_suffix() {
        let served = |path: &str, minor| alias(path, Some(Microversion::new(minor)));
        for (path, before, since) in [
            ("/nodes", Some("/v1/nodes"), Some("/v1/nodes")),
            ("/nodes/n1.json", Some("/v1/nodes/n1"), Some("/v1/nodes/n1.json")),
            ("/v1/nodes/n1.json", Some("/v1/nodes/n1"), None),
            ("/v1.json", Some("/v1"), None),
            ("/v1/nodes", None, None),
            ("/", None, None),
            ("/openapi.json", None, None),
            ("/bedplate/v1/counts", None, None),
            ("/nodesmith", None, None),
        ] {
            assert_eq!(served(path, 90).as_deref(), before, "{path}");
            assert_eq!(served(path, 91).as_deref(), since, "{path}");
            assert_eq!(alias(path, None).as_deref(), since, "{path}");
        }
    }
}
