use std::sync::Arc;

use openstack::Identity;

use super::*;

fn caller(scope: &str, roles: &[&str], rule: Rule) -> Caller {
    let identity = Identity {
        roles: roles.iter().map(|&role| role.to_owned()).collect(),
        project_id: (scope == "project").then(|| "p".to_owned()),
        system: scope == "system",
        ..Identity::default()
    };
    Caller::known(Arc::new(identity), None).under(rule)
}

/// Checks which needs a caller with this scope and these roles meets.
#[track_caller]
fn check(policy: Policy, scope: &str, roles: &[&str], want: &[Need]) {
    let mut may = vec![Need::Read, Need::Change, Need::Administer];
    may.retain(|need| {
        let rule = policy.rule(*need);
        rule.admit(&caller(scope, roles, rule)).is_ok()
    });
    assert_eq!(may, want);
}

#[test]
fn a_role_in_a_project_gives_the_access_of_that_role() {
    use Need::{Administer, Change, Read};
    check(Policy::Projects, "project", &["reader"], &[Read]);
    check(Policy::Projects, "project", &["member", "reader"], &[Read, Change]);
    check(Policy::Projects, "project", &["manager"], &[Read, Change]);
    check(Policy::Projects, "project", &["service"], &[Read, Change]);
    check(Policy::Projects, "project", &["admin"], &[Read, Change, Administer]);
    check(Policy::Projects, "project", &["load-balancer_member"], &[]);
    check(Policy::Projects, "project", &[], &[]);
    check(Policy::Projects, "system", &["reader"], &[Read]);
}

#[test]
fn resources_of_operators_are_closed_to_project_members() {
    use Need::{Administer, Change, Read};
    check(Policy::Operators, "project", &["member", "reader"], &[]);
    check(Policy::Operators, "project", &["admin"], &[Read, Change, Administer]);
    check(Policy::Operators, "project", &["service"], &[Read, Change]);
    check(Policy::Operators, "system", &["reader"], &[Read]);
    check(Policy::Operators, "system", &["member"], &[Read, Change]);
}

#[test]
fn an_administrator_of_a_domain_has_no_access() {
    for scope in ["domain", "none"] {
        check(Policy::Projects, scope, &["admin"], &[]);
        check(Policy::Operators, scope, &["admin", "service"], &[]);
    }
}

#[test]
fn a_service_token_beside_a_users_token_gives_no_access() {
    let rule = Policy::Operators.rule(Need::Read);
    let with = |roles: &[&str]| {
        let roles = roles.iter().map(|&role| role.to_owned()).collect();
        Arc::new(Identity { roles, project_id: Some("p".to_owned()), ..Identity::default() })
    };
    let caller = Caller::known(with(&["member"]), Some(with(&["service"]))).under(rule);
    assert!(rule.admit(&caller).is_err());
}

#[test]
fn owner_and_lessee_need_the_roles_of_the_rule() {
    let rule = Rule {
        cloud: Role::Admin,
        services: false,
        owner: Some(Role::Member),
        lessee: Some(Role::Manager),
    };
    let may = |roles: &[&str]| {
        let caller = caller("project", roles, rule);
        let bonds = [caller.bond(Some("p"), None), caller.bond(Some("o"), Some("p"))];
        bonds.map(|bond| rule.check(&caller, bond.unwrap()).is_ok())
    };
    assert_eq!(may(&["reader"]), [false, false]);
    assert_eq!(may(&["member"]), [true, false]);
    assert_eq!(may(&["manager"]), [true, true]);
    let stranger = caller("project", &["manager"], rule);
    assert_eq!(stranger.bond(Some("o"), Some("l")), None);
    assert_eq!(stranger.bond(None, None), None);
    assert!(Rule { lessee: None, ..rule }.check(&stranger, Bond::Lessee).is_err());
}

#[test]
fn without_keystone_every_authenticated_caller_may_do_everything() {
    for policy in [Policy::Projects, Policy::Operators] {
        let rule = policy.rule(Need::Administer);
        for caller in [Caller::anyone(), Caller::named("ann".to_owned())] {
            assert_eq!(rule.admit(&caller.under(rule)), Ok(()));
        }
    }
}
