//! Reads the certificates and the kubeconfig with another X.509 parser, and tries requests that must be refused.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster_bootstrap::{Endpoint, Name, Pki};
use cluster_pki::{SignError, Validity, admin_kubeconfig, make_pki, sign};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use x509_parser::prelude::{FromDer, X509Certificate};

fn validity() -> Validity {
    Validity {
        now: "2026-11-21T12:00:00Z".parse::<Timestamp>().expect("the example is valid"),
        lifetime: Duration::from_secs(86_400),
    }
}

fn pki() -> Pki {
    make_pki(&Name::try_from("blue").expect("the example is valid"), 0, validity())
        .expect("the example is valid")
}

fn request(change: impl FnOnce(&mut CertificateParams)) -> String {
    let key = KeyPair::generate().expect("the example is valid");
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "alice");
    change(&mut parameters);
    parameters
        .serialize_request(&key)
        .expect("the example is valid")
        .pem()
        .expect("the example is valid")
}

fn der(pem: &str) -> Vec<u8> {
    x509_parser::pem::parse_x509_pem(pem.as_bytes()).expect("the example is valid").1.contents
}

#[test]
fn a_client_certificate_is_signed_by_the_clusters_authority() {
    let pki = pki();
    let signed = sign(
        &pki.cluster,
        &request(|it| it.distinguished_name.push(DnType::OrganizationName, "system:masters")),
        validity(),
    );
    let (signed, authority) = (der(&signed.unwrap()), der(&pki.cluster.certificate));
    let (_, signed) = X509Certificate::from_der(&signed).unwrap();
    let (_, authority) = X509Certificate::from_der(&authority).unwrap();
    signed.verify_signature(Some(authority.public_key())).unwrap();
    assert_eq!(signed.issuer(), authority.subject());
    assert!(authority.is_ca() && !signed.is_ca());
    let usage = signed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && !usage.server_auth && !usage.any);
    assert_eq!(signed.validity().not_after.timestamp(), validity().now.as_second() + 86_400);
    assert_eq!(signed.validity().not_before.timestamp(), validity().now.as_second() - 3600);
    assert_eq!(signed.subject_alternative_name().unwrap(), None);
}

#[test]
fn a_request_for_more_than_a_client_certificate_is_refused() {
    let pki = pki();
    let more: [fn(&mut CertificateParams); 5] = [
        |it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained),
        |it| it.subject_alt_names = vec![rcgen::SanType::DnsName("kubernetes".try_into().unwrap())],
        |it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth],
        |it| it.key_usages = vec![KeyUsagePurpose::KeyCertSign],
        |it| it.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign],
    ];
    for change in more {
        let refused = sign(&pki.cluster, &request(change), validity()).unwrap_err();
        assert!(matches!(refused, SignError::NotAllowed { .. }), "{refused}");
    }
}

#[test]
fn a_request_for_the_usages_of_a_client_is_signed() {
    let pki = pki();
    let usual = request(|it| {
        it.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    sign(&pki.cluster, &usual, validity()).unwrap();
}

#[test]
fn a_subject_has_a_common_name_and_texts_of_1_to_64_characters() {
    let pki = pki();
    let subject = |entries: &[(DnType, &str)]| {
        let request = request(|it| {
            it.distinguished_name = DistinguishedName::new();
            entries.iter().for_each(|(kind, text)| it.distinguished_name.push(kind.clone(), *text));
        });
        sign(&pki.cluster, &request, validity()).map(|_| ()).map_err(|error| error.to_string())
    };
    let (user, group) = (DnType::CommonName, DnType::OrganizationName);
    assert_eq!(subject(&[(user.clone(), "alice")]), Ok(()));
    assert_eq!(subject(&[(user.clone(), "alice"), (group.clone(), "developers")]), Ok(()));
    assert_eq!(subject(&[(user.clone(), &"a".repeat(64))]), Ok(()));
    let refused = |what: &str| Err(format!("the subject of the request is not allowed: {what}"));
    assert_eq!(subject(&[(group.clone(), "developers")]), refused("it has no common name"));
    let long = refused("each value must have 1 to 64 bytes and no control characters");
    assert_eq!(subject(&[(user.clone(), &"a".repeat(65))]), long);
    assert_eq!(subject(&[(user.clone(), "alice"), (group, "")]), long);
    assert_eq!(subject(&[(user, "al\nice")]), long);
}

#[test]
fn names_that_kubernetes_reserves_are_refused() {
    let pki = pki();
    let own: [fn(&mut CertificateParams); 5] = [
        |it| it.distinguished_name.push(DnType::CommonName, "system:kube-controller-manager"),
        |it| it.distinguished_name.push(DnType::OrganizationName, "system:nodes"),
        |it| it.distinguished_name.push(DnType::OrganizationalUnitName, "x"),
        |it| it.distinguished_name.push(DnType::CommonName, ""),
        |it| it.distinguished_name = DistinguishedName::new(),
    ];
    for change in own {
        let refused = sign(&pki.cluster, &request(change), validity()).unwrap_err();
        assert!(matches!(refused, SignError::Subject { .. }), "{refused}");
    }
}

#[test]
fn text_that_is_no_request_is_refused() {
    let pki = pki();
    for bad in
        ["", "x", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"]
    {
        assert!(
            matches!(sign(&pki.cluster, bad, validity()), Err(SignError::Malformed { .. })),
            "{bad}"
        );
    }
    let of_length = |length| sign(&pki.cluster, &"x".repeat(length), validity());
    assert!(matches!(of_length(8192), Err(SignError::Malformed { .. })));
    assert!(matches!(of_length(8193), Err(SignError::TooLong)));
}

#[test]
fn a_request_that_was_changed_after_its_key_signed_it_is_refused() {
    let pki = pki();
    let mut octets = der(&request(|_| {}));
    let pem = |octets: &[u8]| {
        let text = STANDARD.encode(octets);
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n")
    };
    sign(&pki.cluster, &pem(&octets), validity()).unwrap();
    let at = octets.windows(5).position(|name| name == b"alice").unwrap();
    octets[at..at + 5].copy_from_slice(b"mally");
    let refused = sign(&pki.cluster, &pem(&octets), validity());
    assert!(matches!(refused, Err(SignError::Malformed { .. })), "{refused:?}");
}

#[test]
fn the_administrators_kubeconfig_is_whole_and_is_not_printed() {
    let pki = pki();
    let endpoint = Endpoint { host: "fd00::1".to_owned(), port: 6443 };
    let kubeconfig =
        admin_kubeconfig(&Name::try_from("blue").unwrap(), &endpoint, &pki.cluster, validity())
            .unwrap();
    let read: serde_json::Value = serde_json::from_str(kubeconfig.expose()).unwrap();
    assert_eq!(read["clusters"][0]["cluster"]["server"], "https://[fd00::1]:6443");
    assert_eq!(read["current-context"], read["contexts"][0]["name"]);
    assert!(!format!("{kubeconfig:?}").contains("client-key-data"));
}
