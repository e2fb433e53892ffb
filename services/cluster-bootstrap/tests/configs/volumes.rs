//! The config of a member with volumes of its own.

use std::io::Write;
use std::process::{Command, Stdio};

use cluster_bootstrap::{NodeConfig, Volume, with_volumes, worker};
use expect_test::expect;

use crate::example::{cluster, some_worker};
use crate::{file, member, unit};

fn dropin(node: &NodeConfig, of: &str) -> String {
    let units = node.config.systemd.as_ref().and_then(|it| it.units.as_ref());
    let unit = units.into_iter().flatten().find(|it| it.name == of).expect("there is such a unit");
    let dropin = unit.dropins.iter().flatten().find(|it| it.name == "20-volume.conf");
    dropin.and_then(|it| it.contents.clone()).unwrap_or_default()
}

#[test]
fn etcd_and_containers_wait_for_their_volumes() {
    let plain = member(&cluster("v1.30.1"), "cp-1");
    let node = with_volumes(&plain, &[Volume::Etcd, Volume::Containers]);
    assert!(file(&node, "/etc/bedplate/volumes").unwrap().starts_with("#!/bin/bash\n"));
    unit(
        &node,
        "var-lib-etcd.mount",
        expect![[r#"
            [Unit]
            Description=Volume for etcd
            DefaultDependencies=no
            Requires=bedplate-volumes.service
            After=bedplate-volumes.service
            Conflicts=umount.target
            Before=umount.target

            [Mount]
            What=/run/bedplate/volumes/etcd
            Where=/var/lib/etcd
            Type=xfs
        "#]],
    );
    expect![[r#"
        [Unit]
        RequiresMountsFor=/var/lib/etcd

        [Service]
        ExecStartPre=/usr/bin/chmod 0700 /var/lib/etcd
        ExecStartPre=-/usr/sbin/restorecon /var/lib/etcd
    "#]]
    .assert_eq(&dropin(&node, "kubelet.service"));
    assert!(dropin(&node, "containerd.service").contains("RequiresMountsFor=/var/lib/containerd"));
    let units = node.config.systemd.as_ref().and_then(|it| it.units.as_ref()).unwrap();
    let finds = units.iter().find(|it| it.name == "bedplate-volumes.service").unwrap();
    let text = finds.contents.as_ref().unwrap();
    assert!(text.contains("ExecStart=/bin/bash /etc/bedplate/volumes etcd containers\n"), "{text}");
    // The drop-in is added to those that the unit already had.
    let kubelet = units.iter().find(|it| it.name == "kubelet.service").unwrap();
    let names: Vec<&str> = kubelet.dropins.iter().flatten().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["10-kubeadm.conf", "20-volume.conf"]);
}

#[test]
fn a_member_without_volumes_has_an_unchanged_config() {
    let plain = worker(&cluster("v1.30.1"), &some_worker()).unwrap();
    assert_eq!(with_volumes(&plain, &[]), plain);
}

#[test]
fn ignition_accepts_the_config_of_a_member_with_volumes() {
    let node = member(&cluster("v1.30.1"), "cp-1");
    let node = with_volumes(&node, &[Volume::Etcd, Volume::Containers]);
    assert_eq!(ignition::check(&node.config), []);
    let mut run = Command::new("ignition-validate");
    run.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut run) = run.spawn() else {
        return peers::skip("ignition-validate", "it is not installed (Debian's package ignition)");
    };
    let text = ignition::json(&node.config);
    run.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let run = run.wait_with_output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
