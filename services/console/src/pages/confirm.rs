//! What erases or destroys something asks for its name first, and is not done for who writes another.
//!
//! The question is a page of its own without a script: what is typed there is not exchanged while it is written.

use axum::response::Response;
use serde::Serialize;

use crate::form::Fields;
use crate::problem::Problem;
use crate::visit::Person;

/// A question before something is lost.
#[derive(Debug, Serialize)]
pub(super) struct Question {
    /// What is asked for, such as `Rebuild`.
    pub(super) verb: &'static str,
    /// What becomes of the thing then.
    pub(super) loss: &'static str,
    /// What the thing is: `node`, `rack`.
    pub(super) kind: &'static str,
    /// The name that has to be written.
    pub(super) name: String,
    /// Where the answer is sent.
    pub(super) action: String,
    /// What it is sent with, beside the name.
    pub(super) target: Option<String>,
    /// The page of the thing.
    pub(super) back: String,
    /// What may break, as it was written before, where a service asks that it is named.
    pub(super) force: Option<String>,
}

impl Question {
    /// The page that asks.
    pub(super) fn ask(self, person: &Person, section: &str) -> Result<Response, Problem> {
        let title = format!("{} {}", self.verb, self.name);
        person.show(person.page("confirm.html", &title).under(section).put("question", &self))
    }

    /// The same again, with why it was not done.
    pub(super) fn ask_again(
        self,
        person: &Person,
        section: &str,
        why: &Problem,
    ) -> Result<Response, Problem> {
        let title = format!("{} {}", self.verb, self.name);
        let page = person.page("confirm.html", &title).under(section).put("question", &self);
        person.show_again(page, why)
    }

    /// Whether who sent `fields` wrote the name.
    ///
    /// # Errors
    ///
    /// When another name was written, or none.
    pub(super) fn check(&self, fields: &Fields) -> Result<(), Problem> {
        check_name(fields, &self.name, self.kind)
    }
}

/// Whether who sent `fields` wrote `name`, of what is called a `kind`.
///
/// # Errors
///
/// When another name was written, or none.
pub(super) fn check_name(fields: &Fields, name: &str, kind: &str) -> Result<(), Problem> {
    if fields.find("name").map(str::trim) == Some(name) {
        return Ok(());
    }
    Err(Problem::Unreadable(format!(
        "name: nothing was done; write {name}, the name of the {kind}, to go on"
    )))
}
