use std::path::PathBuf;

use super::*;
use crate::list::{Position, Region};

/// Weaves mutants numbered from 0: their kind, the text at whose first occurrence they stand, and what replaces it.
fn woven(text: &str, mutants: &[(Genre, &str, &str)]) -> Woven {
    woven_with_constants(text, mutants, &[])
}

/// Weaves mutants as [`woven`] does. Constants call the functions `constant`.
fn woven_with_constants(text: &str, mutants: &[(Genre, &str, &str)], constant: &[&str]) -> Woven {
    let mutants: Vec<Mutant> = mutants
        .iter()
        .map(|(genre, place, replacement)| {
            let before = &text[..text.find(place).expect("the place is in the text")];
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            Mutant {
                package: "sample".to_owned(),
                file: PathBuf::from("src/lib.rs"),
                genre: *genre,
                name: (*place).to_owned(),
                replacement: (*replacement).to_owned(),
                span: Region { start: Position { line, column } },
            }
        })
        .collect();
    let numbered: Vec<_> = mutants.iter().enumerate().collect();
    let constant = constant.iter().map(|function| (*function).to_owned()).collect();
    weave(text, &numbered, &constant).expect("the text is Rust")
}

/// Returns woven code without the comments that mark mutants.
fn unmarked(woven: &Woven) -> String {
    let mut text = woven.text.clone();
    while let Some(start) = text.find("/*M") {
        let end = start + text[start..].find("*/").expect("a comment ends") + 2;
        text.replace_range(start..end, "");
    }
    text.replace("crate::mutant::is", "is")
}

#[test]
fn operators_become_conditional() {
    let code = "fn f(a: u8, b: u8) -> bool { a < b }";
    let found =
        woven(code, &[(Genre::BinaryOperator, "<", "=="), (Genre::BinaryOperator, "<", ">")]);
    assert_eq!(
        unmarked(&found),
        "fn f(a: u8, b: u8) -> bool { (if is(0) { a == b } else if is(1) { a > b } else { a < b }) }"
    );
    assert!(found.left_out.is_empty());
}

#[test]
fn a_mutant_in_an_operand_stands_in_the_original_branch() {
    let code = "fn f(a: bool, b: bool) -> bool { !a && b }";
    let found =
        woven(code, &[(Genre::UnaryOperator, "!", ""), (Genre::BinaryOperator, "&&", "||")]);
    assert_eq!(
        unmarked(&found),
        "fn f(a: bool, b: bool) -> bool { (if is(1) { !a || b } else { (if is(0) { a } else { !a }) && b }) }"
    );
}

#[test]
fn functions_return_at_once() {
    let code = "impl S {\n    // ä\n    async fn f() -> u8 { g() }\n}";
    let found = woven(code, &[(Genre::FnValue, "g()", "0"), (Genre::FnValue, "g()", "1")]);
    assert_eq!(
        unmarked(&found),
        "impl S {\n    // ä\n    async fn f() -> u8 {if is(0) { return 0; } if is(1) { return 1; }  g() }\n}"
    );
}

#[test]
fn arms_and_guards_depend_on_the_mutant() {
    let code = "fn f(a: u8) -> u8 { match a { 1 => 2, b if b > 3 => 4, _ => 5 } }";
    let mutants = [
        (Genre::MatchArm, "1 =>", ""),
        (Genre::MatchArmGuard, "b > 3", "true"),
        (Genre::MatchArmGuard, "b > 3", "false"),
        (Genre::BinaryOperator, "> 3", "<"),
    ];
    assert_eq!(
        unmarked(&woven(code, &mutants)),
        "fn f(a: u8) -> u8 { match a { 1 if !is(0) && true => 2, \
         b if is(1) || (!is(2) && ((if is(3) { b < 3 } else { b > 3 }))) => 4, _ => 5 } }"
    );
}

#[test]
fn fields_are_left_out_of_structs_with_a_base() {
    let code = "fn f(s: S) -> S { S { a: 1, b: !s.b, ..s } }";
    let mutants = [(Genre::StructField, "a: 1", ""), (Genre::UnaryOperator, "!", "")];
    assert_eq!(
        unmarked(&woven(code, &mutants)),
        "fn f(s: S) -> S { (if is(0) { S {  b: !s.b, ..s } } else { \
         S { a: 1, b: (if is(1) { s.b } else { !s.b }), ..s } }) }"
    );
}

#[test]
fn code_of_the_compiler_and_some_opaque_types_are_left_out() {
    let code = "const A: u8 = 1 + 2;\nconst fn f() -> u8 { 3 - 4 }\n\
                fn g() -> Result<impl Iterator<Item = u8>, E> { Ok(once(6)) }\n\
                fn h() -> impl Iterator<Item = u8> { once(t()?) }\n\
                fn i() -> impl Iterator<Item = u8> + Clone { once(8) }";
    let mutants = [
        (Genre::BinaryOperator, "+", "-"),
        (Genre::BinaryOperator, "- 4", "+"),
        (Genre::FnValue, "3 - 4", "0"),
        (Genre::FnValue, "Ok(once(6))", "Ok(std::iter::empty())"),
        (Genre::FnValue, "once(t()?)", "std::iter::empty()"),
        (Genre::FnValue, "once(8)", "std::iter::empty()"),
    ];
    let found = woven_with_constants(code, &mutants, &["f"]);
    let mut left_out = found.left_out.clone();
    left_out.sort_unstable();
    assert_eq!(left_out, [0, 1, 2, 3, 4, 5]);
    assert_eq!(unmarked(&found), code);
}

#[test]
fn functions_that_no_constant_calls_are_not_constant() {
    let code = "impl S { pub const fn f() -> u8 { 3 } const fn g() -> u8 { 4 } }\nconst fn f() -> u8 { 5 }";
    let mutants =
        [(Genre::FnValue, "3", "0"), (Genre::FnValue, "4", "0"), (Genre::FnValue, "5", "0")];
    let found = woven_with_constants(code, &mutants, &["S::f"]);
    assert_eq!(found.left_out, [0]);
    assert_eq!(found.ordinary, ["S::g", "f"].map(str::to_owned).into());
    assert_eq!(
        unmarked(&found),
        "impl S { pub const fn f() -> u8 { 3 }  fn g() -> u8 {if is(1) { return 0; }  4 } }\n \
         fn f() -> u8 {if is(2) { return 0; }  5 }"
    );
}

#[test]
fn closures_of_a_constant_are_ordinary_code() {
    let code = "const A: &[fn(u8) -> bool] = &[|a| a == 1];";
    let found = woven(code, &[(Genre::BinaryOperator, "== 1", "!=")]);
    assert_eq!(
        unmarked(&found),
        "const A: &[fn(u8) -> bool] = &[|a| (if is(0) { a != 1 } else { a == 1 })];"
    );
}

#[test]
fn an_or_beside_a_let_is_refused() {
    let code =
        "fn g(x: Option<u8>) -> bool { if let Some(y) = x && y == 5 { true } else { false } }";
    let mutants = [(Genre::BinaryOperator, "&&", "||"), (Genre::BinaryOperator, "==", "!=")];
    let found = woven(code, &mutants);
    assert_eq!(found.refused, [0]);
    assert!(found.left_out.is_empty());
    assert!(unmarked(&found).contains("= x && (if is(1) { y != 5 } else { y == 5 })"));
}

#[test]
fn iterators_behind_an_opaque_type_are_chained() {
    let code = "fn f<'a>(a: &'a [u8]) -> impl Iterator<Item = u8> + 'a { a.iter().map(|b| b + 1) }";
    let mutants = [
        (Genre::FnValue, "a.iter()", "std::iter::empty()"),
        (Genre::FnValue, "a.iter()", "std::iter::once(0)"),
        (Genre::BinaryOperator, "+ 1", "-"),
    ];
    assert_eq!(
        unmarked(&woven(code, &mutants)),
        "fn f<'a>(a: &'a [u8]) -> impl Iterator<Item = u8> + 'a {\
         (if is(0) || is(1) { None } else { Some({ a.iter().map(|b| (if is(2) { b - 1 } else { b + 1 })) }) })\
         .into_iter().flatten()\
         .chain(is(0).then(|| std::iter::empty()).into_iter().flatten())\
         .chain(is(1).then(|| std::iter::once(0)).into_iter().flatten())}"
    );
}

#[test]
fn an_arm_with_a_guard_needs_no_arm_for_everything() {
    let code = "fn f(a: u8) -> u8 { match a { 1 => 2, b if b > 3 => 4, b => 5 } }";
    let mutants = [(Genre::MatchArm, "1 =>", ""), (Genre::MatchArm, "b if", "")];
    let found = woven(code, &mutants);
    assert_eq!(found.left_out, [0]);
    assert_eq!(
        unmarked(&found),
        "fn f(a: u8) -> u8 { match a { 1 => 2, b if !is(1) && (b > 3) => 4, b => 5 } }"
    );
}

#[test]
fn an_error_of_the_compiler_leads_to_its_mutant() {
    let code = "fn f(a: u8, b: u8) -> bool { a + 1 < b }";
    let found =
        woven(code, &[(Genre::BinaryOperator, "+", "-"), (Genre::BinaryOperator, "<", ">")]);
    let at = |part: &str| mutants_at(&found.text, found.text.find(part).expect("the part"));
    assert_eq!(at("1 > b"), [1]);
    assert_eq!(at("- 1"), [0]);
    assert_eq!(at("fn f"), Vec::<Number>::new());
}

#[test]
fn an_error_behind_an_early_return_leads_to_the_values_of_the_function() {
    let code = "fn e() -> u8 {\n    7\n}\nfn f() -> u8 {\n    g()\n}";
    let values =
        [(Genre::FnValue, "7", "9"), (Genre::FnValue, "g()", "0"), (Genre::FnValue, "g()", "1")];
    let found = woven(code, &values);
    let offset = found.text.find("g()").expect("the call");
    assert_eq!(returns_before(&found.text, offset), [1, 2]);
}

#[test]
fn without_a_variable_no_mutant_is_active() {
    assert!(!crate::switch::is(7));
}
