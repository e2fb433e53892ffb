//! Ironic's answers to requests that no route takes, where they are not the usual 404 and 405.
//!
//! Ironic finds a handler by the parts of the path and then counts its arguments, so a path with one part too many or too few is a wrong
//! request (400).

use http::{Method, StatusCode};
use openstack_api::Kind;

/// An answer to a request that no route takes.
struct Row {
    /// The usual status.
    usual: u16,
    methods: &'static [Method],
    /// The parts of the path after `/v1`. `*` stands for any one part.
    path: &'static str,
    status: u16,
    kind: Kind,
}

const fn row(
    usual: u16,
    methods: &'static [Method],
    path: &'static str,
    status: u16,
    kind: Kind,
) -> Row {
    Row { usual, methods, path, status, kind }
}

const GET: &[Method] = &[Method::GET];
const POST: &[Method] = &[Method::POST];
const DELETE: &[Method] = &[Method::DELETE];
const DELETE_OR_PATCH: &[Method] = &[Method::DELETE, Method::PATCH];
const GET_OR_CHANGE: &[Method] = &[Method::GET, Method::PATCH, Method::DELETE];
const CHANGE: &[Method] = &[Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

use Kind::{Protocol, Resource};

/// The first row that fits decides.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(405, CHANGE,          "",                           405, Resource),
    // The resource is missing.
    row(405, DELETE_OR_PATCH, "nodes",                      400, Resource),
    row(405, DELETE_OR_PATCH, "ports",                      400, Resource),
    row(405, DELETE_OR_PATCH, "portgroups",                 400, Resource),
    row(405, DELETE_OR_PATCH, "chassis",                    400, Resource),
    row(405, DELETE_OR_PATCH, "deploy_templates",           400, Resource),
    row(405, DELETE_OR_PATCH, "runbooks",                   400, Resource),
    row(405, DELETE_OR_PATCH, "volume/connectors",          400, Resource),
    row(405, DELETE_OR_PATCH, "volume/targets",             400, Resource),
    row(405, DELETE,          "nodes/*/vifs",               400, Resource),
    // The path has a part too many.
    row(405, POST,            "nodes/*",                    400, Resource),
    row(405, POST,            "ports/*",                    400, Resource),
    row(405, POST,            "portgroups/*",               400, Resource),
    row(405, POST,            "chassis/*",                  400, Resource),
    row(405, POST,            "nodes/*/ports",              400, Resource),
    row(405, POST,            "nodes/*/validate",           400, Resource),
    row(405, POST,            "portgroups/*/ports",         400, Resource),
    row(405, POST,            "chassis/*/nodes",            400, Resource),
    row(404, GET_OR_CHANGE,   "nodes/*/ports/*",            400, Resource),
    row(404, GET_OR_CHANGE,   "nodes/*/portgroups/*",       400, Resource),
    row(404, GET_OR_CHANGE,   "nodes/*/volume/connectors/*", 400, Resource),
    row(404, GET_OR_CHANGE,   "nodes/*/volume/targets/*",   400, Resource),
    row(404, GET_OR_CHANGE,   "portgroups/*/ports/*",       400, Resource),
    row(404, GET_OR_CHANGE,   "chassis/*/nodes/*",          400, Resource),
    // Ironic has a handler, but none of these methods.
    row(404, GET,             "nodes/*/management",         405, Protocol),
    row(404, GET,             "nodes/*/children/*",         405, Protocol),
    row(404, GET,             "nodes/*/firmware/*",         405, Protocol),
    row(404, GET,             "drivers/*/raid",             405, Protocol),
    row(404, GET,             "lookup/*",                   405, Protocol),
    row(404, GET,             "events",                     405, Protocol),
    row(404, POST,            "conductors",                 405, Protocol),
    // No such part of a resource.
    row(404, GET,             "nodes/*/*",                  400, Resource),
    row(404, GET,             "drivers/*/*",                400, Resource),
    row(404, GET,             "chassis/*/*",                400, Resource),
    row(404, GET,             "shards/*",                   404, Resource),
    row(405, DELETE,          "nodes/*/validate",           404, Resource),
    row(404, DELETE,          "nodes/*/*",                  404, Resource),
];

/// Returns Ironic's answer to a request that no route takes; `None` if this is the usual one.
pub(crate) fn answer(method: &Method, path: &str, usual: StatusCode) -> Option<(StatusCode, Kind)> {
    let path = path.strip_prefix("/v1")?.trim_start_matches('/');
    let fits = |row: &&Row| {
        row.usual == usual.as_u16() && row.methods.contains(method) && matches(row.path, path)
    };
    let row = ROWS.iter().find(fits)?;
    Some((StatusCode::from_u16(row.status).ok()?, row.kind))
}

fn matches(pattern: &str, path: &str) -> bool {
    let is_part = |(pattern, part): (&str, &str)| pattern == "*" || pattern == part;
    pattern.split('/').count() == path.split('/').count()
        && pattern.split('/').zip(path.split('/')).all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: Method, path: &str, usual: u16, want: Option<u16>) {
        let usual = StatusCode::from_u16(usual).unwrap();
        let status = answer(&method, path, usual).map(|(status, _)| status.as_u16());
        assert_eq!(status, want, "{method} {path}");
    }

    #[test]
    fn a_path_with_a_part_too_many_or_too_few_is_a_wrong_request() {
        check(Method::DELETE, "/v1/nodes", 405, Some(400));
        check(Method::PUT, "/v1/nodes", 405, None);
        check(Method::POST, "/v1/nodes/n1", 405, Some(400));
        check(Method::GET, "/v1/nodes/n1/ports/p1", 404, Some(400));
        check(Method::GET, "/v1/nodes/n1/no-such-resource", 404, Some(400));
        check(Method::GET, "/v1/nodes/n1/maintenance", 405, None);
        check(Method::GET, "/v1/nodes/n1/a/b", 404, None);
        check(Method::POST, "/v1", 405, Some(405));
        check(Method::GET, "/bedplate/v1/nodes/n1", 404, None);
    }
}
