use super::*;

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
        assert_eq!(Resource::from_name(resource.as_str()), Some(resource));
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
