//! Answers members that report their certificates, and permits one control-plane member after the other to renew them.

use cluster_core::{
    CertificateReport, ClaimUuid, ClusterSpec, LeafCertificate, RenewalAnswer, RenewalDecision,
    RenewalStage, answer_certificates,
};
use cluster_pki::read_period;
use cluster_store::{ClusterChange, StoreError};
use jiff::Timestamp;
use sealing::Purpose;
use tracing::{debug, info};

use super::reporter::{Reporter, find_reporter};
use super::{MemberConfigError, Result};
use crate::cluster_secrets::ClusterSecrets;

/// How often a report is decided again because its cluster changed meanwhile.
const ATTEMPTS: usize = 4;
/// After how many seconds a member reports again whose cluster changed all the time.
const BUSY_SECONDS: u64 = 5;

/// The answer to a member that reports its certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateAnswer {
    /// Refused, without a reason.
    Nothing,
    /// The member has to renew its certificates now.
    Renew,
    /// The member has to report again after this number of seconds.
    ReportAgain(u64),
}

/// Verifies the member's report token, decides about the report, and records the decision before the member learns of it.
pub(crate) async fn take_report(
    secrets: &ClusterSecrets,
    id: ClaimUuid,
    token: &str,
    text: &str,
) -> Result<CertificateAnswer> {
    if !secrets.keyring.verify(Purpose::Report, &id.to_string(), token) {
        return Ok(CertificateAnswer::Nothing);
    }
    let Some(report) = parse(text) else {
        debug!(claim.id = %id, "cannot read the certificates that a member reports");
        return Ok(CertificateAnswer::Nothing);
    };
    for _ in 0..ATTEMPTS {
        match decide(secrets, id, &report).await {
            Ok(answer) => return Ok(answer),
            Err(MemberConfigError::Store(StoreError::Stale)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(CertificateAnswer::ReportAgain(BUSY_SECONDS))
}

/// `Stale` when the cluster changed since it was read: another member may have got permission.
async fn decide(
    secrets: &ClusterSecrets,
    id: ClaimUuid,
    report: &CertificateReport,
) -> Result<CertificateAnswer> {
    let store = &secrets.store;
    let Some(Reporter { machine, cluster, groups }) = find_reporter(store, id).await? else {
        return Ok(CertificateAnswer::Nothing);
    };
    // Read after the cluster: a drain that is granted later raises the version of the cluster.
    let drained = store.drained_of(cluster.id).await?;
    let spec = ClusterSpec { cluster: &cluster, groups: &groups };
    let RenewalDecision { answer, held, event } =
        answer_certificates(&spec, &drained, &machine, report, (secrets.clock)());
    if let Some(held) = held.filter(|held| cluster.certificates.get(&machine) != Some(held)) {
        let mut changed = cluster.clone();
        changed.certificates.insert(machine.clone(), held);
        let events = event.into_iter().collect();
        store.change_cluster(&ClusterChange { events, ..ClusterChange::of(changed) }).await?;
    }
    Ok(match answer {
        RenewalAnswer::Renew => {
            info!(cluster.id = %cluster.id, "{machine} renews its certificates");
            CertificateAnswer::Renew
        }
        RenewalAnswer::ReportAgain(after) => {
            CertificateAnswer::ReportAgain(after.as_secs().unsigned_abs())
        }
    })
}

/// Parses the report of a member's script: a line `stage STAGE`, then for each certificate a line `certificate NAME WRITTEN_AT` and its PEM.
fn parse(text: &str) -> Option<CertificateReport> {
    let (stage, rest) = text.strip_prefix("stage ")?.split_once('\n')?;
    let stage = match stage {
        "idle" => RenewalStage::Idle,
        "control-plane" => RenewalStage::ControlPlane,
        "kubelet" => RenewalStage::Kubelet,
        _ => return None,
    };
    let certificates = format!("\n{rest}");
    let certificates = certificates.split("\ncertificate ").skip(1).map(parse_certificate);
    Some(CertificateReport { certificates: certificates.collect::<Option<_>>()?, stage })
}

fn parse_certificate(part: &str) -> Option<LeafCertificate> {
    let (head, pem) = part.split_once('\n')?;
    let (name, written_at) = head.split_once(' ')?;
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_legal) {
        return None;
    }
    let written_at = Timestamp::from_second(written_at.parse().ok()?).ok()?;
    let period = read_period(pem)?;
    Some(LeafCertificate::new(name.to_owned(), period.begins_at, written_at, period.ends_at))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cluster_bootstrap::Name;
    use cluster_pki::{Validity, make_pki};

    use super::*;

    fn pem() -> String {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let validity = Validity { now, lifetime: Duration::from_secs(1000) };
        make_pki(&Name::try_from("blue").unwrap(), 0, validity).unwrap().etcd.certificate
    }

    #[test]
    fn a_report_is_read() {
        let pem = pem();
        let text = format!(
            "stage control-plane\ncertificate etcd/peer 1700000100\n{pem}certificate admin.conf 1\n{pem}{pem}"
        );
        let report = parse(&text).unwrap();
        assert_eq!(report.stage, RenewalStage::ControlPlane);
        let read = |it: &LeafCertificate| {
            (it.name.clone(), it.issued_at.as_second(), it.ends_at.as_second())
        };
        let read: Vec<_> = report.certificates.iter().map(read).collect();
        let want = [
            ("etcd/peer".to_owned(), 1_700_000_100, 1_700_001_000),
            ("admin.conf".to_owned(), 1_700_000_000 - 3600, 1_700_001_000),
        ];
        assert_eq!(read, want);
        assert_eq!(parse("stage idle\n").unwrap().certificates, []);
    }

    #[test]
    fn a_malformed_report_is_refused() {
        let pem = pem();
        for text in [
            String::new(),
            "stage idle".to_owned(),
            format!("certificate etcd/peer 1\n{pem}"),
            format!("stage none\ncertificate etcd/peer 1\n{pem}"),
            format!("stage idle\ncertificate etcd/peer\n{pem}"),
            format!("stage idle\ncertificate etcd/peer now\n{pem}"),
            format!("stage idle\ncertificate etcd/peer 99999999999999\n{pem}"),
            format!("stage idle\ncertificate etcd<peer 1\n{pem}"),
            "stage idle\ncertificate etcd/peer 1\n".to_owned(),
        ] {
            assert_eq!(parse(&text), None, "{text}");
        }
    }
}
