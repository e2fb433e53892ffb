//! Every kind of caller that a Keystone knows.

use openstack_emulator::Cloud;
use reqwest::Client;
use serde_json::{Value, json};

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
    pub(crate) token: Option<String>,
    pub(crate) standing: Standing,
}

/// One of each kind.
pub(crate) async fn everybody(cloud: &Cloud, client: &Client) -> Vec<Person> {
    let mut people = vec![
        Person { name: "no token".to_owned(), token: None, standing: Standing::Unknown },
        Person {
            name: "a token that is nobody's".to_owned(),
            token: Some("gAAAAAnobodys".to_owned()),
            standing: Standing::Unknown,
        },
    ];
    let system = || json!({"system": {"all": true}});
    let mut add = async |user: &str, scope: Value, standing: Standing| {
        let token = Some(token(cloud, client, user, &scope).await);
        people.push(Person { name: format!("{user} in {scope}"), token, standing });
    };
    for role in ROLES {
        for project in PROJECTS {
            let user = format!("{project}-{role}");
            cloud.add_user_with(&user, &format!("{user}-secret"), project, &[role]);
            let standing = match (project, role) {
                (_, "admin") => Standing::Cloud("admin"),
                ("project-a", _) => Standing::Owner(role),
                ("project-l", _) => Standing::Lessee(role),
                _ => Standing::Stranger(role),
            };
            add(&user, in_project(project), standing).await;
        }
        let user = format!("system-{role}");
        let account = cloud.add_user_with(&user, &format!("{user}-secret"), "project-b", &[role]);
        cloud.grant_system(&account.user_id, &[role]);
        add(&user, system(), Standing::Cloud(role)).await;
    }
    for (user, roles, standing) in [
        ("helper", ["service"], Standing::Service),
        ("other", ["load-balancer_member"], Standing::Nothing),
    ] {
        cloud.add_user_with(user, &format!("{user}-secret"), "service", &roles);
        add(user, in_project("service"), standing).await;
    }
    add("admin", json!({"domain": {"id": "default"}}), Standing::Nothing).await;
    add("admin", Value::Null, Standing::Nothing).await;
    people
}

fn in_project(name: &str) -> Value {
    json!({"project": {"name": name, "domain": {"id": "default"}}})
}

/// A token of this user's, whose password is `NAME-secret`, in this scope.
async fn token(cloud: &Cloud, client: &Client, user: &str, scope: &Value) -> String {
    let user =
        json!({"name": user, "domain": {"id": "default"}, "password": format!("{user}-secret")});
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    let body = json!({"auth": {"identity": identity, "scope": scope}});
    let url = format!("{}/auth/tokens", cloud.auth_url());
    let answer = client.post(url).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 201, "{user} in {scope}");
    answer.headers()["x-subject-token"].to_str().unwrap().to_owned()
}
