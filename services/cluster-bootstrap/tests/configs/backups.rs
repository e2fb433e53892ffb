//! Backups of etcd on a member: its files, the start from a backup, and the script.

use std::fs;
use std::process::Command;

use cluster_bootstrap::{
    NodeConfig, control_plane, reporting, restored_control_plane, starting_from_backup, worker,
};
use expect_test::expect;

use crate::example::{SECRET, cluster, machine, reports, some_worker};
use crate::{file, member};

const BACKUP: &str = "a4f7c1f2-6f0f-4c4f-9a55-0f5e6f1d2c3b";

/// Returns a drop-in of a unit.
fn dropin(node: &NodeConfig, unit: &str, name: &str) -> Option<String> {
    let mut units = node.config.systemd.as_ref()?.units.as_ref()?.iter();
    let unit = units.find(|it| it.name == unit)?;
    let dropin = unit.dropins.iter().flatten().find(|it| it.name == name)?;
    dropin.contents.clone()
}

#[test]
fn every_member_asks_for_work_and_shows_its_token_to_nobody_else() {
    let plain = worker(&cluster("v1.31.0"), &some_worker()).expect("the example is valid");
    let node = reporting(&plain, &reports());
    let file = |path: &str| file(&node, path).expect("it is there");
    assert_eq!(
        file("/etc/bedplate/backups.url"),
        "https://clusterd.example:9512/v1/backups/claim-1\n"
    );
    assert_eq!(file("/var/lib/bedplate/backups/restores"), "2\n");
    expect![[r#"
        # Read by curl --config, so that the token does not appear in the list of processes.
        header = "Authorization: Bearer c2VjcmV0"
        cacert = "/etc/bedplate/report-authority.pem"
        noproxy = "*"
        silent
        show-error
        fail
        connect-timeout = 5
    "#]]
    .assert_eq(&file("/etc/bedplate/backups.curl"));
    assert!(!file("/etc/bedplate/backups").contains(SECRET));
    assert_eq!(ignition::check(&node.config), []);
}

#[test]
fn a_member_restores_the_backup_before_its_control_plane_and_reports_as_usual() {
    let node = reporting(&member(&cluster("v1.31.0"), "cp-2"), &reports());
    assert_eq!(dropin(&node, "bedplate-control-plane.service", "40-backup.conf"), None);
    let restored = starting_from_backup(&node, BACKUP);
    expect![[r#"
        [Unit]
        RequiresMountsFor=/var/lib/etcd

        [Service]
        TimeoutStartSec=45min
        ExecStartPre=/bin/bash /etc/bedplate/backups start a4f7c1f2-6f0f-4c4f-9a55-0f5e6f1d2c3b
    "#]]
    .assert_eq(
        &dropin(&restored, "bedplate-control-plane.service", "40-backup.conf")
            .expect("it is there"),
    );
    expect![[r#"
        [Service]
        ExecStartPre=/bin/bash /etc/bedplate/backups rejoin
    "#]]
    .assert_eq(&dropin(&restored, "bedplate-mark.service", "40-backup.conf").expect("it is there"));
    for unit in ["bedplate-control-plane.service", "bedplate-mark.service"] {
        let report = dropin(&restored, unit, "50-report.conf");
        assert_eq!(report, dropin(&node, unit, "50-report.conf"), "{unit}");
        assert!(report.is_some(), "{unit}");
    }
    assert_eq!(ignition::check(&restored.config), []);
}

#[test]
fn a_control_plane_is_restored_also_in_the_middle_of_an_upgrade() {
    let mut upgraded = cluster("v1.31.0");
    let added = machine("cp-4", "10.0.0.14");
    upgraded.control_plane.push(added.clone());
    assert!(control_plane(&upgraded, &added.name).is_err(), "a new cluster has an odd number");
    let node = restored_control_plane(&upgraded, &added.name).expect("the example is valid");
    let init = file(&node, "/etc/bedplate/init-etcd.yaml").expect("it is there");
    assert!(init.contains("cp-4=https://10.0.0.14:2380"), "{init}");
}

#[test]
fn bash_accepts_the_script() {
    let node = reporting(&member(&cluster("v1.31.0"), "cp-1"), &reports());
    let script = file(&node, "/etc/bedplate/backups").expect("it has a script");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("backups");
    fs::write(&path, script).expect("a file can be written");
    let run = Command::new("bash").arg("-n").arg(&path).output().expect("bash is installed");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
