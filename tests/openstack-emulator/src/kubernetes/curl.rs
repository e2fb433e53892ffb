//! Reads the files with which members call a service by `curl --config`.

use std::collections::BTreeMap;

use reqwest::{Certificate, Client};

use crate::guest::client_builder;

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
        let rest = |line: &'_ str| Some(line.strip_prefix(name)?.trim().to_owned());
        let value = self.text.lines().find_map(|line| rest(line.trim()))?;
        Some(value.trim_start_matches('=').trim().trim_matches('"').to_owned())
    }

    /// The value of the header `Authorization`.
    pub(super) fn authorization(&self) -> Option<String> {
        Some(self.option("header")?.strip_prefix("Authorization: ")?.to_owned())
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
