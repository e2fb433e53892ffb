//! Checks the units with the real systemd, and that every program that a unit starts exists.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use cluster_bootstrap::{
    Name, NodeConfig, Volume, control_plane, joining_control_plane, reporting,
    starting_from_backup, with_volumes, worker,
};

use crate::example::{cluster, machine, reports, some_worker};

/// The programs of Fedora CoreOS that units start.
const IMAGE: [&str; 10] = [
    "/bin/bash",
    "/usr/bin/chmod",
    "/usr/bin/ctr",
    "/usr/bin/curl",
    "/usr/bin/mkdir",
    "/usr/bin/rm",
    "/usr/bin/tar",
    "/usr/bin/test",
    "/usr/bin/touch",
    "/usr/sbin/restorecon",
];

fn every_kind_of_machine() -> Vec<NodeConfig> {
    let cluster = cluster("v1.31.0");
    let member = |name: &str| control_plane(&cluster, &Name::try_from(name).expect("a name"));
    let later = joining_control_plane(&cluster, &machine("cp-4", "10.0.0.14"));
    let kinds: [NodeConfig; 4] =
        [member("cp-1"), member("cp-2"), later, worker(&cluster, &some_worker())]
            .map(|node| {
                with_volumes(
                    &node.expect("the example is valid"),
                    &[Volume::Etcd, Volume::Containers],
                )
            })
            .map(|node| reporting(&node, &reports()));
    let restored = starting_from_backup(&kinds[0], "a4f7c1f2-6f0f-4c4f-9a55-0f5e6f1d2c3b");
    kinds.into_iter().chain([restored]).collect()
}

/// The programs that the config itself installs.
fn installed_programs(node: &NodeConfig) -> BTreeSet<String> {
    let files = node.config.storage.as_ref().and_then(|it| it.files.as_ref()).into_iter().flatten();
    files.filter(|file| file.mode == Some(0o755)).map(|file| file.path.clone()).collect()
}

/// Unit files by path below `/etc/systemd/system`.
fn units(node: &NodeConfig) -> Vec<(String, String)> {
    let units = node.config.systemd.as_ref().and_then(|it| it.units.as_ref()).into_iter().flatten();
    let files = units.flat_map(|unit| {
        let own = unit.contents.clone().map(|text| (unit.name.clone(), text));
        let dropins = unit.dropins.iter().flatten();
        let dropins = dropins
            .filter_map(|it| Some((format!("{}.d/{}", unit.name, it.name), it.contents.clone()?)));
        own.into_iter().chain(dropins).collect::<Vec<_>>()
    });
    files.collect()
}

fn started(text: &str) -> impl Iterator<Item = &str> {
    let commands = text.lines().filter_map(|line| line.strip_prefix("ExecSt")?.split_once('='));
    let programs = commands.filter_map(|(_, command)| command.split_whitespace().next());
    programs.map(|program| program.trim_start_matches('-'))
}

#[test]
fn every_program_that_a_unit_starts_is_in_the_image_or_in_the_config() {
    for node in every_kind_of_machine() {
        let brought = installed_programs(&node);
        for (unit, text) in units(&node) {
            assert_eq!(text.contains("[Service]"), started(&text).next().is_some(), "{unit}");
            for program in started(&text) {
                assert!(
                    IMAGE.contains(&program) || brought.contains(program),
                    "{node:?}: {unit} starts {program}"
                );
            }
        }
    }
}

#[test]
fn systemd_understands_the_units() {
    for node in every_kind_of_machine() {
        let root = tempfile::tempdir().expect("a folder can be made");
        let below = |path: &str| root.path().join(path.trim_start_matches('/'));
        for (unit, text) in units(&node) {
            write(&below(&format!("etc/systemd/system/{unit}")), &text, 0o644);
            started(&text).for_each(|program| write(&below(program), "#!/bin/true\n", 0o755));
        }
        let names: Vec<String> = units(&node)
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| !name.ends_with(".conf"))
            .collect();
        let mut verify = Command::new("systemd-analyze");
        verify
            .args(["verify", "--man=no", "--recursive-errors=no", "--root"])
            .arg(root.path())
            .args(names);
        let Ok(run) = verify.output() else {
            return peers::skip(
                "systemd-analyze",
                "it is not installed (Debian's package systemd)",
            );
        };
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        // systemd knows `RestartMode` since 254. Older releases ignore the setting, which makes no difference here.
        let objections: Vec<&str> =
            said.lines().filter(|line| !line.contains("'RestartMode'")).collect();
        assert_eq!(objections, Vec::<&str>::new(), "{node:?}");
    }
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().expect("a file is in a folder"))
        .expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}
