//! The connection options: the URLs of the APIs, and the caller's credentials.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use api_client::Credentials;
use clap::Args;
use openstack::{CloudConfig, Session, Tls};
use secrecy::SecretString;
use url::Url;

/// The URLs of the APIs, and the caller's credentials.
#[derive(Args, Clone)]
pub(crate) struct Connection {
    /// URL of the Bare Metal API; default: the catalogue of the cloud, or http://127.0.0.1:6385 without a cloud.
    #[arg(long, global = true, env = "BEDPLATE_URL")]
    pub(crate) url: Option<Url>,
    /// URL of the Container Infra API; default: the catalogue of the cloud, or http://127.0.0.1:9511 without a cloud.
    #[arg(long, global = true, env = "BEDPLATE_CLUSTERS_URL")]
    pub(crate) clusters_url: Option<Url>,
    /// User name, for an API with its own passwords.
    #[arg(long, global = true, env = "BEDPLATE_USER", requires = "password_file")]
    user: Option<String>,
    /// File whose first line is the password.
    #[arg(long, global = true, env = "BEDPLATE_PASSWORD_FILE")]
    password_file: Option<PathBuf>,
    /// Cloud of clouds.yaml to authenticate with; default: OS_CLOUD or the other OS_* variables. Takes precedence over --user from the
    /// environment.
    #[arg(long, global = true, value_name = "NAME")]
    os_cloud: Option<String>,
    /// File with the CA certificates of the API and, with a cloud, of Keystone.
    #[arg(long, global = true, env = "BEDPLATE_CACERT")]
    cacert: Option<PathBuf>,
}

impl Connection {
    /// Returns the caller's credentials. `--os-cloud` takes precedence over `--user`, and `--user` over a cloud that only the environment
    /// names.
    pub(crate) fn caller(&self) -> anyhow::Result<Credentials> {
        if let (None, Some(user), Some(file)) = (&self.os_cloud, &self.user, &self.password_file) {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let password = text.lines().next().unwrap_or_default();
            return Ok(Credentials::Password(user.clone(), SecretString::from(password)));
        }
        Ok(self.session()?.map_or(Credentials::Anonymous, Credentials::Keystone))
    }

    /// The connection to a service of Bedplate beside another service, whose cloud `--os-cloud` selects: with the credentials of `cloud`, if it is
    /// given, else of `--user`, else of the other service's cloud.
    pub(crate) fn of_bedplate(&self, cloud: Option<&str>) -> Connection {
        let has_password = self.user.is_some() && self.password_file.is_some();
        let os_cloud = match cloud {
            Some(cloud) => Some(cloud.to_owned()),
            None if has_password => None,
            None => self.os_cloud.clone(),
        };
        Connection { os_cloud, ..self.clone() }
    }

    /// The session with the named cloud; `None` if no cloud is named.
    pub(crate) fn session(&self) -> anyhow::Result<Option<Session>> {
        let Some(mut config) = cloud(self.os_cloud.as_deref())? else { return Ok(None) };
        if let Some(file) = &self.cacert {
            config.tls = Tls::Verified { authorities: Some(file.clone()) };
        }
        let session = Session::new(config).context("cannot set up a session with the cloud")?;
        Ok(Some(session))
    }

    /// The file with the CA certificates of the API.
    pub(crate) fn authorities(&self) -> Option<&Path> {
        self.cacert.as_deref()
    }
}

/// The cloud and its credentials, found in the same places as the OpenStack clients do; `None` if no cloud is named.
fn cloud(said: Option<&str>) -> anyhow::Result<Option<CloudConfig>> {
    // `OS_AUTH_TYPE=none` and `http_basic` are meant for services without Keystone, even if the environment names a cloud.
    let without = ["none", "http_basic", "noauth"];
    let is_without = variable("OS_AUTH_TYPE").is_some_and(|kind| without.contains(&kind.as_str()));
    if said.is_none() && is_without {
        return Ok(None);
    }
    if let Some(name) = said.map(str::to_owned).or_else(|| variable("OS_CLOUD")) {
        let path = clouds_yaml()?;
        let config = CloudConfig::read(&path, Some(&name));
        let config = config.with_context(|| format!("cannot use {}", path.display()))?;
        return Ok(Some(config));
    }
    if variable("OS_AUTH_URL").is_none() {
        return Ok(None);
    }
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = CloudConfig::from_environment(variables);
    Ok(Some(config.context("cannot use the OS_* variables of the environment")?))
}

/// The clouds.yaml that the OpenStack clients would read.
fn clouds_yaml() -> anyhow::Result<PathBuf> {
    if let Some(path) = variable("OS_CLIENT_CONFIG_FILE") {
        return Ok(PathBuf::from(path));
    }
    let home = variable("HOME").map(|home| Path::new(&home).join(".config"));
    let own = variable("XDG_CONFIG_HOME").map(PathBuf::from).or(home);
    let own = own.map(|folder| folder.join("openstack"));
    let folders = [Some(PathBuf::from(".")), own, Some(PathBuf::from("/etc/openstack"))]
        .into_iter()
        .flatten();
    let paths: Vec<PathBuf> = folders.map(|folder| folder.join("clouds.yaml")).collect();
    match paths.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => {
            let looked: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            bail!(
                "cannot find {}. Hint: name the file with OS_CLIENT_CONFIG_FILE",
                looked.join(" or ")
            )
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
