//! Every kind of caller that a Keystone knows.

use serde_json::{Value, json};

use crate::keystone::{Keystone, Place};

/// Keystone's roles, each more than the one before.
pub(crate) const ROLES: [&str; 4] = ["reader", "member", "manager", "admin"];

/// The projects of the walk: what is tried is of the first, lent to the second, and nothing to the third.
pub(crate) const PROJECTS: [&str; 3] = ["project-a", "project-l", "project-b"];

/// How somebody stands to what is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Has no token that is any good.
    Unknown,
    /// Has this role in the whole cloud, or an administrator's anywhere.
    Cloud(&'static str),
    /// Is a service of the cloud.
    Service,
    /// Has this role in the project that the thing is of.
    Owner(&'static str),
    /// Has this role in the project that it is lent to.
    Lessee(&'static str),
    /// Has this role in a project that has nothing to do with it.
    Stranger(&'static str),
    /// Has a token, and nothing here.
    Nothing,
}

/// Somebody who calls.
pub(crate) struct Person {
    pub(crate) name: String,
    /// Keystone's id of the user; empty where there is none.
    pub(crate) id: String,
    pub(crate) token: Option<String>,
    pub(crate) standing: Standing,
}

/// The ids of [`PROJECTS`], and one person of each kind; services are in a project of their own.
pub(crate) async fn everybody(
    keystone: &mut Keystone,
    services: &str,
) -> ([String; 3], Vec<Person>) {
    let known = |name: String, (id, token): (String, String), standing| Person {
        name,
        id,
        token: Some(token),
        standing,
    };
    let nobodys = (String::new(), "gAAAAAnobodys".to_owned());
    let mut people = vec![
        Person {
            name: "no token".to_owned(),
            id: String::new(),
            token: None,
            standing: Standing::Unknown,
        },
        known("a token that is nobody's".to_owned(), nobodys, Standing::Unknown),
    ];
    let mut projects = [const { String::new() }; 3];
    for (id, project) in projects.iter_mut().zip(PROJECTS) {
        *id = keystone.project(project).await;
        for role in ROLES {
            let standing = match (project, role) {
                (_, "admin") => Standing::Cloud("admin"),
                ("project-a", _) => Standing::Owner(role),
                ("project-l", _) => Standing::Lessee(role),
                _ => Standing::Stranger(role),
            };
            let name = format!("{project}-{role}");
            let token =
                somebody(keystone, &name, Place::Project(id), role, &project_scope(id)).await;
            people.push(known(name, token, standing));
        }
    }
    for role in ROLES {
        let (name, scope) = (format!("system-{role}"), json!({"system": {"all": true}}));
        let token = somebody(keystone, &name, Place::System, role, &scope).await;
        people.push(known(name, token, Standing::Cloud(role)));
    }
    for (name, role, standing) in [
        ("helper", "service", Standing::Service),
        ("other", "load-balancer_member", Standing::Nothing),
    ] {
        let (place, scope) = (Place::Project(services), project_scope(services));
        let token = somebody(keystone, name, place, role, &scope).await;
        people.push(known(name.to_owned(), token, standing));
    }
    let domain = json!({"domain": {"id": "default"}});
    for (name, scope) in [("admin of a domain", domain), ("admin of nothing yet", Value::Null)] {
        let token = somebody(keystone, name, Place::Domain, "admin", &scope).await;
        people.push(known(name.to_owned(), token, Standing::Nothing));
    }
    (projects, people)
}

fn project_scope(id: &str) -> Value {
    json!({"project": {"id": id}})
}

/// A new user with this role, by id, and a token of theirs in this scope.
async fn somebody(
    keystone: &mut Keystone,
    name: &str,
    place: Place<'_>,
    role: &str,
    scope: &Value,
) -> (String, String) {
    let user = keystone.user(name).await;
    keystone.grant(place, &user, role).await;
    let token = keystone.token(&user, scope).await;
    (user, token)
}
