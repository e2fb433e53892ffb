//! The modules of a crate, as its sources declare them, with the names and paths that each of them uses.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path of names: of a module in its crate, where the root is empty, or of an item in a source.
pub(crate) type Path = Vec<String>;

/// The modules of one crate root, except those for tests alone.
pub(crate) type Modules = BTreeMap<Path, Module>;

#[derive(Default)]
pub(crate) struct Module {
    /// The items that the module declares, except modules.
    pub(crate) items: BTreeSet<String>,
    /// The names that its `use` lines bring in.
    pub(crate) imports: Vec<Import>,
    /// The paths of two or more names in its code.
    pub(crate) paths: Vec<Path>,
    /// The names in its code.
    pub(crate) words: BTreeSet<String>,
}

/// A name that a `use` line brings into a module.
pub(crate) struct Import {
    pub(crate) path: Path,
    /// The name in the module; `*` for all names.
    pub(crate) name: String,
    /// Whether other modules may import the name from here.
    pub(crate) is_public: bool,
}

/// The keywords that are followed by the name of an item.
const DECLARES: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

/// Reads the modules of the crate root `root`, a file of `sources`, by following its `mod` lines.
pub(crate) fn modules(sources: &BTreeMap<String, String>, root: &str) -> Modules {
    let mut reader = Reader { sources, modules: Modules::new() };
    let folder = root.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    reader.file(root, &Place { path: Vec::new(), folder });
    reader.modules
}

struct Reader<'s> {
    sources: &'s BTreeMap<String, String>,
    modules: Modules,
}

/// A module that is being read.
struct Place {
    path: Path,
    /// The folder with the files of its child modules, with a slash at the end.
    folder: String,
}

impl Place {
    fn child(&self, name: &str) -> Place {
        let path = self.path.iter().cloned().chain([name.to_owned()]).collect();
        Place { path, folder: format!("{}{name}/", self.folder) }
    }
}

impl Reader<'_> {
    fn file(&mut self, file: &str, place: &Place) {
        let text = self.sources.get(file).unwrap_or_else(|| panic!("there is no {file}"));
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
        self.modules.entry(place.path.clone()).or_default();
        self.tokens(tokens, place, true);
    }

    fn module(&mut self, place: &Place) -> &mut Module {
        self.modules.entry(place.path.clone()).or_default()
    }

    /// Reads `tokens` of the module at `place`: its items, or the inside of one of them.
    fn tokens(&mut self, tokens: TokenStream, place: &Place, are_items: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut is_public = false;
        while at < tokens.len() {
            let was_public = std::mem::take(&mut is_public);
            if let Some((attribute, after)) = attribute(&tokens, at) {
                at = after;
                if is_for_tests(&attribute) {
                    at = after_item(&tokens, at);
                } else {
                    self.attribute(attribute, place);
                }
            } else if word(&tokens, at).as_deref() == Some("pub") {
                is_public = true;
                at += 1 + usize::from(is_group(&tokens, at + 1, Delimiter::Parenthesis));
            } else if word(&tokens, at).as_deref() == Some("use") && !is_mark(&tokens, at + 1, '<')
            {
                let end = (at..tokens.len()).find(|end| is_mark(&tokens, *end, ';'));
                let end = end.unwrap_or(tokens.len());
                self.import(&tokens[at + 1..end], &Vec::new(), was_public, place);
                at = end + 1;
            } else if let Some(name) = declared_module(&tokens, at) {
                at = self.child(&tokens, at + 2, &place.child(&name));
            } else if word(&tokens, at).is_some() {
                at = self.path(&tokens, at, place, are_items);
            } else {
                if let TokenTree::Group(group) = &tokens[at] {
                    self.tokens(group.stream(), place, false);
                }
                at += 1;
            }
        }
    }

    /// Reads the module `place` from its block at `at`, or from its own file; returns the end.
    fn child(&mut self, tokens: &[TokenTree], at: usize, place: &Place) -> usize {
        if let Some(TokenTree::Group(group)) = tokens.get(at) {
            self.module(place);
            self.tokens(group.stream(), place, true);
        } else {
            let beside = format!("{}.rs", place.folder.trim_end_matches('/'));
            let inside = format!("{}mod.rs", place.folder);
            let file = if self.sources.contains_key(&inside) { inside } else { beside };
            self.file(&file, place);
        }
        at + 1
    }

    /// Reads the path that starts at `at`, which may be a single name; returns its end.
    fn path(&mut self, tokens: &[TokenTree], at: usize, place: &Place, are_items: bool) -> usize {
        let (path, end) = path_at(tokens, at);
        let is_macro = path == ["macro_rules"] && is_mark(tokens, end, '!');
        let is_item = are_items && path.len() == 1 && DECLARES.contains(&path[0].as_str());
        let declared = if is_macro { word(tokens, end + 1) } else { word(tokens, end) };
        // `.name` is a field or a method, and `::name` continues another crate's path.
        let after = |mark, places| at >= places && is_mark(tokens, at - places, mark);
        let is_member = after('.', 1) && !after('.', 2);
        let is_foreign = after(':', 1) && after(':', 2);
        let module = self.module(place);
        if is_item || is_macro {
            module.items.extend(declared);
        }
        if !is_member && !is_foreign {
            module.words.insert(path[0].clone());
            module.paths.extend((path.len() > 1).then_some(path));
        }
        end
    }

    /// Reads an attribute; serde and clap take paths as text as well.
    fn attribute(&mut self, attribute: TokenStream, place: &Place) {
        for token in attribute.clone() {
            match token {
                TokenTree::Group(group) => self.attribute(group.stream(), place),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let text = text.trim_matches('"');
                    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
                    if text.contains("::") && text.chars().all(is_path) {
                        let path = text.split("::").map(str::to_owned).collect();
                        self.module(place).paths.push(path);
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
        self.tokens(attribute, place, false);
    }

    /// Reads the tree of a `use` line, or a part of it below `prefix`.
    fn import(&mut self, tree: &[TokenTree], prefix: &Path, is_public: bool, place: &Place) {
        for branch in
            tree.split(|token| matches!(token, TokenTree::Punct(it) if it.as_char() == ','))
        {
            // `use ::lease::Lease` names another crate, even beside a module `lease`.
            if prefix.is_empty() && is_separator(branch, 0) {
                continue;
            }
            let mut path = prefix.clone();
            let mut alias = None;
            let mut at = 0;
            while let Some(token) = branch.get(at) {
                match token {
                    TokenTree::Ident(name) if *name == "as" => {
                        alias = word(branch, at + 1);
                        at += 1;
                    }
                    TokenTree::Ident(name) => path.push(name.to_string()),
                    TokenTree::Punct(mark) if mark.as_char() == '*' => alias = Some("*".to_owned()),
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.import(&inner, &path, is_public, place);
                        path.clear();
                    }
                    TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                }
                at += 1;
            }
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            if let Some(name) = alias.or_else(|| path.last().cloned()) {
                self.module(place).imports.push(Import { path, name, is_public });
            }
        }
    }
}

/// The attribute at `at`, and its end.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(TokenStream, usize)> {
    let group = at + 1 + usize::from(is_mark(tokens, at + 1, '!'));
    match tokens.get(group) {
        Some(TokenTree::Group(it)) if is_mark(tokens, at, '#') => Some((it.stream(), group + 1)),
        _ => None,
    }
}

fn is_for_tests(attribute: &TokenStream) -> bool {
    attribute.to_string().split_whitespace().collect::<String>() == "cfg(test)"
}

/// The end of the item, field or arm that starts at `at` with its other attributes.
fn after_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while let Some((_, after)) = attribute(tokens, at) {
        at = after;
    }
    if word(tokens, at).as_deref() == Some("pub") {
        at += 1 + usize::from(is_group(tokens, at + 1, Delimiter::Parenthesis));
    }
    let has_block = ["async", "enum", "fn", "impl", "mod", "struct", "trait", "unsafe"];
    let has_block = |at| word(tokens, at).is_some_and(|word| has_block.contains(&word.as_str()));
    let has_value = ["const", "let", "static", "type", "use"];
    let has_value = word(tokens, at).is_some_and(|word| has_value.contains(&word.as_str()));
    let is_function = has_block(at) || (has_value && has_block(at + 1));
    let is_end = |at: &usize| {
        is_mark(tokens, *at, ';')
            || (is_function && is_group(tokens, *at, Delimiter::Brace))
            || (!is_function && !has_value && is_mark(tokens, *at, ','))
    };
    (at..tokens.len()).find(is_end).map_or(tokens.len(), |end| end + 1)
}

/// The name of the module that a `mod` at `at` declares.
fn declared_module(tokens: &[TokenTree], at: usize) -> Option<String> {
    let is_whole = is_mark(tokens, at + 2, ';') || is_group(tokens, at + 2, Delimiter::Brace);
    (word(tokens, at)? == "mod" && is_whole).then(|| word(tokens, at + 1)).flatten()
}

/// The names from `at` on that `::` joins, and their end.
fn path_at(tokens: &[TokenTree], mut at: usize) -> (Path, usize) {
    let mut path: Path = word(tokens, at).into_iter().collect();
    at += 1;
    while let (true, Some(name)) = (is_separator(tokens, at), word(tokens, at + 2)) {
        path.push(name);
        at += 3;
    }
    (path, at)
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at)? {
        TokenTree::Ident(name) => Some(name.to_string()),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    }
}

fn is_mark(tokens: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(it)) if it.as_char() == mark)
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_mark(tokens, at, ':') && is_mark(tokens, at + 1, ':')
}

fn is_group(tokens: &[TokenTree], at: usize, delimiter: Delimiter) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Group(it)) if it.delimiter() == delimiter)
}
