//! The facts that the trail records about a request.

use jiff::Timestamp;

words::words! {
    /// How far a request had come when its row was written, with the word in the row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Outcome {
        /// The caller is authorized, and the request is about to be acted on.
        Asked = "asked",
        /// The service answered, with a status.
        Answered = "answered",
        /// The caller closed the connection before the answer. The request may or may not have taken effect.
        Abandoned = "abandoned",
        /// The request was refused with 401 or 403. One row counts many refusals.
        Refused = "refused",
    }
}

/// The facts that the trail records about a request, before the row has its number and hash. Unknown texts are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub outcome: Outcome,
    /// HTTP status of the answer; 0 as long as there is none.
    pub status: u16,
    /// How many requests the row counts; 1 unless the outcome is `Refused`.
    pub times: u32,
    /// When the first of several counted requests was made.
    pub since: Option<Timestamp>,
    /// The id of the request: `req-UUID`. Empty if the row counts several requests.
    pub request_id: String,
    /// The id that the sender gave the request (`X-Openstack-Request-Id`), which appears in the logs of the sender.
    pub global_request_id: String,
    /// Keystone's id of the user, or a user name from the password file.
    pub user_id: String,
    /// Empty if the name is unknown.
    pub user_name: String,
    /// The project that the user's token is scoped to.
    pub project_id: String,
    /// The roles of the user in that project, separated by commas.
    pub roles: String,
    /// Keystone's id of the service user, if a service forwarded the request with a token of its own.
    pub service_user_id: String,
    /// The address of the caller. Behind a trusted proxy: the address of the client, then the address of the proxy.
    pub source: String,
    pub method: String,
    /// The route, with the path parameters in braces.
    pub route: String,
    /// The path parameters as sent: `NAME=VALUE`, separated by spaces.
    pub target: String,
    /// A short description of the route, in the words of the policy table.
    pub action: String,
}

impl Entry {
    /// Makes an entry with this outcome in which every other field is empty.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of earlier versions hold these words, and their hashes cover them.
    #[test]
    fn every_outcome_keeps_its_word() {
        let words = [
            (Outcome::Asked, "asked"),
            (Outcome::Answered, "answered"),
            (Outcome::Abandoned, "abandoned"),
            (Outcome::Refused, "refused"),
        ];
        for (outcome, word) in words {
            assert_eq!(outcome.as_str(), word);
        }
    }
}
