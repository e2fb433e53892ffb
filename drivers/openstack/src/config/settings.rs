//! Named settings, common to clouds.yaml and environment variables, and their conversion to a configuration.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use url::Url;

use super::credentials::{Auth, Domain, Project, Scope, User};
use super::{CloudConfig, ConfigError, Interface, RetryPolicy, Tls};
use crate::service::Service;

/// Enough for the simultaneous creation of a hundred clusters, and few enough for a proxy's queue.
const CALLS_AT_ONCE: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");

/// Settings by their names in clouds.yaml. The type has no `Debug`, because it holds secrets.
#[derive(Default)]
pub(super) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Stores a setting, unless the value is empty or the setting exists.
    pub(super) fn put(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.0.entry(name.to_owned()).or_insert(value);
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Returns the first of these settings that exists.
    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name))
    }

    fn needed(&self, setting: &'static str, why: &'static str) -> Result<String, ConfigError> {
        self.get(setting).ok_or(ConfigError::Missing { setting, why })
    }

    pub(super) fn config(&self) -> Result<CloudConfig, ConfigError> {
        let auth_url = self.needed("auth_url", "set it to the URL of Keystone")?;
        Ok(CloudConfig {
            auth_url: url("auth_url", &auth_url)?,
            auth: self.auth()?,
            region: self.get("region_name"),
            interface: self.interface()?,
            tls: self.tls()?,
            endpoints: self.endpoints()?,
            patience: RetryPolicy::default(),
            calls_at_once: CALLS_AT_ONCE,
        })
    }

    fn auth(&self) -> Result<Auth, ConfigError> {
        let given = self.get("auth_type");
        match given.as_deref().unwrap_or(self.likely_auth_type()) {
            "password" | "v3password" => Ok(Auth::Password {
                user: self.user()?.ok_or(ConfigError::Missing {
                    setting: "username",
                    why: "a password belongs to a user",
                })?,
                password: self.needed("password", "auth_type is password")?.into(),
                scope: self.scope()?,
            }),
            "v3applicationcredential" => {
                let secret = self.needed(
                    "application_credential_secret",
                    "auth_type is v3applicationcredential",
                )?;
                let (credential, user) = self.application_credential()?;
                Ok(Auth::ApplicationCredential { credential, user, secret: secret.into() })
            }
            "token" | "v3token" => Ok(Auth::Token {
                token: self.needed("token", "auth_type is token")?.into(),
                scope: self.scope()?,
            }),
            other => Err(ConfigError::Invalid {
                setting: "auth_type".to_owned(),
                value: other.to_owned(),
                expected: "which is not supported: use password, v3applicationcredential or token",
            }),
        }
    }

    fn likely_auth_type(&self) -> &'static str {
        let has = |name| self.0.contains_key(name);
        match () {
            () if has("application_credential_secret") => "v3applicationcredential",
            () if has("token") && !has("password") => "token",
            () => "password",
        }
    }

    fn application_credential(&self) -> Result<(String, Option<User>), ConfigError> {
        if let Some(id) = self.get("application_credential_id") {
            return Ok((id, None));
        }
        let name = self
            .needed("application_credential_name", "application_credential_id is not set either")?;
        let user = self.user()?;
        let missing = ConfigError::Missing {
            setting: "username",
            why: "an application credential that is named and not given by id belongs to a user",
        };
        Ok((name, Some(user.ok_or(missing)?)))
    }

    fn user(&self) -> Result<Option<User>, ConfigError> {
        if let Some(id) = self.get("user_id") {
            return Ok(Some(User::Id(id)));
        }
        let Some(name) = self.first(&["username", "user_name"]) else { return Ok(None) };
        let domain = self.domain("user_domain").ok_or(ConfigError::Missing {
            setting: "user_domain_name",
            why: "the user is given by name",
        })?;
        Ok(Some(User::Named { name, domain }))
    }

    /// Returns a domain by id or name, or the default domain.
    fn domain(&self, kind: &str) -> Option<Domain> {
        let id = self.get(&format!("{kind}_id")).map(Domain::Id);
        let name = || self.get(&format!("{kind}_name")).map(Domain::Name);
        let default = || {
            let id = self.first(&["default_domain_id", "default_domain"]).map(Domain::Id);
            id.or_else(|| self.get("default_domain_name").map(Domain::Name))
        };
        id.or_else(name).or_else(default)
    }

    fn scope(&self) -> Result<Scope, ConfigError> {
        if let Some(id) = self.get("trust_id") {
            return Ok(Scope::Trust { id });
        }
        if let Some(system) = self.get("system_scope") {
            let invalid = ConfigError::Invalid {
                setting: "system_scope".to_owned(),
                value: system.clone(),
                expected: "but only all is possible",
            };
            return if system == "all" { Ok(Scope::System) } else { Err(invalid) };
        }
        if let Some(id) = self.first(&["project_id", "tenant_id"]) {
            return Ok(Scope::Project(Project::Id(id)));
        }
        if let Some(name) = self.first(&["project_name", "tenant_name"]) {
            let domain = self.domain("project_domain").ok_or(ConfigError::Missing {
                setting: "project_domain_name",
                why: "the project is given by name",
            })?;
            return Ok(Scope::Project(Project::Named { name, domain }));
        }
        let id = self.get("domain_id").map(Domain::Id);
        let domain = id.or_else(|| self.get("domain_name").map(Domain::Name));
        Ok(domain.map_or(Scope::Default, Scope::Domain))
    }

    fn interface(&self) -> Result<Interface, ConfigError> {
        // Some users write publicURL, as in the catalogue of Identity API v2.
        let given = self.first(&["interface", "endpoint_type"]);
        match given.as_deref().map(|word| word.trim_end_matches("URL")) {
            None | Some("public") => Ok(Interface::Public),
            Some("internal") => Ok(Interface::Internal),
            Some("admin") => Ok(Interface::Admin),
            Some(other) => Err(ConfigError::Invalid {
                setting: "interface".to_owned(),
                value: other.to_owned(),
                expected: "which is not supported: use public, internal or admin",
            }),
        }
    }

    fn tls(&self) -> Result<Tls, ConfigError> {
        let verify =
            self.truth("verify")?.unwrap_or(true) && !self.truth("insecure")?.unwrap_or(false);
        let authorities = self.get("cacert").map(PathBuf::from);
        Ok(if verify { Tls::Verified { authorities } } else { Tls::Unverified })
    }

    fn truth(&self, setting: &str) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.get(setting) else { return Ok(None) };
        match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(Some(true)),
            "false" | "no" | "off" | "0" => Ok(Some(false)),
            _ => Err(ConfigError::Invalid {
                setting: setting.to_owned(),
                value,
                expected: "which is neither true nor false",
            }),
        }
    }

    fn endpoints(&self) -> Result<BTreeMap<Service, Url>, ConfigError> {
        let named = Service::ALL.into_iter().filter_map(|service| {
            let setting = service.override_setting();
            self.get(setting).map(|given| Ok((service, url(setting, &given)?)))
        });
        named.collect()
    }
}

/// Parses an http or https URL. A URL with a user is refused: the password in it would not be used, and could appear in messages.
fn url(setting: &str, given: &str) -> Result<Url, ConfigError> {
    let invalid = |value: &str, expected| ConfigError::Invalid {
        setting: setting.to_owned(),
        value: value.to_owned(),
        expected,
    };
    let url: Url = given.parse().map_err(|_| invalid("(not shown)", "which is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(
            "(not shown)",
            "which contains a user: set username and password instead",
        ));
    }
    let spoken = matches!(url.scheme(), "http" | "https") && url.has_host();
    if spoken { Ok(url) } else { Err(invalid(given, "which is neither http nor https")) }
}
