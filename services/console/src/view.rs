//! Pages as text: the templates, and the words they have for times, sizes and states.

mod words;

pub(crate) use words::{span, tone};

use std::collections::HashMap;

use serde::Serialize;
use tera::{Context, Tera, Value};

use crate::api::encoded;
use crate::assets::PATHS;
use crate::config::Access;
use crate::problem::Problem;
use crate::service::Console;
use crate::visit::Visit;

/// Every template, inside the program.
macro_rules! templates {
    ($($name:literal),+ $(,)?) => { [$(($name, include_str!(concat!("../templates/", $name)))),+] };
}

const TEMPLATES: &[(&str, &str)] = &templates![
    "base.html",
    "parts.html",
    "problem.html",
    "confirm.html",
    "login.html",
    "overview.html",
    "racks.html",
    "rack.html",
    "nodes.html",
    "node.html",
    "sensors.html",
    "account.html",
    "bring_up.html",
    "bring_up_check.html",
    "discoveries.html",
    "images.html",
    "quotas.html",
    "audit.html",
    "clusters.html",
    "cluster.html",
    "cluster_new.html",
    "vms.html",
    "vm.html",
    "vm_new.html",
    "console.html",
    "places.html",
    "project.html",
    "profiles.html",
    "profile.html",
    "profile_new.html",
    "serial_screen.html",
    "serial_typing.html",
    "serial.html",
    "hosts.html",
    "host.html",
    "where.html",
];

/// The templates, read.
pub(crate) fn engine() -> Result<Tera, tera::Error> {
    let mut engine = Tera::default();
    engine.set_escape_fn(escape);
    engine.register_filter("ago", ago);
    engine.register_filter("left", left);
    engine.register_filter("clock", clock);
    engine.register_filter("moment", moment);
    engine.register_filter("tone", tone_of);
    engine.register_filter("segment", segment);
    engine.register_filter("mib", mib);
    engine.register_filter("bytes", bytes);
    engine.add_raw_templates(TEMPLATES.iter().copied())?;
    Ok(engine)
}

/// A text as a part of HTML: between tags, or in an attribute in quotes. Paths stay as they are.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            plain => escaped.push(plain),
        }
    }
    escaped
}

/// A page that is to be written.
pub(crate) struct Page {
    template: &'static str,
    context: Context,
    followed: Followed,
}

/// Whether a page's live part is exchanged as it changes, and who says that it did.
enum Followed {
    /// It stays as it is.
    Not,
    /// The page, made again.
    Again,
    /// This stream.
    At(String),
}

impl Page {
    pub(crate) fn new(template: &'static str, title: &str) -> Self {
        let mut context = Context::new();
        context.insert("title", title);
        context.insert("section", "");
        // What forms are shown again with; most are not.
        context.insert("refused", &None::<&str>);
        Page { template, context, followed: Followed::Not }
    }

    /// Tells the template something.
    pub(crate) fn put(mut self, name: &str, value: impl Serialize) -> Self {
        self.context.insert(name, &value);
        self
    }

    /// Which part of the console it belongs to.
    pub(crate) fn under(self, section: &str) -> Self {
        self.put("section", section)
    }

    /// Its live part is exchanged as it changes.
    pub(crate) fn live(self) -> Self {
        Page { followed: Followed::Again, ..self }
    }

    /// The same, by a stream of its own.
    pub(crate) fn followed_at(self, stream: String) -> Self {
        Page { followed: Followed::At(stream), ..self }
    }

    /// As HTML, for this visit: whole, or its live part alone.
    pub(crate) fn write(mut self, console: &Console, visit: &Visit) -> Result<String, Problem> {
        let session = visit.session.as_deref();
        self.context.insert("assets", &*PATHS);
        self.context.insert("is_live", &visit.is_live);
        self.context.insert("token", &console.guard().token(&visit.cookie));
        self.context.insert("who", &session.map(|it| it.name.as_str()));
        self.context.insert("project", &session.and_then(|it| it.project.as_deref()));
        self.context.insert("asks_for_names", &(*console.access() != Access::None));
        self.context.insert("is_in", &(session.is_some() || *console.access() == Access::None));
        let follow = match self.followed {
            Followed::Not => None,
            Followed::Again => Some(format!("/live?page={}", encoded(&visit.target))),
            Followed::At(stream) => Some(stream),
        };
        self.context.insert("follow", &follow);
        console.engine().render(self.template, &self.context).map_err(|why| {
            let mut words = why.to_string();
            let mut cause = std::error::Error::source(&why);
            while let Some(why) = cause {
                words = format!("{words}: {why}");
                cause = why.source();
            }
            tracing::error!("a page could not be written: {words}");
            Problem::Broken(words)
        })
    }
}

type Arguments = HashMap<String, Value>;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// How long ago a time was: `3 min ago`.
fn ago(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::ago(text(value), jiff::Timestamp::now()).into())
}

/// How long it is until a time: `5 h 12 min`.
fn left(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::left(text(value), jiff::Timestamp::now()).into())
}

/// A time of day: `14:03:22`.
fn clock(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::clock(text(value)).into())
}

/// A day and a time: `2026-11-23 14:03:22 UTC`.
fn moment(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::moment(text(value)).into())
}

/// The class of a chip for a state.
fn tone_of(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::tone(text(value)).into())
}

/// A text as one segment of a path.
fn segment(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(encoded(text(value)).into())
}

/// So many MiB, as a person reads it.
fn mib(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::bytes(value.as_f64().unwrap_or_default() * 1048576.0).into())
}

/// So many bytes, as a person reads it.
fn bytes(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::bytes(value.as_f64().unwrap_or_default()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_read() {
        engine().unwrap();
    }

    #[test]
    fn what_is_written_into_a_page_is_text() {
        assert_eq!(escape("<a href=\"/x\">'&'"), "&lt;a href=&quot;/x&quot;&gt;&#x27;&amp;&#x27;");
    }

    /// What the content security policy would not let happen, and what would go around the escaping.
    #[test]
    fn no_template_holds_a_script_or_a_style_of_its_own_or_trusts_a_text() {
        for (name, text) in TEMPLATES {
            for unwanted in [
                " style=",
                "<style",
                " onclick",
                " onload",
                "javascript:",
                "hx-on",
                "| safe",
                "|safe",
            ] {
                assert!(!text.contains(unwanted), "{name} has {unwanted}");
            }
            let scripts = text.matches("<script").count();
            assert_eq!(scripts, text.matches("<script src=\"{{ assets").count(), "{name}");
        }
    }

    /// A form without it is refused.
    #[test]
    fn every_form_that_changes_something_carries_the_token() {
        for (name, text) in TEMPLATES {
            for form in text.split("<form").skip(1) {
                let form = form.split("</form>").next().unwrap_or_default();
                let changes = form.contains("method=\"post\"");
                assert!(!changes || form.contains("::token("), "{name}: <form{form}");
            }
        }
    }
}
