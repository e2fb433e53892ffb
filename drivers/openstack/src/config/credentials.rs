//! Credentials and scope: the data that Keystone needs to issue a token.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

/// Credentials for Keystone.
#[derive(Clone, Debug)]
pub enum Auth {
    /// A user's password.
    Password { user: User, password: SecretString, scope: Scope },
    /// An application credential, which is bound to one project.
    ApplicationCredential {
        /// The credential's id, or its name if `user` is given.
        credential: String,
        /// The credential's user; only needed with a name.
        user: Option<User>,
        secret: SecretString,
    },
    /// A token of another program. It is exchanged for a token with this scope, which expires with the first one.
    Token {
        token: SecretString,
        /// The scope of the new token.
        scope: Scope,
    },
}

/// A user, by id, or by name and domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    Id(String),
    Named {
        name: String,
        /// The domain in which the name is unique.
        domain: Domain,
    },
}

/// A domain, by id or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    Id(String),
    Name(String),
}

/// A project, by id, or by name and domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Project {
    Id(String),
    Named {
        name: String,
        /// The domain in which the name is unique.
        domain: Domain,
    },
}

/// The scope of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's default project, if there is one; otherwise unscoped.
    Default,
    Project(Project),
    Domain(Domain),
    /// The whole cloud.
    System,
    /// The project and roles that a trust delegates.
    Trust {
        id: String,
    },
}

impl Auth {
    /// Returns the same user's credentials with a project as scope; `None` for an application credential, which is bound to one project.
    pub fn in_project(&self, id: &str) -> Option<Auth> {
        let scope = Scope::Project(Project::Id(id.to_owned()));
        match self {
            Auth::Password { user, password, .. } => {
                Some(Auth::Password { user: user.clone(), password: password.clone(), scope })
            }
            Auth::Token { token, .. } => Some(Auth::Token { token: token.clone(), scope }),
            Auth::ApplicationCredential { .. } => None,
        }
    }

    /// Builds the body of `POST /v3/auth/tokens` (Identity API v3, "Authentication and token management"). The body holds the secret.
    pub(crate) fn request(&self) -> Value {
        let (identity, scope) = match self {
            Auth::Password { user, password, scope } => {
                let mut user = user.json();
                user.insert("password".to_owned(), password.expose_secret().into());
                (json!({"methods": ["password"], "password": {"user": user}}), scope.json())
            }
            Auth::ApplicationCredential { credential, user, secret } => {
                let mut given = Map::new();
                let key = if user.is_some() { "name" } else { "id" };
                given.insert(key.to_owned(), credential.as_str().into());
                given.insert("secret".to_owned(), secret.expose_secret().into());
                if let Some(user) = user {
                    given.insert("user".to_owned(), user.json().into());
                }
                let methods = ["application_credential"];
                (json!({"methods": methods, "application_credential": given}), None)
            }
            Auth::Token { token, scope } => {
                let token = json!({"id": token.expose_secret()});
                (json!({"methods": ["token"], "token": token}), scope.json())
            }
        };
        let mut auth = json!({"identity": identity});
        if let Some(scope) = scope {
            auth["scope"] = scope;
        }
        json!({"auth": auth})
    }
}

impl User {
    fn json(&self) -> Map<String, Value> {
        match self {
            User::Id(id) => Map::from_iter([("id".to_owned(), id.as_str().into())]),
            User::Named { name, domain } => named(name, domain),
        }
    }
}

impl Domain {
    fn json(&self) -> Value {
        match self {
            Domain::Id(id) => json!({"id": id}),
            Domain::Name(name) => json!({"name": name}),
        }
    }
}

impl Scope {
    fn json(&self) -> Option<Value> {
        match self {
            Scope::Default => None,
            Scope::Project(Project::Id(id)) => Some(json!({"project": {"id": id}})),
            Scope::Project(Project::Named { name, domain }) => {
                Some(json!({"project": named(name, domain)}))
            }
            Scope::Domain(domain) => Some(json!({"domain": domain.json()})),
            Scope::System => Some(json!({"system": {"all": true}})),
            Scope::Trust { id } => Some(json!({"OS-TRUST:trust": {"id": id}})),
        }
    }
}

fn named(name: &str, domain: &Domain) -> Map<String, Value> {
    Map::from_iter([("name".to_owned(), name.into()), ("domain".to_owned(), domain.json())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> User {
        User::Named { name: "alice".to_owned(), domain: Domain::Name("Default".to_owned()) }
    }

    #[test]
    fn a_password_is_sent_with_its_project() {
        let project = Project::Named { name: "a".to_owned(), domain: Domain::Id("d".to_owned()) };
        let scope = Scope::Project(project);
        let auth = Auth::Password { user: alice(), password: "secret".into(), scope };
        assert_eq!(
            auth.request(),
            json!({"auth": {
                "identity": {"methods": ["password"], "password": {"user": {
                    "name": "alice", "domain": {"name": "Default"}, "password": "secret",
                }}},
                "scope": {"project": {"name": "a", "domain": {"id": "d"}}},
            }})
        );
    }

    #[test]
    fn an_application_credential_is_sent_without_a_scope() {
        let by_id = Auth::ApplicationCredential {
            credential: "c".to_owned(),
            user: None,
            secret: "s".into(),
        };
        assert_eq!(
            by_id.request(),
            json!({"auth": {"identity": {
                "methods": ["application_credential"],
                "application_credential": {"id": "c", "secret": "s"},
            }}})
        );
        let by_name = Auth::ApplicationCredential {
            credential: "c".to_owned(),
            user: Some(User::Id("u".to_owned())),
            secret: "s".into(),
        };
        assert_eq!(
            by_name.request()["auth"]["identity"]["application_credential"],
            json!({"name": "c", "secret": "s", "user": {"id": "u"}})
        );
    }

    #[test]
    fn a_trust_is_a_scope_of_its_own() {
        let scope = Scope::Trust { id: "t".to_owned() };
        let auth = Auth::Token { token: "token".into(), scope };
        assert_eq!(auth.request()["auth"]["scope"], json!({"OS-TRUST:trust": {"id": "t"}}));
    }

    #[test]
    fn only_a_user_can_change_the_project() {
        let auth = Auth::Password { user: alice(), password: "p".into(), scope: Scope::System };
        let there = auth.in_project("p2").unwrap().request();
        assert_eq!(there["auth"]["scope"], json!({"project": {"id": "p2"}}));
        assert_eq!(there["auth"]["identity"], auth.request()["auth"]["identity"]);
        let (credential, secret) = ("c".to_owned(), "s".into());
        let bound = Auth::ApplicationCredential { credential, user: None, secret };
        assert!(bound.in_project("p2").is_none());
    }

    #[test]
    fn no_secret_is_shown() {
        let auth =
            Auth::Password { user: alice(), password: "hunter2".into(), scope: Scope::Default };
        assert!(!format!("{auth:?}").contains("hunter2"));
    }
}
