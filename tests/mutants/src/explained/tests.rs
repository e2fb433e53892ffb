use super::*;

const SMALLER: &str = "src/lib.rs: replace < with <= in f | if a < b {";
const NEVER: &str = "src/lib.rs: replace g -> bool with false | h() || i()";

fn set(entries: &[&str]) -> BTreeSet<Entry> {
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

/// Compares a file that explains `explained` with a run of two listed mutants.
#[track_caller]
fn check(explained: &[&str], survived: &[&str], caught: &[&str], want: &[&str]) {
    let file = format!("[[group]]\nwhy = \"a reason\"\nmutants = {explained:?}");
    let explanations: Explanations = toml::from_str(&file).expect("the file is right");
    let tried = Tried { survived: set(survived), caught: set(caught) };
    assert_eq!(explanations.differences(&set(&[SMALLER, NEVER]), &tried), want);
}

#[test]
fn survivors_with_an_explanation_pass() {
    check(&[SMALLER], &[SMALLER], &[NEVER], &[]);
}

#[test]
fn a_survivor_without_an_explanation_is_printed_as_an_entry() {
    let want = "no test fails:\n  \"src/lib.rs: replace < with <= in f | if a < b {\",";
    check(&[NEVER], &[NEVER, SMALLER], &[], &[want]);
}

#[test]
fn an_explained_mutant_is_not_caught() {
    let want = format!("explained, but a test catches it:\n  \"{SMALLER}\",");
    check(&[SMALLER], &[], &[SMALLER], &[&want]);
}

#[test]
fn an_explained_mutant_need_not_be_tried() {
    check(&[SMALLER], &[], &[NEVER], &[]);
}

#[test]
fn one_survivor_keeps_the_entry_of_equal_mutants() {
    check(&[SMALLER], &[SMALLER], &[SMALLER], &[]);
}

#[test]
fn an_entry_must_name_a_mutant_once() {
    let gone = "src/lib.rs: replace > with >= in f | if a > b {";
    let want = format!("explained, but there is no such mutant:\n  \"{gone}\",");
    check(&[gone], &[], &[], &[&want]);
    let want = format!("explained twice:\n  \"{NEVER}\",");
    check(&[NEVER, NEVER], &[NEVER], &[], &[&want]);
}

#[test]
fn a_group_needs_a_reason() {
    let file = "[[group]]\nwhy = \" \"\nmutants = []";
    let explanations: Explanations = toml::from_str(file).expect("the file is TOML");
    let found = explanations.differences(&BTreeSet::new(), &Tried::default());
    assert_eq!(found, ["a group explains nothing: []"]);
}

#[test]
fn entries_have_no_line_number() {
    let root = tempfile::tempdir().expect("a folder");
    fs::write(root.path().join("lib.rs"), "fn f() {\n    a < \"b\"\n}\n").expect("a file");
    let entry = |name| entry(name, root.path());
    assert_eq!(
        entry("lib.rs:2:7: replace < with == in S::f").expect("an entry"),
        "lib.rs: replace < with == in S::f | a < \"b\""
    );
    assert!(entry("lib.rs:9:7: replace < with == in S::f").is_err());
    assert!(entry("lib.rs").is_err());
}

#[test]
fn entries_are_quoted_without_escapes() {
    assert_eq!(quoted("a < \"b\""), "'a < \"b\"'");
}

#[test]
fn the_explanations_of_the_workspace_can_be_read() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("explained.toml");
    let explanations = Explanations::load(&file).expect("explained.toml is right");
    assert!(explanations.group.iter().all(|group| !group.why.trim().is_empty()));
}
