use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};
use serde_json::Value;

use super::*;

/// A valid request that a test can modify: the member `worker-1` joins, or requests a server certificate.
struct TestRequest {
    signer: Signer,
    username: &'static str,
    groups: Vec<&'static str>,
    usages: Vec<&'static str>,
    params: CertificateParams,
}

fn params(common: &str, organization: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, common);
    params
}

fn joins() -> TestRequest {
    TestRequest {
        signer: Signer::Client,
        username: "system:bootstrap:abcdef",
        groups: vec![
            "system:bootstrappers",
            "system:bootstrappers:kubeadm:default-node-token",
            "system:authenticated",
        ],
        usages: vec!["digital signature", "key encipherment", "client auth"],
        params: params("system:node:worker-1", "system:nodes"),
    }
}

fn renews() -> TestRequest {
    TestRequest {
        username: "system:node:worker-1",
        groups: vec!["system:nodes", "system:authenticated"],
        ..joins()
    }
}

fn serves() -> TestRequest {
    let mut asked = TestRequest {
        signer: Signer::Serving,
        usages: vec!["digital signature", "key encipherment", "server auth"],
        ..renews()
    };
    asked.params.subject_alt_names = vec![
        SanType::DnsName("worker-1".try_into().unwrap()),
        SanType::IpAddress("10.0.0.7".parse().unwrap()),
        SanType::IpAddress("fd00::7".parse().unwrap()),
    ];
    asked
}

impl TestRequest {
    fn pem(&self) -> String {
        let key = KeyPair::generate().unwrap();
        self.params.serialize_request(&key).unwrap().pem().unwrap()
    }

    fn request(&self) -> CertificateRequest {
        let set = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
        CertificateRequest {
            name: "csr-1".to_owned(),
            signer: self.signer,
            username: self.username.to_owned(),
            groups: set(&self.groups),
            usages: set(&self.usages),
            created: None,
            pem: self.pem().into_bytes(),
            object: Value::Null,
        }
    }
}

fn machines() -> Vec<ClusterMember> {
    let machine = |name: &str, last: u8, may_join| ClusterMember {
        name: name.to_owned(),
        names: vec![format!("{name}.c.example")],
        addresses: vec![IpAddr::from([10, 0, 0, last]), format!("fd00::{last}").parse().unwrap()],
        may_join,
    };
    vec![machine("cp-1", 1, false), machine("worker-1", 7, true), machine("worker-2", 8, true)]
}

fn reported(request: &CertificateRequest) -> String {
    match judge(request, &machines()) {
        Verdict::Approve(fit) => format!("approve: {}", fit.machine()),
        Verdict::Deny(objection) => format!("deny: {objection}"),
        Verdict::Leave(left) => format!("leave: {left}"),
    }
}

#[track_caller]
fn check(asked: &TestRequest, want: Expect) {
    want.assert_eq(&reported(&asked.request()));
}

#[test]
fn requests_of_kubelets_are_approved() {
    for asked in [joins(), renews(), serves()] {
        check(&asked, expect!["approve: worker-1"]);
    }
}

#[test]
fn newer_kubelets_leave_key_encipherment_out() {
    check(
        &TestRequest { usages: vec!["client auth", "digital signature"], ..joins() },
        expect!["approve: worker-1"],
    );
    check(
        &TestRequest { usages: vec!["digital signature", "server auth"], ..serves() },
        expect!["approve: worker-1"],
    );
}

#[test]
fn a_server_certificate_may_have_any_name_of_the_member() {
    let mut asked = serves();
    asked.params.subject_alt_names =
        vec![SanType::DnsName("worker-1.c.example".try_into().unwrap())];
    check(&asked, expect!["approve: worker-1"]);
}

#[test]
fn other_usages_are_denied() {
    for usages in [
        vec!["digital signature", "key encipherment", "client auth", "server auth"],
        vec!["digital signature", "key encipherment", "server auth"],
        vec!["digital signature", "key encipherment", "client auth", "cert sign"],
        vec!["client auth"],
        vec![],
    ] {
        check(
            &TestRequest { usages, ..joins() },
            expect!["deny: its usages are not those of a kubelet"],
        );
    }
}

#[test]
fn other_subjects_are_denied() {
    let want = "deny: its subject is not that of a node: one common name system:node:NAME, one organization system:nodes";
    for (common, organization) in [
        ("kubernetes-admin", "system:masters"),
        ("system:node:worker-1", "system:masters"),
        ("worker-1", "system:nodes"),
        ("system:node:", "system:nodes"),
    ] {
        let asked = TestRequest { params: params(common, organization), ..joins() };
        assert_eq!(reported(&asked.request()), want, "{common} {organization}");
    }
    let mut without = joins();
    without.params.distinguished_name = rcgen::DistinguishedName::new();
    assert_eq!(reported(&without.request()), want);
}

#[test]
fn a_second_organization_is_denied() {
    // rcgen keeps only one organization, so this request was made with openssl for CN=system:node:worker-1, O=system:nodes,
    // O=system:masters.
    let mut request = joins().request();
    request.pem = include_bytes!("two-organizations.pem").to_vec();
    expect!["deny: its subject is not that of a node: one common name system:node:NAME, one organization system:nodes"]
        .assert_eq(&reported(&request));
}

#[test]
fn extra_fields_in_a_subject_are_denied() {
    let mut asked = joins();
    asked.params.distinguished_name.push(DnType::OrganizationalUnitName, "x");
    check(
        &asked,
        expect!["deny: it requests another attribute of its subject, which a kubelet never does"],
    );
}

#[test]
fn other_extensions_are_denied() {
    let mut authority = joins();
    authority.params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let mut usages = joins();
    usages.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    for asked in [authority, usages] {
        check(&asked, expect!["deny: it requests another extension, which a kubelet never does"]);
    }
}

#[test]
fn a_client_has_no_other_names() {
    let asked = TestRequest { params: serves().params, ..joins() };
    check(
        &asked,
        expect!["deny: it requests names in a client's certificate, which a kubelet never does"],
    );
}

#[test]
fn a_server_certificate_has_only_the_members_names_and_addresses() {
    let with = |name: SanType| {
        let mut asked = serves();
        asked.params.subject_alt_names.push(name);
        asked
    };
    check(
        &with(SanType::IpAddress("10.0.0.8".parse().unwrap())),
        expect!["deny: worker-1 does not have the name or address 10.0.0.8"],
    );
    check(
        &with(SanType::DnsName("kubernetes.default".try_into().unwrap())),
        expect!["deny: worker-1 does not have the name or address kubernetes.default"],
    );
    check(
        &with(SanType::DnsName("worker-2".try_into().unwrap())),
        expect!["deny: worker-1 does not have the name or address worker-2"],
    );
    check(
        &with(SanType::URI("spiffe://x/y".try_into().unwrap())),
        expect!["deny: it requests an e-mail address, URI or the like, which a kubelet never does"],
    );
    check(
        &with(SanType::Rfc822Name("a@b.example".try_into().unwrap())),
        expect!["deny: it requests an e-mail address, URI or the like, which a kubelet never does"],
    );
    let mut nameless = serves();
    nameless.params.subject_alt_names.clear();
    check(&nameless, expect!["deny: it requests a server certificate without a name or address"]);
}

#[test]
fn a_node_asks_for_itself() {
    for asked in [renews(), serves()] {
        let asked = TestRequest { username: "system:node:worker-2", ..asked };
        check(&asked, expect!["deny: system:node:worker-2 requests a certificate of worker-1"]);
    }
}

#[test]
fn a_token_cannot_request_a_server_certificate() {
    let asked =
        TestRequest { username: "system:bootstrap:abcdef", groups: joins().groups, ..serves() };
    check(&asked, expect!["deny: system:bootstrap:abcdef requests a certificate of worker-1"]);
}

#[test]
fn a_token_cannot_take_over_a_joined_member() {
    let asked = TestRequest { params: params("system:node:cp-1", "system:nodes"), ..joins() };
    check(&asked, expect!["leave: cp-1 has joined already and cannot join by token again"]);
}

#[test]
fn an_unknown_machine_is_left_to_people() {
    let asked = TestRequest { params: params("system:node:stranger", "system:nodes"), ..joins() };
    check(&asked, expect![[r#"leave: no member of the cluster has the name "stranger""#]]);
}

#[test]
fn other_peoples_requests_are_left_to_people() {
    let admin = TestRequest {
        username: "kubernetes-admin",
        groups: vec!["system:masters", "system:authenticated"],
        ..joins()
    };
    check(
        &admin,
        expect!["leave: kubernetes-admin is neither a node nor the user of a bootstrap token"],
    );
    // Anyone who creates users can choose such a name; only the group comes from the API server.
    let pretends = TestRequest { groups: vec!["system:authenticated"], ..renews() };
    check(
        &pretends,
        expect!["leave: system:node:worker-1 is neither a node nor the user of a bootstrap token"],
    );
    let account = TestRequest {
        username: "system:serviceaccount:default:x",
        groups: vec!["system:bootstrappers"],
        ..joins()
    };
    check(
        &account,
        expect![
            "leave: system:serviceaccount:default:x is neither a node nor the user of a bootstrap token"
        ],
    );
}

#[test]
fn text_that_is_no_request_is_denied() {
    let good = joins().pem();
    let with = |pem: String| {
        let mut request = joins().request();
        request.pem = pem.into_bytes();
        reported(&request)
    };
    let want = "deny: it has no readable certificate request";
    assert_eq!(with(String::new()), want);
    assert_eq!(with("hello".to_owned()), want);
    assert_eq!(with(good.clone() + &good), want, "two of them");
    assert_eq!(with(good.replace("CERTIFICATE REQUEST", "CERTIFICATE")), want);
    assert_eq!(with(good.clone() + &" ".repeat(20_000)), want, "too long");
    assert_eq!(with(good + "\n"), "approve: worker-1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A request with a changed byte is approved only if its subject is unchanged.
    #[test]
    fn no_mutation_panics_or_changes_the_identity(at: prop::sample::Index, byte: u8) {
        use base64::Engine;
        use base64::engine::general_purpose::STANDARD;
        let mut request = serves().request();
        let (_, block) = x509_parser::pem::parse_x509_pem(&request.pem).unwrap();
        let mut bytes = block.contents;
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let text = STANDARD.encode(&bytes);
        request.pem = format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n").into_bytes();
        if let Verdict::Approve(fit) = judge(&request, &machines()) {
            prop_assert_eq!(fit.machine(), "worker-1");
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let mut request = serves().request();
        request.pem = bytes;
        prop_assert!(!matches!(judge(&request, &machines()), Verdict::Approve(_)));
    }
}
