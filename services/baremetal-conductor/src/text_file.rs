//! Fetches small text files that the owner of a node names by a URL.

use std::time::Duration;

use baremetal_core::{Problem, Reason};
use hardware::AllowedHosts;
use reqwest::{Certificate, Client, StatusCode};
use url::Url;

use crate::image_client::image_client;
use crate::problem::chain;

/// The time limit of a download.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A text file at an `http` or `https` URL.
#[derive(Clone, Copy)]
pub(crate) struct TextFile<'a> {
    /// The kind of file, for messages.
    pub(crate) what: &'static str,
    pub(crate) url: &'a str,
    /// A PEM certificate of a CA that is trusted in addition to the usual CAs.
    pub(crate) ca: Option<&'a str>,
    /// The size limit in bytes.
    pub(crate) longest: usize,
}

impl TextFile<'_> {
    /// Fetches the file from one of the `allowed` hosts.
    pub(crate) async fn fetch(&self, allowed: &AllowedHosts) -> Result<String, Problem> {
        let refuse = |why: String| self.problem(&why, false);
        let url = Url::parse(self.url).map_err(|_| refuse("not a URL".to_owned()))?;
        let host = url.host_str().unwrap_or_default();
        allowed.check(host).map_err(|why| refuse(why.to_string()))?;
        let unreachable = |error: reqwest::Error| {
            let error = error.without_url();
            self.problem(&chain(&error), !error.is_builder())
        };
        let client = client(allowed, self.ca).map_err(unreachable)?;
        let mut answer = client.get(url).send().await.map_err(unreachable)?;
        let status = answer.status();
        if status != StatusCode::OK {
            let why = format!("the server answered {}", status.as_u16());
            return Err(self.problem(&why, status.is_server_error()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > self.longest {
                return Err(refuse(format!("it has more than {} bytes", self.longest)));
            }
            body.extend_from_slice(&chunk);
        }
        String::from_utf8(body).map_err(|_| refuse("it is not text".to_owned()))
    }

    /// Returns a problem with this file. The query of its URL may contain a token, so it is not shown.
    pub(crate) fn problem(&self, why: &str, transient: bool) -> Problem {
        let shown = self.url.split(['?', '#']).next().unwrap_or(self.url);
        let cause = format!("{} at {shown}: {why}", self.what);
        Problem { reason: Reason::BadRequest, cause, transient }
    }
}

fn client(allowed: &AllowedHosts, ca: Option<&str>) -> Result<Client, reqwest::Error> {
    let authorities = ca.map(|pem| Certificate::from_pem_bundle(pem.as_bytes())).transpose()?;
    image_client(allowed).timeout(TIMEOUT).tls_certs_merge(authorities.unwrap_or_default()).build()
}
