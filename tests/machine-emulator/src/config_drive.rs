//! A config drive, as read by the system on the disk: `openstack/latest` in a file system, base64 of gzip.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions, format_volume};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

/// More bytes than any config drive has.
const LARGEST: u64 = 64 << 20;

/// The content of a config drive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigDrive {
    /// The content of `meta_data.json`.
    pub meta_data: Value,
    /// `network_data.json`; null if the drive has none.
    pub network_data: Value,
    /// `user_data`; empty if the drive has none.
    pub user_data: String,
}

impl ConfigDrive {
    /// Decodes a config drive; `None` if the text is not one.
    pub fn read(encoded: &str) -> Option<ConfigDrive> {
        let packed = STANDARD.decode(encoded.split_whitespace().collect::<String>()).ok()?;
        let mut raw = Vec::new();
        GzDecoder::new(&*packed).take(LARGEST).read_to_end(&mut raw).ok()?;
        let volume = FileSystem::new(Cursor::new(raw), FsOptions::new()).ok()?;
        // cloud-init and Ignition find the drive by this label.
        if volume.volume_label() != "config-2" {
            return None;
        }
        let read = |name: &str| {
            let mut text = String::new();
            let path = format!("openstack/latest/{name}");
            volume.root_dir().open_file(&path).ok()?.read_to_string(&mut text).ok()?;
            Some(text)
        };
        let json = |name: &str| {
            read(name).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
        };
        Some(ConfigDrive {
            meta_data: json("meta_data.json"),
            network_data: json("network_data.json"),
            user_data: read("user_data").unwrap_or_default(),
        })
    }

    /// Encodes a config drive that contains only user data, as a tool of its author does.
    pub fn with_user_data(user_data: &str) -> io::Result<String> {
        let mut disk = Cursor::new(vec![0; 1 << 20]);
        let options = FormatVolumeOptions::new().volume_label(*b"config-2   ");
        format_volume(&mut disk, options)?;
        {
            let volume = FileSystem::new(&mut disk, FsOptions::new())?;
            let latest = volume.root_dir().create_dir("openstack")?.create_dir("latest")?;
            latest.create_file("user_data")?.write_all(user_data.as_bytes())?;
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&disk.into_inner())?;
        Ok(STANDARD.encode(packed.finish()?))
    }

    /// Returns the files that cloud-init or Ignition would write, by path.
    pub fn files(&self) -> BTreeMap<String, String> {
        let found = match self.user_data.strip_prefix("#cloud-config") {
            Some(yaml) => cloud_init(yaml),
            None => ignition(&self.user_data),
        };
        found.unwrap_or_default()
    }
}

fn cloud_init(yaml: &str) -> Option<BTreeMap<String, String>> {
    let config: Value = serde_saphyr::from_str(yaml).ok()?;
    let file = |file: &Value| {
        Some((file["path"].as_str()?.to_owned(), file["content"].as_str()?.to_owned()))
    };
    Some(config["write_files"].as_array()?.iter().filter_map(file).collect())
}

fn ignition(text: &str) -> Option<BTreeMap<String, String>> {
    let config: Value = serde_json::from_str(text).ok()?;
    let file = |file: &Value| {
        let source = file["contents"]["source"].as_str()?;
        Some((file["path"].as_str()?.to_owned(), data_url(source)?))
    };
    Some(config["storage"]["files"].as_array()?.iter().filter_map(file).collect())
}

/// Decodes a data URL (RFC 2397).
fn data_url(url: &str) -> Option<String> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    if kind.ends_with(";base64") {
        return String::from_utf8(STANDARD.decode(data).ok()?).ok();
    }
    percent_encoding::percent_decode_str(data).decode_utf8().ok().map(Into::into)
}
