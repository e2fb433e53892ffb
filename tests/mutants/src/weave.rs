//! Writes all mutants of a file into its code, each behind a question whether it is the active one.
//!
//! `a == b` becomes `(if crate::mutant::is(7) { a != b } else { a == b })`, a function begins with `if crate::mutant::is(8) { return
//! Ok(()); }`, and a match arm or a field is left out in the same way. Comments with numbers stand around each change, so that an error
//! of the compiler leads to its mutant.

mod render;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Context as _, Result};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use self::render::{Edit, Kind, Renderer};
use crate::list::{Genre, Mutant, Number};

/// The code of a file with its mutants.
pub(crate) struct Woven {
    pub(crate) text: String,
    /// Mutants whose place the weaver cannot make conditional, for example because the compiler evaluates it.
    pub(crate) left_out: Vec<Number>,
    /// Mutants that no compiler accepts: a condition with `let` has no `||`.
    pub(crate) refused: Vec<Number>,
    /// Functions that were `const`, and are not in the woven code.
    pub(crate) ordinary: BTreeSet<Function>,
}

/// The name of a function, after the name of its type: `MacAddress::octets`.
pub(crate) type Function = String;

/// Weaves `mutants` into the code of their file. A `const fn` that is not in `constant` becomes an ordinary function, because the question
/// whether a mutant is active has no answer while the compiler runs.
///
/// # Errors
///
/// Fails if `text` is not Rust.
pub(crate) fn weave(
    text: &str,
    mutants: &[(Number, &Mutant)],
    constant: &BTreeSet<Function>,
) -> Result<Woven> {
    let file = syn::parse_file(text).context("not Rust")?;
    let mut at: BTreeMap<(usize, u8), Vec<(Number, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        let start = mutant.span.start.offset(text);
        at.entry((start, place_of(mutant.genre))).or_default().push((*number, mutant));
    }
    let mut finder = Finder {
        at,
        edits: Vec::new(),
        refused: Vec::new(),
        constant,
        ordinary: BTreeSet::new(),
        type_name: None,
        evaluated: false,
        catches_all: false,
    };
    finder.visit_file(&file);
    let left_out = finder.at.into_values().flatten().map(|(number, _)| number).collect();
    let (refused, ordinary) = (finder.refused, finder.ordinary);
    let mut edits = finder.edits;
    edits.sort_by_key(|edit| (edit.range.start, std::cmp::Reverse(edit.range.end)));
    let text = Renderer { text, edits: &edits }.render(0..text.len(), None);
    Ok(Woven { text, left_out, refused, ordinary })
}

/// Returns the mutants in whose change the byte at `offset` of woven code stands, the innermost first.
pub(crate) fn mutants_at(woven: &str, offset: usize) -> Vec<Number> {
    let mut open = Vec::new();
    let mut rest = 0;
    while let Some(found) = woven[rest..].find("/*M") {
        let start = rest + found;
        let Some(length) = woven[start..].find("*/") else { break };
        if start > offset {
            break;
        }
        let marker = &woven[start + 3..start + length];
        match marker.strip_prefix('-') {
            Some(number) => {
                open.retain(|one: &Number| Ok(*one) != number.parse());
            }
            None => open.extend(marker.parse::<Number>().ok()),
        }
        rest = start + length;
    }
    open.reverse();
    open
}

/// Returns the mutants that make the function around `offset` return at once: those before it that stand nearest.
pub(crate) fn returns_before(woven: &str, offset: usize) -> Vec<Number> {
    const RETURN: &str = ") { return ";
    let Some(nearest) = woven[..offset].rfind(RETURN) else { return Vec::new() };
    let line = woven[..nearest].rfind('\n').unwrap_or(0);
    woven[line..nearest + RETURN.len()]
        .split(RETURN)
        .filter_map(|part| part.rsplit_once("is(")?.1.parse().ok())
        .collect()
}

fn place_of(genre: Genre) -> u8 {
    match genre {
        Genre::FnValue => 0,
        Genre::BinaryOperator => 1,
        Genre::UnaryOperator => 2,
        Genre::MatchArm => 3,
        Genre::MatchArmGuard => 4,
        Genre::StructField => 5,
    }
}

struct Finder<'a> {
    at: BTreeMap<(usize, u8), Vec<(Number, &'a Mutant)>>,
    edits: Vec<Edit>,
    refused: Vec<Number>,
    /// Functions that stay `const`, because constants call them.
    constant: &'a BTreeSet<Function>,
    ordinary: BTreeSet<Function>,
    /// The type whose functions are visited.
    type_name: Option<String>,
    /// The compiler evaluates the code that is visited.
    evaluated: bool,
    /// The visited match has an arm for everything, so that another arm may get a guard.
    catches_all: bool,
}

impl<'a> Finder<'a> {
    fn take(&mut self, start: usize, genre: Genre) -> Vec<(Number, &'a Mutant)> {
        if self.evaluated {
            return Vec::new();
        }
        self.at.remove(&(start, place_of(genre))).unwrap_or_default()
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let is_constant =
            signature.constness.is_some_and(|word| self.stays_constant(signature, word));
        let before = std::mem::replace(&mut self.evaluated, is_constant);
        if let Some(first) = block.stmts.first()
            && let Some(kind) = kind_of_return(&signature.output, block)
        {
            let found = self.take(bytes(first).start, Genre::FnValue);
            if !found.is_empty() {
                let values = found.iter().map(|(n, mutant)| (*n, mutant.replacement.clone()));
                let braces = &block.brace_token.span;
                let start = braces.open().byte_range().end;
                let (range, kind) = match kind {
                    ReturnKind::Value => (start..start, Kind::Return(values.collect())),
                    ReturnKind::Iterator => {
                        (start..braces.close().byte_range().start, Kind::Chain(values.collect()))
                    }
                };
                self.edits.push(Edit { range, kind });
            }
        }
        visit::visit_block(self, block);
        self.evaluated = before;
    }

    /// Whether a constant calls this function. Deletes the word `const` otherwise.
    fn stays_constant(&mut self, signature: &syn::Signature, word: syn::Token![const]) -> bool {
        let function = match &self.type_name {
            Some(of) => format!("{of}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        if self.constant.contains(&function) {
            return true;
        }
        self.edits.push(Edit { range: bytes(&word), kind: Kind::Delete });
        self.ordinary.insert(function);
        false
    }

    fn evaluated(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.evaluated, true);
        visit(self);
        self.evaluated = before;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.body(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.body(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(&item.sig, block);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let name = if let syn::Type::Path(of) = &*item.self_ty {
            of.path.segments.last().map(|part| part.ident.to_string())
        } else {
            None
        };
        let before = std::mem::replace(&mut self.type_name, name);
        visit::visit_item_impl(self, item);
        self.type_name = before;
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.evaluated(|finder| visit::visit_item_const(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.evaluated(|finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.evaluated(|finder| visit::visit_trait_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.evaluated(|finder| visit::visit_item_static(finder, item));
    }

    fn visit_expr_const(&mut self, block: &'ast syn::ExprConst) {
        self.evaluated(|finder| visit::visit_expr_const(finder, block));
    }

    // The compiler does not run the closures of a constant, for example those of a table of functions.
    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        let before = std::mem::replace(&mut self.evaluated, false);
        visit::visit_expr_closure(self, closure);
        self.evaluated = before;
    }

    // A negative number in a pattern is an expression to syn.
    fn visit_pat(&mut self, pat: &'ast syn::Pat) {
        self.evaluated(|finder| visit::visit_pat(finder, pat));
    }

    fn visit_type_array(&mut self, array: &'ast syn::TypeArray) {
        self.evaluated(|finder| visit::visit_type_array(finder, array));
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let start = bytes(&expr.op).start;
        if has_let(&expr.left) || has_let(&expr.right) {
            // This is the `&&` of a condition with `let`. Its mutant has `||`, which the compiler does not permit beside `let`.
            let found = self.take(start, Genre::BinaryOperator);
            self.refused.extend(found.iter().map(|(number, _)| *number));
        } else {
            let found = self.take(start, Genre::BinaryOperator);
            if !found.is_empty() {
                let operators = found.iter().map(|(n, mutant)| (*n, mutant.replacement.clone()));
                self.edits.push(Edit {
                    range: bytes(expr),
                    kind: Kind::Binary {
                        left: bytes(&expr.left),
                        right: bytes(&expr.right),
                        operators: operators.collect(),
                    },
                });
            }
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        for (number, _) in self.take(bytes(&expr.op).start, Genre::UnaryOperator) {
            let operand = bytes(&expr.expr);
            self.edits.push(Edit { range: bytes(expr), kind: Kind::Unary { operand, number } });
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        let catches_all =
            expr.arms.iter().any(|arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none());
        let before = std::mem::replace(&mut self.catches_all, catches_all);
        visit::visit_expr_match(self, expr);
        self.catches_all = before;
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut never = None;
        let mut always = None;
        // A guard changes which arms the compiler requires, unless the arm has a guard already.
        if self.catches_all || arm.guard.is_some() {
            for (number, _) in self.take(bytes(arm).start, Genre::MatchArm) {
                never = Some(number);
            }
        }
        let guard = arm.guard.as_ref().map(|(_, guard)| bytes(guard));
        if let Some((_, condition)) = &arm.guard
            && !has_let(condition)
        {
            let start = bytes(condition).start;
            for (number, mutant) in self.take(start, Genre::MatchArmGuard) {
                match mutant.replacement.as_str() {
                    "true" => always = Some(number),
                    _ => never = Some(number),
                }
            }
        }
        if never.is_some() || always.is_some() {
            let range = bytes(&arm.pat).end..bytes(&arm.fat_arrow_token).start;
            self.edits.push(Edit { range, kind: Kind::Arm { guard, never, always } });
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        let mut fields = Vec::new();
        for pair in expr.fields.pairs() {
            let field = bytes(pair.value());
            let end = pair.punct().map_or(field.end, |comma| bytes(*comma).end);
            for (number, _) in self.take(field.start, Genre::StructField) {
                fields.push((number, field.start..end));
            }
        }
        if !fields.is_empty() {
            self.edits.push(Edit { range: bytes(expr), kind: Kind::Fields(fields) });
        }
        visit::visit_expr_struct(self, expr);
    }
}

/// Returns the bytes of a part of the file.
fn bytes(part: &impl Spanned) -> Range<usize> {
    let span: Span = part.span();
    span.byte_range()
}

/// How the weaver replaces what a function returns.
enum ReturnKind {
    Value,
    Iterator,
}

/// Returns how the weaver replaces what the function with this code returns, or nothing if it cannot.
fn kind_of_return(output: &syn::ReturnType, block: &syn::Block) -> Option<ReturnKind> {
    #[derive(Default)]
    struct Search {
        has_impl: bool,
        returns_early: bool,
    }
    impl<'ast> Visit<'ast> for Search {
        fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
            self.has_impl = true;
        }

        fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
            self.returns_early = true;
        }

        fn visit_expr_try(&mut self, _: &'ast syn::ExprTry) {
            self.returns_early = true;
        }
    }
    let mut search = Search::default();
    search.visit_return_type(output);
    if !search.has_impl {
        return Some(ReturnKind::Value);
    }
    let syn::ReturnType::Type(_, of) = output else { return None };
    let syn::Type::ImplTrait(of) = &**of else { return None };
    let mut traits = of.bounds.iter().filter_map(|bound| {
        let syn::TypeParamBound::Trait(of) = bound else { return None };
        of.path.segments.last()
    });
    let is_iterator = traits.next()?.ident == "Iterator" && traits.next().is_none();
    search.visit_block(block);
    (is_iterator && !search.returns_early).then_some(ReturnKind::Iterator)
}

/// Returns whether a condition has a `let`, which only the condition of an `if`, a `while` or an arm may have.
fn has_let(expr: &syn::Expr) -> bool {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other expression ends a condition")]
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
