//! Serves the Ignition configs of claims in clusterd's place: over TLS, each config once. Also gives machines CA rotations and work on backups.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use cluster_bootstrap::{Claim, Name, NodeConfig, Reports, stub};
use compat::wait::wait_for;
use ignition::UserData;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};

use crate::Network;
use crate::network::HOST;

const PORT: u16 = 9513;
/// How long the work on a backup may take. A machine asks for work every 30 s.
const WORK_TIMEOUT: Duration = Duration::from_secs(180);
/// The token with which a machine reports its progress and asks for CA rotations.
const TOKEN: &str = "channel";

/// A server that answers claims, on the host of the network.
#[derive(Debug)]
pub struct Claims {
    folder: PathBuf,
    authority: String,
    server: Child,
}

impl Claims {
    /// Starts a claim server with a new CA, which machines know only from their user data.
    #[track_caller]
    pub fn serve(network: &Network) -> Self {
        let folder = network.state().join("claims");
        fs::create_dir_all(&folder).expect("a folder can be made");
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let authority =
            CertifiedIssuer::self_signed(parameters, key).expect("an authority can be made");
        let mut parameters = CertificateParams::default();
        // curl would take a certificate with the CA's subject for a self-signed certificate.
        parameters.distinguished_name.push(DnType::CommonName, "claims");
        parameters.subject_alt_names = vec![SanType::IpAddress(HOST.parse().expect("an address"))];
        let key = KeyPair::generate().expect("a key can be made");
        let certificate =
            parameters.signed_by(&key, &authority).expect("a certificate can be made");
        let (pem, private) = (folder.join("server.pem"), folder.join("server.key"));
        fs::write(&pem, certificate.pem()).expect("a file can be written");
        fs::write(&private, key.serialize_pem()).expect("a file can be written");

        let log = File::create(folder.join("log")).expect("a file can be written");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &network.namespace()]);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../real/kubernetes/claims.py"));
        command.arg(HOST).arg(PORT.to_string()).arg(pem).arg(private).arg(&folder);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log);
        let server = command.spawn().expect("the server can be started");
        Claims { folder, authority: authority.pem(), server }
    }

    /// User data with a claim to the config of this node. The claim is valid once.
    pub fn claim(&self, node: &NodeConfig) -> UserData {
        // The token needs no randomness: nobody outside of this network reaches the server.
        let token = format!("once{}", node.machine.as_str().len());
        fs::write(
            self.folder.join(format!("{}.{token}", node.machine)),
            ignition::json(&node.config),
        )
        .expect("a file can be written");
        let claim = Claim {
            url: format!("https://{HOST}:{PORT}/{}", node.machine).parse().expect("a URL"),
            token: token.into(),
            authority: self.authority.clone(),
        };
        stub(&claim).expect("a claim is small")
    }

    /// The addresses where a machine reports its progress and asks for CA rotations.
    pub fn reports(&self, machine: &Name) -> Reports {
        let folder = self.folder.join(format!("{machine}.authorities"));
        fs::create_dir_all(folder).expect("a folder can be made");
        let url = |path: &str| format!("https://{HOST}:{PORT}/{path}").parse().expect("a URL");
        Reports {
            url: url("reports"),
            authorities: url(&format!("authorities/{machine}")),
            certificates: url(&format!("certificates/{machine}")),
            backups: url(&format!("backups/{machine}")),
            restores: 0,
            holds: 0,
            token: TOKEN.to_owned().into(),
            claim: machine.to_string(),
            reboots: None,
            authority: self.authority.clone(),
        }
    }

    /// Answers members that a CA rotation is in progress, so that they ask again soon.
    pub fn rotate(&self) {
        fs::write(self.folder.join("rotating"), "").expect("a file can be written");
    }

    /// Offers an archive of a CA rotation to a machine. The machine takes the archive when it holds the revision before.
    pub fn give(&self, machine: &str, revision: u32, archive: &[u8]) {
        let path = self.folder.join(format!("{machine}.authorities/{}.tar", revision - 1));
        let new = path.with_extension("new");
        fs::write(&new, archive).expect("a file can be written");
        fs::rename(new, path).expect("a file can be moved");
    }

    /// The revision of the CA rotation that a machine last said to hold.
    pub fn held(&self, machine: &str) -> Option<u32> {
        let path = self.folder.join(format!("{machine}.authorities/held"));
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// Permits a machine to renew its certificates.
    pub fn permit_renewal(&self, machine: &str) {
        let path = self.folder.join(format!("{machine}.authorities/permitted"));
        fs::write(path, "").expect("a file can be written");
    }

    /// The last report of a machine about its certificates.
    pub fn reported(&self, machine: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(format!("{machine}.authorities/certificates"))).ok()
    }

    /// Gives a machine this work on a backup, and waits until the machine has done it. Returns what the machine reported, if it did.
    #[track_caller]
    pub fn work(&self, machine: &str, work: &str, id: &str) -> Option<String> {
        let result = self.folder.join(format!("{id}.result"));
        let given = self.folder.join(format!("{machine}.work"));
        let _ = fs::remove_file(&result);
        fs::write(self.folder.join("backing-up"), "").expect("a file can be written");
        fs::write(&given, format!("{work} {id}\n")).expect("a file can be written");
        wait_for(&format!("{machine} to {work} {id}"), WORK_TIMEOUT, || {
            thread::sleep(Duration::from_millis(200));
            (!given.exists()).then_some(())
        });
        fs::read_to_string(result).ok()
    }

    /// The size of a snapshot that a machine sent.
    pub fn snapshot_size(&self, id: &str) -> Option<u64> {
        Some(fs::metadata(self.folder.join(format!("{id}.db"))).ok()?.len())
    }

    /// The names of the machines whose claims were redeemed.
    pub fn redeemed(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).expect("the folder can be read").flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter(|name| name.ends_with(".given"))
            .filter_map(|name| Some(name.split_once('.')?.0.to_owned()))
            .collect();
        names.sort();
        names
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
