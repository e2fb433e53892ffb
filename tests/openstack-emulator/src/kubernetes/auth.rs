//! Authentication and authorization of callers.

use jiff::Timestamp;
use x509_parser::asn1_rs::Oid;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::parse_x509_certificate;

use super::state::{Objects, decoded, place};

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
}

impl User {
    /// The user of a client certificate: the common name is the user name, organizations are groups.
    pub(super) fn by_certificate(der: &[u8]) -> Option<User> {
        let (_, certificate) = parse_x509_certificate(der).ok()?;
        let texts = |oid: &Oid<'_>| {
            let all = certificate.subject().iter_by_oid(oid);
            all.filter_map(|it| it.as_str().ok().map(str::to_owned)).collect::<Vec<_>>()
        };
        let (common, organization) = (&OID_X509_COMMON_NAME, &OID_X509_ORGANIZATION_NAME);
        let name = texts(common).pop()?;
        let mut groups = texts(organization);
        groups.push("system:authenticated".to_owned());
        Some(User { name, groups })
    }

    /// The user of a bootstrap token, if the token is valid now.
    pub(super) fn by_token(objects: &Objects, token: &str) -> Option<User> {
        let (id, secret) = token.split_once('.')?;
        let at = place("v1", "secrets", "kube-system", &format!("bootstrap-token-{id}"));
        let object = objects.get(&at)?;
        let data = |key: &str| decoded(&object["data"][key]);
        let of_its_kind = object["type"] == "bootstrap.kubernetes.io/token";
        let allowed = data("usage-bootstrap-authentication").as_deref() == Some("true");
        let expires = data("expiration").and_then(|it| it.parse::<Timestamp>().ok());
        let fresh = expires.is_none_or(|it| it > Timestamp::now());
        if !of_its_kind || !allowed || !fresh || data("token-secret").as_deref() != Some(secret) {
            return None;
        }
        let mut groups = vec!["system:bootstrappers".to_owned(), "system:authenticated".to_owned()];
        let extra = data("auth-extra-groups").unwrap_or_default();
        groups.extend(extra.split(',').filter(|it| !it.is_empty()).map(str::to_owned));
        Some(User { name: format!("system:bootstrap:{id}"), groups })
    }

    /// Whether the user may use a method on a resource. Administrators may do everything, kubelets what they need, and bootstrap tokens may
    /// request certificates.
    pub(super) fn may(&self, method: &str, resource: &str) -> bool {
        let member = |group: &str| self.groups.iter().any(|it| it == group);
        let asks = resource == "certificatesigningrequests" && ["GET", "POST"].contains(&method);
        if member("system:masters") {
            return true;
        }
        if member("system:nodes") {
            let own = ["nodes", "pods", "leases", "events"].contains(&resource);
            return asks || own || (method == "GET" && resource != "secrets");
        }
        member("system:bootstrappers") && (asks || (method == "GET" && resource == "configmaps"))
    }
}
