//! Builds config drives, which machines read at their first boot.
//!
//! A config drive is a file system labelled `config-2` that contains `openstack/latest/…`. cloud-init, Ignition and Afterburn read VFAT as
//! well as ISO 9660. The drive is sent to the agent as gzip in base64.

use std::io::{self, Cursor, Write};

use baremetal_core::{
    ConfigDrive, Node, Problem, RequestRefused, config_drive_of, parse_config_drive,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions, format_volume};
use flate2::Compression;
use flate2::write::GzEncoder;
use hardware::AllowedHosts;
use serde_json::{Map, Value};

use crate::problem::bad_request;
use crate::text_file::TextFile;

/// The volume label by which machines find a config drive.
const LABEL: [u8; 11] = *b"config-2   ";

/// Space beside the files themselves. FAT12 needs little.
const OVERHEAD: usize = 1 << 20;

/// The size limit of a config drive in base64 that is fetched: that of a request with a config drive.
const LONGEST: usize = 16 << 20;

/// Returns the config drive of `node`, if it has one, in the form that agents accept: base64 of gzip. A drive at a URL is fetched from one of
/// the `allowed` hosts.
pub(crate) async fn config_drive(
    allowed: &AllowedHosts,
    node: &Node,
) -> Result<Option<String>, Problem> {
    let refuse = |refusal: RequestRefused| bad_request(refusal.to_string());
    match config_drive_of(node).map_err(refuse)? {
        None => Ok(None),
        Some(ConfigDrive::Encoded(text)) => Ok(Some(text)),
        Some(ConfigDrive::Url(url)) => fetch(allowed, &url).await.map(Some),
        Some(ConfigDrive::Parts(parts)) => {
            let built = encode(&parts).map(Some);
            built.map_err(|error| bad_request(format!("instance_info.configdrive: {error}")))
        }
    }
}

async fn fetch(allowed: &AllowedHosts, url: &str) -> Result<String, Problem> {
    let file = TextFile { what: "the config drive", url, ca: None, longest: LONGEST };
    let text = file.fetch(allowed).await?;
    match parse_config_drive(&Value::String(text)) {
        Ok(ConfigDrive::Encoded(text)) => Ok(text),
        Ok(ConfigDrive::Url(_) | ConfigDrive::Parts(_)) | Err(_) => {
            Err(file.problem("not base64", false))
        }
    }
}

/// Builds a drive of `parts`.
fn encode(parts: &Map<String, Value>) -> io::Result<String> {
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

    use baremetal_core::{Driver, NodeUuid};
    use flate2::read::GzDecoder;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::samples::answering;

    #[test]
    fn parts_become_files_on_a_volume_with_the_expected_label() {
        let parts = json!({"meta_data": {"uuid": "u1"}, "user_data": "#!ignition"});
        let text = encode(parts.as_object().unwrap()).unwrap();
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

    async fn drive(allowed: &AllowedHosts, value: Value) -> Result<Option<String>, Problem> {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.instance_info.insert("configdrive".to_owned(), value);
        config_drive(allowed, &node).await
    }

    async fn fetched(allowed: &AllowedHosts, body: &str) -> Result<Option<String>, Problem> {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        drive(allowed, json!(format!("http://{}/drive?token=x", answering(answer).await))).await
    }

    #[tokio::test]
    async fn an_encoded_drive_is_passed_on_unchanged_and_may_be_at_a_url() {
        let all = AllowedHosts::anywhere();
        assert_eq!(drive(&all, json!("H4sI")).await, Ok(Some("H4sI".to_owned())));
        assert_eq!(drive(&all, Value::Null).await, Ok(None));
        assert_eq!(fetched(&all, "H4sI\n").await, Ok(Some("H4sI\n".to_owned())));
    }

    #[tokio::test]
    async fn a_file_that_is_no_config_drive_is_refused_with_its_address() {
        let all = AllowedHosts::anywhere();
        let long = "A".repeat(LONGEST + 1);
        for (body, why) in [
            ("<html>", "not base64"),
            ("", "not base64"),
            ("http://images/another", "not base64"),
            (&*long, "it has more than 16777216 bytes"),
        ] {
            let cause = fetched(&all, body).await.unwrap_err().cause;
            assert!(cause.starts_with("the config drive at http://127.0.0.1:"), "{cause}");
            assert!(cause.ends_with(&format!("/drive: {why}")), "{cause}");
        }
        let cause = fetched(&AllowedHosts::default(), "H4sI").await.unwrap_err().cause;
        assert!(cause.ends_with("127.0.0.1 is a loopback address"), "{cause}");
    }
}
