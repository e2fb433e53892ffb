//! Errors in the form of DSP0266 §8.6, with message ids of the Base registry (DSP8011).

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::profile::Refusal;
use crate::redfish::answer::Answer;

/// The reason why a request was refused.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    /// The message id with its registry, such as `Base.1.13.GeneralError`.
    message_id: String,
    message: Box<str>,
    arguments: Vec<String>,
    /// The wrong property, as a JSON pointer.
    property: Option<Box<str>>,
    headers: Vec<(&'static str, String)>,
}

impl Problem {
    fn base(
        status: StatusCode,
        id: &str,
        message: impl Into<Box<str>>,
        arguments: &[&str],
    ) -> Problem {
        Problem {
            status,
            message_id: format!("Base.1.13.{id}"),
            message: message.into(),
            arguments: arguments
                .iter()
                .map(|argument| argument.chars().take(128).collect())
                .collect(),
            property: None,
            headers: Vec::new(),
        }
    }

    fn at(mut self, property: &str) -> Problem {
        self.property = Some(format!("#/{property}").into());
        self
    }

    pub(crate) fn summary(&self) -> String {
        format!("{} {}", self.status.as_u16(), self.message_id)
    }

    /// The error of a fault, without details that a client could use.
    pub(crate) fn fault(status: u16) -> Problem {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Problem::base(status, "GeneralError", "The service cannot do this now.", &[])
    }

    pub(crate) fn vendor(refusal: &Refusal) -> Problem {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
        let message_id = refusal.message_id.clone();
        Problem { message_id, ..Problem::base(status, "", refusal.message.clone(), &[]) }
    }

    pub(crate) fn unauthorized() -> Problem {
        let mut problem = Problem::base(
            StatusCode::UNAUTHORIZED,
            "NoValidSession",
            "No valid session or credentials came with the request.",
            &[],
        );
        // RFC 9110 §15.5.2: a 401 names an authentication scheme.
        problem
            .headers
            .push(("www-authenticate", "Basic realm=\"Redfish\", charset=\"UTF-8\"".to_owned()));
        problem
    }

    pub(crate) fn bad_login() -> Problem {
        Problem::base(
            StatusCode::UNAUTHORIZED,
            "ResourceAtUriUnauthorized",
            "The user name or password is wrong.",
            &[],
        )
    }

    pub(crate) fn session_limit() -> Problem {
        Problem::base(
            StatusCode::SERVICE_UNAVAILABLE,
            "SessionLimitExceeded",
            "All session slots are taken.",
            &[],
        )
    }

    pub(crate) fn no_such_resource(path: &str) -> Problem {
        Problem::base(
            StatusCode::NOT_FOUND,
            "ResourceMissingAtURI",
            "There is no resource at this URI.",
            &[path],
        )
    }

    pub(crate) fn method_not_allowed(method: &Method, allowed: &[&str]) -> Problem {
        let mut problem = Problem::base(
            StatusCode::METHOD_NOT_ALLOWED,
            "OperationNotAllowed",
            format!("{method} is not allowed on this resource."),
            &[],
        );
        problem.headers.push(("allow", allowed.join(", ")));
        problem
    }

    pub(crate) fn query_not_supported(name: &str) -> Problem {
        Problem::base(
            StatusCode::NOT_IMPLEMENTED,
            "QueryNotSupported",
            format!("Query option {name} is not supported."),
            &[],
        )
    }

    pub(crate) fn odata_version() -> Problem {
        Problem::base(
            StatusCode::PRECONDITION_FAILED,
            "GeneralError",
            "Only OData-Version 4.0 is spoken here.",
            &[],
        )
    }

    pub(crate) fn tag_differs() -> Problem {
        Problem::base(
            StatusCode::PRECONDITION_FAILED,
            "PreconditionFailed",
            "The entity tag does not match.",
            &[],
        )
    }

    pub(crate) fn tag_required() -> Problem {
        Problem::base(
            StatusCode::PRECONDITION_REQUIRED,
            "PreconditionRequired",
            "An If-Match header is required.",
            &[],
        )
    }

    pub(crate) fn body_too_large() -> Problem {
        Problem::base(
            StatusCode::PAYLOAD_TOO_LARGE,
            "PayloadTooLarge",
            "The body is too large.",
            &[],
        )
    }

    pub(crate) fn not_json() -> Problem {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Problem::base(status, "UnrecognizedRequestBody", "The body must be application/json.", &[])
    }

    pub(crate) fn malformed_json() -> Problem {
        Problem::base(
            StatusCode::BAD_REQUEST,
            "MalformedJSON",
            "The body is not well-formed JSON.",
            &[],
        )
    }

    pub(crate) fn not_an_object() -> Problem {
        Problem::base(
            StatusCode::BAD_REQUEST,
            "UnrecognizedRequestBody",
            "The body must be a JSON object.",
            &[],
        )
    }

    pub(crate) fn empty_json() -> Problem {
        Problem::base(
            StatusCode::BAD_REQUEST,
            "EmptyJSON",
            "The body names nothing to change.",
            &[],
        )
    }

    pub(crate) fn property_missing(name: &str) -> Problem {
        let message = format!("Property {name} is required.");
        Problem::base(StatusCode::BAD_REQUEST, "PropertyMissing", message, &[name]).at(name)
    }

    pub(crate) fn property_unknown(name: &str) -> Problem {
        let message = format!("There is no property {name:?} here.");
        Problem::base(StatusCode::BAD_REQUEST, "PropertyUnknown", message, &[name]).at(name)
    }

    pub(crate) fn property_not_writable(name: &str) -> Problem {
        let message = format!("Property {name} cannot be changed here.");
        Problem::base(StatusCode::BAD_REQUEST, "PropertyNotWritable", message, &[name]).at(name)
    }

    pub(crate) fn property_type(name: &str, value: &Value) -> Problem {
        let message = format!("The value of {name} is of the wrong type.");
        Problem::base(
            StatusCode::BAD_REQUEST,
            "PropertyValueTypeError",
            message,
            &[&value.to_string(), name],
        )
        .at(name)
    }

    pub(crate) fn property_format(name: &str, value: &str) -> Problem {
        let message = format!("The value of {name} is malformed.");
        Problem::base(StatusCode::BAD_REQUEST, "PropertyValueFormatError", message, &[value, name])
            .at(name)
    }

    pub(crate) fn property_not_in_list(name: &str, value: &str) -> Problem {
        let message = format!("The value of {name} is not one of those allowed.");
        Problem::base(StatusCode::BAD_REQUEST, "PropertyValueNotInList", message, &[value, name])
            .at(name)
    }

    pub(crate) fn parameter_missing(action: &str, name: &str) -> Problem {
        let message = format!("Action {action} needs parameter {name}.");
        Problem::base(StatusCode::BAD_REQUEST, "ActionParameterMissing", message, &[action, name])
    }

    pub(crate) fn parameter_unknown(action: &str, name: &str) -> Problem {
        let message = format!("Action {action} has no parameter {name:?}.");
        Problem::base(StatusCode::BAD_REQUEST, "ActionParameterUnknown", message, &[action, name])
    }

    pub(crate) fn parameter_type(action: &str, name: &str, value: &Value) -> Problem {
        let message = format!("Parameter {name} of action {action} is of the wrong type.");
        let arguments = [&value.to_string(), name, action];
        Problem::base(StatusCode::BAD_REQUEST, "ActionParameterValueTypeError", message, &arguments)
    }

    pub(crate) fn parameter_format(action: &str, name: &str, value: &str) -> Problem {
        let message = format!("Parameter {name} of action {action} is malformed.");
        let arguments = [value, name, action];
        Problem::base(
            StatusCode::BAD_REQUEST,
            "ActionParameterValueFormatError",
            message,
            &arguments,
        )
    }

    pub(crate) fn parameter_not_in_list(action: &str, name: &str, value: &str) -> Problem {
        let message = format!(
            "The value of parameter {name} of action {action} is not one of those allowed."
        );
        let arguments = [value, name, action];
        Problem::base(StatusCode::BAD_REQUEST, "ActionParameterValueNotInList", message, &arguments)
    }

    pub(crate) fn while_off() -> Problem {
        Problem::base(StatusCode::CONFLICT, "ResourceInStandby", "The system is powered off.", &[])
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Answer {
        let mut message = json!({
            "@odata.type": "#Message.v1_1_1.Message",
            "MessageId": problem.message_id,
            "Message": problem.message,
            "MessageArgs": problem.arguments,
            "Severity": "Critical",
            "MessageSeverity": "Critical",
            "Resolution": "None.",
        });
        if let Some(property) = problem.property {
            message["RelatedProperties"] = json!([property]);
        }
        let body = json!({
            "error": {
                "code": problem.message_id,
                "message": problem.message,
                "@Message.ExtendedInfo": [message],
            }
        });
        let answer = Answer::json(problem.status, body);
        problem.headers.into_iter().fold(answer, |answer, (name, value)| answer.with(name, value))
    }
}
