//! `/bring-up`: enrolls a rack from a manifest and brings it up. A user writes or uploads the manifest, sees every row checked, and sends
//! it.
//!
//! The console keeps nothing between the steps: each form contains the whole manifest. The form asks for BMC passwords by the names in the
//! manifest; the console never reads a file of its own computer for a password.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use api_client::baremetald::Discovery;
use axum::Router;
use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{Method, StatusCode};
use rack_manifest::{
    Manifest, ManifestError, Password, PasswordError, RackRequest, check, read_csv, read_yaml,
    request,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::confirm::check_name;
use super::profiles;
use super::racks::{erases, goal};
use crate::api::{Api, segment};
use crate::form::{Fields, UserForm};
use crate::page_request::AuthorizedUser;
use crate::problem::{Problem, Result};
use crate::state::Console;
use crate::view::Page;

/// The discovered machines that nobody enrolled.
const DISCOVERIES: &str = "/bedplate/v1/discoveries";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/bring-up", get(ask))
        .route("/bring-up/check", post(preview))
        .route("/bring-up/enroll", post(enroll))
}

/// A machine of the manifest with its mistakes.
#[derive(Serialize)]
struct Row {
    line: u64,
    name: String,
    position: u32,
    macs: String,
    bmc: String,
    role: String,
    mistakes: Vec<String>,
}

/// The query: MAC addresses of discovered machines.
#[derive(Deserialize)]
struct Accepted {
    #[serde(default)]
    mac: String,
}

/// `GET /bring-up?mac=`: the empty form, or a draft manifest of the discovered machines with these MAC addresses, separated by commas.
async fn ask(person: AuthorizedUser, Query(accepted): Query<Accepted>) -> Result<Response> {
    let page = first(&person);
    let macs: BTreeSet<String> =
        accepted.mac.split(',').map(plain).filter(|mac| mac.len() == 12).collect();
    if macs.is_empty() {
        return person.show(page);
    }
    let found: Vec<Discovery> = person.baremetald()?.all(DISCOVERIES).await?;
    let is_asked = |it: &&Discovery| it.mac.as_ref().is_some_and(|mac| macs.contains(&plain(mac)));
    let ours: Vec<&Discovery> = found.iter().filter(is_asked).collect();
    if ours.is_empty() {
        return Err(Problem::nothing_here());
    }
    person.show(page.put("manifest", draft(&ours)).put("is_accepted", true))
}

/// Writes a draft manifest of discovered machines. Unknown values are left empty for the user.
fn draft(found: &[&Discovery]) -> String {
    let mut text =
        "rack: \ndefaults:\n  bmc: {type: redfish, user: admin, password_file: bmc}\nmachines:\n"
            .to_owned();
    for (number, one) in (1..).zip(found) {
        let (mac, reported) = (&one.id, one.reported("/bmc_address"));
        // The discovered machine is not trusted: only a valid IP address gets into the manifest.
        let address =
            reported.and_then(|it| it.parse::<IpAddr>().ok()).filter(|it| !it.is_unspecified());
        let address = match address {
            None => String::new(),
            Some(IpAddr::V4(address)) => format!("https://{address}"),
            Some(IpAddr::V6(address)) => format!("https://[{address}]"),
        };
        let row = format!(
            "- {{name: node-{}, position: {number}, mac: \"{mac}\", bmc: {{address: \"{address}\"}}}}\n",
            plain(mac)
        );
        text.push_str(&row);
    }
    text
}

fn first(person: &AuthorizedUser) -> Page {
    let page = person.page("bring_up.html", "Bring up a rack").under("bring-up");
    page.put("manifest", "").put("format", "yaml").put("rack", "").put("is_accepted", false)
}

/// The manifest, its format and the rack's name from a form. An uploaded file takes precedence over the text field.
fn given(fields: &Fields) -> Result<(&str, &str, &str)> {
    let text = fields.find("file").or(fields.find("manifest"));
    let text = text.ok_or_else(|| {
        Problem::Unreadable("manifest: choose a file or enter the manifest".to_owned())
    })?;
    let file = fields.find("file.file").unwrap_or_default();
    let by_name = match file.rsplit_once('.') {
        Some((_, "csv")) => Some("csv"),
        Some((_, "yaml" | "yml")) => Some("yaml"),
        Some(_) | None => None,
    };
    let format = by_name.or(fields.find("format")).unwrap_or("yaml");
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    Ok((text, format, fields.find("rack").unwrap_or(stem).trim()))
}

/// Parses a manifest and returns it with all mistakes that can be found without asking a service.
fn read(text: &str, format: &str, rack: &str) -> (Option<Manifest>, Vec<ManifestError>) {
    let read = if format == "csv" { read_csv(rack, text) } else { read_yaml(text) };
    match read {
        Ok(manifest) => {
            let mistakes = check(&manifest);
            (Some(manifest), mistakes)
        }
        Err(mistakes) => (None, mistakes),
    }
}

/// `POST /bring-up/check`: shows the machines of the manifest with their mistakes.
async fn preview(UserForm { person, fields }: UserForm) -> Result<Response> {
    let (text, format, rack) = match given(&fields) {
        Ok(given) => given,
        Err(why) => return person.show_again(first(&person), &why),
    };
    let (manifest, mistakes) = read(text, format, rack);
    let page = checked(&person).await?;
    shown(&person, page, (text, format, rack), manifest.as_ref(), &mistakes)
}

/// The page of the second step.
async fn checked(person: &AuthorizedUser) -> Result<Page> {
    let profiles = profiles::names(&person.baremetald()?).await?;
    let page = person.page("bring_up_check.html", "Bring up a rack").under("bring-up");
    Ok(page.put("profiles", profiles))
}

fn shown(
    person: &AuthorizedUser,
    page: Page,
    (text, format, rack): (&str, &str, &str),
    manifest: Option<&Manifest>,
    mistakes: &[ManifestError],
) -> Result<Response> {
    let rows = manifest.map(|manifest| rows(manifest, mistakes)).unwrap_or_default();
    // Mistakes in lines that could not be parsed have no row.
    let lines: BTreeSet<u64> = rows.iter().map(|row| row.line).collect();
    let others: Vec<String> =
        mistakes.iter().filter(|it| !lines.contains(&it.line)).map(ToString::to_string).collect();
    let name = manifest.map_or(rack, |manifest| manifest.rack.as_str());
    let page = page.put("manifest", text).put("format", format).put("rack", name).put("rows", rows);
    let page = page.put("others", others).put("count", mistakes.len());
    let page = page.put("passwords", manifest.map(passwords).unwrap_or_default());
    let answer = person.show(page)?;
    let status =
        if mistakes.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok((status, answer).into_response())
}

fn rows(manifest: &Manifest, mistakes: &[ManifestError]) -> Vec<Row> {
    let row = |machine: &rack_manifest::Machine| Row {
        line: machine.line,
        name: machine.name.clone(),
        position: machine.position,
        macs: machine.macs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        bmc: machine.bmc.address.clone(),
        role: machine.role.clone().unwrap_or_default(),
        mistakes: mistakes
            .iter()
            .filter(|it| it.line == machine.line)
            .map(|it| format!("{}: {}", it.field, it.problem))
            .collect(),
    };
    manifest.machines.iter().map(row).collect()
}

/// The names of passwords in the manifest, each with the number of machines that use it.
fn passwords(manifest: &Manifest) -> Vec<(String, usize)> {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for password in manifest.machines.iter().filter_map(|it| it.bmc.password.as_ref()) {
        *names.entry(name_of(password).to_owned()).or_default() += 1;
    }
    names.into_iter().collect()
}

fn name_of(password: &Password) -> &str {
    match password {
        Password::File(name) | Password::Environment(name) => name,
    }
}

/// `POST /bring-up/enroll`: enrolls the whole rack or nothing, and starts its bring-up if the form asks for it.
async fn enroll(UserForm { person, fields }: UserForm) -> Result<Response> {
    let (text, format, rack) = given(&fields)?;
    let (manifest, mut mistakes) = read(text, format, rack);
    let Some(manifest) = manifest.as_ref().filter(|_| mistakes.is_empty()) else {
        let page = checked(&person).await?;
        return shown(&person, page, (text, format, rack), manifest.as_ref(), &mistakes);
    };
    let resolve = |password: &Password| {
        let name = name_of(password);
        let given = fields.find(&format!("password:{name}"));
        given
            .map(str::to_owned)
            .ok_or_else(|| PasswordError(format!("the password {name} is missing")))
    };
    let asked = match request(manifest, resolve) {
        Ok(asked) => asked,
        Err(missing) => {
            mistakes.extend(missing);
            let page = checked(&person).await?;
            return shown(&person, page, (text, format, rack), Some(manifest), &mistakes);
        }
    };
    let again = async |why: &Problem| -> Result<Response> {
        let page = checked(&person).await?.put("refused", why.to_string());
        let answer = shown(&person, page, (text, format, rack), Some(manifest), &[])?;
        Ok((why.status(), answer).into_response())
    };
    // The goal is checked before anything is enrolled: a refusal afterwards would leave a rack without a bring-up.
    let goal = match fields.find("reach") {
        None | Some("enrolled") => None,
        Some(_) => match confirmed(&fields, &manifest.rack) {
            Ok(goal) => Some(goal),
            Err(why) => return again(&why).await,
        },
    };
    let api = person.baremetald()?;
    let body = serde_json::to_value(&asked).map_err(|why| Problem::Internal(why.to_string()))?;
    match api.send(Method::POST, "/bedplate/v1/racks", Some(&body)).await {
        Ok(_) => {}
        Err(Problem::LoggedOut) => return Err(Problem::LoggedOut),
        Err(why) => return again(&why).await,
    }
    forget(&api, &asked).await;
    let name = segment(&asked.name)?;
    if let Some(goal) = goal {
        api.send(Method::PUT, &format!("/bedplate/v1/racks/{name}/up"), Some(&goal)).await?;
    }
    Ok(Redirect::to(&format!("/racks/{name}")).into_response())
}

/// The goal of the bring-up. A goal that erases disks needs the rack's name as a confirmation.
fn confirmed(fields: &Fields, rack: &str) -> Result<Value> {
    if erases(fields) {
        check_name(fields, rack, "rack")?;
    }
    goal(fields)
}

/// Removes the enrolled machines from the discovered ones. A machine that cannot be removed can be removed by hand later.
async fn forget(api: &Api, asked: &RackRequest) {
    let Ok(found) = api.all::<Discovery>(DISCOVERIES).await else { return };
    let ports: BTreeSet<String> =
        asked.machines.iter().flat_map(|it| &it.ports).map(plain).collect();
    let ours = found.iter().filter_map(|it| it.mac.as_ref());
    let ours = ours.filter(|mac| ports.contains(&plain(mac)));
    let paths = ours.filter_map(|mac| Some(format!("{DISCOVERIES}/{}", segment(mac).ok()?)));
    for path in paths {
        if let Err(why) = api.send(Method::DELETE, &path, None).await {
            tracing::warn!("cannot remove an enrolled machine from the discovered machines: {why}");
        }
    }
}

/// The hexadecimal digits of a MAC address in lower case.
fn plain(mac: impl AsRef<str>) -> String {
    mac.as_ref().chars().filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_row_has_its_mistakes() {
        let text = "name,position,mac,bmc_type,bmc_address\n\
                    a,1,52:54:00:00:00:01,fake,\n\
                    a,1,52:54:00:00:00:01,fake,\n";
        let (manifest, mistakes) = read(text, "csv", "r1");
        let rows = rows(&manifest.unwrap(), &mistakes);
        let mistakes: Vec<usize> = rows.iter().map(|row| row.mistakes.len()).collect();
        assert_eq!(
            mistakes,
            [0, 3],
            "{:?}",
            rows.iter().map(|it| &it.mistakes).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_draft_of_discovered_machines_leaves_unknown_values_empty() {
        let discovery = |mac: &str, address: &str| Discovery {
            id: mac.to_owned(),
            mac: Some(mac.to_owned()),
            first_seen_at: Timestamp::UNIX_EPOCH,
            last_seen_at: Timestamp::UNIX_EPOCH,
            bmc_addresses: Vec::new(),
            neighbours: Vec::new(),
            refused: None,
            data: json!({"inventory": {"bmc_address": address}}),
        };
        let known = discovery("52:54:00:00:00:0A", "10.0.0.9");
        let liar = discovery("52:54:00:00:00:0b", "x\"}, evil: {");
        let text = draft(&[&known, &liar]).replace("rack: ", "rack: r1");
        let manifest = read_yaml(&text).unwrap();
        let machines: Vec<_> = manifest
            .machines
            .iter()
            .map(|it| (it.name.as_str(), it.bmc.address.as_str()))
            .collect();
        assert_eq!(
            machines,
            [("node-52540000000a", "https://10.0.0.9"), ("node-52540000000b", "")]
        );
        assert!(!check(&manifest).is_empty(), "a machine without a BMC is not accepted");
    }

    #[test]
    fn passwords_are_asked_for_by_their_names() {
        let text = "rack: r\ndefaults:\n  bmc: {type: ipmi, user: a, password_file: /etc/shadow}\nmachines:\n\
                    - {name: a, mac: 52:54:00:00:00:01, bmc: {address: 10.0.0.1}}\n\
                    - {name: b, mac: 52:54:00:00:00:02, bmc: {address: 10.0.0.2}}\n";
        let (manifest, mistakes) = read(text, "yaml", "");
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert_eq!(passwords(&manifest.unwrap()), [("/etc/shadow".to_owned(), 2)]);
    }
}
