//! Parses kubeconfigs. Files and programs that a kubeconfig names are neither read nor run.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use serde::Deserialize;
use url::{Host, Url};

use crate::access::{Access, Endpoint, Timeouts};
use crate::lenient;

/// The reasons why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The text is not YAML, or not a kubeconfig. The message quotes nothing, because the text may be a key.
    #[error("the kubeconfig cannot be read at line {line}, column {column}")]
    Malformed {
        /// Counted from 1; 0 if unknown.
        line: u64,
        /// Counted from 1; 0 if unknown.
        column: u64,
    },
    #[error("the kubeconfig has no {what} {name:?}")]
    Absent {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        name: String,
    },
    #[error("the kubeconfig's {field} is missing")]
    Missing { field: &'static str },
    #[error("the kubeconfig's {field} is not supported: {advice}")]
    Unsupported {
        field: &'static str,
        /// The kubeconfig field to use instead.
        advice: &'static str,
    },
    #[error("the kubeconfig's {field} {problem}")]
    Invalid { field: &'static str, problem: &'static str },
}

impl Access {
    /// Returns the access of the context called `context`, or of the current one, in the text of a kubeconfig.
    ///
    /// Only client certificates are supported; other ways to log in are refused by name.
    pub fn from_kubeconfig(text: &str, context: Option<&str>) -> Result<Access, KubeconfigError> {
        let config: Config = serde_saphyr::from_str(text).map_err(|error| {
            let place = error.location();
            KubeconfigError::Malformed {
                line: place.map_or(0, |place| place.line()),
                column: place.map_or(0, |place| place.column()),
            }
        })?;
        let name = context.map_or(config.current_context, str::to_owned);
        let context = named("context", config.contexts, &name)?.context;
        let cluster = named("cluster", config.clusters, &context.cluster)?.cluster;
        let user = named("user", config.users, &context.user)?.user;
        cluster.objection()?;
        user.objection()?;
        Ok(Access {
            endpoint: endpoint(&cluster.server)?,
            connect_to: None,
            authority: pem("certificate-authority-data", &cluster.authority_data)?,
            certificate: pem("client-certificate-data", &user.certificate_data)?,
            key: SecretString::from(pem("client-key-data", &user.key_data)?),
            timeouts: Timeouts::default(),
        })
    }
}

fn named<T: Named>(what: &'static str, all: Vec<T>, name: &str) -> Result<T, KubeconfigError> {
    let absent = || KubeconfigError::Absent { what, name: name.chars().take(100).collect() };
    all.into_iter().find(|one| one.name() == name).ok_or_else(absent)
}

fn endpoint(server: &str) -> Result<Endpoint, KubeconfigError> {
    let field = "server";
    let invalid = |problem| KubeconfigError::Invalid { field, problem };
    let url = Url::parse(server).map_err(|_| invalid("is not a URL"))?;
    if url.scheme() != "https" {
        return Err(invalid("is not an https URL"));
    }
    if url.path() != "/" || url.query().is_some() || !url.username().is_empty() {
        return Err(invalid("has more in it than a host and a port"));
    }
    let host = match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => return Err(invalid("has no host")),
    };
    Ok(Endpoint { host, port: url.port_or_known_default().unwrap_or(443) })
}

fn pem(field: &'static str, data: &str) -> Result<String, KubeconfigError> {
    if data.is_empty() {
        return Err(KubeconfigError::Missing { field });
    }
    let invalid = KubeconfigError::Invalid { field, problem: "is not PEM in base64" };
    let bytes = STANDARD.decode(data.trim()).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(invalid)
}

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "current-context", default)]
    current_context: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    contexts: Vec<ContextEntry>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    clusters: Vec<ClusterEntry>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    users: Vec<UserEntry>,
}

#[derive(Deserialize)]
struct ContextEntry {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
struct ClusterEntry {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    #[serde(rename = "certificate-authority-data", default)]
    authority_data: String,
    certificate_authority: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Deserialize)]
struct UserEntry {
    name: String,
    user: User,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    #[serde(rename = "client-certificate-data", default)]
    certificate_data: String,
    #[serde(rename = "client-key-data", default)]
    key_data: String,
    client_certificate: Option<String>,
    client_key: Option<String>,
    token: Option<SecretString>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    username: Option<String>,
    exec: Option<serde_json::Value>,
    auth_provider: Option<serde_json::Value>,
}

trait Named {
    fn name(&self) -> &str;
}

impl Named for ContextEntry {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for ClusterEntry {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for UserEntry {
    fn name(&self) -> &str {
        &self.name
    }
}

const NO_FILES: &str = "put the file's content into the kubeconfig (kubectl config view --flatten)";
const CERTIFICATES: &str = "give the user a client certificate and its key";

impl Cluster {
    fn objection(&self) -> Result<(), KubeconfigError> {
        first(&[
            ("certificate-authority", self.certificate_authority.is_some(), NO_FILES),
            (
                "insecure-skip-tls-verify",
                self.insecure_skip_tls_verify,
                "give the cluster's authority",
            ),
            (
                "tls-server-name",
                self.tls_server_name.is_some(),
                "use a server that its certificate names",
            ),
            ("proxy-url", self.proxy_url.is_some(), "name a server that is reached directly"),
        ])
    }
}

impl User {
    fn objection(&self) -> Result<(), KubeconfigError> {
        first(&[
            ("client-certificate", self.client_certificate.is_some(), NO_FILES),
            ("client-key", self.client_key.is_some(), NO_FILES),
            ("tokenFile", self.token_file.is_some(), CERTIFICATES),
            ("token", self.token.is_some(), CERTIFICATES),
            ("username", self.username.is_some(), CERTIFICATES),
            ("exec", self.exec.is_some(), CERTIFICATES),
            ("auth-provider", self.auth_provider.is_some(), CERTIFICATES),
        ])
    }
}

fn first(rules: &[(&'static str, bool, &'static str)]) -> Result<(), KubeconfigError> {
    match rules.iter().find(|(_, broken, _)| *broken) {
        Some((field, _, advice)) => Err(KubeconfigError::Unsupported { field, advice }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use secrecy::ExposeSecret;

    use super::*;

    // Base64 of "authority", "certificate" and "hunter2".
    const GOOD: &str = "
apiVersion: v1
kind: Config
current-context: a
contexts:
- {name: a, context: {cluster: c, user: u}}
- {name: b, context: {cluster: c, user: nobody}}
clusters:
- name: c
  cluster: {server: 'https://api.c.example:6443', certificate-authority-data: YXV0aG9yaXR5}
users:
- name: u
  user: {client-certificate-data: Y2VydGlmaWNhdGU=, client-key-data: aHVudGVyMg==}
";

    #[test]
    fn a_kubeconfig_is_read() {
        let access = Access::from_kubeconfig(GOOD, None).unwrap();
        assert_eq!(access.endpoint.to_string(), "api.c.example:6443");
        assert_eq!(
            (access.authority.as_str(), access.certificate.as_str()),
            ("authority", "certificate")
        );
        assert_eq!(access.key.expose_secret(), "hunter2");
        assert!(!format!("{access:?}").contains("hunter2"));
    }

    #[test]
    fn addresses_may_be_of_both_kinds() {
        let at = |server: &str| {
            let text = GOOD.replace("https://api.c.example:6443", server);
            Access::from_kubeconfig(&text, None).unwrap().endpoint
        };
        assert_eq!(at("https://[2001:db8::1]:6443").host, "2001:db8::1");
        assert_eq!(at("https://[2001:db8::1]:6443").to_string(), "[2001:db8::1]:6443");
        assert_eq!(at("https://192.0.2.1").to_string(), "192.0.2.1:443");
    }

    #[track_caller]
    fn check(from: &str, to: &str, context: Option<&str>, want: Expect) {
        let error = Access::from_kubeconfig(&GOOD.replace(from, to), context).unwrap_err();
        want.assert_eq(&error.to_string());
    }

    #[test]
    fn unsupported_fields_are_refused_by_name() {
        check(
            "aHVudGVyMg==",
            "hunter2!",
            None,
            expect!["the kubeconfig's client-key-data is not PEM in base64"],
        );
        check("", "", Some("b"), expect![[r#"the kubeconfig has no user "nobody""#]]);
        check("", "", Some("x"), expect![[r#"the kubeconfig has no context "x""#]]);
        check("https:", "http:", None, expect!["the kubeconfig's server is not an https URL"]);
        check(
            ":6443",
            ":6443/k8s/clusters/x",
            None,
            expect!["the kubeconfig's server has more in it than a host and a port"],
        );
        check(
            "client-key-data: aHVudGVyMg==",
            "exec: {command: sh}",
            None,
            expect![
                "the kubeconfig's exec is not supported: give the user a client certificate and its key"
            ],
        );
        check(
            "client-key-data: aHVudGVyMg==",
            "token: hunter2",
            None,
            expect![
                "the kubeconfig's token is not supported: give the user a client certificate and its key"
            ],
        );
        check(
            "certificate-authority-data: YXV0aG9yaXR5",
            "insecure-skip-tls-verify: true",
            None,
            expect![
                "the kubeconfig's insecure-skip-tls-verify is not supported: give the cluster's authority"
            ],
        );
        check(
            "client-key-data: aHVudGVyMg==",
            "client-key: /etc/shadow",
            None,
            expect![
                "the kubeconfig's client-key is not supported: put the file's content into the kubeconfig (kubectl config view --flatten)"
            ],
        );
        check(
            "client-key-data: aHVudGVyMg==",
            "",
            None,
            expect!["the kubeconfig's client-key-data is missing"],
        );
    }

    #[test]
    fn errors_name_only_the_place() {
        let text = "users:\n- name: u\n  user: {client-key-data: hunter2";
        let error = Access::from_kubeconfig(text, None).unwrap_err();
        assert!(error.to_string().starts_with("the kubeconfig cannot be read at line "), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
