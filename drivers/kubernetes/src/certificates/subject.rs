//! The subject in a certificate request (PKCS #10, RFC 2986).

use std::net::IpAddr;

use x509_parser::asn1_rs::FromDer;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::pem::parse_x509_pem;

use super::objection::Objection;

/// The longest request that is parsed: a request with an RSA 4096 key and twenty names has 3 KiB.
const LONGEST: usize = 16 * 1024;

/// The names and addresses that a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) common_names: Vec<String>,
    pub(super) organizations: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
}

impl Subject {
    /// Parses the single request in `pem`. Fields that kubelets never use are an objection.
    pub(super) fn read(pem: &[u8]) -> Result<Subject, Objection> {
        if pem.len() > LONGEST {
            return Err(Objection::Unreadable);
        }
        let (rest, block) = parse_x509_pem(pem).map_err(|_| Objection::Unreadable)?;
        if block.label != "CERTIFICATE REQUEST" || !rest.trim_ascii().is_empty() {
            return Err(Objection::Unreadable);
        }
        let parsed = X509CertificationRequest::from_der(&block.contents);
        let (rest, request) = parsed.map_err(|_| Objection::Unreadable)?;
        if !rest.is_empty() {
            return Err(Objection::Unreadable);
        }
        let mut subject = Subject::default();
        for attribute in request.certification_request_info.subject.iter_attributes() {
            let kind = attribute.attr_type();
            let text = attribute.as_str().map_err(|_| Objection::Unreadable)?.to_owned();
            if *kind == OID_X509_COMMON_NAME {
                subject.common_names.push(text);
            } else if *kind == OID_X509_ORGANIZATION_NAME {
                subject.organizations.push(text);
            } else {
                return Err(Objection::AsksForMore { what: "another attribute of its subject" });
            }
        }
        for extension in request.requested_extensions().into_iter().flatten() {
            let ParsedExtension::SubjectAlternativeName(names) = extension else {
                return Err(Objection::AsksForMore { what: "another extension" });
            };
            for name in &names.general_names {
                subject.take(name)?;
            }
        }
        Ok(subject)
    }

    fn take(&mut self, name: &GeneralName<'_>) -> Result<(), Objection> {
        let address = |bytes: &[u8]| {
            let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        };
        if let GeneralName::DNSName(name) = name {
            self.names.push((*name).to_owned());
        } else if let GeneralName::IPAddress(bytes) = name {
            self.addresses.push(address(bytes).map_err(|_| Objection::Unreadable)?);
        } else {
            return Err(Objection::AsksForMore { what: "an e-mail address, URI or the like" });
        }
        Ok(())
    }
}
