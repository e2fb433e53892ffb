use proptest::prelude::*;

use super::*;
use crate::CaRevision;
use crate::sample::{Sample, at};

const LIFE: i64 = 1000;
const MASTERS: [&str; 3] = ["default-master-0", "default-master-1", "default-master-2"];

/// A cluster whose members are all Kubernetes nodes.
fn running() -> Sample {
    let mut sample = Sample::highly_available();
    sample.cluster.nodes = sample.groups.iter().flat_map(NodeGroup::refs).collect();
    sample
}

fn machine(name: &str) -> MemberName {
    name.parse().unwrap()
}

fn certificate(name: &str, issued: i64) -> LeafCertificate {
    LeafCertificate { name: name.to_owned(), issued_at: at(issued), ends_at: at(issued + LIFE) }
}

fn report(issued: i64, stage: RenewalStage) -> CertificateReport {
    CertificateReport { certificates: vec![certificate("apiserver", issued)], stage }
}

/// Decides about a report and records the decision, as the conductor does.
fn tell(sample: &mut Sample, name: &str, report: &CertificateReport, now: i64) -> RenewalDecision {
    let decision =
        answer_certificates(&sample.spec(), &BTreeSet::new(), &machine(name), report, at(now));
    if let Some(held) = decision.held.clone() {
        sample.cluster.certificates.insert(machine(name), held);
    }
    decision
}

fn again(seconds: i64) -> RenewalAnswer {
    RenewalAnswer::ReportAgain(SignedDuration::from_secs(seconds))
}

#[test]
fn a_certificate_is_due_after_two_fifths_of_its_life_and_overdue_after_half() {
    let of_ca = LeafCertificate::new("etcd/peer".to_owned(), at(-9000), at(0), at(LIFE));
    assert_eq!((of_ca.renew_at(), of_ca.overdue_at()), (at(400), at(500)));
    // The period of a kubelet's certificate begins when it is issued, and copying the file changes the time of the file.
    let early = LeafCertificate::new("kubelet-client".to_owned(), at(0), at(-500), at(LIFE));
    assert_eq!(early.renew_at(), at(400));
    let mut sample = running();
    for (now, want) in [(0, again(400)), (390, again(10)), (399, again(10))] {
        assert_eq!(tell(&mut sample, MASTERS[0], &report(0, RenewalStage::Idle), now).answer, want);
    }
    let decided = tell(&mut sample, MASTERS[0], &report(0, RenewalStage::Idle), 400);
    assert_eq!((decided.answer, decided.event), (RenewalAnswer::Renew, None));
    assert!(sample.cluster.is_renewing(&machine(MASTERS[0])));
}

#[test]
fn the_certificate_that_is_due_first_decides() {
    let mut sample = running();
    let mut reported = report(300, RenewalStage::Idle);
    reported.certificates.push(certificate("etcd/peer", 100));
    assert_eq!(tell(&mut sample, MASTERS[0], &reported, 300).answer, again(200));
    assert_eq!(sample.cluster.certificates[&machine(MASTERS[0])].first.name, "etcd/peer");
    assert_eq!(tell(&mut sample, MASTERS[0], &reported, 500).answer, RenewalAnswer::Renew);
}

#[test]
fn control_plane_members_renew_one_after_the_other_and_workers_at_any_time() {
    let (mut sample, due) = (running(), report(0, RenewalStage::Idle));
    assert_eq!(tell(&mut sample, MASTERS[1], &due, 400).answer, RenewalAnswer::Renew);
    assert_eq!(tell(&mut sample, MASTERS[0], &due, 401).answer, again(10));
    for worker in ["default-worker-0", "default-worker-1"] {
        assert_eq!(tell(&mut sample, worker, &due, 402).answer, RenewalAnswer::Renew);
    }
    // The answer was lost, or the member was interrupted.
    assert_eq!(tell(&mut sample, MASTERS[1], &due, 403).answer, RenewalAnswer::Renew);
    let resumed = report(402, RenewalStage::ControlPlane);
    assert_eq!(tell(&mut sample, MASTERS[1], &resumed, 404).answer, RenewalAnswer::Renew);

    let ended = tell(&mut sample, MASTERS[1], &report(402, RenewalStage::Idle), 410);
    assert_eq!(ended.answer, again(392));
    let event = ended.event.unwrap();
    assert_eq!((event.severity, event.reason.as_str()), (Severity::Info, "CertificatesRenewed"));
    assert_eq!(tell(&mut sample, MASTERS[0], &due, 411).answer, RenewalAnswer::Renew);
}

#[test]
fn a_kubelet_that_cannot_renew_holds_up_no_other_member() {
    let (mut sample, due) = (running(), report(0, RenewalStage::Idle));
    tell(&mut sample, MASTERS[0], &due, 400);
    let left = report(401, RenewalStage::Kubelet);
    assert_eq!(tell(&mut sample, MASTERS[0], &left, 600).answer, RenewalAnswer::Renew);
    assert_eq!(tell(&mut sample, MASTERS[1], &due, 601).answer, RenewalAnswer::Renew);
    assert_eq!(tell(&mut sample, MASTERS[0], &left, 602).answer, RenewalAnswer::Renew);
    assert!(!sample.cluster.is_renewing(&machine(MASTERS[0])));
}

/// Changes the cluster, and returns whether its first member may renew now.
fn is_permitted(change: impl FnOnce(&mut Sample, &mut BTreeSet<MemberName>), issued: i64) -> bool {
    let (mut sample, mut drained) = (running(), BTreeSet::new());
    change(&mut sample, &mut drained);
    let due = report(issued, RenewalStage::Idle);
    let decided =
        answer_certificates(&sample.spec(), &drained, &machine(MASTERS[0]), &due, at(400));
    decided.answer == RenewalAnswer::Renew
}

#[test]
fn nobody_renews_while_another_control_plane_member_is_away() {
    type Change = fn(&mut Sample, &mut BTreeSet<MemberName>);
    let other = || machine(MASTERS[2]);
    assert!(is_permitted(|_, _| {}, 0));
    assert!(is_permitted(
        |sample, drained| {
            drained.insert(machine("default-worker-0"));
            sample.cluster.unready.insert(machine("default-worker-1"));
        },
        0
    ));
    let reasons: [Change; 7] = [
        |sample, _| assert!(sample.cluster.unready.insert(machine(MASTERS[2]))),
        |sample, _| assert!(sample.cluster.nodes.remove(&machine(MASTERS[2]))),
        |_, drained| assert!(drained.insert(machine(MASTERS[2]))),
        |sample, _| sample.cluster.authorities = CaRevision { revision: 1, settled: 0 },
        |sample, _| sample.cluster.rest = Some(crate::LeasePower::Off),
        |sample, _| {
            let (machine, phase) = (machine(MASTERS[2]), crate::RebootPhase::Draining);
            sample.cluster.reboot = Some(crate::MemberReboot { machine, phase, since: at(0) });
        },
        |sample, _| sample.cluster.roll = Some(sample.roll()),
    ];
    for (number, reason) in reasons.into_iter().enumerate() {
        assert!(!is_permitted(reason, 0), "reason {number}");
    }
    // Nobody knows how long an upgrade will be paused.
    assert!(is_permitted(
        |sample, _| sample.cluster.roll = Some(crate::Roll { is_paused: true, ..sample.roll() }),
        0
    ));
    // A member whose certificate has ended does not wait for other members, but for a CA rotation.
    assert!(is_permitted(|sample, _| assert!(sample.cluster.unready.insert(other())), -LIFE));
    assert!(!is_permitted(reasons[3], -LIFE));
}

#[test]
fn a_member_that_is_no_node_is_asked_again_and_not_recorded() {
    let mut sample = running();
    let none = CertificateReport { certificates: Vec::new(), stage: RenewalStage::Idle };
    let decided = tell(&mut sample, MASTERS[0], &none, 0);
    assert_eq!((decided.answer, decided.held), (again(60), None));
    sample.cluster.nodes.remove(&machine(MASTERS[0]));
    let decided = tell(&mut sample, MASTERS[0], &report(0, RenewalStage::Idle), 400);
    assert_eq!((decided.answer, decided.held), (again(60), None));
}

#[test]
fn a_renewal_without_effect_is_repeated_a_day_later() {
    const DAY: i64 = 24 * 3600;
    let (mut sample, due) = (running(), report(0, RenewalStage::Idle));
    tell(&mut sample, MASTERS[0], &due, 1000);
    // The clock of the member is so slow that its new certificates have ended.
    let slow = CertificateReport {
        certificates: vec![LeafCertificate { ends_at: at(1001), ..certificate("apiserver", 1000) }],
        stage: RenewalStage::Idle,
    };
    let decided = tell(&mut sample, MASTERS[0], &slow, 1010);
    assert_eq!(decided.answer, again(6 * 3600));
    assert_eq!(decided.event.unwrap().reason, "CertificatesNotRenewed");
    assert_eq!(tell(&mut sample, MASTERS[0], &slow, 1010 + DAY - 1).answer, again(6 * 3600));
    assert_eq!(tell(&mut sample, MASTERS[0], &slow, 1010 + DAY).answer, RenewalAnswer::Renew);
}

#[test]
fn a_certificate_that_kubeadm_does_not_renew_ends_the_renewal_too() {
    let mut sample = running();
    tell(&mut sample, MASTERS[0], &report(0, RenewalStage::Idle), 400);
    let mut partly = report(402, RenewalStage::Idle);
    partly.certificates.push(certificate("front-proxy-client", 0));
    let decided = tell(&mut sample, MASTERS[0], &partly, 410);
    assert_eq!(decided.answer, again(6 * 3600));
    let event = decided.event.unwrap();
    assert_eq!(event.reason, "CertificatesNotRenewed");
    assert!(event.message.contains("front-proxy-client"), "{}", event.message);
    assert!(!sample.cluster.is_renewing(&machine(MASTERS[0])));
}

#[test]
fn a_member_that_never_renews_restarts_its_processes_only_for_a_while() {
    let (mut sample, due) = (running(), report(0, RenewalStage::Idle));
    for now in [400, 401, 400 + 899] {
        assert_eq!(tell(&mut sample, MASTERS[0], &due, now).answer, RenewalAnswer::Renew);
    }
    let decided = tell(&mut sample, MASTERS[0], &due, 400 + 900);
    assert_eq!(decided.answer, again(6 * 3600));
    assert_eq!(decided.event.unwrap().reason, "CertificatesNotRenewed");
    let other = tell(&mut sample, MASTERS[1], &report(1000, RenewalStage::Idle), 400 + 1001);
    assert_eq!(other.answer, RenewalAnswer::Renew, "no other member waits for it");
}

#[test]
fn certificates_that_nothing_renewed_are_named() {
    let mut sample = running();
    let held = |issued| MemberCertificates {
        first: certificate("etcd/peer", issued),
        renewing_since: None,
        renewed_at: None,
    };
    for (name, issued) in MASTERS.into_iter().zip([101, 100, -400]) {
        sample.cluster.certificates.insert(machine(name), held(issued));
    }
    sample.cluster.certificates.insert(machine("default-worker-0"), held(300));
    let found = overdue_certificates(&sample.spec(), at(600));
    assert_eq!(found.ended, [format!("etcd/peer of {} (at {})", MASTERS[2], at(600))]);
    assert_eq!(found.overdue, [format!("etcd/peer of {} (ends at {})", MASTERS[1], at(1100))]);
    assert_eq!((found.silent, found.stuck), (vec![], vec![]));
    // Half a year later, the member that has never reported is named too.
    sample.cluster.created_at = at(600 - 365 * 24 * 3600 / 2);
    assert_eq!(overdue_certificates(&sample.spec(), at(599)).silent, [""; 0]);
    assert_eq!(overdue_certificates(&sample.spec(), at(600)).silent, ["default-worker-1"]);
    let held = sample.cluster.certificates.get_mut(&machine(MASTERS[0])).unwrap();
    held.renewing_since = Some(at(0));
    assert_eq!(overdue_certificates(&sample.spec(), at(899)).stuck, [""; 0]);
    let want = format!("{} (since {})", MASTERS[0], at(0));
    assert_eq!(overdue_certificates(&sample.spec(), at(900)).stuck, [want]);
    sample.cluster.rest = Some(crate::LeasePower::Off);
    let found = overdue_certificates(&sample.spec(), at(600));
    assert_eq!(found, OverdueCertificates::default());
}

proptest! {
    /// Members report in any order, are interrupted, and lose answers. Never do two control-plane members restart at the same time, and
    /// in the end all of them have new certificates.
    #[test]
    fn no_two_control_plane_members_renew_at_once(steps in prop::collection::vec((0_usize..3, 0_u8..4), 1..60)) {
        let mut sample = running();
        let mut issued = [0_i64; 3];
        let mut stages = [RenewalStage::Idle; 3];
        let mut now = 400;
        let all_in_turn = (0..30).map(|turn| (turn % 3, 0));
        for (who, chance) in steps.into_iter().chain(all_in_turn) {
            now += 1;
            let reported = report(issued[who], stages[who]);
            let answer = tell(&mut sample, MASTERS[who], &reported, now).answer;
            let renewing = MASTERS.iter().filter(|name| sample.cluster.is_renewing(&machine(name)));
            prop_assert!(renewing.count() <= 1);
            if answer != RenewalAnswer::Renew {
                continue;
            }
            match chance {
                // The answer is lost.
                1 => {}
                2 => (issued[who], stages[who]) = (now, RenewalStage::ControlPlane),
                3 => (issued[who], stages[who]) = (now, RenewalStage::Kubelet),
                _ => (issued[who], stages[who]) = (now, RenewalStage::Idle),
            }
        }
        prop_assert!(issued.iter().all(|at| *at > 400), "{issued:?}");
        prop_assert_eq!(stages, [RenewalStage::Idle; 3]);
    }
}
