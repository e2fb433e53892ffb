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
    Caller::known(Arc::new(identity), None).with_rule(rule)
}

/// Checks which needs a caller with this scope and these roles meets.
#[track_caller]
fn check(policy: ResourceOwnership, scope: &str, roles: &[&str], want: &[RequiredAccess]) {
    let mut may = vec![RequiredAccess::Read, RequiredAccess::Change, RequiredAccess::Administer];
    may.retain(|need| {
        let rule = policy.rule(*need);
        rule.admit(&caller(scope, roles, rule)).is_ok()
    });
    assert_eq!(may, want);
}

#[test]
fn a_role_in_a_project_gives_the_access_of_that_role() {
    use RequiredAccess::{Administer, Change, Read};
    check(ResourceOwnership::Projects, "project", &["reader"], &[Read]);
    check(ResourceOwnership::Projects, "project", &["member", "reader"], &[Read, Change]);
    check(ResourceOwnership::Projects, "project", &["manager"], &[Read, Change]);
    check(ResourceOwnership::Projects, "project", &["service"], &[Read, Change]);
    check(ResourceOwnership::Projects, "project", &["admin"], &[Read, Change, Administer]);
    check(ResourceOwnership::Projects, "project", &["load-balancer_member"], &[]);
    check(ResourceOwnership::Projects, "project", &[], &[]);
    check(ResourceOwnership::Projects, "system", &["reader"], &[Read]);
}

#[test]
fn resources_of_operators_are_closed_to_project_members() {
    use RequiredAccess::{Administer, Change, Read};
    check(ResourceOwnership::Operators, "project", &["member", "reader"], &[]);
    check(ResourceOwnership::Operators, "project", &["admin"], &[Read, Change, Administer]);
    check(ResourceOwnership::Operators, "project", &["service"], &[Read, Change]);
    check(ResourceOwnership::Operators, "system", &["reader"], &[Read]);
    check(ResourceOwnership::Operators, "system", &["member"], &[Read, Change]);
}

#[test]
fn an_administrator_of_a_domain_has_no_access() {
    for scope in ["domain", "none"] {
        check(ResourceOwnership::Projects, scope, &["admin"], &[]);
        check(ResourceOwnership::Operators, scope, &["admin", "service"], &[]);
    }
}

#[test]
fn a_service_token_beside_a_users_token_gives_no_access() {
    let rule = ResourceOwnership::Operators.rule(RequiredAccess::Read);
    let with = |roles: &[&str]| {
        let roles = roles.iter().map(|&role| role.to_owned()).collect();
        Arc::new(Identity { roles, project_id: Some("p".to_owned()), ..Identity::default() })
    };
    let caller = Caller::known(with(&["member"]), Some(with(&["service"]))).with_rule(rule);
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
        let bonds = [caller.relation_to(Some("p"), None), caller.relation_to(Some("o"), Some("p"))];
        bonds.map(|bond| rule.check(&caller, bond.unwrap()).is_ok())
    };
    assert_eq!(may(&["reader"]), [false, false]);
    assert_eq!(may(&["member"]), [true, false]);
    assert_eq!(may(&["manager"]), [true, true]);
    let stranger = caller("project", &["manager"], rule);
    assert_eq!(stranger.relation_to(Some("o"), Some("l")), None);
    assert_eq!(stranger.relation_to(None, None), None);
    assert!(Rule { lessee: None, ..rule }.check(&stranger, Relation::Lessee).is_err());
}

#[test]
fn without_keystone_every_authenticated_caller_may_do_everything() {
    for policy in [ResourceOwnership::Projects, ResourceOwnership::Operators] {
        let rule = policy.rule(RequiredAccess::Administer);
        for caller in [Caller::anyone(), Caller::named("ann".to_owned())] {
            assert_eq!(rule.admit(&caller.with_rule(rule)), Ok(()));
        }
    }
}
