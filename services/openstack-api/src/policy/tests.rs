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
        let relations =
            [caller.relation_to(Some("p"), None), caller.relation_to(Some("o"), Some("p"))];
        relations.map(|relation| rule.check(&caller, relation.unwrap()).is_ok())
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

/// Checks the reason why a caller is refused, both at the route and with a resource of this relation; `None` if the caller is admitted.
#[track_caller]
fn refused(rule: Rule, scope: &str, roles: &[&str], relation: Relation, want: [Option<&str>; 2]) {
    let caller = caller(scope, roles, rule);
    let got = [rule.admit(&caller), rule.check(&caller, relation)];
    for (got, want) in got.into_iter().zip(want) {
        let want = want.map(|why| ApiError::protocol(StatusCode::FORBIDDEN, why));
        assert_eq!(got.err(), want);
    }
}

#[test]
fn a_refusal_says_what_is_missing() {
    const OPERATORS: &str = "only operators may do this: it requires the role admin, or a token that is valid in the whole cloud";
    const NO_ROLE: &str =
        "you have none of the roles reader, member, manager and admin in this scope";
    const NO_PROJECT: &str = "your token is not scoped to a project: authenticate with a project";
    let rule = Rule {
        cloud: Role::Admin,
        services: false,
        owner: Some(Role::Member),
        lessee: Some(Role::Manager),
    };
    let member = "this requires the role member; your role is reader";
    let manager = "this requires the role manager; your role is member";
    refused(rule, "project", &["reader"], Relation::Owner, [Some(member), Some(member)]);
    refused(rule, "project", &["member"], Relation::Lessee, [None, Some(manager)]);
    refused(rule, "project", &["manager"], Relation::Lessee, [None, None]);
    let none = "this requires the role member; your role is none";
    refused(rule, "project", &["auditor"], Relation::Owner, [Some(NO_ROLE), Some(none)]);
    refused(rule, "domain", &["member"], Relation::Owner, [Some(NO_PROJECT), None]);

    let owners = Rule { lessee: None, ..rule };
    let lessee = "only the owning project may do this; your project is only the lessee";
    refused(owners, "project", &["member"], Relation::Lessee, [None, Some(lessee)]);
    let operators = Rule { owner: None, ..owners };
    for relation in [Relation::Owner, Relation::Lessee] {
        refused(operators, "project", &["member"], relation, [Some(OPERATORS), Some(OPERATORS)]);
    }
    // A lessee may be allowed more than the owner.
    let lessees = Rule { owner: None, lessee: Some(Role::Reader), ..rule };
    refused(lessees, "project", &["reader"], Relation::Lessee, [None, None]);
    refused(lessees, "project", &["reader"], Relation::Owner, [None, Some(OPERATORS)]);
}

#[test]
fn services_need_no_role_where_the_rule_says_so() {
    let rule =
        Rule { cloud: Role::Admin, services: true, owner: Some(Role::Manager), lessee: None };
    let manager = "this requires the role manager; your role is member";
    refused(rule, "project", &["service"], Relation::Cloud, [None, None]);
    refused(rule, "project", &["service"], Relation::Owner, [None, Some(manager)]);
    let admin = "this requires the role admin; your role is member";
    refused(rule, "system", &["member"], Relation::Cloud, [Some(admin), Some(admin)]);
    let without = Rule { services: false, ..rule };
    refused(without, "system", &["service"], Relation::Cloud, [Some(admin), Some(admin)]);
}

#[test]
fn methods_that_read_need_less() {
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        assert_eq!(RequiredAccess::of(&method), RequiredAccess::Read);
    }
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert_eq!(RequiredAccess::of(&method), RequiredAccess::Change);
    }
}

#[test]
fn a_role_is_known_by_keystones_name() {
    for role in [Role::Reader, Role::Member, Role::Manager, Role::Admin] {
        assert_eq!(Role::named(role.as_str()), Some(role));
    }
    assert_eq!(Role::named("service"), Some(Role::Member));
    assert_eq!(Role::named("Admin"), None);
}
