//! Requests to the API of a cluster, and answers.

use serde_json::{Value, json};

use super::auth::User;

/// Status and body of an answer.
pub(super) type Reply = (u16, Value);

/// The answer to a request, or the error answer.
pub(super) type ReplyResult<T = Reply> = Result<T, Reply>;

pub(super) struct ParsedRequest<'r> {
    pub(super) user: User,
    pub(super) method: &'r str,
    pub(super) path: &'r str,
    pub(super) query: &'r str,
    pub(super) accept: &'r str,
    pub(super) kind: &'r str,
    pub(super) body: &'r [u8],
}

impl ParsedRequest<'_> {
    /// The value of a query parameter. Empty if it is missing.
    pub(super) fn parameter(&self, wanted: &str) -> String {
        let mut pairs = url::form_urlencoded::parse(self.query.as_bytes());
        let found = pairs.find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    }
}

/// A `Status` object for an error.
pub(super) fn failure(code: u16, reason: &str, message: &str) -> Reply {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code});
    (code, status)
}

/// Declares error answers, one a line: the status, the reason, a function that makes the answer, and the message.
macro_rules! failures {
    ($($code:literal $reason:ident $name:ident($($field:ident),*): $message:literal;)*) => {$(
        pub(super) fn $name($($field: impl std::fmt::Display),*) -> Reply {
            failure($code, stringify!($reason), &std::fmt::format(format_args!($message)))
        }
    )*};
}

failures! {
    400 BadRequest bad_query(why): "{why}";
    400 BadRequest bad_body(): "the body cannot be read";
    400 BadRequest waiting(): "container is waiting to start";
    400 BadRequest manager_needed(): "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
    400 BadRequest kind_needed(): "Object 'Kind' is missing";
    400 BadRequest other_name(): "the name of the object does not match the URL";
    400 BadRequest no_eviction(version): "no kind \"Eviction\" is registered for version \"{version}\"";
    401 Unauthorized unauthorized(): "Unauthorized";
    403 Forbidden forbidden(resource, user): "{resource} is forbidden: User \"{user}\" cannot do this";
    403 Forbidden terminating(namespace): "unable to create new content in namespace {namespace} because it is being terminated";
    404 NotFound lost(path): "the server could not find the requested resource: {path}";
    404 NotFound not_found(resource, name): "{resource} \"{name}\" not found";
    405 MethodNotAllowed no_watch(): "the emulated API server does not watch";
    405 MethodNotAllowed not_allowed(): "the server does not allow this method on the requested resource";
    409 AlreadyExists exists(resource, name): "{resource} \"{name}\" already exists";
    409 Conflict modified(resource, name): "Operation cannot be fulfilled on {resource} \"{name}\": the object has been modified; please apply your changes to the latest version and try again";
    409 Conflict other_uid(resource, name, uid): "Operation cannot be fulfilled on {resource} \"{name}\": the UID in the precondition ({uid}) does not match the UID in record";
    409 Conflict conflicts(count, fields): "Apply failed with {count} conflicts: {fields}";
    413 RequestEntityTooLarge too_large(): "the request is too large";
    415 UnsupportedMediaType send_json(): "the body cannot be read: send JSON";
    415 UnsupportedMediaType bad_patch(): "the patch cannot be read or does not fit";
    422 Invalid name_needed(): "name or generateName is required";
    422 Invalid invalid(why): "{why}";
    429 TooManyRequests no_disruption(): "Cannot evict pod as it would violate the pod's disruption budget.";
}
