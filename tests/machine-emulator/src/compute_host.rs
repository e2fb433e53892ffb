//! A compute host: its nova-compute reports over the message bus and maintains its resource provider in Placement. It runs no servers.
//!
//! The message bus of an emulated cloud is an HTTP path at the address in `transport_url`.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use crate::config_drive::ConfigDrive;
use crate::event::Event;
use crate::machine::Machine;

/// The pause of a nova-compute after an error.
const REST: Duration = Duration::from_millis(200);

/// An oslo.config file, sections by name.
type Ini = BTreeMap<String, BTreeMap<String, String>>;

/// Runs nova-compute if the config drive has settings for it, until the future is dropped; otherwise returns.
pub(crate) async fn run(machine: &Machine, http: &Client, drive: &ConfigDrive) {
    let settings = settings(drive);
    let Some(host) = settings.get("DEFAULT").and_then(|section| section.get("host")) else {
        return;
    };
    let bus = settings.get("DEFAULT").and_then(|section| section.get("transport_url"));
    let Some(bus) = bus.and_then(|url| bus_of(url)) else {
        machine.tell(Event::Hangs("nova-compute has no transport_url that it can use".to_owned()));
        return;
    };
    machine.tell(Event::Computes(host.clone()));
    let id = drive.files().remove("/var/lib/nova/compute_id").map(|id| id.trim().to_owned());
    let mut provided = false;
    let mut complained = false;
    loop {
        let again = match report(machine, http, &bus, host, id.as_deref()).await {
            Ok((id, again)) => {
                if !provided {
                    match provide(machine, http, &settings, host, &id).await {
                        Ok(()) => provided = true,
                        Err(why) if !complained => {
                            complained = true;
                            machine.tell(Event::Failed("its resource provider".to_owned(), why));
                        }
                        Err(_) => {}
                    }
                }
                again
            }
            Err(why) => {
                if !complained {
                    complained = true;
                    machine.tell(Event::Failed("a report".to_owned(), why));
                }
                REST
            }
        };
        tokio::time::sleep(again).await;
    }
}

/// Reads nova-compute's settings: `nova.conf.d` after `nova.conf`; later files override earlier ones.
fn settings(drive: &ConfigDrive) -> Ini {
    let mut all = Ini::new();
    for (path, text) in drive.files() {
        if !path.starts_with("/etc/nova/") || !path.ends_with(".conf") {
            continue;
        }
        let mut section = String::from("DEFAULT");
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((key, value)) = line.split_once('=') {
                // A doubled dollar sign stands for one.
                let value = value.trim().replace("$$", "$");
                all.entry(section.clone()).or_default().insert(key.trim().to_owned(), value);
            }
        }
    }
    all
}

fn bus_of(transport: &str) -> Option<Url> {
    let url = Url::parse(&transport.replacen("rabbit://", "http://", 1)).ok()?;
    let (host, port) = (url.host_str()?, url.port()?);
    Url::parse(&format!("http://{host}:{port}/_control/compute-hosts")).ok()
}

/// Sends one report; returns the hypervisor's id and the time of the next report.
async fn report(
    machine: &Machine,
    http: &Client,
    bus: &Url,
    host: &str,
    id: Option<&str>,
) -> Result<(String, Duration), String> {
    let spec = machine.spec();
    let disks: u64 = spec.disks.iter().map(|disk| disk.size_bytes >> 30).sum();
    let own = json!({
        "name": host, "vcpus": spec.cpus, "memory_mb": spec.memory_mib, "disk_gb": disks,
    });
    let body = json!({"host": own, "uuid": id});
    let reported = send(http.request(Method::PUT, bus.clone()).json(&body)).await?;
    let id = reported["id"].as_str().unwrap_or_default().to_owned();
    let again = Duration::from_millis(reported["report_again"].as_u64().unwrap_or(1000));
    Ok((id, again))
}

/// Creates the hypervisor's resource provider and sets its inventory, as the user of `[placement]`.
async fn provide(
    machine: &Machine,
    http: &Client,
    settings: &Ini,
    host: &str,
    id: &str,
) -> Result<(), String> {
    let empty = BTreeMap::new();
    let section = settings.get("placement").unwrap_or(&empty);
    let (token, placement) = token(http, section).await?;
    let call = |method: Method, path: &str| {
        let url = format!("{}/{path}", placement.trim_end_matches('/'));
        let call = http.request(method, url).header("x-auth-token", &token);
        call.header("openstack-api-version", "placement 1.29")
    };
    let path = format!("resource_providers/{id}");
    let found =
        call(Method::GET, &path).send().await.map_err(|why| why.without_url().to_string())?;
    let generation = if found.status() == StatusCode::NOT_FOUND {
        let body = json!({"name": host, "uuid": id});
        send(call(Method::POST, "resource_providers").json(&body)).await?["generation"].clone()
    } else {
        send(call(Method::GET, &path)).await?["generation"].clone()
    };
    let spec = machine.spec();
    let disks: u64 = spec.disks.iter().map(|disk| disk.size_bytes >> 30).sum();
    let stock = |total: u64| json!({"total": total});
    let body = json!({
        "resource_provider_generation": generation,
        "inventories": {
            "VCPU": stock(spec.cpus.into()), "MEMORY_MB": stock(spec.memory_mib), "DISK_GB": stock(disks),
        },
    });
    send(call(Method::PUT, &format!("{path}/inventories")).json(&body)).await.map(drop)
}

/// Requests a token; returns it with Placement's URL in the catalogue.
async fn token(
    http: &Client,
    section: &BTreeMap<String, String>,
) -> Result<(String, String), String> {
    let text = |key: &str| section.get(key).map(String::as_str).unwrap_or_default();
    let domain = |key: &str| json!({"name": text(key)});
    let user = json!({
        "name": text("username"), "password": text("password"), "domain": domain("user_domain_name"),
    });
    let scope = json!({
        "project": {"name": text("project_name"), "domain": domain("project_domain_name")},
    });
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    let body = json!({"auth": {"identity": identity, "scope": scope}});
    let url = format!("{}/auth/tokens", text("auth_url").trim_end_matches('/'));
    let answer = http.post(url).json(&body).send().await;
    let answer = answer.map_err(|why| why.without_url().to_string())?;
    if !answer.status().is_success() {
        return Err(format!("Keystone says {}", answer.status()));
    }
    let token = answer.headers().get("x-subject-token").and_then(|value| value.to_str().ok());
    let token = token.unwrap_or_default().to_owned();
    let reported: Value = answer.json().await.map_err(|why| why.without_url().to_string())?;
    let services = reported["token"]["catalog"].as_array().cloned().unwrap_or_default();
    let placement = services.iter().find(|one| one["type"] == "placement");
    let endpoints = placement.and_then(|one| one["endpoints"].as_array());
    let public = endpoints.and_then(|all| all.iter().find(|one| one["interface"] == "public"));
    let url = public.and_then(|one| one["url"].as_str());
    Ok((token, url.ok_or("the catalogue has no Placement")?.to_owned()))
}

async fn send(call: reqwest::RequestBuilder) -> Result<Value, String> {
    let answer = call.send().await.map_err(|why| why.without_url().to_string())?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("it says {status}"));
    }
    answer.json().await.map_err(|why| why.without_url().to_string())
}
