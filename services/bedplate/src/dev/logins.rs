//! The logins of the emulated cloud, BMCs and console. All of it is emulated, so none of the passwords is secret.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::output::{self, line, table};

use super::console;
use super::options::Options;

/// Prints a table of the logins.
pub(super) fn show(options: &Options) -> anyhow::Result<()> {
    let clouds = read(&options.state.join("clouds.yaml"))?;
    let clouds = clouds["clouds"].as_object().context("clouds.yaml has no clouds")?;
    let cloud = |(name, cloud): (&String, &Value)| {
        let auth = &cloud["auth"];
        vec![
            format!("cloud {name}, project {}", text(&auth["project_name"])),
            text(&auth["auth_url"]),
            text(&auth["username"]),
            text(&auth["password"]),
        ]
    };
    let machines = read(&options.from.join("machines.yaml"))?;
    let bmc = |machine: &Value| {
        let bmc = &machine["bmc"];
        let scheme = match (bmc["kind"].as_str(), bmc["tls"].as_bool()) {
            (Some("redfish"), Some(true)) => "https://",
            (Some("redfish"), _) => "http://",
            _ => "ipmi://",
        };
        vec![
            format!("BMC of {}", text(&machine["name"])),
            format!("{scheme}{}", text(&bmc["address"])),
            text(&bmc["username"]),
            text(&bmc["password"]),
        ]
    };
    let free = vec!["console".to_owned(), format!("http://{}/", console::ADDRESS)];
    let free = free.into_iter().chain(["".to_owned(), "none".to_owned()]).collect();
    let rows = [free].into_iter().chain(clouds.iter().map(cloud));
    let rows = rows.chain(machines.as_array().into_iter().flatten().map(bmc));
    line("")?;
    table(&["Login", "URL", "User", "Password"], rows)
}

fn text(value: &Value) -> String {
    output::text(value.as_str())
}

fn read(file: &Path) -> anyhow::Result<Value> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("cannot parse {}", file.display()))
}
