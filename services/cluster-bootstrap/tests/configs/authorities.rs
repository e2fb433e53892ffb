//! CA rotation: the archives that members get, and the script that applies them.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use cluster_bootstrap::{CaRotationStep, MemberRole, Pki, reporting, rotation_archive, worker};

use crate::example::{SECRET, authority, cluster, reports, some_worker};
use crate::{document, file, member};

fn other() -> Pki {
    Pki {
        cluster: authority("new-cluster"),
        etcd: authority("new-etcd"),
        front_proxy: authority("new-front-proxy"),
        ..cluster("v1.31.0").pki
    }
}

/// The files in an archive, unpacked by the real `tar`.
fn unpacked(archive: &[u8]) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("answer.tar");
    fs::write(&path, archive).expect("a file can be written");
    let run = Command::new("tar").arg("-xf").arg(&path).arg("-C").arg(folder.path()).output();
    let run = run.expect("tar is installed");
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    fs::remove_file(path).expect("it is there");
    let entries = fs::read_dir(folder.path()).expect("it is there").flatten();
    let read = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).expect("it is text");
        (entry.file_name().to_string_lossy().into_owned(), text)
    };
    entries.map(read).collect()
}

#[test]
fn the_signing_authority_comes_first_and_signs_with_one_certificate() {
    let (old, new) = (cluster("v1.31.0").pki, other());
    let taken = unpacked(&rotation_archive(
        1,
        CaRotationStep::TrustBoth,
        &old,
        Some(&new),
        MemberRole::ControlPlane,
    ));
    assert_eq!((taken["revision"].as_str(), taken["step"].as_str()), ("1\n", "trust-both\n"));
    let both = |one: &str, other: &str| format!("{one}{other}");
    assert_eq!(taken["ca.crt"], both(&old.cluster.certificate, &new.cluster.certificate));
    assert_eq!(taken["signing.crt"], old.cluster.certificate);
    let taken = unpacked(&rotation_archive(
        2,
        CaRotationStep::SignWithNew,
        &new,
        Some(&old),
        MemberRole::ControlPlane,
    ));
    assert_eq!(taken["etcd-ca.crt"], both(&new.etcd.certificate, &old.etcd.certificate));
    assert_eq!(taken["signing.crt"], new.cluster.certificate);
    assert!(taken["front-proxy-ca.key"].contains("new-front-proxy"));
    let taken = unpacked(&rotation_archive(
        4,
        CaRotationStep::TrustNew,
        &new,
        None,
        MemberRole::ControlPlane,
    ));
    assert_eq!(taken["ca.crt"], new.cluster.certificate);
}

#[test]
fn each_step_has_the_name_that_the_script_knows() {
    let pki = cluster("v1.31.0").pki;
    for (step, name) in [
        (CaRotationStep::TrustBoth, "trust-both"),
        (CaRotationStep::SignWithNew, "new-signs"),
        (CaRotationStep::RenewKubelets, "kubelets-ask"),
        (CaRotationStep::TrustNew, "trust-new"),
    ] {
        let archive = rotation_archive(1, step, &pki, None, MemberRole::Worker);
        assert_eq!(unpacked(&archive)["step"], format!("{name}\n"));
    }
}

#[test]
fn an_archive_ends_with_two_empty_blocks() {
    let pki = cluster("v1.31.0").pki;
    let archive = rotation_archive(1, CaRotationStep::TrustNew, &pki, None, MemberRole::Worker);
    // Three files, each with a header and contents of less than a block.
    assert_eq!(archive.len(), 8 * 512);
    assert!(archive[6 * 512..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_worker_gets_certificates_and_no_key() {
    let (old, new) = (cluster("v1.31.0").pki, other());
    let archive =
        rotation_archive(3, CaRotationStep::RenewKubelets, &new, Some(&old), MemberRole::Worker);
    let taken = unpacked(&archive);
    assert_eq!(taken.keys().collect::<Vec<_>>(), ["ca.crt", "revision", "step"]);
    assert!(!String::from_utf8_lossy(&archive).contains(SECRET));
}

#[test]
fn the_controller_manager_signs_with_a_file_of_its_own() {
    let cluster = cluster("v1.30.1");
    let node = member(&cluster, "cp-1");
    let signing = file(&node, "/etc/kubernetes/pki/signing.crt");
    assert_eq!(signing.as_ref(), Some(&cluster.pki.cluster.certificate));
    let arguments = document(&node, "/etc/bedplate/init.yaml", "ClusterConfiguration");
    let arguments = &arguments["controllerManager"]["extraArgs"];
    assert_eq!(arguments["cluster-signing-cert-file"], "/etc/kubernetes/pki/signing.crt");
}

#[test]
fn bash_accepts_the_script() {
    let node = worker(&cluster("v1.31.0"), &some_worker()).expect("the example is valid");
    let node = reporting(&node, &reports());
    let script = file(&node, "/etc/bedplate/authorities").expect("it has a script");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("authorities");
    fs::write(&path, script).expect("a file can be written");
    let run = Command::new("bash").arg("-n").arg(&path).output().expect("bash is installed");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
