//! `/vms`: VMs: creates, lists, shows, extends, switches and deletes them.

use api_client::WithJson;
use api_client::clusterd::{ConsoleUrl, Image, Quotas, Vm};
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::Method;
use serde_json::{Map, Value, json};

use super::clusters::newest;
use super::quotas::rows;
use crate::api::segment;
use crate::form::{Fields, UserForm};
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;
use crate::view::Page;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/vms", get(list))
        .route("/vms/new", get(ask).post(send))
        .route("/vms/{vm}", get(show))
        .route("/vms/{vm}/action", post(act))
        .route("/vms/{vm}/lease", post(extend))
        .route("/vms/{vm}/lease/undo", post(undo))
        .route("/vms/{vm}/snapshot", post(snapshot))
        .route("/vms/{vm}/console", post(console))
        .route("/vms/{vm}/delete", post(delete))
}

/// `GET /vms`: lists VMs.
async fn list(person: AuthorizedUser) -> Result<Response> {
    let machines = person.clusterd()?.first::<WithJson<Vm>>("/bedplate/v1/machines", 2000).await?;
    let page = person.page("vms.html", "VMs").under("vms").live();
    person.show(page.put("machines", machines))
}

/// `GET /vms/{vm}`: shows a VM.
async fn show(person: AuthorizedUser, Path(vm): Path<String>) -> Result<Response> {
    let (api, name) = (person.clusterd()?, segment(&vm)?);
    let (shown, events) =
        (format!("/bedplate/v1/machines/{name}"), format!("/bedplate/v1/machines/{name}/events"));
    let (shown, events) = tokio::join!(api.get(&shown), api.find(&events));
    let (shown, events): (WithJson<Vm>, _) = (shown?, events?);
    let label = &shown.name;
    let page = person.page("vm.html", label).under("vms").live();
    let page = page.put("events", newest(events)).put("label", label).put("address", &name);
    person.show(page.put("vm", &shown))
}

/// `GET /vms/new`: shows the form.
async fn ask(person: AuthorizedUser) -> Result<Response> {
    let page = form(&person).await?;
    person.show(page.put("given", json!({})))
}

async fn form(person: &AuthorizedUser) -> Result<Page> {
    let api = person.clusterd()?;
    let (images, quotas) =
        tokio::join!(api.all("/bedplate/v1/images"), api.find("/bedplate/v1/quotas"));
    let account = quotas?.map(|it: Quotas| rows(&it.user)).unwrap_or_default();
    let page = person.page("vm_new.html", "Create VM").under("vms");
    let images: Vec<WithJson<Image>> = images?;
    Ok(page.put("images", images).put("account", account))
}

/// `POST /vms/new`: creates a VM.
async fn send(UserForm { person, fields }: UserForm) -> Result<Response> {
    let asked = match body(&fields) {
        Ok(body) => person.clusterd()?.post("/bedplate/v1/machines", &body).await,
        Err(why) => Err(why),
    };
    match asked {
        Ok(Vm { uuid, .. }) => {
            Ok(Redirect::to(&format!("/vms/{}", segment(&uuid)?)).into_response())
        }
        Err(Problem::LoggedOut) => Err(Problem::LoggedOut),
        Err(why) => person.show_again(form(&person).await?.put("given", fields.shown()), &why),
    }
}

/// The request body that the form describes.
fn body(fields: &Fields) -> Result<Value> {
    let mut body = Map::new();
    for name in ["image", "flavor"] {
        body.insert(name.to_owned(), fields.get(name)?.trim().into());
    }
    for name in ["name", "network", "lease"] {
        if let Some(text) = fields.find(name) {
            body.insert(name.to_owned(), text.trim().into());
        }
    }
    if let Some(size) = fields.number("root_volume_gib")? {
        body.insert("root_volume_gib".to_owned(), size.into());
    }
    if fields.is_ticked("floating_ip") {
        body.insert("floating_ip_enabled".to_owned(), true.into());
    }
    let keys = fields.find("ssh_keys").unwrap_or_default();
    let keys: Vec<&str> = keys.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    body.insert("ssh_keys".to_owned(), keys.into());
    Ok(Value::Object(body))
}

/// `POST /vms/{vm}/action`: starts, stops or reboots a VM.
async fn act(Path(vm): Path<String>, UserForm { person, fields }: UserForm) -> Result<Response> {
    let body = json!({"action": fields.get("target")?});
    tell(&person, &vm, Method::POST, "/actions", Some(&body)).await
}

/// `POST /vms/{vm}/lease`: extends the lease.
async fn extend(Path(vm): Path<String>, UserForm { person, fields }: UserForm) -> Result<Response> {
    let body = match fields.find("for") {
        Some(length) => json!({"for": length.trim()}),
        None => json!({}),
    };
    tell(&person, &vm, Method::PUT, "/lease", Some(&body)).await
}

/// `POST /vms/{vm}/lease/undo`: undoes the end of the lease.
async fn undo(Path(vm): Path<String>, UserForm { person, .. }: UserForm) -> Result<Response> {
    tell(&person, &vm, Method::POST, "/lease/undo", None).await
}

/// `POST /vms/{vm}/snapshot`: takes a snapshot.
async fn snapshot(
    Path(vm): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response> {
    let body = json!({"name": fields.find("name").map(str::trim)});
    tell(&person, &vm, Method::POST, "/snapshots", Some(&body)).await
}

/// `POST /vms/{vm}/console`: links to the VM's screen in the cloud. The URL works for some minutes, and the console does not store it.
async fn console(Path(vm): Path<String>, UserForm { person, .. }: UserForm) -> Result<Response> {
    let path = format!("/bedplate/v1/machines/{}/console", segment(&vm)?);
    let ConsoleUrl { url } = person.clusterd()?.post(&path, &json!({"kind": "novnc"})).await?;
    let page = person.page("console.html", &format!("Console of {vm}")).under("vms");
    person.show(page.put("url", url).put("address", segment(&vm)?).put("label", &vm))
}

/// `POST /vms/{vm}/delete`: deletes a VM. Needs its name as a confirmation.
async fn delete(Path(vm): Path<String>, UserForm { person, fields }: UserForm) -> Result<Response> {
    let (api, name) = (person.clusterd()?, segment(&vm)?);
    let path = format!("/bedplate/v1/machines/{name}");
    let shown: Vm = api.get(&path).await?;
    if fields.find("name").map(str::trim) != Some(&shown.name) {
        return Err(Problem::Unreadable("name: type the VM's name to confirm".to_owned()));
    }
    api.send(Method::DELETE, &path, None).await?;
    Ok(Redirect::to("/vms").into_response())
}

async fn tell(
    person: &AuthorizedUser,
    vm: &str,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response> {
    let name = segment(vm)?;
    person.clusterd()?.send(method, &format!("/bedplate/v1/machines/{name}{path}"), body).await?;
    Ok(Redirect::to(&format!("/vms/{name}")).into_response())
}
