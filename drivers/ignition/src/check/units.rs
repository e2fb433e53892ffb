//! Rules for systemd units and their drop-ins.

use std::collections::HashSet;

use super::mistake::Mistake;
use super::places::ConfigValue;

/// The suffixes of unit names.
const KINDS: [&str; 12] = [
    "automount",
    "device",
    "mount",
    "path",
    "scope",
    "service",
    "slice",
    "snapshot",
    "socket",
    "swap",
    "target",
    "timer",
];

pub(crate) fn check(root: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let units = root.field("systemd").list("units");
    let mut written = HashSet::new();
    for unit in &units {
        let name = unit.field("name");
        let text = name.text().unwrap_or_default();
        let kind = text.rsplit_once('.').map_or("", |(_, kind)| kind);
        if !KINDS.contains(&kind) {
            mistakes.push(name.mistake(format!("`{text}` has no unit suffix such as `.service`")));
        } else if !is_name(text) {
            mistakes.push(name.mistake(format!(
                "`{text}` is not a unit name: use letters, digits and `:-_.@\\`, at most 255"
            )));
        }
        if let Some(contents) = contents(unit, mistakes) {
            written.insert(format!("/etc/systemd/system/{text}"));
            let installed = contents.lines().any(|line| line.trim() == "[Install]");
            if unit.field("enabled").is_true() && !installed {
                mistakes.push(
                    unit.field("enabled")
                        .mistake("would have no effect: the unit has no section [Install]"),
                );
            }
        }
        for dropin in unit.list("dropins") {
            let name = dropin.field("name");
            let file = name.text().unwrap_or_default();
            if !file.ends_with(".conf") || file.contains('/') || file.contains('\0') {
                mistakes.push(name.mistake(format!(
                    "`{file}` is not a drop-in name: the name must end with `.conf`"
                )));
            }
            if contents(&dropin, mistakes).is_some() {
                written.insert(format!("/etc/systemd/system/{text}.d/{file}"));
            }
        }
    }
    for list in ["directories", "files", "links"] {
        for node in root.field("storage").list(list) {
            let path = node.field("path");
            if path.text().is_some_and(|it| written.contains(it)) {
                mistakes.push(
                    path.mistake("conflicts with the unit of the same path in systemd.units"),
                );
            }
        }
    }
}

/// Whether all characters are legal in a unit name (systemd.unit(5)).
fn is_name(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || ":-_.@\\".contains(c);
    text.len() <= 255 && !text.starts_with('.') && text.chars().all(legal)
}

/// Returns the text of a unit or drop-in, if it has one, and reports each line that systemd could not parse.
fn contents<'v>(unit: &ConfigValue<'v>, mistakes: &mut Vec<Mistake>) -> Option<&'v str> {
    let place = unit.field("contents");
    let text = place.filled()?;
    let mut in_section = false;
    let mut continued = false;
    for (index, line) in text.lines().enumerate() {
        let plain = line.trim();
        let complain = |what: &str| place.mistake(format!("line {}: {what}", index + 1));
        let comment = plain.starts_with(['#', ';']);
        if continued || plain.is_empty() || comment {
            continued = plain.ends_with('\\') && (continued || !comment);
            continue;
        }
        if plain.starts_with('[') {
            in_section = plain.ends_with(']') && plain.len() > 2;
            if !in_section {
                mistakes.push(complain("no name of a section"));
            }
        } else if !in_section {
            mistakes.push(complain("stands before any section"));
        } else if plain.split_once('=').is_none_or(|(name, _)| name.trim().is_empty()) {
            mistakes.push(complain("no setting: NAME=VALUE"));
        }
        continued = plain.ends_with('\\');
    }
    Some(text)
}
