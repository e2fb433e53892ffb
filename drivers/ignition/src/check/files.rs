//! Rules for files, directories, links, and their owners.

use super::mistake::Mistake;
use super::places::ConfigValue;

/// Permission bits together with setuid, setgid and sticky.
const MODES: std::ops::RangeInclusive<i64> = 0..=0o7777;

pub(crate) fn check(root: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let storage = root.field("storage");
    for list in ["directories", "files", "links"] {
        for node in storage.list(list) {
            node_of_any_kind(&storage, &node, mistakes);
            match list {
                "files" => overwrite(&node, mistakes),
                "links" => target(&storage, &node, mistakes),
                _ => {}
            }
        }
    }
    for list in ["users", "groups"] {
        for account in root.field("passwd").list(list) {
            let name = account.field("name");
            let legal = |c: char| c.is_ascii_graphic() && !":,/".contains(c);
            if name.filled().is_none_or(|text| {
                text.len() > 32 || text.starts_with('-') || !text.chars().all(legal)
            }) {
                mistakes.push(name.mistake(
                    "not a name of a user or group: use at most 32 characters, and no space, `:`, `,` or `/`",
                ));
            }
        }
    }
}

/// Requires an absolute path in the form that Ignition itself would normalize the path to.
pub(crate) fn path(place: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let text = place.text().unwrap_or_default();
    if text.is_empty() {
        mistakes.push(place.mistake("a path is missing"));
    } else if !text.starts_with('/') {
        mistakes.push(place.mistake(format!("`{text}` is not an absolute path")));
    } else if text.contains('\0') {
        mistakes.push(place.mistake("a path cannot hold a zero byte"));
    } else if text != "/" && text[1..].split('/').any(|part| matches!(part, "" | "." | "..")) {
        mistakes.push(place.mistake(format!("`{text}` has empty parts, `.` or `..`")));
    }
}

fn node_of_any_kind(
    storage: &ConfigValue<'_>,
    node: &ConfigValue<'_>,
    mistakes: &mut Vec<Mistake>,
) {
    path(&node.field("path"), mistakes);
    let mode = node.field("mode");
    if mode.number().is_some_and(|it| !MODES.contains(&it)) {
        mistakes
            .push(mode.mistake("not a mode: use a decimal number from 0 to 4095 (7777 in octal)"));
    }
    for owner in ["user", "group"] {
        let owner = node.field(owner);
        if owner.field("id").number().is_some() && owner.field("name").filled().is_some() {
            mistakes.push(owner.mistake("has a number and a name: remove one of them"));
        }
    }
    let inside = node.field("path").text().unwrap_or_default();
    for link in storage.list("links") {
        let through = link.field("path").text().unwrap_or_default();
        if !through.is_empty()
            && inside.strip_prefix(through).is_some_and(|rest| rest.starts_with('/'))
        {
            mistakes.push(node.mistake(format!("the path leads through the link {}", link.path)));
        }
    }
}

fn overwrite(file: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    if file.field("overwrite").is_true() && file.field("contents").field("source").text().is_none()
    {
        mistakes.push(
            file.field("overwrite")
                .mistake("`overwrite` needs a source: add contents or remove `overwrite`"),
        );
    }
}

fn target(storage: &ConfigValue<'_>, link: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let target = link.field("target");
    let Some(text) = target.filled() else {
        mistakes.push(target.mistake("a target is missing"));
        return;
    };
    let directory = |it: &ConfigValue<'_>| it.field("path").text() == Some(text);
    if link.field("hard").is_true() && storage.list("directories").iter().any(directory) {
        mistakes.push(link.mistake("the target of a hard link cannot be a directory"));
    }
}
