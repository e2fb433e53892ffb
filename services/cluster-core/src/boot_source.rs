//! Decides which disk a server boots from.

use crate::{CloudObject, ClusterObservation, Key, ServerVolume};

/// The purpose of the volume that a server boots from.
const BOOT: &str = "boot";

/// The disk that a server boots from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootSource<'a> {
    /// A volume that exists already, with the content of the image: a VM's root volume.
    RootVolume(&'a CloudObject),
    /// A volume that is created with the server, from the image.
    NewVolume(&'a ServerVolume),
    /// The disk of the flavor, with the content of the image.
    FlavorDisk,
}

/// Decides which disk a server with these volumes boots from.
pub fn boot_source<'a>(
    volumes: &'a [ServerVolume],
    seen: &'a ClusterObservation,
) -> BootSource<'a> {
    let root = seen.objects.get(&Key::RootVolume);
    let boot = volumes.iter().find(|volume| volume.purpose == BOOT);
    match (root, boot) {
        (Some(root), _) => BootSource::RootVolume(root),
        (None, Some(boot)) => BootSource::NewVolume(boot),
        (None, None) => BootSource::FlavorDisk,
    }
}

/// Returns the volumes that a server gets besides the one that it boots from.
pub fn data_volumes(volumes: &[ServerVolume]) -> impl Iterator<Item = &ServerVolume> {
    volumes.iter().filter(|volume| volume.purpose != BOOT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CloudObjectDetails, CloudObjectState};

    fn volume(purpose: &'static str) -> ServerVolume {
        ServerVolume { purpose, size: 10, kind: None }
    }

    #[test]
    fn a_server_boots_from_its_root_volume_or_a_new_volume_or_the_disk_of_its_flavor() {
        let root = CloudObject {
            id: "root".to_owned(),
            state: CloudObjectState::Ready,
            address: None,
            facts: CloudObjectDetails::None,
        };
        let with_root = ClusterObservation {
            objects: [(Key::RootVolume, root.clone())].into(),
            ..ClusterObservation::default()
        };
        let without = ClusterObservation::default();
        let (boot, etcd) = (volume("boot"), volume("etcd"));
        let table: [(&ClusterObservation, &[&ServerVolume], BootSource<'_>); 5] = [
            (&without, &[], BootSource::FlavorDisk),
            (&without, &[&etcd], BootSource::FlavorDisk),
            (&without, &[&etcd, &boot], BootSource::NewVolume(&boot)),
            (&with_root, &[], BootSource::RootVolume(&root)),
            (&with_root, &[&boot], BootSource::RootVolume(&root)),
        ];
        for (seen, volumes, want) in table {
            let volumes: Vec<ServerVolume> = volumes.iter().copied().cloned().collect();
            assert_eq!(boot_source(&volumes, seen), want, "{volumes:?}");
        }
    }

    #[test]
    fn the_volume_that_a_server_boots_from_is_no_data_volume() {
        let volumes = [volume("etcd"), volume("boot"), volume("containers")];
        let purposes: Vec<&str> = data_volumes(&volumes).map(|it| it.purpose).collect();
        assert_eq!(purposes, ["etcd", "containers"]);
    }
}
