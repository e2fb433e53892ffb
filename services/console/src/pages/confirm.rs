//! Confirmations: an action that erases or destroys something needs the name of the resource.
//!
//! The question is a page of its own that is not live, so that an update does not remove what the user types.

use axum::response::Response;
use serde::Serialize;

use crate::form::Fields;
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};

/// The question before an action that destroys something.
#[derive(Debug, Serialize)]
pub(super) struct Question {
    /// The action, such as `Rebuild`.
    pub(super) verb: &'static str,
    /// The consequences of the action.
    pub(super) loss: &'static str,
    /// The kind of the resource: `node`, `rack`.
    pub(super) kind: &'static str,
    /// The name that the user has to type.
    pub(super) name: String,
    /// The path that the form is sent to.
    pub(super) action: String,
    /// The `target` field of the form.
    pub(super) target: Option<String>,
    /// The page of the resource.
    pub(super) back: String,
    /// The clusters or hosts that the user permits to disrupt, as typed before; `None` if the service has not asked for them.
    pub(super) force: Option<String>,
}

impl Question {
    pub(super) fn ask(self, person: &AuthorizedUser, section: &str) -> Result<Response> {
        let title = format!("{} {}", self.verb, self.name);
        person.show(person.page("confirm.html", &title).under(section).put("question", &self))
    }

    /// Shows the question again, with the reason why nothing was done.
    pub(super) fn ask_again(
        self,
        person: &AuthorizedUser,
        section: &str,
        why: &Problem,
    ) -> Result<Response> {
        let title = format!("{} {}", self.verb, self.name);
        let page = person.page("confirm.html", &title).under(section).put("question", &self);
        person.show_again(page, why)
    }

    /// Checks that the form contains the name.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is missing or another one.
    pub(super) fn check(&self, fields: &Fields) -> Result<()> {
        check_name(fields, &self.name, self.kind)
    }
}

/// Checks that the form contains `name`, the name of a resource of this `kind`.
///
/// # Errors
///
/// Returns an error if the name is missing or another one.
pub(super) fn check_name(fields: &Fields, name: &str, kind: &str) -> Result<()> {
    if fields.find("name").map(str::trim) == Some(name) {
        return Ok(());
    }
    Err(Problem::Unreadable(format!(
        "name: type {name}, the name of the {kind}, to confirm; nothing was changed"
    )))
}
