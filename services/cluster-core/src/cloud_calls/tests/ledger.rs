//! The ledger: which entries are written and removed, one row for each rule.

use jiff::SignedDuration;

use super::*;

/// How long a create request without an answer may still be carried out.
const LANDS_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// Describes an entry.
fn print(line: &LedgerEntry) -> String {
    let cloud_id = line.cloud_id.as_deref().unwrap_or("-");
    let updated = line.updated_at.map(|at| at.as_second() - 1_700_000_000);
    format!("{} {} {cloud_id} {updated:?}", line.kind, line.state.as_str())
}

/// The rule, the ledger's entry, the observed object, whether the object is desired, the second of the comparison, and the result.
type Comparison =
    (&'static str, Option<LedgerEntry>, Option<&'static str>, bool, i64, &'static str);

#[test]
fn each_rule_of_the_comparison_has_a_row() {
    use LedgerState::{Deleting, Intended, Present};
    let rows: &[Comparison] = &[
        (
            "an entry that is confirmed stays",
            Some(line("subnet", Present, Some("s"))),
            Some("s"),
            true,
            99,
            "Complete",
        ),
        (
            "a created object is confirmed",
            Some(line("subnet", Intended, None)),
            Some("s"),
            true,
            5,
            "Complete, save subnet present s Some(5)",
        ),
        (
            "an object with another id is recorded",
            Some(line("subnet", Present, Some("old"))),
            Some("s"),
            true,
            5,
            "Complete, save subnet present s Some(5)",
        ),
        (
            "a deletion in progress stays one",
            Some(line("subnet", Deleting, Some("s"))),
            Some("s"),
            false,
            5,
            "Complete",
        ),
        (
            "a desired object keeps its entry",
            Some(line("subnet", Intended, None)),
            None,
            true,
            99,
            "Complete",
        ),
        (
            "a desired object that disappeared keeps its entry",
            Some(line("subnet", Present, Some("s"))),
            None,
            true,
            99,
            "Complete",
        ),
        (
            "a deleted object loses its entry",
            Some(line("subnet", Deleting, Some("s"))),
            None,
            false,
            5,
            "Removed, remove 1",
        ),
        (
            "an object that may still be created keeps its entry",
            Some(line("subnet", Intended, None)),
            None,
            false,
            60,
            "MayStillCome",
        ),
        (
            "an object that was never created loses its entry",
            Some(line("subnet", Intended, None)),
            None,
            false,
            61,
            "Removed, remove 1",
        ),
        (
            "a deleted duplicate may be followed by another",
            Some(line("twin/subnet", Deleting, Some("t"))),
            None,
            false,
            5,
            "MayStillCome, save twin/subnet intended - Some(5)",
        ),
        (
            "a duplicate that never appeared loses its entry",
            Some(line("twin/subnet", Intended, None)),
            None,
            false,
            61,
            "Removed, remove 1",
        ),
        (
            "an object that Kubernetes created gets an entry",
            None,
            Some("v"),
            false,
            5,
            "Complete, save volume/1 present v None",
        ),
        (
            "an object that Kubernetes created keeps its entry",
            Some(line("volume/1", Present, Some("v"))),
            Some("v"),
            false,
            5,
            "Complete",
        ),
    ];
    for (rule, entry, observed, is_desired, second, want) in rows {
        let key: Key = entry.as_ref().map_or("volume/1", |line| &line.kind).parse().unwrap();
        let mut ledger = Ledger::new(owner(), at(*second), entry.iter().cloned().collect());
        let mut seen = ClusterObservation::default();
        if let Some(observed) = observed {
            seen.objects.insert(key.clone(), found(observed, CloudObjectState::Ready));
        }
        let mut shape = desired_objects(&Sample::highly_available().spec());
        shape.retain(|desired, _| *is_desired && *desired == key);
        let update = ledger.reconcile(&seen, &shape, LANDS_WITHIN, || id(99));
        let mut said = format!("{:?}", update.agreed);
        for line in &update.saved {
            said += &format!(", save {}", print(line));
            assert_eq!(ledger.line(&key), Some(line), "{rule}");
        }
        if !update.removed.is_empty() {
            said += &format!(", remove {}", update.removed.len());
            assert_eq!(ledger.line(&key), None, "{rule}");
        }
        assert_eq!(said, *want, "{rule}");
    }
}

#[test]
fn each_rule_of_an_intent_has_a_row() {
    use LedgerState::{Deleting, Intended, Present};
    let delete = || Action::Delete(Key::Subnet);
    let rows: &[(&str, Vec<LedgerEntry>, Action, &[&str])] = &[
        ("a new object", vec![], create("subnet"), &["subnet intended - None"]),
        (
            "an object that disappeared is created without a duplicate",
            vec![line("subnet", Present, Some("s"))],
            create("subnet"),
            &["subnet intended - Some(5)"],
        ),
        (
            "a repeated request may leave a duplicate",
            vec![line("subnet", Intended, None)],
            create("subnet"),
            &["twin/subnet intended - Some(5)", "subnet intended - Some(5)"],
        ),
        (
            "a known duplicate keeps its entry",
            vec![line("subnet", Intended, None), line("twin/subnet", Present, Some("t"))],
            create("subnet"),
            &["subnet intended - Some(5)"],
        ),
        (
            "a name that exists once in the cloud has no duplicate",
            vec![line("credential/1", Intended, None)],
            create("credential/1"),
            &["credential/1 intended - Some(5)"],
        ),
        (
            "a delete",
            vec![line("subnet", Present, Some("s"))],
            delete(),
            &["subnet leaving s Some(5)"],
        ),
        (
            "a repeated delete",
            vec![line("subnet", Deleting, Some("s"))],
            delete(),
            &["subnet leaving s Some(5)"],
        ),
        ("a delete of an object without an entry", vec![], delete(), &[]),
        (
            "a change",
            vec![line("security-group/node", Present, Some("g"))],
            Action::SetRules("security-group/node".parse().unwrap()),
            &[],
        ),
        ("an object that is not desired", vec![], create("server/other-1"), &[]),
    ];
    let shape = desired_objects(&Sample::highly_available().spec());
    for (rule, lines, action, want) in rows {
        let mut ledger = Ledger::new(owner(), at(5), lines.clone());
        let intents = ledger.intend(std::slice::from_ref(action), &shape, || id(99));
        let said: Vec<String> = intents.iter().map(print).collect();
        assert_eq!(said, *want, "{rule}");
        for line in &intents {
            assert_eq!(ledger.line(&line.kind.parse().unwrap()), Some(line), "{rule}");
        }
    }
}

#[test]
fn an_entry_keeps_its_id_and_name_when_the_object_is_created_again() {
    let shape = desired_objects(&Sample::highly_available().spec());
    let known = line("subnet", LedgerState::Present, Some("s"));
    let mut ledger = Ledger::new(owner(), at(5), vec![known.clone()]);
    let intents = ledger.intend(&[create("subnet"), create("network")], &shape, || id(99));
    let ids: Vec<(LedgerUuid, &str)> =
        intents.iter().map(|line| (line.id, line.name.as_str())).collect();
    let network = shape[&Key::Network].name.as_str();
    assert_eq!(ids, [(known.id, known.name.as_str()), (id(99), network)]);
    let created = ledger.created(&Key::Subnet, "new").unwrap();
    assert_eq!(print(&created), "subnet present new Some(5)");
    let ledger = Ledger::new(owner(), at(6), vec![known]);
    let created = ledger.created(&Key::Subnet, "new").unwrap();
    assert_eq!(print(&created), "subnet present new Some(6)");
}

#[test]
fn a_duplicate_has_an_entry_of_its_own() {
    let shape = desired_objects(&Sample::highly_available().spec());
    let asked = line("subnet", LedgerState::Deleting, None);
    let mut ledger = Ledger::new(owner(), at(5), vec![asked.clone()]);
    let twin = ledger.intend(&[create("subnet")], &shape, || id(99)).remove(0);
    assert_eq!(print(&twin), "twin/subnet intended - Some(5)");
    assert_eq!((twin.id, twin.created_at, &twin.name), (id(99), at(5), &asked.name));
    // The entry is kept when the request is repeated once more.
    let mut later = Ledger::new(owner(), at(7), vec![asked, twin.clone()]);
    let again = later.intend(&[create("subnet")], &shape, || id(98)).remove(0);
    assert_eq!(again, LedgerEntry { updated_at: Some(at(7)), ..twin });
}

#[test]
fn entries_are_found_by_the_kind_of_their_object() {
    let kinds = ["port/default-worker-0", "vip-port/api", "subnet", "twin/vip-port/api", "colour"];
    let lines = kinds.map(|kind| line(kind, LedgerState::Present, Some("c")));
    let ledger = Ledger::new(owner(), at(5), lines.to_vec());
    let ports = ledger.of_kind(crate::Kind::Port);
    let ports: Vec<&str> = ports.iter().map(|(_, line)| line.kind.as_str()).collect();
    assert_eq!(ports, ["vip-port/api", "port/default-worker-0", "twin/vip-port/api"]);
    assert!(ledger.of_kind(crate::Kind::Router).is_empty());
}

#[test]
fn lists_may_lag_behind_an_object_that_was_just_confirmed() {
    use LedgerState::{Deleting, Intended, Present};
    let rows =
        [(Present, 10, true), (Present, 11, false), (Intended, 1, false), (Deleting, 1, false)];
    for (state, second, want) in rows {
        let ledger = Ledger::new(owner(), at(second), vec![line("subnet", state, Some("s"))]);
        assert_eq!(ledger.is_fresh(&Key::Subnet), want, "{state:?} after {second} s");
    }
}
