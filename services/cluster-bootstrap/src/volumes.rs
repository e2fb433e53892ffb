//! Volumes of a member for Kubernetes' data: finds each volume, makes a file system on a blank volume, and mounts it before its first use.
//!
//! The id of a volume is not known when the member's config is made, and the hypervisor decides the device name. So Nova attaches each
//! volume under a tag, the config drive maps tags to volume ids (`devices` in Nova's `meta_data.json`), and QEMU uses at least the first 20
//! characters of the volume id as the disk's serial number.

use ignition::Unit;
use ignition::build::{config, file, inline, unit, with_dropin};

use crate::{NodeConfig, units};

/// A volume of one member, which Nova attached under [`Volume::tag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// etcd's data, on control-plane members.
    Etcd,
    /// containerd's images and containers.
    Containers,
}

impl Volume {
    /// Returns the tag by which the member finds the volume. The tag is also the label of the file system, which XFS limits to 12
    /// characters.
    pub fn tag(self) -> &'static str {
        match self {
            Volume::Etcd => "etcd",
            Volume::Containers => "containers",
        }
    }

    /// Returns the volume with this tag.
    pub fn tagged(tag: &str) -> Option<Volume> {
        [Volume::Etcd, Volume::Containers].into_iter().find(|it| it.tag() == tag)
    }

    fn path(self) -> &'static str {
        match self {
            Volume::Etcd => "/var/lib/etcd",
            Volume::Containers => "/var/lib/containerd",
        }
    }

    /// systemd.mount(5): the name of a mount unit is derived from its path.
    fn mount_unit(self) -> &'static str {
        match self {
            Volume::Etcd => "var-lib-etcd.mount",
            Volume::Containers => "var-lib-containerd.mount",
        }
    }

    /// The unit that must not start before the volume is mounted. The kubelet is the unit that starts etcd.
    fn user(self) -> &'static str {
        match self {
            Volume::Etcd => "kubelet.service",
            Volume::Containers => "containerd.service",
        }
    }

    /// The permissions of the mounted folder: kubeadm's for etcd, containerd's for images.
    fn mode(self) -> &'static str {
        match self {
            Volume::Etcd => "0700",
            Volume::Containers => "0711",
        }
    }
}

/// Returns the config of a member that keeps its data on these volumes.
pub fn with_volumes(node: &NodeConfig, volumes: &[Volume]) -> NodeConfig {
    if volumes.is_empty() {
        return node.clone();
    }
    let tags: Vec<&str> = volumes.iter().map(|it| it.tag()).collect();
    let (name, text) = units::volumes(&tags.join(" "));
    let mut all = vec![unit(&name, &text)];
    for volume in volumes {
        let mut mount = Unit::new(volume.mount_unit().to_owned());
        mount.contents = Some(mount_unit_text(*volume));
        let user = Unit::new(volume.user().to_owned());
        all.extend([mount, with_dropin(user, "20-volume.conf", &user_dropin(*volume))]);
    }
    let files = vec![file(units::VOLUMES, 0o644, inline(SCRIPT.as_bytes()))];
    let added = config(Vec::new(), files, all);
    NodeConfig { machine: node.machine.clone(), config: ignition::merge(&node.config, &added) }
}

/// The mount unit of a volume. The unit has no default dependencies, because systemd would otherwise mount the volume early in the boot,
/// before the member can find its volumes.
fn mount_unit_text(volume: Volume) -> String {
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

/// The drop-in of the unit that uses the volume. The permissions and SELinux label of the mounted folder belong to the new file system, so
/// the drop-in sets both.
fn user_dropin(volume: Volume) -> String {
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

/// The script that links the device of each volume by its tag, at every boot. `mkfs.xfs` refuses a device that contains anything else.
const SCRIPT: &str = r#"#!/bin/bash
# volumes TAG... - finds the volume of each tag, makes a file system on a blank volume, and links the device.
set -euo pipefail
links=/run/bedplate/volumes
drive=/run/bedplate/config-drive
told=$drive/openstack/latest/meta_data.json
mkdir -p "$links" "$drive"
[ -f "$told" ] || mount -o ro /dev/disk/by-label/config-2 "$drive"

for tag in "$@"; do
  id=$(jq -er --arg tag "$tag" 'first(.devices[]? | select(.type == "disk" and ((.tags // []) | index($tag))).serial)' "$told") || {
    echo "the config drive has no volume with the tag $tag" >&2
    exit 1
  }
  device=$(readlink -e "$(compgen -G "/dev/disk/by-id/*${id:0:20}*" | head -n 1)") || {
    echo "no disk found for volume $id with the tag $tag" >&2
    exit 1
  }
  if [ "$(blkid -p -o value -s LABEL "$device" || true)" != "$tag" ]; then
    mkfs.xfs -q -L "$tag" "$device"
    echo "made a file system for $tag on the blank volume $id"
  fi
  ln -sfn "$device" "$links/$tag"
done
"#;
