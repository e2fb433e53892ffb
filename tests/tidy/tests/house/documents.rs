//! Checks READMEs and ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::fs;

use tidy::{Crate, assert_none, crates, files, root, text_files};

/// The most lines of a crate's README.
const LONGEST: usize = 40;

/// Top folders; documents name files in them by the whole path.
const FOLDERS: [&str; 5] = ["deploy", "drivers", "images", "services", "tests"];

#[test]
fn every_crate_has_a_short_readme() {
    let crates = crates();
    let wrong = crates.iter().filter_map(|one| {
        let Ok(text) = fs::read_to_string(one.file("README.md")) else {
            return Some(format!("{}: there is none", one.path()));
        };
        let lines = text.lines().count();
        if lines > LONGEST {
            return Some(format!("{}: {lines} lines", one.path()));
        }
        let titled = text.lines().next() == Some(&format!("# {}", one.folder));
        (!titled).then(|| format!("{}: does not begin with the crate's name", one.path()))
    });
    assert_none("READMEs that are missing, long or untitled", wrong);
}

#[test]
fn every_recipe_of_an_image_has_a_readme() {
    let files = files();
    let inside = files.iter().filter_map(|file| file.strip_prefix("images/")?.split_once('/'));
    let folders: BTreeSet<&str> = inside.map(|(folder, _)| folder).collect();
    assert!(!folders.is_empty(), "images/ holds no recipe");
    let lacks = |folder: &&str| !files.contains(&format!("images/{folder}/README.md"));
    assert_none("recipes without a README", folders.into_iter().filter(lacks).map(str::to_owned));
}

#[test]
fn a_readme_says_where_to_start_reading() {
    let crates = crates();
    let lacks = |one: &&Crate| {
        let text = fs::read_to_string(one.file("README.md")).unwrap_or_default();
        !["tart reading", "`src/", "`tests/"].iter().any(|sign| text.contains(sign))
    };
    assert_none(
        "READMEs that do not say where to start",
        crates.iter().filter(lacks).map(Crate::path),
    );
}

#[test]
fn a_readme_is_its_crates_front_page() {
    let crates = crates();
    let lacks = |one: &&Crate| {
        let root = ["src/lib.rs", "src/main.rs"].map(|file| one.file(file));
        let root = root.iter().find(|file| file.exists());
        let text = root.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        !text.starts_with("#![doc = include_str!(\"../README.md\")]")
    };
    assert_none("crates with another front page", crates.iter().filter(lacks).map(Crate::path));
}

#[test]
fn architecture_describes_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("there is a map");
    let missing =
        crates().into_iter().filter(|one| !map.contains(&format!("**`{}`**", one.folder)));
    assert_none("crates without a paragraph in ARCHITECTURE.md", missing.map(|one| one.path()));
}

#[test]
fn architecture_describes_no_missing_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("there is a map");
    let shown = map.split("**`").skip(1).filter_map(|rest| rest.split_once("`**"));
    let there = crates();
    let gone = shown.filter(|(name, _)| !there.iter().any(|one| one.folder == *name));
    assert_none(
        "paragraphs in ARCHITECTURE.md without a crate",
        gone.map(|(name, _)| name.to_owned()),
    );
}

#[test]
fn documents_name_existing_files() {
    let crates = crates();
    let documents = text_files().into_iter().filter(|file| file.path.ends_with(".md"));
    let wrong = documents.flat_map(|document| {
        let own = document.path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let there = |name: &str| {
            let name = name.trim_end_matches('/');
            let source = format!("{own}/src");
            let places = ["", &own, &source, "services", "drivers"];
            name.contains('*') || places.iter().any(|it| root().join(it).join(name).exists())
        };
        let named = named_files(&document.text, &crates);
        let gone: Vec<&str> = named.into_iter().filter(|name| !there(name)).collect();
        gone.iter().map(|name| format!("{} names {name}", document.path)).collect::<Vec<_>>()
    });
    assert_none("documents that name what is not there", wrong);
}

/// The paths of this repository that `text` names, quoted in backticks or linked.
fn named_files<'t>(text: &'t str, crates: &[Crate]) -> Vec<&'t str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let linked = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let linked = linked.filter(|link| !link.contains("://") && !link.starts_with('#'));
    let ours = |name: &&str| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-*".contains(c));
        let folder = name.split_once('/').map(|(first, _)| first);
        let known = |first| {
            first == "src" || FOLDERS.contains(&first) || crates.iter().any(|it| it.folder == first)
        };
        plain && folder.is_some_and(known)
    };
    quoted.filter(ours).chain(linked).collect()
}
