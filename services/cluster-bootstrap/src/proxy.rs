//! The HTTP proxies of members.

use ignition::Config;
use ignition::build::{config, file, inline};
use serde_json::json;
use url::Url;

use crate::settings::SettingsError;

/// The HTTP proxies that a member uses from its first download on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    pub http: Option<Url>,
    pub https: Option<Url>,
    /// Host names, domains, addresses and ranges that members reach without a proxy.
    pub except: Vec<String>,
}

impl Proxies {
    /// Returns the config to merge into the configs of members through [`crate::ClusterSettings::extra`]. Returns `None` if there is no proxy.
    pub fn config(&self) -> Result<Option<Config>, SettingsError> {
        if self.http.is_none() && self.https.is_none() {
            return Ok(None);
        }
        for (field, url) in [("http_proxy", &self.http), ("https_proxy", &self.https)] {
            url.iter().try_for_each(|url| plain(field, url.as_str()))?;
        }
        self.except.iter().try_for_each(|it| plain("no_proxy", it))?;
        let except = self.except.join(",");
        let mut variables = Vec::new();
        for (name, value) in [
            ("HTTP_PROXY", self.http.as_ref().map(Url::as_str)),
            ("HTTPS_PROXY", self.https.as_ref().map(Url::as_str)),
            ("NO_PROXY", Some(except.as_str())),
        ] {
            // Some programs read only upper-case names, some only lower-case names. `%` begins a specifier of systemd.
            let value = value.map(|it| it.replace('%', "%%"));
            variables.extend(value.iter().map(|it| format!(" \"{name}={it}\"")));
            let small = name.to_ascii_lowercase();
            variables.extend(value.iter().map(|it| format!(" \"{small}={it}\"")));
        }
        let text = format!("[Manager]\nDefaultEnvironment={}\n", variables.concat().trim_start());
        let path = "/etc/systemd/system.conf.d/10-proxy.conf";
        let files = vec![file(path, 0o600, inline(text.as_bytes()))];
        let mut made = config(Vec::new(), files, Vec::new());
        let proxy =
            json!({"httpProxy": self.http, "httpsProxy": self.https, "noProxy": self.except});
        made.ignition = serde_json::from_value(json!({"version": ignition::SPEC, "proxy": proxy}))
            .expect("it has the form of an Ignition config");
        Ok(Some(made))
    }
}

fn plain(field: &'static str, value: &str) -> Result<(), SettingsError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._~:/@%*+=[]".contains(c);
    if value.is_empty() || !value.chars().all(legal) {
        let (value, why) =
            (value.to_owned(), "only letters, digits and -._~:/@%*+=[] are permitted");
        return Err(SettingsError::Text { field, value, why });
    }
    Ok(())
}
