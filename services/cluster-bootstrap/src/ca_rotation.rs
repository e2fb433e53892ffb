//! CA rotation on a member: how a member replaces the certificate authorities that it was created with.
//!
//! A unit of its own asks clusterd for the revision of the certificate authorities that the member should have, over the connection that
//! reports use. clusterd answers with a tar archive of whole files. The unit's script puts the files in place, restarts the programs that
//! read them, and asks again with the new revision, which tells clusterd that the step is done. The order of steps is Kubernetes' own
//! ("Manual Rotation of CA Certificates").
//!
//! While no rotation is in progress, the same script renews the certificates of the member (`src/renewal.rs`).

use secrecy::ExposeSecret;

use crate::{CertificateAuthority, Pki, renewal};

/// The path of the script.
pub(crate) const SCRIPT: &str = "/etc/bedplate/authorities";
/// The curl configuration for asking clusterd, read by `curl --config`.
pub(crate) const CURL: &str = "/etc/bedplate/authorities.curl";
/// The file with the revision that the member has. Ignition writes the first revision.
pub(crate) const REVISION: &str = "/var/lib/bedplate/authorities/revision";
/// The one certificate that kube-controller-manager signs with. `ca.crt` may contain several certificates, which the controller manager
/// does not accept for signing.
pub(crate) const SIGNING: &str = "/etc/kubernetes/pki/signing.crt";

/// A step of a CA rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaRotationStep {
    /// Trust the old and the new certificate authority. The old authority still signs.
    TrustBoth,
    /// Sign with the new certificate authority, and renew the certificates of the control plane.
    SignWithNew,
    /// Kubelets request certificates from the new certificate authority.
    RenewKubelets,
    /// Trust only the new certificate authority.
    TrustNew,
}

/// The kind of member that gets an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberRole {
    /// Gets the keys of the certificate authorities too, as its first config did.
    ControlPlane,
    /// Gets certificates, and no key.
    Worker,
}

impl CaRotationStep {
    fn as_str(self) -> &'static str {
        match self {
            CaRotationStep::TrustBoth => "trust-both",
            CaRotationStep::SignWithNew => "new-signs",
            CaRotationStep::RenewKubelets => "kubelets-ask",
            CaRotationStep::TrustNew => "trust-new",
        }
    }
}

impl Pki {
    /// Appends the certificates of `others` to each certificate of this PKI, for the time in which either may have signed. The signing
    /// certificate stays first.
    pub fn with_trusted(&self, others: &Pki) -> Pki {
        let both =
            |one: &CertificateAuthority, other: &CertificateAuthority| CertificateAuthority {
                certificate: format!("{}{}", one.certificate, other.certificate),
                ..one.clone()
            };
        Pki {
            cluster: both(&self.cluster, &others.cluster),
            etcd: both(&self.etcd, &others.etcd),
            front_proxy: both(&self.front_proxy, &others.front_proxy),
            service_account: self.service_account.clone(),
        }
    }
}

/// Returns the tar archive that a member applies in `step`.
/// `signs` are the certificate authorities that sign from now on, `also` those that are trusted besides them.
pub fn rotation_archive(
    revision: u32,
    step: CaRotationStep,
    signs: &Pki,
    also: Option<&Pki>,
    holder: MemberRole,
) -> Vec<u8> {
    let trusted = also.map_or_else(|| signs.clone(), |also| signs.with_trusted(also));
    let mut archive = Vec::new();
    add(&mut archive, "revision", &format!("{revision}\n"));
    add(&mut archive, "step", &format!("{}\n", step.as_str()));
    add(&mut archive, "ca.crt", &trusted.cluster.certificate);
    if holder == MemberRole::ControlPlane {
        add(&mut archive, "signing.crt", &signs.cluster.certificate);
        add(&mut archive, "ca.key", signs.cluster.key.expose_secret());
        add(&mut archive, "etcd-ca.crt", &trusted.etcd.certificate);
        add(&mut archive, "etcd-ca.key", signs.etcd.key.expose_secret());
        add(&mut archive, "front-proxy-ca.crt", &trusted.front_proxy.certificate);
        add(&mut archive, "front-proxy-ca.key", signs.front_proxy.key.expose_secret());
    }
    // POSIX.1-1988, ustar: two empty blocks end an archive.
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

/// The block size of a tar archive, in bytes.
const BLOCK: usize = 512;

/// Adds a file that only its owner may read, in the format `ustar` (POSIX.1-1988).
fn add(archive: &mut Vec<u8>, name: &str, text: &str) {
    let mut header = [0_u8; BLOCK];
    let mut field = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
    field(0, name.as_bytes());
    field(100, b"0000600\0");
    field(108, b"0000000\0");
    field(116, b"0000000\0");
    field(124, format!("{:011o}\0", text.len()).as_bytes());
    field(136, b"00000000000\0");
    // The checksum is computed as if its own field were filled with spaces.
    field(148, b"        ");
    field(156, b"0");
    field(257, b"ustar\x0000");
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive.extend(header);
    archive.extend(text.as_bytes());
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

/// Returns the script of the unit. Every command may run again, so the script may be interrupted anywhere.
pub(crate) fn script() -> String {
    format!("{FUNCTIONS}{}{LOOP}", renewal::FUNCTIONS)
}

/// The functions of CA rotation.
const FUNCTIONS: &str = r##"#!/bin/bash
# authorities - asks clusterd for this member's certificate authorities and applies one step of a CA rotation at a time; renews the
# certificates of this member when clusterd permits it.
set -euo pipefail
umask 077
state=/var/lib/bedplate/authorities
new=$state/new
kubernetes=/etc/kubernetes
pki=$kubernetes/pki
kubelet=/var/lib/kubelet/pki/kubelet-client-current.pem

ask() { # prints the HTTP status; saves the archive to a file
  curl --config /etc/bedplate/authorities.curl --data "holds=$(cat "$state/revision")" --output "$state/answer.tar" --write-out '%{http_code}'
}

patiently() { # COMMAND...: repeats the command until it succeeds; after 180 s ends the script, which systemd starts again
  local until=$((SECONDS + 180))
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || { echo "timed out after 180 s: $*"; exit 1; }
    sleep 0.5
  done
}

put() { # FILE PLACE MODE: replaces the file atomically
  install -m "$3" "$new/$1" "$2.new"
  mv -f "$2.new" "$2"
}

trust() { # writes the certificate authorities into all kubeconfigs
  local config authorities
  authorities=$(base64 -w 0 "$new/ca.crt")
  for config in "$kubernetes"/*.conf; do
    [ -f "$config" ] || continue
    sed "s#certificate-authority-data: .*#certificate-authority-data: $authorities#" "$config" >"$config.new"
    mv -f "$config.new" "$config"
  done
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }
restart() { # PROCESS...: ends the processes; systemd restarts the kubelet, and the kubelet restarts its static pods
  local before name process until=$((SECONDS + 10))
  before=$(for name; do pgrep -x "$name" || true; done)
  for process in $before; do kill "$process" 2>/dev/null || true; done
  for process in $before; do
    # an API server waits up to a minute for its open connections
    until is_gone "$process" || [ "$SECONDS" -ge "$until" ]; do sleep 0.2; done
    kill -KILL "$process" 2>/dev/null || true
    patiently is_gone "$process"
  done
  for name; do patiently pgrep -x "$name"; done
}

kubelet_answers() {
  patiently curl --silent --fail --noproxy '*' --max-time 5 http://127.0.0.1:10248/healthz
}

restart_control_plane() {
  local port
  port=$(sed -n 's/.*--secure-port=//p' "$kubernetes/manifests/kube-apiserver.yaml")
  restart etcd kube-apiserver kube-controller kube-scheduler # the kernel cuts process names to 15 characters
  # the name `kubernetes` is in the certificate of every API server
  patiently curl --silent --fail --noproxy '*' --max-time 5 --cacert "$pki/ca.crt" --resolve "kubernetes:$port:127.0.0.1" \
    "https://kubernetes:$port/readyz"
}

renew_kubelet() { # the kubelet requests a new certificate with its present one, as it does before a certificate expires
  local own=$state/kubelet.pem asks=$kubernetes/bootstrap-kubelet.conf
  if [ ! -f "$asks" ]; then
    cp -L "$kubelet" "$own"
    sed "s#$kubelet#$own#" "$kubernetes/kubelet.conf" >"$asks.new"
    mv -f "$asks.new" "$asks"
  fi
  rm -f "$kubernetes/kubelet.conf" "$kubelet"
  restart kubelet
  patiently test -s "$kubelet" -a -s "$kubernetes/kubelet.conf"
  rm -f "$asks" "$own"
}

take() {
  local step
  rm -rf "$new"
  mkdir -p "$new"
  tar -xf "$state/answer.tar" -C "$new"
  rm -f "$state/answer.tar"
  step=$(cat "$new/step")
  echo "revision $(cat "$new/revision"): $step"
  put ca.crt "$pki/ca.crt" 644
  if [ -f "$new/ca.key" ]; then
    put signing.crt "$pki/signing.crt" 644
    put ca.key "$pki/ca.key" 600
    put etcd-ca.crt "$pki/etcd/ca.crt" 644
    put etcd-ca.key "$pki/etcd/ca.key" 600
    put front-proxy-ca.crt "$pki/front-proxy-ca.crt" 644
    put front-proxy-ca.key "$pki/front-proxy-ca.key" 600
    [ "$step" != new-signs ] || kubeadm certs renew all
  fi
  trust
  case $step in
  kubelets-ask) renew_kubelet ;;
  new-signs) [ ! -f "$new/ca.key" ] || restart_control_plane ;;
  *)
    [ ! -f "$new/ca.key" ] || restart_control_plane
    # last, because a kubelet delays the second restart of a static pod, and forgets the delay when the kubelet itself restarts
    restart kubelet
    ;;
  esac
  kubelet_answers
  put revision "$state/revision" 600
  rm -rf "$new"
  echo "done"
}
"##;

/// The loop of the script. A CA rotation and a renewal never run at the same time.
const LOOP: &str = r##"
while :; do
  case $(ask || true) in
  200)
    take
    report_after=0
    ;;
  202) sleep 2 ;;
  204)
    report_certificates
    rest
    ;;
  *) sleep 30 ;;
  esac
done
"##;

/// The unit that runs the script.
pub(crate) const UNIT: &str = "[Unit]
Description=CA rotation and renewal of certificates ordered by clusterd
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Environment=PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/bin/bash /etc/bedplate/authorities
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
";
