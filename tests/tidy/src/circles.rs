//! Finds circles of modules: modules of one crate that import from each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{Import, Modules, Path, modules};

/// How many imports of imports are followed; a longer chain is a name that imports itself.
const DEEPEST: usize = 16;

/// Each module in a circle, with the modules of the same circle that it imports from.
///
/// `sources` are the files of a crate by their path below `src/`. A module imports from the module that declares the item, not from
/// the module that re-exports the item; a re-export is an import only if the module uses the name itself.
pub fn circles(sources: &BTreeMap<String, String>) -> BTreeMap<String, Vec<String>> {
    let is_root = |file: &&String| {
        let is_binary = file.strip_prefix("bin/").is_some_and(|file| !file.contains('/'));
        ["lib.rs", "main.rs"].contains(&file.as_str()) || is_binary
    };
    let circles = sources.keys().filter(is_root).flat_map(|root| {
        let modules = modules(sources, root);
        let imports = modules.keys().map(|path| (path.clone(), imports(&modules, path)));
        let start = root.trim_end_matches(".rs").replace("lib", "crate");
        let named = move |path: &Path| [std::slice::from_ref(&start), path].concat().join("::");
        let circles = returning(&imports.collect());
        let circles = circles
            .into_iter()
            .map(move |(from, to)| (named(&from), to.iter().map(&named).collect::<Vec<String>>()));
        circles.collect::<Vec<_>>()
    });
    circles.collect()
}

type Imports = BTreeMap<Path, BTreeSet<Path>>;

/// The part of `imports` from which a way leads back.
fn returning(imports: &Imports) -> Imports {
    let reached = imports.keys().map(|from| (from, reached(imports, from)));
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = reached.collect();
    let in_circle = imports.iter().filter(|(from, _)| reached[from].contains(from));
    let back = in_circle.map(|(from, to)| {
        let to = to.iter().filter(|to| reached[to].contains(from)).cloned();
        (from.clone(), to.collect())
    });
    back.collect()
}

/// The modules that `from` imports from, directly or through others.
fn reached<'i>(imports: &'i Imports, from: &Path) -> BTreeSet<&'i Path> {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(path) = waiting.pop() {
        for next in &imports[path] {
            if seen.insert(next) {
                waiting.push(next);
            }
        }
    }
    seen
}

/// The modules whose items the module `from` uses.
fn imports(modules: &Modules, from: &Path) -> BTreeSet<Path> {
    let module = &modules[from];
    let uses = |import: &&Import| {
        !import.is_public || import.name == "_" || module.words.contains(&import.name)
    };
    let mut found: BTreeSet<Path> = BTreeSet::new();
    for import in module.imports.iter().filter(uses) {
        match (resolve(modules, from, &import.path, 0), import.name.as_str()) {
            (Some(Target::Module(all)), "*") => {
                let named = modules[&all].imports.iter().map(|it| &it.name);
                let named = named.filter(|name| module.words.contains(*name));
                let named = named.filter_map(|name| find(modules, &all, name, 0)?.declarer());
                found.extend(named);
                found.extend((!modules[&all].items.is_empty()).then_some(all));
            }
            (target, _) => found.extend(target.and_then(Target::declarer)),
        }
    }
    let paths = module.paths.iter().filter_map(|path| resolve(modules, from, path, 0)?.declarer());
    found.extend(paths);
    found.remove(from);
    found
}

/// The end of a path.
enum Target {
    /// A module itself.
    Module(Path),
    /// An item that this module declares.
    Item(Path),
}

impl Target {
    fn declarer(self) -> Option<Path> {
        match self {
            Target::Module(_) => None,
            Target::Item(declarer) => Some(declarer),
        }
    }
}

/// Follows `path` from the module `from`; `None` if it leads out of the crate.
fn resolve(modules: &Modules, from: &Path, path: &[String], depth: usize) -> Option<Target> {
    let is_anchor = |name: &&String| ["crate", "self", "super"].contains(&name.as_str());
    let anchors = path.iter().take_while(is_anchor).count();
    let mut base = from.clone();
    for anchor in &path[..anchors] {
        match anchor.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()?),
            _ => {}
        }
    }
    let mut rest = path[anchors..].iter().peekable();
    let mut is_ours = anchors > 0;
    while let Some(name) = rest.next() {
        let child = base.iter().cloned().chain([name.clone()]).collect();
        if rest.peek().is_some() && modules.contains_key(&child) {
            base = child;
        } else {
            match find(modules, &base, name, depth) {
                Some(Target::Module(next)) => base = next,
                Some(item @ Target::Item(_)) => return Some(item),
                // The name of a macro's product is not seen.
                None => return is_ours.then_some(Target::Item(base)),
            }
        }
        is_ours = true;
    }
    Some(Target::Module(base))
}

/// Looks up `name` in the module `base`: an import, an item, a child module.
fn find(modules: &Modules, base: &Path, name: &String, depth: usize) -> Option<Target> {
    if depth > DEEPEST {
        return None;
    }
    let module = &modules[base];
    let imports = module.imports.iter().filter(|import| import.name == *name);
    let mut imports = imports.filter_map(|import| resolve(modules, base, &import.path, depth + 1));
    if let Some(target) = imports.next() {
        return Some(target);
    }
    if module.items.contains(name) {
        return Some(Target::Item(base.clone()));
    }
    let child: Path = base.iter().cloned().chain([name.clone()]).collect();
    if modules.contains_key(&child) {
        return Some(Target::Module(child));
    }
    let all = module.imports.iter().filter(|import| import.name == "*");
    let mut all = all.filter_map(|import| match resolve(modules, base, &import.path, depth + 1)? {
        Target::Module(all) if all != *base => find(modules, &all, name, depth + 1),
        Target::Module(_) | Target::Item(_) => None,
    });
    all.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sources: &[(&str, &str)], want: &[&str]) {
        let sources = sources.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        let found = circles(&sources.collect());
        let found: Vec<String> =
            found.iter().map(|(from, to)| format!("{from} > {}", to.join(" "))).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn a_planted_circle_is_found() {
        let one = "use crate::two::Two; pub struct One;";
        let two = "use super::three; pub struct Two; fn f() { three::three() }";
        let three = "pub fn three() { let _ = crate::one::One; }";
        check(
            &[
                ("lib.rs", "mod one; mod two; mod three; mod four;"),
                ("one.rs", one),
                ("two.rs", two),
                ("three.rs", three),
                ("four.rs", "use crate::one::One;"),
            ],
            &["crate::one > crate::two", "crate::three > crate::one", "crate::two > crate::three"],
        );
    }

    #[test]
    fn a_module_and_its_child_are_a_circle() {
        check(
            &[
                ("lib.rs", "pub mod top;"),
                (
                    "top.rs",
                    "mod low; use low::{f, g as h}; pub const C: u8 = 1; fn x() { f(); h() }",
                ),
                ("top/low.rs", "pub fn f() { super::C; } pub fn g() {}"),
            ],
            &["crate::top > crate::top::low", "crate::top::low > crate::top"],
        );
    }

    #[test]
    fn a_parent_that_only_reexports_is_in_no_circle() {
        let parent = "mod low; mod lower; pub use low::{Low, low}; pub struct Parent;";
        let low = "use super::Parent; use super::lower::*; pub struct Low; pub fn low() {}";
        check(&[("lib.rs", parent), ("low.rs", low), ("lower.rs", "pub struct Lower;")], &[]);
    }

    #[test]
    fn a_reexport_that_is_used_is_an_import() {
        let parent = "mod low; pub use low::Low; pub struct Parent(Low);";
        let sources = [("lib.rs", parent), ("low.rs", "use super::Parent; pub struct Low;")];
        check(&sources, &["crate > crate::low", "crate::low > crate"]);
    }

    #[test]
    fn a_reexport_leads_to_the_module_that_declares_the_item() {
        let front = "mod one; mod two; pub use two::*; pub use one::one;";
        let one = "use crate::Two; pub fn one() {}";
        let with = |two| [("lib.rs", front), ("one.rs", one), ("two.rs", two)];
        check(&with("pub struct Two;"), &[]);
        let circle = ["crate::one > crate::two", "crate::two > crate::one"];
        check(&with("pub struct Two; fn f() { crate::one() }"), &circle);
    }

    #[test]
    fn tests_and_comments_import_nothing() {
        let one = "use crate::two::Two; pub struct One;";
        let two = "#[cfg(test)] use crate::one::One;\n// crate::one::One\n/// [`crate::one::One`]\n\
                   struct Three; pub struct Two; const S: &str = \"crate::one::One\";\n\
                   #[cfg(test)] impl Two { fn f() -> crate::one::One { todo!() } }\n\
                   #[cfg(test)] mod tests { use crate::one::One; }\n#[cfg(test)] mod more;";
        check(&[("lib.rs", "mod one; mod two;"), ("one.rs", one), ("two.rs", two)], &[]);
    }

    #[test]
    fn macros_attributes_and_functions_import() {
        let front = "mod one; mod two; mod three; mod four;";
        let one = "fn f() { use super::two::Two; }";
        let two = "pub struct Two; fn f() { println!(\"{}\", crate::three::C) }";
        let three = "pub const C: u8 = 1; struct S { #[serde(with = \"crate::four::hex\")] s: u8 }";
        let four = "pub mod hex { fn f() { super::super::one::f() } } fn g() {}";
        check(
            &[
                ("main.rs", front),
                ("one.rs", one),
                ("two.rs", two),
                ("three.rs", three),
                ("four.rs", four),
            ],
            &[],
        );
        let hex = "pub fn hex() { super::one::f() }";
        check(
            &[
                ("main.rs", front),
                ("one.rs", one),
                ("two.rs", two),
                ("three.rs", three),
                ("four.rs", hex),
            ],
            &[
                "main::four > main::one",
                "main::one > main::two",
                "main::three > main::four",
                "main::two > main::three",
            ],
        );
    }

    #[test]
    fn other_crates_and_methods_of_the_same_name_are_no_imports() {
        let low =
            "use ::low::Top; use serde::Top as _; pub fn low() { a.top::<u8>(); ::top::f(); }";
        let front = "mod low; mod top; fn f() { low::low() }";
        check(&[("lib.rs", front), ("low.rs", low), ("top.rs", "use crate::low::low;")], &[]);
        let parent = "mod low; use ::low::Low; pub struct Parent(Low);";
        check(&[("lib.rs", parent), ("low.rs", "use super::Parent; pub struct Low;")], &[]);
    }
}
