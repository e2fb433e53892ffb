//! Renders pages: the templates, and their filters for times, sizes and states.

mod words;

pub(crate) use words::{bytes, tone};

use std::collections::HashMap;

use serde::Serialize;
use tera::{Context, Tera, Value};

use crate::api::encoded;
use crate::assets::PATHS;
use crate::problem::Problem;

/// Every template, compiled into the program.
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
    "discovery_accept.html",
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
    "graphical.html",
    "hosts.html",
    "host.html",
    "where.html",
];

pub(crate) fn engine() -> Result<Tera, tera::Error> {
    let mut engine = Tera::default();
    engine.set_escape_fn(escape);
    engine.register_filter("ago", ago);
    engine.register_filter("age", age);
    engine.register_filter("left", left);
    engine.register_filter("clock", clock);
    engine.register_filter("moment", moment);
    engine.register_filter("span", span_of);
    engine.register_filter("tone", tone_of);
    engine.register_filter("segment", segment);
    engine.register_filter("mib", mib);
    engine.register_filter("bytes", bytes_of);
    engine.add_raw_templates(TEMPLATES.iter().copied())?;
    Ok(engine)
}

/// Escapes a text for HTML, between tags or inside a quoted attribute. `/` stays as it is.
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

pub(crate) struct Page {
    template: &'static str,
    context: Context,
    followed: LiveUpdate,
}

/// Whether and how a page's live part is updated.
enum LiveUpdate {
    /// The page is not live.
    Not,
    /// The page is rendered again.
    Again,
    /// The page follows the stream at this path.
    At(String),
}

impl Page {
    pub(crate) fn new(template: &'static str, title: &str) -> Self {
        let mut context = Context::new();
        context.insert("title", title);
        context.insert("section", "");
        // The reason why a form is shown again; most pages have none.
        context.insert("refused", &None::<&str>);
        Page { template, context, followed: LiveUpdate::Not }
    }

    /// Sets a variable of the template.
    pub(crate) fn put(mut self, name: &str, value: impl Serialize) -> Self {
        self.context.insert(name, &value);
        self
    }

    /// Sets the part of the navigation that is highlighted.
    pub(crate) fn under(self, section: &str) -> Self {
        self.put("section", section)
    }

    pub(crate) fn live(self) -> Self {
        Page { followed: LiveUpdate::Again, ..self }
    }

    /// Makes the page live, with a stream of its own.
    pub(crate) fn followed_at(self, stream: String) -> Self {
        Page { followed: LiveUpdate::At(stream), ..self }
    }

    pub(crate) fn render(mut self, engine: &Tera, target: &str) -> Result<String, Problem> {
        self.context.insert("assets", &*PATHS);
        let follow = match self.followed {
            LiveUpdate::Not => None,
            LiveUpdate::Again => Some(format!("/live?page={}", encoded(target))),
            LiveUpdate::At(stream) => Some(stream),
        };
        self.context.insert("follow", &follow);
        engine.render(self.template, &self.context).map_err(|why| {
            let mut words = why.to_string();
            let mut cause = std::error::Error::source(&why);
            while let Some(why) = cause {
                words = format!("{words}: {why}");
                cause = why.source();
            }
            tracing::error!("cannot render a page: {words}");
            Problem::Internal(words)
        })
    }
}

type Arguments = HashMap<String, Value>;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The time since a point in time: `3 min ago`.
fn ago(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::ago(text(value), jiff::Timestamp::now()).into())
}

/// The duration since a point in time: `3 min`.
fn age(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::age(text(value), jiff::Timestamp::now()).into())
}

/// The time until a point in time: `5 h 12 min`.
fn left(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::left(text(value), jiff::Timestamp::now()).into())
}

/// The time of day: `14:03:22`.
fn clock(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::clock(text(value)).into())
}

/// The date and time: `2026-11-23T14:03:22Z`.
fn moment(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::moment(text(value)).into())
}

/// A duration: `20 min`.
fn span_of(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(readable::iso_duration(text(value)).into())
}

/// The CSS class of a chip for a state.
fn tone_of(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::tone(text(value)).into())
}

/// A text as one segment of a path.
fn segment(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(encoded(text(value)).into())
}

/// A number of MiB with a unit that fits.
fn mib(value: &Value, _: &Arguments) -> tera::Result<Value> {
    Ok(words::bytes(value.as_f64().unwrap_or_default() * 1048576.0).into())
}

/// A number of bytes with a unit that fits.
fn bytes_of(value: &Value, _: &Arguments) -> tera::Result<Value> {
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
    fn text_is_escaped_for_html() {
        assert_eq!(escape("<a href=\"/x\">'&'"), "&lt;a href=&quot;/x&quot;&gt;&#x27;&amp;&#x27;");
    }

    /// The content security policy would block inline scripts and styles, and `safe` would bypass the escaping.
    #[test]
    fn no_template_has_inline_scripts_or_styles_or_unescaped_text() {
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

    /// The console refuses a form without the token.
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
