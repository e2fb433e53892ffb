//! The errors of Keystone, in its own words.

use crate::request::refusals;

refusals! {
    403 not_allowed(rule): "You are not authorized to perform the requested action: identity:{rule}.";
    403 not_authorized(): "You are not authorized to perform the requested action.";
    404 missing(what, id): "Could not find {what}: {id}.";
    400 needed(field): "'{field}' is a required property";
    409 duplicate_id(single, id): "Conflict occurred attempting to store {single} - Duplicate ID, {id}..";
    409 duplicate(single, name): "Conflict occurred attempting to store {single} - Duplicate entry found with name {name} at domain ID default.";
    409 duplicate_credential(name): "Conflict occurred attempting to store application_credential - Duplicate entry found with name {name}.";
    400 role_not_assigned(role, user, project): "Invalid application credential: Could not find role assignment with role: {role}, user or group: {user}, project, domain, or system: {project}.";
    400 bad_url(url): "Cannot create an endpoint with an invalid URL: {url}.";
    400 other_id(single): "Cannot change {single} ID";
    403 region_in_use(id): "Unable to delete region {id} because it or its child regions have associated endpoints.";
    400 invalid(field, value, why): "Invalid input for field/attribute {field}. Value: {value}. {value} {why}";
    400 no_reference(what, kind): "Expecting to find endpoint {what} in {kind} table. The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error.";
    403 other_trustor(): "The authenticated user should match the trustor";
    403 not_trustor(): "Only admin or trustor can delete a trust";
    403 role_needed(): "At least one role should be specified";
    400 no_object(): "Expecting to find valid JSON in request body.";
    405 bad_method(): "The method is not allowed for the requested URL.";
}
