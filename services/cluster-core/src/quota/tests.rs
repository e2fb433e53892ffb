use super::*;
use crate::sample::at;

fn account(
    person: Option<&str>,
    used: &[(Resource, u64)],
    limits: &[(Resource, i64)],
) -> QuotaUsage {
    let person = person.map(str::to_owned);
    let limits = limits.iter().map(|(of, limit)| (*of, Limit::try_from(*limit).unwrap()));
    QuotaUsage {
        whose: QuotaScope { project: "p".to_owned(), person },
        used: used.iter().copied().collect(),
        limits: Limits(limits.collect()),
    }
}

#[track_caller]
fn refuses(accounts: &[QuotaUsage], asked: &[(Resource, u64)], words: &str) {
    let asked = asked.iter().copied().collect();
    assert_eq!(check_quota(accounts, &asked, true).unwrap_err().to_string(), words);
}

#[test]
fn a_limit_may_be_used_up_and_not_exceeded() {
    use Resource::{Clusters, Nodes};
    let project = account(None, &[(Clusters, 1), (Nodes, 7)], &[(Clusters, 2), (Nodes, 10)]);
    let asked = Amounts::from_iter([(Clusters, 1), (Nodes, 3)]);
    assert_eq!(check_quota(std::slice::from_ref(&project), &asked, true), Ok(()));
    let words = "quota exceeded: nodes: project p uses 7 of 10, and the request needs 4 more";
    refuses(&[project], &[(Clusters, 1), (Nodes, 4)], words);
}

#[test]
fn the_limits_of_a_person_and_of_the_project_both_apply() {
    use Resource::{Gpus, Vcpus};
    let project = account(None, &[(Vcpus, 90)], &[(Vcpus, 92)]);
    let person = account(Some("ann"), &[(Gpus, 1)], &[(Gpus, 1), (Vcpus, -1)]);
    let words = "quota exceeded: vcpus: project p uses 90 of 92, and the request needs 4 more; \
                 gpus: user ann in project p uses 1 of 1, and the request needs 2 more";
    refuses(&[project, person], &[(Vcpus, 4), (Gpus, 2)], words);
}

#[test]
fn a_project_over_one_limit_may_still_use_other_resources() {
    use Resource::{Clusters, Nodes};
    let over = account(None, &[(Nodes, 9)], &[(Nodes, 3), (Clusters, 1)]);
    let asked = Amounts::from_iter([(Clusters, 1)]);
    assert_eq!(check_quota(&[over], &asked, true), Ok(()));
}

#[test]
fn a_request_of_unknown_size_is_refused_only_when_the_resource_is_limited() {
    use Resource::{Nodes, RamMib};
    let asked = Amounts::from_iter([(Nodes, 1)]);
    let free = account(None, &[], &[(Nodes, 1), (RamMib, -1)]);
    assert_eq!(check_quota(&[free], &asked, false), Ok(()));
    let limited = account(None, &[], &[(RamMib, 4096)]);
    let refused = check_quota(&[limited], &asked, false).unwrap_err().to_string();
    let words = "project p has a limit of ram_mib, and the cloud did not say how much of ram_mib the request needs; try again";
    assert_eq!(refused, words);
}

#[test]
fn limits_are_numbers_and_override_the_defaults() {
    let read = |text: &str| serde_json::from_str::<Limits>(text);
    let own = read(r#"{"clusters": 5, "ram_mib": -1}"#).unwrap();
    let all = own.or(&read(r#"{"clusters": 20, "ram_mib": 1, "nodes": 3}"#).unwrap());
    assert_eq!(serde_json::to_string(&all).unwrap(), r#"{"clusters":5,"nodes":3,"ram_mib":-1}"#);
    assert_eq!(all.of(Resource::Gpus), Limit::Unlimited);
    let refused = read(r#"{"clusters": -2}"#).unwrap_err().to_string();
    assert!(refused.contains("-2 is not a limit"), "{refused}");
    let refused = read(r#"{"colours": 1}"#).unwrap_err().to_string();
    assert!(
        refused.contains("\"colours\" is not a resource with a limit: use one of clusters, nodes")
    );
    for resource in Resource::ALL {
        assert_eq!(Resource::find(resource.as_str()), Some(resource));
        let written = serde_json::to_string(&resource).unwrap();
        assert_eq!(written, format!("{:?}", resource.as_str()));
    }
}

#[test]
fn a_limit_of_leases_is_a_length() {
    let longest =
        |limit| account(None, &[], &[(Resource::LeaseSeconds, limit)]).limits.longest_lease();
    assert_eq!(longest(86_400), "1d".parse().ok());
    assert_eq!(longest(0), "1s".parse().ok());
    assert_eq!(longest(-1), None);
    assert_eq!(Limits::default().longest_lease(), None);
}

#[test]
fn a_change_of_limits_sets_removes_or_keeps_each_limit() {
    let read = |text: &str| serde_json::from_str::<LimitChanges>(text);
    let changes = read(r#"{"clusters": 5, "gpus": -1, "nodes": null}"#).unwrap();
    let want = [
        (Resource::Clusters, Some(Limit::AtMost(5))),
        (Resource::Gpus, Some(Limit::Unlimited)),
        (Resource::Nodes, None),
    ];
    assert_eq!(changes.0, BTreeMap::from(want));
    let refused = read(r#"{"colours": null}"#).unwrap_err().to_string();
    assert!(refused.starts_with("\"colours\" is not a resource with a limit"), "{refused}");
}

#[test]
fn projects_and_persons_have_defaults_of_their_own() {
    let limit = |most| Limits([(Resource::Gpus, Limit::AtMost(most))].into());
    let defaults = DefaultLimits { project: limit(8), person: limit(2) };
    let of = |person| defaults.of(&account(person, &[], &[]).whose).of(Resource::Gpus);
    assert_eq!((of(None), of(Some("ann"))), (Limit::AtMost(8), Limit::AtMost(2)));
}

#[test]
fn a_lease_may_be_as_long_as_each_limit_and_not_longer() {
    let project = account(None, &[], &[(Resource::LeaseSeconds, 2 * 86_400)]);
    let person = account(Some("ann"), &[], &[(Resource::LeaseSeconds, 86_400)]);
    let unlimited = account(Some("bob"), &[], &[(Resource::LeaseSeconds, -1)]);
    let check = |accounts: &[&QuotaUsage], length: Option<&str>| {
        let accounts: Vec<QuotaUsage> = accounts.iter().copied().cloned().collect();
        let lease = length.map(|length| Lease::new(at(0), length.parse().unwrap()));
        check_lease_limit(&accounts, lease.as_ref()).map_err(|why| why.to_string())
    };
    assert_eq!(check(&[&project, &unlimited], Some("2d")), Ok(()));
    assert_eq!(check(&[&unlimited], None), Ok(()));
    assert_eq!(check(&[&project, &person], Some("1d")), Ok(()));
    let refused = |words: &str| Err(words.to_owned());
    let words = "user ann in project p may have leases of at most 1d, and the request needs 2d";
    assert_eq!(check(&[&project, &person], Some("2d")), refused(words));
    let words =
        "project p may have leases of at most 2d, and the request needs a lease without end";
    assert_eq!(check(&[&project, &unlimited], None), refused(words));
}
