//! Signs certificate requests of the cluster's users.

use cluster_bootstrap::CertificateAuthority;
use rcgen::{
    CertificateSigningRequestParams, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa,
    KeyUsagePurpose,
};

use crate::kubeconfig::issuer;
use crate::seed::{PkiError, Validity, parameters};

/// The largest request that is accepted, in bytes: a request with an RSA 4096 key has 1,700.
const MAX_REQUEST_BYTES: usize = 8192;
/// The only reserved group (`system:…`) that a request may name; the API decides which callers may send requests at all.
const ADMINISTRATORS: &str = "system:masters";

/// Why a request is not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The text is not a certificate request, or the signature was not made with the key in the request.
    #[error(
        "cannot read the certificate request: send a PKCS #10 request in PEM, signed by its own key"
    )]
    Malformed { source: rcgen::Error },
    #[error("the certificate request is too long: at most {MAX_REQUEST_BYTES} bytes")]
    TooLong,
    /// The request wants more than a client certificate with a subject.
    #[error("the request asks {what}: only client certificates with a subject are signed")]
    NotAllowed {
        /// The excess, as it reads in the message.
        what: &'static str,
    },
    /// The subject breaks a rule.
    #[error("the subject of the request is not allowed: {what}")]
    Subject {
        /// The broken rule, as it reads in the message.
        what: &'static str,
    },
    /// The request is fine, but the certificate could not be made: a fault of the service.
    #[error(transparent)]
    Failed(#[from] PkiError),
}

/// Signs a client certificate for the key and the subject of `request`.
///
/// Does not check whether the caller may have such a certificate: the API checks that.
pub fn sign(
    authority: &CertificateAuthority,
    request: &str,
    validity: Validity,
) -> Result<String, SignError> {
    if request.len() > MAX_REQUEST_BYTES {
        return Err(SignError::TooLong);
    }
    let mut request = CertificateSigningRequestParams::from_pem(request)
        .map_err(|source| SignError::Malformed { source })?;
    refuse_extras(&request)?;
    check_subject(&request)?;
    let mut granted = parameters(validity);
    granted.distinguished_name = request.params.distinguished_name.clone();
    granted.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    granted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    granted.use_authority_key_identifier_extension = true;
    request.params = granted;
    let error = |source| PkiError { what: "the certificate", source };
    let certificate = request.signed_by(&issuer(authority).map_err(error)?).map_err(error)?;
    Ok(certificate.pem())
}

fn refuse_extras(request: &CertificateSigningRequestParams) -> Result<(), SignError> {
    let asked = &request.params;
    let refuse = |what| Err(SignError::NotAllowed { what });
    if matches!(asked.is_ca, IsCa::Ca(_)) {
        return refuse("for a CA certificate");
    }
    if !asked.subject_alt_names.is_empty() {
        return refuse("for subject alternative names");
    }
    if asked.extended_key_usages.iter().any(|usage| *usage != ExtendedKeyUsagePurpose::ClientAuth) {
        return refuse("for extended key usages besides client authentication");
    }
    let allowed = [KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    if asked.key_usages.iter().any(|usage| !allowed.contains(usage)) {
        return refuse("for key usages besides digital signature and key encipherment");
    }
    Ok(())
}

/// Checks the subject: Kubernetes reads the common name as the user and each organization as a group.
fn check_subject(request: &CertificateSigningRequestParams) -> Result<(), SignError> {
    let refuse = |what| Err(SignError::Subject { what });
    let name = &request.params.distinguished_name;
    let entries: Vec<(&DnType, &DnValue)> = name.iter().collect();
    if !entries.iter().any(|(kind, _)| **kind == DnType::CommonName) {
        return refuse("it has no common name");
    }
    for (kind, value) in &entries {
        if !matches!(kind, DnType::CommonName | DnType::OrganizationName) {
            return refuse("only a common name and organizations are allowed");
        }
        let Some(value) = text(value) else {
            return refuse("each value must be a UTF8String, PrintableString or IA5String");
        };
        if value.is_empty() || value.len() > 64 || value.chars().any(char::is_control) {
            return refuse("each value must have 1 to 64 bytes and no control characters");
        }
        let own = value.starts_with("system:");
        let group = **kind == DnType::OrganizationName && value == ADMINISTRATORS;
        if own && !group {
            return refuse("names that begin with `system:` are reserved by Kubernetes");
        }
    }
    Ok(())
}

fn text(value: &DnValue) -> Option<&str> {
    match value {
        DnValue::Utf8String(text) => Some(text),
        DnValue::PrintableString(text) => Some(text.as_str()),
        DnValue::Ia5String(text) => Some(text.as_str()),
        DnValue::BmpString(_) | DnValue::TeletexString(_) | DnValue::UniversalString(_) | _ => None,
    }
}
