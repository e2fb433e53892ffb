//! Volumes of a machine's own for what Kubernetes keeps: found, given a file system while they are blank, and mounted before they are used.
//!
//! A volume's id is not known when a machine is told what to do, and what its device is called is up to the hypervisor. So the cloud is
//! asked to tag each volume, the machine's config drive says which id has which tag (`devices` in Nova's `meta_data.json`), and QEMU shows
//! the first 20 letters of a volume's id, at least, as its disk's serial number.

use ignition::Unit;
use ignition::build::{config, file, inline, unit, with_dropin};

use crate::{NodeConfig, units};

/// A volume of a machine's own, which the cloud has attached under [`Volume::tag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// What etcd keeps, on machines of the control plane.
    Etcd,
    /// Images and containers.
    Containers,
}

impl Volume {
    /// By which word the machine finds it. Its file system's label too, which XFS limits to 12 letters.
    pub fn tag(self) -> &'static str {
        match self {
            Volume::Etcd => "etcd",
            Volume::Containers => "containers",
        }
    }

    /// The one with this tag.
    pub fn tagged(tag: &str) -> Option<Volume> {
        [Volume::Etcd, Volume::Containers].into_iter().find(|it| it.tag() == tag)
    }

    fn path(self) -> &'static str {
        match self {
            Volume::Etcd => "/var/lib/etcd",
            Volume::Containers => "/var/lib/containerd",
        }
    }

    /// systemd.mount(5): a mount unit is called as its path.
    fn mount_unit(self) -> &'static str {
        match self {
            Volume::Etcd => "var-lib-etcd.mount",
            Volume::Containers => "var-lib-containerd.mount",
        }
    }

    /// Who must not start before it is there: kubelets start etcd.
    fn user(self) -> &'static str {
        match self {
            Volume::Etcd => "kubelet.service",
            Volume::Containers => "containerd.service",
        }
    }

    /// Permissions that its folder is to have: kubeadm's own for etcd, containerd's own.
    fn mode(self) -> &'static str {
        match self {
            Volume::Etcd => "0700",
            Volume::Containers => "0711",
        }
    }
}

/// The config of a machine that has these volumes, and keeps there what they are for.
pub fn with_volumes(node: &NodeConfig, volumes: &[Volume]) -> NodeConfig {
    if volumes.is_empty() {
        return node.clone();
    }
    let tags: Vec<&str> = volumes.iter().map(|it| it.tag()).collect();
    let (name, text) = units::volumes(&tags.join(" "));
    let mut all = vec![unit(&name, &text)];
    for volume in volumes {
        let mut mount = Unit::new(volume.mount_unit().to_owned());
        mount.contents = Some(mounted(*volume));
        let user = Unit::new(volume.user().to_owned());
        all.extend([mount, with_dropin(user, "20-volume.conf", &wanted(*volume))]);
    }
    let files = vec![file(units::VOLUMES, 0o644, inline(SCRIPT.as_bytes()))];
    let added = config(Vec::new(), files, all);
    NodeConfig { machine: node.machine.clone(), config: ignition::merge(&node.config, &added) }
}

/// Not among what is mounted early: the machine has to be up to find its volumes.
fn mounted(volume: Volume) -> String {
    let (tag, path) = (volume.tag(), volume.path());
    let name = units::VOLUMES_UNIT;
    format!(
        "[Unit]
Description=Volume for {tag}
DefaultDependencies=no
Requires={name}
After={name}
Conflicts=umount.target
Before=umount.target

[Mount]
What=/run/bedplate/volumes/{tag}
Where={path}
Type=xfs
"
    )
}

/// What a new file system's folder is like is not what was beneath it.
fn wanted(volume: Volume) -> String {
    let (path, mode) = (volume.path(), volume.mode());
    format!(
        "[Unit]
RequiresMountsFor={path}

[Service]
ExecStartPre=/usr/bin/chmod {mode} {path}
ExecStartPre=-/usr/sbin/restorecon {path}
"
    )
}

/// Links each volume's device by its tag, at every boot. `mkfs.xfs` refuses what holds anything else.
const SCRIPT: &str = r#"#!/bin/bash
# volumes TAG... - finds the volume of each tag, gives it a file system if it is blank, and links to it.
set -euo pipefail
links=/run/bedplate/volumes
drive=/run/bedplate/config-drive
told=$drive/openstack/latest/meta_data.json
mkdir -p "$links" "$drive"
[ -f "$told" ] || mount -o ro /dev/disk/by-label/config-2 "$drive"

for tag in "$@"; do
  id=$(jq -er --arg tag "$tag" 'first(.devices[]? | select(.type == "disk" and ((.tags // []) | index($tag))).serial)' "$told") || {
    echo "the config drive names no volume that is tagged $tag" >&2
    exit 1
  }
  device=$(readlink -e "$(compgen -G "/dev/disk/by-id/*${id:0:20}*" | head -n 1)") || {
    echo "there is no disk of volume $id, tagged $tag" >&2
    exit 1
  }
  if [ "$(blkid -p -o value -s LABEL "$device" || true)" != "$tag" ]; then
    mkfs.xfs -q -L "$tag" "$device"
    echo "volume $id is new and has a file system for $tag now"
  fi
  ln -sfn "$device" "$links/$tag"
done
"#;
