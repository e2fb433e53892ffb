//! A copy of the workspace that holds the woven code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

use anyhow::{Context as _, Result, ensure};

use crate::list::{Mutant, Number};
use crate::weave::{Function, Woven, weave};

const SWITCH: &str = include_str!("switch.rs");

/// The copy, and the code that was woven last.
pub(crate) struct Tree {
    origin: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) woven: BTreeMap<PathBuf, String>,
    /// Functions that are `const` in the workspace only.
    pub(crate) ordinary: BTreeSet<Function>,
}

/// The mutants and functions that the compiler does not accept in the woven code.
#[derive(Default)]
pub(crate) struct Refusals {
    pub(crate) mutants: BTreeSet<Number>,
    /// Functions that must stay `const`, because constants call them.
    pub(crate) constant: BTreeSet<Function>,
}

impl Refusals {
    pub(crate) fn is_empty(&self) -> bool {
        self.mutants.is_empty() && self.constant.is_empty()
    }

    pub(crate) fn extend(&mut self, more: Refusals) {
        self.mutants.extend(more.mutants);
        self.constant.extend(more.constant);
    }
}

/// Mutants that are not in the woven code.
#[derive(Default)]
pub(crate) struct NotWoven {
    pub(crate) left_out: Vec<Number>,
    pub(crate) refused: Vec<Number>,
}

impl Tree {
    /// A copy of the workspace at `origin` in the folder `root`. `weave` writes it.
    pub(crate) fn new(origin: &Path, root: &Path) -> Tree {
        Tree {
            origin: origin.to_owned(),
            root: root.to_owned(),
            woven: BTreeMap::new(),
            ordinary: BTreeSet::new(),
        }
    }

    /// Weaves all mutants but the `refused` ones into the copy.
    pub(crate) fn weave(&mut self, mutants: &[Mutant], refused: &Refusals) -> Result<NotWoven> {
        let mut files: BTreeMap<&Path, Vec<(Number, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in mutants.iter().enumerate() {
            let of_file = files.entry(&mutant.file).or_default();
            if !refused.mutants.contains(&number) {
                of_file.push((number, mutant));
            }
        }
        self.woven.clear();
        self.ordinary.clear();
        let mut not_woven = NotWoven::default();
        let mut packages = BTreeSet::new();
        for (file, of_file) in files {
            let text = fs::read_to_string(self.origin.join(file))?;
            let woven = weave(&text, &of_file, &refused.constant)
                .with_context(|| format!("in {}", file.display()))?;
            let Woven { text, left_out, refused, ordinary } = woven;
            syn::parse_file(&text).with_context(|| format!("woven {}", file.display()))?;
            not_woven.left_out.extend(left_out);
            not_woven.refused.extend(refused);
            self.ordinary.extend(ordinary);
            self.woven.insert(file.to_owned(), text);
            packages.insert(sources(file));
        }
        for root in packages.into_iter().flat_map(|sources| crate_roots(&self.origin, &sources)) {
            if !self.woven.contains_key(&root) {
                self.woven.insert(root.clone(), fs::read_to_string(self.origin.join(&root))?);
            }
            let text = self.woven.entry(root).or_default();
            *text += &format!("\nmod mutant {{\n{SWITCH}}}\n");
        }
        self.write()?;
        Ok(not_woven)
    }

    /// Writes the woven files, and the other files that git knows or would add.
    fn write(&self) -> Result<()> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.origin)
            .output()
            .context("cannot run git")?;
        ensure!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let names = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
        for name in names.split_terminator('\0') {
            let from = self.origin.join(name);
            if let Some(text) = self.woven.get(Path::new(name)) {
                write(&self.root.join(name), text.as_bytes())?;
            } else if from.is_file() {
                write(&self.root.join(name), &fs::read(&from)?)?;
                fs::set_permissions(self.root.join(name), fs::metadata(&from)?.permissions())?;
            }
        }
        Ok(())
    }
}

/// Writes a file if its bytes differ, so that cargo compiles only what changed.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

/// Returns the folder `src` that a file of a crate stands in.
fn sources(file: &Path) -> PathBuf {
    file.ancestors().find(|folder| folder.ends_with("src")).unwrap_or(file).to_owned()
}

fn crate_roots(origin: &Path, sources: &Path) -> Vec<PathBuf> {
    let programs = fs::read_dir(origin.join(sources).join("bin")).into_iter().flatten();
    let programs = programs.flatten().map(|entry| sources.join("bin").join(entry.file_name()));
    iter::once(sources.join("lib.rs"))
        .chain(iter::once(sources.join("main.rs")))
        .chain(programs)
        .filter(|root| origin.join(root).is_file())
        .collect()
}
