//! Errors in the form of DSP0266 §8.6, with message ids of the Base registry (DSP8011).

use http::StatusCode;
use serde_json::json;

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

/// A message: the status of its answer, its id in the registry, and its text, in which `%1` is the first argument.
pub(crate) struct Message(u16, &'static str, &'static str);

#[rustfmt::skip]
impl Message {
    const NO_VALID_SESSION: Message = Message(401, "NoValidSession", "No valid session or credentials came with the request.");
    pub(crate) const BAD_LOGIN: Message = Message(401, "ResourceAtUriUnauthorized", "The user name or password is wrong.");
    pub(crate) const SESSION_LIMIT: Message = Message(503, "SessionLimitExceeded", "All session slots are taken.");
    pub(crate) const QUERY_NOT_SUPPORTED: Message = Message(501, "QueryNotSupported", "The query option is not supported.");
    pub(crate) const ODATA_VERSION: Message = Message(412, "GeneralError", "Only OData-Version 4.0 is spoken here.");
    pub(crate) const TAG_DIFFERS: Message = Message(412, "PreconditionFailed", "The entity tag does not match.");
    pub(crate) const TAG_REQUIRED: Message = Message(428, "PreconditionRequired", "An If-Match header is required.");
    pub(crate) const BODY_TOO_LARGE: Message = Message(413, "PayloadTooLarge", "The body is too large.");
    pub(crate) const NOT_JSON: Message = Message(415, "UnrecognizedRequestBody", "The body must be application/json.");
    pub(crate) const MALFORMED_JSON: Message = Message(400, "MalformedJSON", "The body is not well-formed JSON.");
    pub(crate) const NOT_AN_OBJECT: Message = Message(400, "UnrecognizedRequestBody", "The body must be a JSON object.");
    pub(crate) const EMPTY_JSON: Message = Message(400, "EmptyJSON", "The body names nothing to change.");
    pub(crate) const WHILE_OFF: Message = Message(409, "ResourceInStandby", "The system is powered off.");
    pub(crate) const JOB_QUEUE_FULL: Message = Message(503, "ResourceExhaustion", "The queue of jobs is full.");
    pub(crate) const NOT_MULTIPART: Message = Message(415, "UnrecognizedRequestBody", "The body must be multipart/form-data.");
    pub(crate) const IMAGE_UNFIT: Message = Message(400, "GeneralError", "The image fits no component of this machine.");
    pub(crate) const DRIVES_UNFIT: Message = Message(400, "ResourceCannotBeCreated", "The drives have no room for such a volume.");
    pub(crate) const CREATE_LIMIT: Message = Message(400, "CreateLimitReachedForResource", "There is no room for another resource.");
    pub(crate) const NOT_A_WEBSOCKET: Message = Message(426, "GeneralError", "The console is a WebSocket.");
    pub(crate) const CONSOLE_IN_USE: Message = Message(503, "SessionLimitExceeded", "Another session has the console.");
    const FAULT: Message = Message(500, "GeneralError", "The service cannot do this now.");
    const MISSING: Message = Message(404, "ResourceMissingAtURI", "There is no resource at this URI.");
    const NOT_ALLOWED: Message = Message(405, "OperationNotAllowed", "The method is not allowed on this resource.");

    pub(crate) const PROPERTY_MISSING: Message = Message(400, "PropertyMissing", "Property %1 is required.");
    pub(crate) const PROPERTY_UNKNOWN: Message = Message(400, "PropertyUnknown", "There is no property \"%1\" here.");
    pub(crate) const PROPERTY_NOT_WRITABLE: Message = Message(400, "PropertyNotWritable", "Property %1 cannot be changed here.");
    pub(crate) const PROPERTY_TYPE: Message = Message(400, "PropertyValueTypeError", "The value of %2 is of the wrong type.");
    pub(crate) const PROPERTY_FORMAT: Message = Message(400, "PropertyValueFormatError", "The value of %2 is malformed.");
    pub(crate) const PROPERTY_NOT_IN_LIST: Message = Message(400, "PropertyValueNotInList", "The value of %2 is not one of those allowed.");
    pub(crate) const PARAMETER_MISSING: Message = Message(400, "ActionParameterMissing", "Action %1 needs parameter %2.");
    pub(crate) const PARAMETER_UNKNOWN: Message = Message(400, "ActionParameterUnknown", "Action %1 has no parameter \"%2\".");
    pub(crate) const PARAMETER_TYPE: Message = Message(400, "ActionParameterValueTypeError", "Parameter %2 of action %3 is of the wrong type.");
    pub(crate) const PARAMETER_FORMAT: Message = Message(400, "ActionParameterValueFormatError", "Parameter %2 of action %3 is malformed.");
    pub(crate) const PARAMETER_NOT_IN_LIST: Message = Message(400, "ActionParameterValueNotInList", "The value of parameter %2 of action %3 is not one of those allowed.");
}

impl Problem {
    pub(crate) fn of(message: Message) -> Problem {
        Problem::with(message, &[])
    }

    fn with(Message(status, id, text): Message, arguments: &[&str]) -> Problem {
        let arguments: Vec<String> =
            arguments.iter().map(|argument| argument.chars().take(128).collect()).collect();
        let numbered = arguments.iter().zip(1..);
        let text = numbered
            .fold(text.to_owned(), |text, (argument, n)| text.replace(&format!("%{n}"), argument));
        Problem {
            status: status_of(status),
            message_id: format!("Base.1.13.{id}"),
            message: text.into(),
            arguments,
            property: None,
            headers: Vec::new(),
        }
    }

    /// An error about the property `name`.
    pub(crate) fn property(message: Message, name: &str) -> Problem {
        Problem { property: Some(format!("#/{name}").into()), ..Problem::with(message, &[name]) }
    }

    /// An error about the value of the property `name`.
    pub(crate) fn value(message: Message, name: &str, value: impl ToString) -> Problem {
        let problem = Problem::with(message, &[&value.to_string(), name]);
        Problem { property: Some(format!("#/{name}").into()), ..problem }
    }

    /// An error about the parameter `name` of an action.
    pub(crate) fn parameter(message: Message, action: &str, name: &str) -> Problem {
        Problem::with(message, &[action, name])
    }

    /// An error about the value of the parameter `name` of an action.
    pub(crate) fn argument(
        message: Message,
        action: &str,
        name: &str,
        value: impl ToString,
    ) -> Problem {
        Problem::with(message, &[&value.to_string(), name, action])
    }

    pub(crate) fn summary(&self) -> String {
        format!("{} {}", self.status.as_u16(), self.message_id)
    }

    /// The error of a fault, without details that a client could use.
    pub(crate) fn fault(status: u16, retry_after: Option<u32>) -> Problem {
        let headers = retry_after.map(|seconds| ("retry-after", seconds.to_string()));
        let headers = headers.into_iter().collect();
        Problem { status: status_of(status), headers, ..Problem::of(Message::FAULT) }
    }

    /// A problem that passes: the answer asks for a retry after this many seconds.
    pub(crate) fn busy(message: Message, retry_after: u32) -> Problem {
        let headers = vec![("retry-after", retry_after.to_string())];
        Problem { headers, ..Problem::of(message) }
    }

    pub(crate) fn vendor(refusal: &Refusal) -> Problem {
        Problem {
            status: status_of(refusal.status),
            message_id: refusal.message_id.clone(),
            message: refusal.message.clone().into(),
            ..Problem::of(Message::FAULT)
        }
    }

    pub(crate) fn unauthorized() -> Problem {
        // RFC 9110 §15.5.2: a 401 names an authentication scheme.
        let scheme = "Basic realm=\"Redfish\", charset=\"UTF-8\"".to_owned();
        let headers = vec![("www-authenticate", scheme)];
        Problem { headers, ..Problem::of(Message::NO_VALID_SESSION) }
    }

    pub(crate) fn no_such_resource(path: &str) -> Problem {
        Problem::with(Message::MISSING, &[path])
    }

    pub(crate) fn method_not_allowed(allowed: &[&str]) -> Problem {
        let headers = vec![("allow", allowed.join(", "))];
        Problem { headers, ..Problem::of(Message::NOT_ALLOWED) }
    }
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
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
