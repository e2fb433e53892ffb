//! Builds config drives, which machines read at their first boot.
//!
//! A config drive is a file system labelled `config-2` that contains `openstack/latest/…`. cloud-init, Ignition and Afterburn read VFAT as
//! well as ISO 9660. The drive is sent to the agent as gzip in base64.

use std::io::{self, Cursor, Write};

use baremetal_core::ConfigDrive;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions, format_volume};
use flate2::Compression;
use flate2::write::GzEncoder;

/// The volume label by which machines find a config drive.
const LABEL: [u8; 11] = *b"config-2   ";

/// Space beside the files themselves. FAT12 needs little.
const OVERHEAD: usize = 1 << 20;

/// Returns the drive in the form that agents accept: base64 of gzip.
pub(crate) fn encode(drive: &ConfigDrive) -> io::Result<String> {
    let parts = match drive {
        ConfigDrive::Encoded(text) => return Ok(text.clone()),
        ConfigDrive::Parts(parts) => parts,
    };
    let mut files = Vec::new();
    for (key, value) in parts {
        let content = match value.as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => serde_json::to_vec(value)?,
        };
        let name = if key == "user_data" { key.clone() } else { format!("{key}.json") };
        files.push((name, content));
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&file_system(&files)?)?;
    Ok(STANDARD.encode(gzip.finish()?))
}

fn file_system(files: &[(String, Vec<u8>)]) -> io::Result<Vec<u8>> {
    let content: usize = files.iter().map(|(_, content)| content.len() + 4096).sum();
    let size = (content + OVERHEAD).next_multiple_of(1 << 20);
    let mut disk = Cursor::new(vec![0; size]);
    format_volume(&mut disk, FormatVolumeOptions::new().volume_label(LABEL))?;
    {
        let volume = FileSystem::new(&mut disk, FsOptions::new())?;
        let latest = volume.root_dir().create_dir("openstack")?.create_dir("latest")?;
        for (name, content) in files {
            latest.create_file(name)?.write_all(content)?;
        }
    }
    Ok(disk.into_inner())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_become_files_on_a_volume_with_the_expected_label() {
        let parts = json!({"meta_data": {"uuid": "u1"}, "user_data": "#!ignition"});
        let text = encode(&ConfigDrive::Parts(parts.as_object().unwrap().clone())).unwrap();
        let mut raw = Vec::new();
        GzDecoder::new(&*STANDARD.decode(text).unwrap()).read_to_end(&mut raw).unwrap();
        let volume = FileSystem::new(Cursor::new(raw), FsOptions::new()).unwrap();
        assert_eq!(volume.volume_label(), "config-2");
        let read = |name: &str| {
            let mut text = String::new();
            volume.root_dir().open_file(name).unwrap().read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read("openstack/latest/meta_data.json"), r#"{"uuid":"u1"}"#);
        assert_eq!(read("openstack/latest/user_data"), "#!ignition");
    }

    #[test]
    fn an_encoded_drive_is_passed_on_unchanged() {
        assert_eq!(encode(&ConfigDrive::Encoded("H4sI".to_owned())).unwrap(), "H4sI");
    }
}
