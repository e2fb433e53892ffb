//! Every kind of caller that Keystone distinguishes.

use serde_json::{Value, json};

use crate::keystone::{Keystone, RoleScope};

/// Keystone's roles; each includes the one before.
pub(crate) const ROLES: [&str; 4] = ["reader", "member", "manager", "admin"];

/// The projects of the walk: the first owns the resources, the second is their lessee, the third is unrelated.
pub(crate) const PROJECTS: [&str; 3] = ["project-a", "project-l", "project-b"];

/// How a caller is related to the resource that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The caller has no valid token.
    Unknown,
    /// The caller has this role in the whole cloud, or is an administrator of any project.
    Cloud(&'static str),
    /// The caller is a service of the cloud.
    Service,
    /// The caller has this role in the project that owns the resource.
    Owner(&'static str),
    /// The caller has this role in the project that the resource is lent to.
    Lessee(&'static str),
    /// The caller has this role in an unrelated project.
    Stranger(&'static str),
    /// The caller has a valid token without access to anything.
    Nothing,
}

/// A caller of the walk, with a token.
pub(crate) struct TestCaller {
    pub(crate) name: String,
    /// Keystone's id of the user; empty if the caller is no user of Keystone.
    pub(crate) id: String,
    pub(crate) token: Option<String>,
    pub(crate) standing: Relation,
}

/// Returns the ids of [`PROJECTS`], and one caller of each kind. Services have a project of their own.
pub(crate) async fn everybody(
    keystone: &mut Keystone,
    services: &str,
) -> ([String; 3], Vec<TestCaller>) {
    let known = |name: String, (id, token): (String, String), standing| TestCaller {
        name,
        id,
        token: Some(token),
        standing,
    };
    let nobodys = (String::new(), "gAAAAAnobodys".to_owned());
    let mut people = vec![
        TestCaller {
            name: "no token".to_owned(),
            id: String::new(),
            token: None,
            standing: Relation::Unknown,
        },
        known("a token that is nobody's".to_owned(), nobodys, Relation::Unknown),
    ];
    let mut projects = [const { String::new() }; 3];
    for (id, project) in projects.iter_mut().zip(PROJECTS) {
        *id = keystone.project(project).await;
        for role in ROLES {
            let standing = match (project, role) {
                (_, "admin") => Relation::Cloud("admin"),
                ("project-a", _) => Relation::Owner(role),
                ("project-l", _) => Relation::Lessee(role),
                _ => Relation::Stranger(role),
            };
            let name = format!("{project}-{role}");
            let token =
                somebody(keystone, &name, RoleScope::Project(id), role, &project_scope(id)).await;
            people.push(known(name, token, standing));
        }
    }
    for role in ROLES {
        let (name, scope) = (format!("system-{role}"), json!({"system": {"all": true}}));
        let token = somebody(keystone, &name, RoleScope::System, role, &scope).await;
        people.push(known(name, token, Relation::Cloud(role)));
    }
    for (name, role, standing) in [
        ("helper", "service", Relation::Service),
        ("other", "load-balancer_member", Relation::Nothing),
    ] {
        let (place, scope) = (RoleScope::Project(services), project_scope(services));
        let token = somebody(keystone, name, place, role, &scope).await;
        people.push(known(name.to_owned(), token, standing));
    }
    let domain = json!({"domain": {"id": "default"}});
    for (name, scope) in [("admin of a domain", domain), ("admin of nothing yet", Value::Null)] {
        let token = somebody(keystone, name, RoleScope::Domain, "admin", &scope).await;
        people.push(known(name.to_owned(), token, Relation::Nothing));
    }
    (projects, people)
}

fn project_scope(id: &str) -> Value {
    json!({"project": {"id": id}})
}

/// Creates a user with this role; returns its id and a token for the scope.
async fn somebody(
    keystone: &mut Keystone,
    name: &str,
    place: RoleScope<'_>,
    role: &str,
    scope: &Value,
) -> (String, String) {
    let user = keystone.user(name).await;
    keystone.grant(place, &user, role).await;
    let token = keystone.token(&user, scope).await;
    (user, token)
}
