//! Creates users, projects and roles for the walk in an emulated or a real Keystone, through the Identity API.

use openstack::{CloudConfig, Session};
use reqwest::{Client, Method};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use uuid::Uuid;

/// A Keystone, used as its administrator.
pub(crate) struct Keystone {
    client: Client,
    /// Includes `/v3`.
    url: String,
    token: String,
    /// The suffix of all names in this run, so that they do not clash with others.
    run: String,
    made: Vec<String>,
}

/// The scope of a role assignment, as in the paths of the Identity API.
pub(crate) enum RoleScope<'a> {
    Project(&'a str),
    Domain,
    System,
}

impl Keystone {
    pub(crate) async fn of(config: CloudConfig, client: &Client) -> Keystone {
        let url = config.auth_url.as_str().trim_end_matches('/').to_owned();
        let url = if url.ends_with("/v3") { url } else { format!("{url}/v3") };
        let session = Session::new(config).unwrap();
        let token = session.bearer().await.unwrap().expose_secret().to_owned();
        let run = Uuid::new_v4().simple().to_string()[..8].to_owned();
        Keystone { client: client.clone(), url, token, run, made: Vec::new() }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Creates a project and returns its id.
    pub(crate) async fn project(&mut self, name: &str) -> String {
        let body = json!({"name": self.named(name), "domain_id": "default"});
        self.make("projects", "project", body).await
    }

    /// Creates a user with the password [`Keystone::password`] and returns the id.
    pub(crate) async fn user(&mut self, name: &str) -> String {
        let body =
            json!({"name": self.named(name), "domain_id": "default", "password": self.password()});
        self.make("users", "user", body).await
    }

    /// The password of all users of this run.
    pub(crate) fn password(&self) -> String {
        format!("{} {}", left::canary::KEYSTONE, self.run)
    }

    fn named(&self, name: &str) -> String {
        format!("{name}-{}", self.run)
    }

    pub(crate) async fn grant(&self, place: RoleScope<'_>, user: &str, role: &str) {
        let place = match place {
            RoleScope::Project(id) => format!("projects/{id}"),
            RoleScope::Domain => "domains/default".to_owned(),
            RoleScope::System => "system".to_owned(),
        };
        let role = self.role(role).await;
        let path = format!("{place}/users/{user}/roles/{role}");
        self.ask(Method::PUT, &path, &Value::Null, 204).await;
    }

    /// The id of a role, which is created if this Keystone does not have it yet. Another walk may create it at the same time.
    async fn role(&self, name: &str) -> String {
        if let Some(id) = self.existing_role(name).await {
            return id;
        }
        let body = json!({"role": {"name": name}});
        match self.send(Method::POST, "roles", &body).await {
            (201, made) => made["role"]["id"].as_str().unwrap().to_owned(),
            (409, _) => self.existing_role(name).await.expect("the role of the other walk"),
            (status, said) => panic!("POST roles: {status} {said}"),
        }
    }

    async fn existing_role(&self, name: &str) -> Option<String> {
        let found = self.ask(Method::GET, &format!("roles?name={name}"), &Value::Null, 200).await;
        found["roles"][0]["id"].as_str().map(str::to_owned)
    }

    /// Authenticates as a user for `scope`; a null scope gives an unscoped token.
    pub(crate) async fn token(&self, user: &str, scope: &Value) -> String {
        let user = json!({"id": user, "password": self.password()});
        let mut auth = json!({"identity": {"methods": ["password"], "password": {"user": user}}});
        if !scope.is_null() {
            auth["scope"] = scope.clone();
        }
        let request = self.client.post(format!("{}/auth/tokens", self.url));
        let answer = request.json(&json!({"auth": auth})).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{user} in {scope}");
        answer.headers()["x-subject-token"].to_str().unwrap().to_owned()
    }

    /// Deletes everything created in this run.
    pub(crate) async fn clear(&mut self) {
        for path in std::mem::take(&mut self.made).iter().rev() {
            self.ask(Method::DELETE, path, &Value::Null, 204).await;
        }
    }

    async fn make(&mut self, collection: &str, key: &str, body: Value) -> String {
        let made = self.ask(Method::POST, collection, &json!({key: body}), 201).await;
        let id = made[key]["id"].as_str().unwrap().to_owned();
        self.made.push(format!("{collection}/{id}"));
        id
    }

    async fn ask(&self, method: Method, path: &str, body: &Value, status: u16) -> Value {
        let (got, answer) = self.send(method.clone(), path, body).await;
        assert_eq!(got, status, "{method} {path}: {answer}");
        answer
    }

    /// The status and the JSON of an answer; null if the answer has no JSON.
    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = self.client.request(method, format!("{}/{path}", self.url));
        let request = request.header("x-auth-token", &self.token);
        let request = if body.is_null() { request } else { request.json(body) };
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_default())
    }
}
