//! `/profiles`: hypervisor profiles: lists, shows, creates, changes and deletes them.

use api_client::WithJson;
use api_client::baremetald::Profile;
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::Method;
use serde_json::{Map, Value, json};

use crate::api::{Api, segment};
use crate::form::{Fields, UserForm};
use crate::image::image_info;
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;
use crate::view::Page;

/// The path of profiles in the API.
const PROFILES: &str = "/bedplate/v1/hypervisor-profiles";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/profiles", get(list))
        // This path is matched before `/profiles/{profile}`, so a profile named `new` cannot hide it.
        .route("/profiles/new", get(ask).post(create))
        .route("/profiles/{profile}", get(show).post(set))
        .route("/profiles/{profile}/delete", post(delete))
}

/// The names of all profiles; empty if the user may not see profiles.
pub(super) async fn names(api: &Api) -> Result<Vec<String>> {
    match api.all::<Profile>(PROFILES).await {
        Ok(all) => Ok(all.into_iter().map(|profile| profile.name).collect()),
        Err(Problem::Refused { .. }) => Ok(Vec::new()),
        Err(other) => Err(other),
    }
}

/// `GET /profiles`: lists profiles.
async fn list(person: AuthorizedUser) -> Result<Response> {
    let found: Vec<WithJson<Profile>> = person.baremetald()?.all(PROFILES).await?;
    let page = person.page("profiles.html", "Hypervisor profiles").under("profiles");
    person.show(page.put("profiles", found))
}

/// `GET /profiles/{profile}`: shows a profile.
async fn show(person: AuthorizedUser, Path(profile): Path<String>) -> Result<Response> {
    let page = one(&person, &profile, None).await?;
    person.show(page)
}

/// The page of a profile, with the refused document if there is one.
async fn one(person: &AuthorizedUser, name: &str, refused: Option<&str>) -> Result<Page> {
    let address = segment(name)?;
    let path = format!("{PROFILES}/{address}");
    let profile: WithJson<Profile> = person.baremetald()?.get(&path).await?;
    let own = written(&profile.json)?;
    let page = person.page("profile.html", &format!("Profile {name}")).under("profiles");
    let page = page.put("document", refused.unwrap_or(&own)).put("address", address);
    Ok(page.put("settings", setting_rows(&profile.settings.json)).put("profile", profile))
}

/// Writes a profile as a document that can be sent back: JSON, which is valid YAML.
fn written(profile: &Value) -> Result<String> {
    let mut document = profile.as_object().cloned().unwrap_or_default();
    document.retain(|key, _| !["created_at", "updated_at"].contains(&key.as_str()));
    serde_json::to_string_pretty(&document).map_err(|why| Problem::Internal(why.to_string()))
}

/// Lists the settings of a profile, each with its path and value.
fn setting_rows(settings: &Value) -> Vec<(String, String)> {
    fn walk(at: &str, value: &Value, lines: &mut Vec<(String, String)>) {
        let below = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
        match value {
            Value::Null => {}
            Value::Object(fields) => {
                fields.iter().for_each(|(key, value)| walk(&below(key), value, lines));
            }
            Value::Array(all) => {
                let each = all.iter().enumerate();
                each.for_each(|(number, value)| walk(&below(&number.to_string()), value, lines));
            }
            Value::String(text) => lines.push((at.to_owned(), text.clone())),
            Value::Bool(_) | Value::Number(_) => lines.push((at.to_owned(), value.to_string())),
        }
    }
    let mut lines = Vec::new();
    walk("", settings, &mut lines);
    lines
}

/// `GET /profiles/new`: shows the form.
async fn ask(person: AuthorizedUser) -> Result<Response> {
    person.show(form(&person).put("given", json!({})))
}

fn form(person: &AuthorizedUser) -> Page {
    person.page("profile_new.html", "Create hypervisor profile").under("profiles")
}

/// `POST /profiles/new`: creates a profile from a document, or from the fields of the form if there is no document.
async fn create(UserForm { person, fields }: UserForm) -> Result<Response> {
    let api = person.baremetald()?;
    let asked = match document(&fields) {
        Some(read) => read,
        None => body(&fields),
    };
    let made = match asked {
        Ok(body) => api.post(PROFILES, &body).await,
        Err(why) => Err(why),
    };
    match made {
        Ok(Profile { name, .. }) => {
            let name = segment(&name)?;
            Ok(Redirect::to(&format!("/profiles/{name}")).into_response())
        }
        Err(Problem::LoggedOut) => Err(Problem::LoggedOut),
        Err(why) => person.show_again(form(&person).put("given", shown(&fields)), &why),
    }
}

/// The fields for showing the form again, without secrets. The document is left out too, because it contains secrets.
fn shown(fields: &Fields) -> Map<String, Value> {
    let is_secret = |name: &str| ["transport_url", "document", "file"].contains(&name);
    let all = fields.shown().into_iter().filter(|(name, _)| !is_secret(name));
    all.map(|(name, text)| (name.to_owned(), text.into())).collect()
}

/// Parses the uploaded file or the YAML text; `None` if the form contains neither.
fn document(fields: &Fields) -> Option<Result<Value>> {
    let text = fields.find("file").or(fields.find("document"))?;
    Some(serde_saphyr::from_str(text).map_err(|why| {
        let why = why.to_string();
        // The remaining lines of the error quote the document, which may contain a secret.
        let first = why.lines().next().unwrap_or("cannot be parsed");
        Problem::Unreadable(format!("document: {first}"))
    }))
}

/// The request body that the form describes.
fn body(fields: &Fields) -> Result<Value> {
    let text = |name: &str| fields.get(name).map(|text| Value::from(text.trim()));
    let info = image_info(fields.get("image")?, fields)?;
    let mut keystone = json!({
        "auth_url": text("auth_url")?, "username": text("username")?, "password": fields.get("password")?,
    });
    if let Some(region) = fields.find("region") {
        keystone["region"] = region.trim().into();
    }
    let mut settings = json!({
        "keystone": keystone,
        "message_bus": {"transport_url": text("transport_url")?},
        "compute": {"virtualization": fields.find("virtualization").unwrap_or("kvm")},
        "neutron": {"tunnels": fields.is_ticked("tunnels")},
    });
    if let Some(network) = fields.find("network") {
        let mut bridge = json!({"bridge": text("bridge")?});
        if let Some(interface) = fields.find("interface") {
            bridge["interface"] = interface.trim().into();
        }
        settings["neutron"]["bridge_mappings"] = json!({network.trim(): bridge});
    }
    let keys = fields.find("ssh_keys").unwrap_or_default();
    let keys: Vec<&str> = keys.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    settings["ssh_keys"] = keys.into();
    let mut placement = Map::new();
    for (name, fixed) in [("availability_zone", "zone_name"), ("aggregate", "aggregate_name")] {
        if let Some(named) = named(fields, name, fixed)? {
            placement.insert(name.to_owned(), named);
        }
    }
    Ok(json!({
        "name": text("name")?, "description": fields.find("description").map(str::trim),
        "kind": fields.find("kind").unwrap_or("cloud-init"),
        "instance_info": info, "settings": settings, "placement": placement,
    }))
}

/// The availability zone or aggregate of hypervisors: a fixed name, or the rule that makes the name.
fn named(fields: &Fields, name: &str, fixed: &str) -> Result<Option<Value>> {
    match fields.find(name) {
        None => Ok(None),
        Some("fixed") => Ok(Some(json!({"fixed": fields.get(fixed)?.trim()}))),
        Some(word) => Ok(Some(word.into())),
    }
}

/// `POST /profiles/{profile}`: replaces a profile. The placeholder of a secret leaves the secret unchanged.
async fn set(
    Path(profile): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let name = segment(&profile)?;
    let read = document(&fields)
        .unwrap_or_else(|| Err(Problem::Unreadable("document: required".to_owned())));
    let written = match read {
        Ok(body) => {
            let path = format!("{PROFILES}/{name}");
            person.baremetald()?.send(Method::PUT, &path, Some(&body)).await.map(drop)
        }
        Err(why) => Err(why),
    };
    match written {
        Ok(()) => Ok(Redirect::to(&format!("/profiles/{name}")).into_response()),
        Err(Problem::LoggedOut) => Err(Problem::LoggedOut),
        Err(why) => {
            let page = one(&person, &profile, fields.find("document")).await?;
            person.show_again(page, &why)
        }
    }
}

/// `POST /profiles/{profile}/delete`: deletes a profile. Needs its name as a confirmation.
async fn delete(
    Path(profile): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    if fields.find("name").map(str::trim) != Some(profile.as_str()) {
        let why = "name: type the profile's name to confirm";
        return Err(Problem::Unreadable(why.to_owned()));
    }
    let path = format!("{PROFILES}/{}", segment(&profile)?);
    person.baremetald()?.send(Method::DELETE, &path, None).await?;
    Ok(Redirect::to("/profiles").into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_listed_with_path_and_value() {
        let settings = json!({"neutron": {"tunnels": true, "region": null}, "ssh_keys": ["a"]});
        let line = |at: &str, says: &str| (at.to_owned(), says.to_owned());
        assert_eq!(
            setting_rows(&settings),
            [line("neutron.tunnels", "true"), line("ssh_keys.0", "a")]
        );
    }

    #[test]
    fn the_document_of_a_profile_can_be_sent_back() {
        let text =
            written(&json!({"name": "p", "created_at": "then", "updated_at": null})).unwrap();
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), json!({"name": "p"}));
    }
}
