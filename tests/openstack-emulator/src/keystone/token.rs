//! Tokens: issue, show, check, revoke.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::assignment::{SYSTEM, role_document, roles_of};
use super::{catalogue, refuse};
use crate::object::{Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult, Caller};
use crate::world::{Token, World, short_id};

/// An authenticated user, and the methods used.
struct Proven {
    user: String,
    application_credential: Option<String>,
    methods: Vec<Value>,
}

/// Answers `POST /v3/auth/tokens`.
pub(crate) fn issue(world: &mut World, asked: &ApiRequest) -> ApiAnswer {
    let auth = asked.wrapped("auth")?;
    let identity = auth.field("identity").clone();
    let proven = prove(world, &identity)?;
    let token = scope(world, proven, auth.get("scope"))?;
    let id = format!("gAAAAA{}{}{}", short_id(), short_id(), short_id());
    let catalog = !asked.query.iter().any(|(key, _)| key == "nocatalog");
    let document = document(world, asked, &token, catalog);
    world.tokens.insert(id.clone(), token);
    world.secrets.push(id.clone());
    Ok(Answer::json(201, document).with("x-subject-token", id).with("vary", "X-Auth-Token"))
}

fn prove(world: &mut World, identity: &Value) -> ApiResult<Proven> {
    let methods = identity.list("methods").to_vec();
    let no = ApiError::unauthorized;
    match methods.first().and_then(Value::as_str) {
        Some("password") => {
            let given = &identity["password"]["user"];
            let user = user(world, given).ok_or_else(no)?;
            if given["password"].as_str() != Some(user.note("password")) || !user.is("enabled") {
                return Err(no());
            }
            Ok(Proven { user: user.id.clone(), application_credential: None, methods })
        }
        Some("token") => {
            let id = identity["token"].text("id");
            let token = living(world, id).ok_or_else(no)?;
            let application_credential = token.application_credential.clone();
            Ok(Proven { user: token.user.clone(), application_credential, methods })
        }
        Some("application_credential") => {
            let given = &identity["application_credential"];
            let owner = user(world, &given["user"]).map(|user| user.id.clone());
            let found = match (given["id"].as_str(), given["name"].as_str(), &owner) {
                (Some(id), ..) => world.store.get(Kind::ApplicationCredential, id),
                (None, Some(name), Some(owner)) => world
                    .store
                    .with_text(Kind::ApplicationCredential, "user", owner)
                    .find(|one| one.text("name") == name),
                (None, ..) => None,
            };
            let found = found.ok_or_else(no)?;
            let expired =
                found.text("expires_at").parse::<Timestamp>().is_ok_and(|at| at < Timestamp::now());
            if expired || given["secret"].as_str() != Some(found.note("secret")) {
                return Err(no());
            }
            Ok(Proven {
                user: found.note("user").to_owned(),
                application_credential: Some(found.id.clone()),
                methods,
            })
        }
        _ => Err(no()),
    }
}

/// A user by id, or by name and domain.
fn user<'w>(world: &'w World, given: &Value) -> Option<&'w Object> {
    by_id_or_name(world, Kind::User, given)
}

/// A user or a project by id, or by name and domain.
fn by_id_or_name<'w>(world: &'w World, kind: Kind, given: &Value) -> Option<&'w Object> {
    match given["id"].as_str() {
        Some(id) => world.store.get(kind, id),
        None => {
            let name = given["name"].as_str().filter(|_| in_default(&given["domain"]))?;
            world.store.named(kind, name)
        }
    }
}

fn in_default(domain: &Value) -> bool {
    domain["id"] == "default" || domain["name"] == "Default" || domain["name"] == "default"
}

fn scope(world: &World, proven: Proven, scope: Option<&Value>) -> ApiResult<Token> {
    let no = ApiError::unauthorized;
    let now = Timestamp::now();
    let lasts = Duration::from_secs(world.settings.token_seconds.into());
    let mut token = Token {
        user: proven.user,
        project: String::new(),
        domain: false,
        roles: Vec::new(),
        methods: proven.methods,
        issued: now,
        expires: now + lasts,
        until: Instant::now() + lasts,
        audit: short_id()[..22].to_owned(),
        application_credential: proven.application_credential,
        trust: None,
    };
    if let Some(id) = &token.application_credential {
        let credential = world.store.get(Kind::ApplicationCredential, id).ok_or_else(no)?;
        if scope.is_some_and(|scope| {
            scope.get("project").is_some_and(|project| project["id"] != credential.project.as_str())
        }) {
            return Err(no());
        }
        token.project = credential.project.clone();
        token.roles = names(credential.list("roles"));
        return Ok(token);
    }
    let Some(scope) = scope.filter(|scope| scope.is_object()) else {
        return Ok(token);
    };
    if let Some(id) = scope["OS-TRUST:trust"]["id"].as_str() {
        let trust = world.store.get(Kind::Trust, id).ok_or_else(no)?;
        let expired = trust.text("expires_at").parse::<Timestamp>().is_ok_and(|at| at < now);
        if expired || trust.text("trustee_user_id") != token.user {
            return Err(refuse::not_authorized());
        }
        token.project = trust.text("project_id").to_owned();
        token.roles = names(trust.list("roles"));
        token.trust = Some(id.to_owned());
        if trust.is("impersonation") {
            token.user = trust.text("trustor_user_id").to_owned();
        }
        return Ok(token);
    }
    let Some(given) = scope.get("project") else {
        if scope.get("system").is_some() {
            token.roles = role_names(world, &roles_of(world, &token.user, SYSTEM));
            if !token.roles.is_empty() {
                return Ok(token);
            }
        }
        if let Some(domain) = scope["domain"]["id"].as_str() {
            token.roles = role_names(world, &roles_of(world, &token.user, domain));
            token.domain = !token.roles.is_empty();
            if token.domain {
                return Ok(token);
            }
        }
        // A user without a role in that scope gets a token only if the user is an administrator of some project.
        let admin = world.store.all(Kind::Project).any(|project| {
            roles_of(world, &token.user, &project.id).iter().any(|role| is_admin(world, role))
        });
        if !admin {
            return Err(no());
        }
        token.roles = vec!["admin".into()];
        token.domain = scope.get("domain").is_some();
        return Ok(token);
    };
    let project = by_id_or_name(world, Kind::Project, given).ok_or_else(no)?;
    let roles = roles_of(world, &token.user, &project.id);
    token.roles = role_names(world, &roles);
    token.project = project.id.clone();
    if token.roles.is_empty() {
        return Err(no());
    }
    Ok(token)
}

fn role_names(world: &World, ids: &[String]) -> Vec<String> {
    let roles = ids.iter().filter_map(|id| world.store.get(Kind::Role, id));
    roles.map(|role| role.text("name").to_owned()).collect()
}

fn is_admin(world: &World, role: &str) -> bool {
    world.store.get(Kind::Role, role).is_some_and(|role| role.text("name") == "admin")
}

fn names(roles: &[Value]) -> Vec<String> {
    roles.iter().filter_map(|role| role["name"].as_str().map(str::to_owned)).collect()
}

fn living<'w>(world: &'w World, id: &str) -> Option<&'w Token> {
    let token = world.tokens.get(id)?;
    let gone = token.until <= Instant::now()
        || token.trust.as_ref().is_some_and(|id| world.store.get(Kind::Trust, id).is_none())
        || token
            .application_credential
            .as_ref()
            .is_some_and(|id| world.store.get(Kind::ApplicationCredential, id).is_none());
    (!gone && world.store.get(Kind::User, &token.user).is_some()).then_some(token)
}

/// The caller of a request, by its token.
pub(crate) fn caller(world: &World, asked: &ApiRequest) -> ApiResult<Caller> {
    let id = asked.header("x-auth-token").unwrap_or_default();
    let token = living(world, id).ok_or_else(ApiError::unauthorized)?;
    let credential = token.application_credential.as_ref();
    let credential = credential.and_then(|id| world.store.get(Kind::ApplicationCredential, id));
    Ok(Caller {
        token: id.to_owned(),
        user: token.user.clone(),
        project: token.project.clone(),
        roles: token.roles.clone(),
        restricted: credential.is_some_and(|credential| !credential.is("unrestricted"))
            || token.trust.is_some(),
        rules: credential.map(|one| one.list("access_rules").to_vec()).unwrap_or_default(),
    })
}

/// Answers `GET`, `HEAD` and `DELETE /v3/auth/tokens`, where one token asks about another.
pub(super) fn answer(world: &mut World, asked: &ApiRequest) -> ApiAnswer {
    let subject = asked.header("x-subject-token").unwrap_or_default().to_owned();
    let token =
        living(world, &subject).cloned().ok_or_else(|| refuse::missing("token", &subject))?;
    if asked.caller.token != subject && !asked.caller.may("service") {
        return Err(refuse::not_allowed("validate_token"));
    }
    match asked.method.as_str() {
        "GET" => {
            let catalog = !asked.query.iter().any(|(key, _)| key == "nocatalog");
            Ok(Answer::ok(document(world, asked, &token, catalog)).with("x-subject-token", subject))
        }
        "HEAD" => Ok(Answer::empty(200).with("x-subject-token", subject)),
        "DELETE" => {
            world.tokens.remove(&subject);
            Ok(Answer::empty(204))
        }
        _ => Err(refuse::bad_method()),
    }
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn document(world: &World, asked: &ApiRequest, token: &Token, catalog: bool) -> Value {
    let domain = json!({"id": "default", "name": "Default"});
    let user = world.store.get(Kind::User, &token.user);
    let mut body = json!({
        "methods": token.methods,
        "user": {
            "id": token.user,
            "name": user.map(|user| user.text("name")),
            "domain": domain,
            "password_expires_at": null,
        },
        "audit_ids": [token.audit],
        "expires_at": time(token.expires),
        "issued_at": time(token.issued),
    });
    if let Some(project) = world.store.get(Kind::Project, &token.project) {
        body["project"] = json!({"id": project.id, "name": project.text("name"), "domain": domain});
        body["is_domain"] = json!(false);
    }
    if !token.roles.is_empty() {
        let roles = world.store.all(Kind::Role);
        let roles = roles.filter(|role| token.roles.iter().any(|name| name == role.text("name")));
        let roles: Vec<Value> = roles.map(|role| role_document(world, &role.id)).collect();
        body["roles"] = json!(roles);
        if token.domain {
            body["domain"] = domain;
        } else if token.project.is_empty() {
            body["system"] = json!({"all": true});
        }
        if catalog {
            body["catalog"] = catalogue::catalog(world, asked, &token.user, &token.project);
        }
    }
    let credential = token.application_credential.as_ref();
    if let Some(it) = credential.and_then(|id| world.store.get(Kind::ApplicationCredential, id)) {
        body["application_credential"] =
            json!({"id": it.id, "name": it.text("name"), "restricted": !it.is("unrestricted")});
    }
    if let Some(trust) = token.trust.as_ref().and_then(|id| world.store.get(Kind::Trust, id)) {
        body["OS-TRUST:trust"] = json!({
            "id": trust.id, "impersonation": trust.is("impersonation"), "trustor_user": {"id": trust.text("trustor_user_id")},
            "trustee_user": {"id": trust.text("trustee_user_id")},
        });
    }
    json!({"token": body})
}
