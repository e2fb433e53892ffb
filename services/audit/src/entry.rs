//! What is recorded of a request.

use jiff::Timestamp;

/// How far a request had come when a row was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was let in, and is about to be acted on.
    Asked,
    /// It was answered, with a status.
    Answered,
    /// Whoever asked hung up before the answer. What was asked for may have happened or not.
    Abandoned,
    /// It was not let in: 401 or 403. One row counts many.
    Refused,
}

impl Outcome {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Asked => "asked",
            Outcome::Answered => "answered",
            Outcome::Abandoned => "abandoned",
            Outcome::Refused => "refused",
        }
    }
}

/// What is recorded of a request, before it has its place in the trail. A text that there is none of is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How far it had come.
    pub outcome: Outcome,
    /// The status of the answer; 0 before there is one.
    pub status: u16,
    /// How many requests this is about.
    pub times: u32,
    /// When the first of several was made.
    pub since: Option<Timestamp>,
    /// The request's own id: `req-UUID`. Empty where the row is about several.
    pub request_id: String,
    /// The id that whoever sent it gave it (`X-Openstack-Request-Id`): what it is called in their logs.
    pub global_request_id: String,
    /// Keystone's id of who asked, or a name of the password file.
    pub user_id: String,
    /// Their name, where it is known.
    pub user_name: String,
    /// The project that their token is valid in.
    pub project_id: String,
    /// Their roles there, with commas between.
    pub roles: String,
    /// The service that sent the request on by a token of its own: its user's id.
    pub service_user_id: String,
    /// The address it came from. Behind a proxy that is believed: the client's, then the proxy's.
    pub source: String,
    /// The method.
    pub method: String,
    /// The route, its parts that vary in braces.
    pub route: String,
    /// What stood in the path for those parts: `NAME=VALUE`, as it was sent, with spaces between.
    pub target: String,
    /// What the route does.
    pub action: String,
}

impl Entry {
    /// Of nobody yet, for nothing.
    pub fn new(outcome: Outcome) -> Self {
        let none = String::new;
        Entry {
            outcome,
            status: 0,
            times: 1,
            since: None,
            request_id: none(),
            global_request_id: none(),
            user_id: none(),
            user_name: none(),
            project_id: none(),
            roles: none(),
            service_user_id: none(),
            source: none(),
            method: none(),
            route: none(),
            target: none(),
            action: none(),
        }
    }
}
