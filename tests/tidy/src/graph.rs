//! The foreign and own crates that are built, as Cargo resolves them.

use std::collections::{BTreeSet, HashMap};
use std::process::Command;

use serde::Deserialize;

use crate::files::root;

/// The dependency graph of all crates that are built.
pub struct Graph {
    packages: HashMap<String, Package>,
    /// The ids of the crates linked into a crate, by id; without dev-dependencies.
    linked: HashMap<String, Vec<String>>,
}

/// A crate of this repository or a foreign one.
#[derive(Deserialize)]
pub struct Package {
    id: String,
    pub name: String,
    pub version: String,
    /// The licence as an SPDX expression.
    pub license: Option<String>,
    /// The registry that publishes the crate; `None` for a crate of this repository.
    pub source: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    pkg: String,
    dep_kinds: Vec<LinkKind>,
}

#[derive(Deserialize)]
struct LinkKind {
    kind: Option<String>,
}

impl Graph {
    /// Every crate that is part of a build.
    pub fn packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.values()
    }

    /// The names of all crates linked into our crate `name`, directly or indirectly, including itself.
    pub fn linked_with(&self, name: &str) -> BTreeSet<&str> {
        let own = |package: &&Package| package.source.is_none() && package.name == name;
        let start = self.packages().find(own).unwrap_or_else(|| panic!("there is no crate {name}"));
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![start.id.as_str()]);
        while let Some(id) = waiting.pop() {
            if seen.insert(id) {
                waiting.extend(self.linked.get(id).into_iter().flatten().map(String::as_str));
            }
        }
        seen.into_iter().map(|id| self.packages[id].name.as_str()).collect()
    }
}

/// Reads the graph from Cargo for Linux, the only supported system.
pub fn graph() -> Graph {
    let answer = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .arg("--filter-platform=x86_64-unknown-linux-gnu")
        .current_dir(root())
        .output()
        .expect("cargo is installed");
    assert!(answer.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&answer.stderr));
    let answer: Metadata =
        serde_json::from_slice(&answer.stdout).expect("cargo metadata answers in its format");

    let is_linked = |link: &&Link| link.dep_kinds.iter().any(|kind| kind.kind.is_none());
    let linked = answer.resolve.nodes.into_iter().map(|node| {
        let linked = node.deps.iter().filter(is_linked).map(|link| link.pkg.clone());
        (node.id, linked.collect())
    });
    let linked = linked.collect();
    let packages = answer.packages.into_iter().map(|package| (package.id.clone(), package));
    Graph { packages: packages.collect(), linked }
}
