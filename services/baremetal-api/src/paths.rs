//! Paths that Ironic serves like other paths.

use openstack_api::Microversion;

use crate::microversion::NO_JSON_SUFFIX;
use crate::root::VERSIONS;

/// Returns the path that serves a request for `path`: Ironic serves the resources of version 1 also without `/v1`, also with the suffix
/// `.json` if the client requests a version before 1.91, and a console also with the node at the end.
pub(crate) fn alias(path: &str, asked: Option<Microversion>) -> Option<String> {
    let had_suffix = asked.is_some_and(|asked| !asked.has(NO_JSON_SUFFIX));
    let stem = path.strip_suffix(".json").filter(|_| had_suffix).filter(|stem| {
        // The document of the API itself has this suffix, too.
        stem.starts_with("/v1") || is_resource(stem)
    });
    let served = stem.unwrap_or(path);
    if let Some(node) = served.strip_prefix(CONSOLE).filter(|node| !node.contains('/')) {
        return Some(format!("/v1/nodes/{node}/states/console"));
    }
    match is_resource(served) {
        true => Some(format!("/v1{served}")),
        false => stem.map(str::to_owned),
    }
}

/// The path of consoles that older clients use: the node comes last.
const CONSOLE: &str = "/v1/nodes/states/console/";

/// Whether the first part of the path is the name of a resource of version 1.
fn is_resource(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    VERSIONS.resources.iter().any(|(name, _)| *name == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE_OF_N1: Option<&str> = Some("/v1/nodes/n1/states/console");

    #[test]
    fn a_path_may_lack_its_version_and_have_a_suffix() {
        let served = |path: &str, minor| alias(path, Some(Microversion::new(minor)));
        for (path, before, since) in [
            ("/nodes", Some("/v1/nodes"), Some("/v1/nodes")),
            ("/nodes/n1.json", Some("/v1/nodes/n1"), Some("/v1/nodes/n1.json")),
            ("/v1/nodes/n1.json", Some("/v1/nodes/n1"), None),
            ("/v1.json", Some("/v1"), None),
            ("/v1/nodes", None, None),
            ("/v1/nodes/states/console/n1", CONSOLE_OF_N1, CONSOLE_OF_N1),
            ("/v1/nodes/states/console/n1/x", None, None),
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
