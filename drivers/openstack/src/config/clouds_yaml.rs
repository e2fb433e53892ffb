//! Reads clouds.yaml, and secure.yaml in the same directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use super::settings::Settings;
use super::{CloudConfig, ConfigError};
use crate::service::Service;

#[derive(Default, Deserialize)]
struct Clouds {
    #[serde(default)]
    clouds: BTreeMap<String, Cloud>,
}

/// The settings of a cloud that we use; other programs have further settings in the file. All scalars are read as text, because a password
/// of digits is not a number.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Cloud {
    auth: BTreeMap<String, Option<String>>,
    auth_type: Option<String>,
    region_name: Option<String>,
    interface: Option<String>,
    endpoint_type: Option<String>,
    verify: Option<String>,
    insecure: Option<String>,
    cacert: Option<String>,
    identity_endpoint_override: Option<String>,
    image_endpoint_override: Option<String>,
    compute_endpoint_override: Option<String>,
    network_endpoint_override: Option<String>,
    load_balancer_endpoint_override: Option<String>,
    dns_endpoint_override: Option<String>,
    block_storage_endpoint_override: Option<String>,
    placement_endpoint_override: Option<String>,
    object_store_endpoint_override: Option<String>,
    baremetal_endpoint_override: Option<String>,
    container_infra_endpoint_override: Option<String>,
}

impl CloudConfig {
    /// Returns the cloud called `name`, or the only one, in the text of a clouds.yaml.
    pub fn from_clouds_yaml(text: &str, name: Option<&str>) -> Result<CloudConfig, ConfigError> {
        from_texts(text, "", name)
    }

    /// Like [`CloudConfig::from_clouds_yaml`], from a file; settings in a `secure.yaml` in the same directory take precedence.
    pub fn read(path: &Path, name: Option<&str>) -> Result<CloudConfig, ConfigError> {
        let text = fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
        let beside = path.with_file_name("secure.yaml");
        let secrets = match fs::read_to_string(&beside) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(|source| unreadable(&beside, source))?,
        };
        from_texts(&text, &secrets, name)
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> ConfigError {
    ConfigError::Unreadable { path: path.to_owned(), source }
}

fn from_texts(text: &str, secrets: &str, name: Option<&str>) -> Result<CloudConfig, ConfigError> {
    let mut clouds = parse(text)?.clouds;
    let known = clouds.keys().cloned().collect::<Vec<_>>().join(", ");
    let name = match name {
        Some(name) => name.to_owned(),
        None if clouds.len() > 1 => return Err(ConfigError::Ambiguous { known }),
        None => clouds.keys().next().cloned().unwrap_or_default(),
    };
    let cloud =
        clouds.remove(&name).ok_or(ConfigError::NoSuchCloud { name: name.clone(), known })?;
    let mut settings = Settings::default();
    // The first value of a setting is kept: secure.yaml takes precedence, as in openstacksdk.
    if let Some(secret) = parse(secrets)?.clouds.remove(&name) {
        secret.put_into(&mut settings);
    }
    cloud.put_into(&mut settings);
    settings.config()
}

fn parse(text: &str) -> Result<Clouds, ConfigError> {
    if text.trim().is_empty() {
        return Ok(Clouds::default());
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location();
        ConfigError::Malformed {
            line: place.map_or(0, |place| place.line()),
            column: place.map_or(0, |place| place.column()),
        }
    })
}

impl Cloud {
    fn put_into(self, settings: &mut Settings) {
        for (name, value) in self.auth {
            settings.put(&name, value);
        }
        for (name, value) in [
            ("auth_type", self.auth_type),
            ("region_name", self.region_name),
            ("interface", self.interface),
            ("endpoint_type", self.endpoint_type),
            ("verify", self.verify),
            ("insecure", self.insecure),
            ("cacert", self.cacert),
            (Service::Identity.override_setting(), self.identity_endpoint_override),
            (Service::Image.override_setting(), self.image_endpoint_override),
            (Service::Compute.override_setting(), self.compute_endpoint_override),
            (Service::Network.override_setting(), self.network_endpoint_override),
            (Service::LoadBalancer.override_setting(), self.load_balancer_endpoint_override),
            (Service::Dns.override_setting(), self.dns_endpoint_override),
            (Service::BlockStorage.override_setting(), self.block_storage_endpoint_override),
            (Service::Placement.override_setting(), self.placement_endpoint_override),
            (Service::ObjectStore.override_setting(), self.object_store_endpoint_override),
            (Service::BareMetal.override_setting(), self.baremetal_endpoint_override),
            (Service::ContainerInfra.override_setting(), self.container_infra_endpoint_override),
        ] {
            settings.put(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::super::{Auth, Interface, Tls};
    use super::*;

    const TWO: &str = "
clouds:
  one:
    auth: {auth_url: https://k/identity, username: u, password: 0123, project_name: p}
    auth_type: password
    region_name: north
    verify: no
    networks: [{name: public, routes_externally: true}]
    compute_endpoint_override: https://n/v2.1
  two:
    auth: {auth_url: https://k, username: u, user_domain_name: Default}
    interface: admin
";

    fn password(config: &CloudConfig) -> &str {
        match &config.auth {
            Auth::Password { password, .. } => password.expose_secret(),
            Auth::ApplicationCredential { .. } | Auth::Token { .. } => panic!("not a password"),
        }
    }

    #[test]
    fn a_cloud_is_read_with_settings_of_other_programs() {
        let text = TWO.replace("project_name: p}", "project_name: p, default_domain: default}");
        let config = CloudConfig::from_clouds_yaml(&text, Some("one")).unwrap();
        assert_eq!(password(&config), "0123", "a password of digits is text");
        assert_eq!(config.region.as_deref(), Some("north"));
        assert_eq!(config.tls, Tls::Unverified);
        assert_eq!(config.endpoints[&Service::Compute].as_str(), "https://n/v2.1");
    }

    #[test]
    fn secrets_may_be_in_secure_yaml() {
        let secrets = "clouds: {two: {auth: {password: hunter2, username: v}}}";
        let config = from_texts(TWO, secrets, Some("two")).unwrap();
        assert_eq!(password(&config), "hunter2");
        assert!(format!("{config:?}").contains(r#"name: "v""#), "secure.yaml overrides");
        assert_eq!(config.interface, Interface::Admin);
    }

    #[test]
    fn errors_do_not_quote_the_text() {
        let message =
            |text: &str, name| CloudConfig::from_clouds_yaml(text, name).unwrap_err().to_string();
        assert_eq!(message(TWO, Some("x")), r#"clouds.yaml has no cloud "x": it has one, two"#);
        assert_eq!(message(TWO, None), "clouds.yaml has several clouds: name one of one, two");
        assert_eq!(
            message(TWO, Some("one")),
            "user_domain_name is missing: the user is given by name"
        );
        let broken = message("clouds:\n  x: {auth: {password: hunter2", Some("x"));
        assert!(broken.starts_with("clouds.yaml cannot be read at line "), "{broken}");
        assert!(!broken.contains("hunter2"));
    }
}
