//! A virtual machine boots with the user data that clusterd gave to Nova. Ignition redeems the claim over TLS and applies the config, and
//! the machine reports its progress to clusterd. The claim is worth nothing to anybody else.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use api_client::clusterd::{ClusterStatus, Events, Members};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use compat::wait::wait_for;
use real_clusters::{
    Disk, Emulated, FcosMachine, Lan, Mirror, Tenant, VERSION, clusterd, for_virtual_machines,
    mirror,
};
use serde_json::Value;

/// The address of this host, which is the gateway of the machine's subnet.
const HOST: &str = "198.19.77.1";
const SUBNET: &str = "198.19.77.0/24";
/// Long, because a processor without hardware virtualisation emulates the machine beside other tests.
const PATIENCE: Duration = Duration::from_secs(1200);

#[test]
fn a_machine_redeems_its_claim_and_becomes_what_its_config_says() {
    let Some(mut lan) = Lan::begin("fcos_machine", HOST) else { return };
    let mut cloud = Emulated::without_guests();
    let _mirror = Mirror::at(HOST);
    let tenant = cloud.cloud("alice");
    let service = clusterd(&tenant.clouds_yaml, "alice", &for_virtual_machines(HOST));
    let mut tenant = Tenant::new(tenant, service);
    tenant.done(&format!(
        "cluster template create one --coe kubernetes --image fedora-coreos --flavor m1.small --master-flavor m1.small \
         --external-network public --floating-ip-disabled --labels kube_tag={VERSION},fixed_subnet_cidr={SUBNET},\
         cloud_provider_enabled=false,cinder_csi_enabled=false"
    ));
    tenant.done("cluster create one --cluster-template one --master-count 1 --node-count 0");
    let server = wait_for("a server", Duration::from_secs(60), || server_id(&tenant));
    let server = cloud.server(&server);
    let claim = Claim::of(&server.user_data);

    // A thief of the user data asks from another address, gets nothing, and does not use up the claim.
    assert_eq!(claim.redeem(HOST), "404");
    assert_eq!(claims(&tenant), ["ClaimFromElsewhere"]);
    // With a CA other than the one in the user data, the connection fails: a server in clusterd's place is not trusted.
    assert_eq!(claim.with_another_authority().redeem(HOST), "60: the certificate is not believed");
    wait_for("clusterd to wait for the machine", Duration::from_secs(30), || {
        progress(&tenant).contains("(no report yet)").then_some(())
    });

    let begun = Instant::now();
    let mut machine = FcosMachine::boot(&mut lan, &server);
    let mut heard = Vec::new();
    wait_for("the machine to have come as far as it can", PATIENCE, || {
        assert!(machine.is_running(), "the machine has ended");
        let said = progress(&tenant);
        if heard.last() != Some(&said) {
            eprintln!("after {:.0?}: {said}", begun.elapsed());
            heard.push(said.clone());
        }
        // The next steps need the API server, whose images nobody fetched here.
        ["(at control-plane)", "(mark: ", "(once: "]
            .iter()
            .any(|it| said.contains(it))
            .then_some(())
    });
    assert!(heard.iter().any(|said| said.contains("(at configured)")), "{heard:#?}");
    assert!(heard.iter().any(|said| said.contains("(at unpack)")), "{heard:#?}");
    assert_eq!(claims(&tenant), ["ClaimFromElsewhere", "ClaimRedeemed"]);

    // After its first use the claim is worth nothing, even from the machine's own address.
    let disk = machine.shut_down(&["/etc", "/opt/cni", "/usr/local/bin", "/var/lib/bedplate"]);
    lan.take(&server.address);
    assert_eq!(claim.redeem(&server.address), "404");
    assert_eq!(claims(&tenant), ["ClaimFromElsewhere", "ClaimRedeemed", "ClaimReused"]);
    is_what_its_config_says(&disk, &server.name, &mut tenant);
}

/// Checks that the disk holds the files of clusterd's config and the files that kubeadm makes of them.
fn is_what_its_config_says(disk: &Disk, name: &str, tenant: &mut Tenant) {
    assert_eq!(disk.text("/etc/hostname").trim(), name);
    for program in ["kubeadm", "kubelet", "kubectl"] {
        let ours = fs::read(mirror().join(program)).expect("the mirror has it");
        assert!(disk.read(&format!("/usr/local/bin/{program}")) == ours, "{program} is another");
    }
    let authority = "/etc/kubernetes/pki/ca.crt";
    assert_eq!(disk.text(authority).trim(), tenant.done("ca show one").trim());
    for secret in ["/etc/kubernetes/pki/ca.key", "/etc/bedplate/report.curl"] {
        let mode = fs::metadata(disk.path(secret)).expect("the disk has it").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{secret}");
    }
    let enabled = "/etc/systemd/system/multi-user.target.wants/bedplate-control-plane.service";
    assert!(disk.path(enabled).is_symlink(), "it is not enabled");

    // The units of the config did this.
    assert!(disk.path("/opt/cni/bin/bridge").is_file());
    for step in ["unpack", "control-plane"] {
        assert!(disk.path(&format!("/var/lib/bedplate/done/{step}")).is_file(), "{step}");
    }
    let manifest = disk.text("/etc/kubernetes/manifests/kube-apiserver.yaml");
    assert!(manifest.contains(&format!("kube-apiserver:{VERSION}")), "{manifest}");
    let mut verify = Command::new("openssl");
    verify.args(["verify", "-CAfile"]).arg(disk.path(authority));
    verify.arg(disk.path("/etc/kubernetes/pki/apiserver.crt")).stdout(Stdio::null());
    assert!(verify.status().expect("openssl can be started").success());
}

/// The id in Nova of the cluster's one server. `None` until it exists.
fn server_id(tenant: &Tenant) -> Option<String> {
    let answer = tenant.clusterd.ask("GET", "/bedplate/v1/clusters/one/machines");
    let Members { mut machines } = answer.read();
    let machine = machines.swap_remove(0);
    assert_eq!(machine.role, "master", "{machine:?}");
    machine.server_id
}

/// The progress of the cluster's member, as clusterd reports it.
fn progress(tenant: &Tenant) -> String {
    let cluster: ClusterStatus = tenant.clusterd.ask("GET", "/bedplate/v1/clusters/one").read();
    let condition = cluster.conditions.into_iter().find(|it| it.kind == "BootstrapReady");
    condition.map(|it| it.message).unwrap_or_default()
}

/// The events about the cluster's claims, the oldest first.
fn claims(tenant: &Tenant) -> Vec<String> {
    let answer = tenant.clusterd.ask("GET", "/bedplate/v1/clusters/one/events");
    let Events { events } = answer.read();
    let reasons = events.into_iter().map(|event| event.read.reason);
    reasons.filter(|reason| reason.starts_with("Claim")).collect()
}

/// The contents of a server's user data, as a thief would read them.
struct Claim {
    url: String,
    authorization: String,
    authority: String,
}

impl Claim {
    fn of(user_data: &[u8]) -> Self {
        let user_data: Value = serde_json::from_slice(user_data).expect("it is an Ignition config");
        let replace = &user_data["ignition"]["config"]["replace"];
        let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
        let header = &replace["httpHeaders"][0];
        assert_eq!(header["name"], "Authorization");
        let authorities = &user_data["ignition"]["security"]["tls"]["certificateAuthorities"];
        Claim {
            url: text(&replace["source"]),
            authorization: text(&header["value"]),
            authority: contents(&authorities[0]),
        }
    }

    fn with_another_authority(&self) -> Self {
        let mut parameters = rcgen::CertificateParams::default();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("a key can be made");
        let another = parameters.self_signed(&key).expect("an authority can be made").pem();
        Claim {
            authority: another,
            url: self.url.clone(),
            authorization: self.authorization.clone(),
        }
    }

    /// Requests the config from this address. Returns the status, or the reason why there is none.
    fn redeem(&self, from: &str) -> String {
        let authority = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fcos-authority.pem");
        fs::write(&authority, &self.authority).expect("a file can be written");
        let mut curl = Command::new("curl");
        curl.args(["-s", "-m", "30", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}"]);
        curl.args(["--interface", from, "--header"]);
        curl.arg(format!("Authorization: {}", self.authorization));
        curl.arg("--cacert").arg(authority).arg(&self.url);
        let run = curl.output().expect("curl can be started");
        match run.status.code() {
            Some(0) => String::from_utf8_lossy(&run.stdout).into_owned(),
            // curl(1): the peer's certificate cannot be authenticated with the given CAs.
            Some(60) => "60: the certificate is not believed".to_owned(),
            code => format!("curl ended with {code:?}"),
        }
    }
}

/// The text inside a data URL of a config (RFC 2397), decompressed.
fn contents(resource: &Value) -> String {
    let source = resource["source"].as_str().and_then(|it| it.strip_prefix("data:"));
    let (kind, data) = source.and_then(|it| it.split_once(',')).expect("it is a data URL");
    let bytes = match kind {
        ";base64" => STANDARD.decode(data).expect("it is base64"),
        _ => percent_encoding::percent_decode_str(data).collect(),
    };
    let mut text = String::new();
    let read = match resource["compression"].as_str() {
        Some("gzip") => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text),
        _ => (&bytes[..]).read_to_string(&mut text),
    };
    read.expect("it is a text");
    text
}
