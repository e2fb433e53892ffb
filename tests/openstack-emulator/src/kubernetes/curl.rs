//! Reads the files with which members call a service by `curl --config`.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Certificate, Client};

use crate::guest::client_builder;

/// How long a member waits for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The options in a configuration of curl.
pub(super) struct CurlConfig<'f> {
    text: &'f str,
    files: &'f BTreeMap<String, String>,
}

impl<'f> CurlConfig<'f> {
    /// Finds the configuration whose path ends so. `None` if the files of a member have none.
    pub(super) fn find(files: &'f BTreeMap<String, String>, end: &str) -> Option<Self> {
        let (_, text) = files.iter().find(|(path, _)| path.ends_with(end))?;
        Some(CurlConfig { text, files })
    }

    /// The value of an option, without quotes.
    pub(super) fn option(&self, name: &str) -> Option<String> {
        self.options(name).next().map(str::to_owned)
    }

    /// The values of an option that may be repeated, without quotes.
    fn options(&self, name: &str) -> impl Iterator<Item = &'f str> {
        let rest = move |line: &'f str| line.trim().strip_prefix(name);
        let values = self.text.lines().filter_map(rest);
        values.map(|rest| rest.trim().trim_start_matches('=').trim().trim_matches('"'))
    }

    /// The value of the header `Authorization`.
    pub(super) fn authorization(&self) -> Option<String> {
        let value = self.options("header").find_map(|it| it.strip_prefix("Authorization: "))?;
        Some(value.to_owned())
    }

    /// The certificate authority that the configuration trusts, as PEM.
    pub(super) fn authority(&self) -> Option<String> {
        self.files.get(&self.option("cacert")?).cloned()
    }
}

/// A client that trusts only this certificate authority, and uses a new connection for each call, as curl does.
pub(super) fn client(authority: &str) -> reqwest::Result<Client> {
    let authority = Certificate::from_pem(authority.as_bytes())?;
    client_builder().pool_max_idle_per_host(0).tls_certs_only([authority]).build()
}
