//! Builds test images of every format.

use std::io::Write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const CLUSTER: usize = 1 << 16;

/// A disk of 8 MiB and a sector, with data in its first MiB, a hole, and more data.
pub(crate) fn disk() -> Vec<u8> {
    let mut bytes = vec![0; (8 << 20) + 512];
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    for (at, byte) in bytes[4096..1 << 20].iter_mut().enumerate() {
        *byte = (at * 7 + at / 251) as u8;
    }
    for (at, byte) in bytes[5 << 20..].iter_mut().enumerate() {
        *byte = (at * 13 + at / 509) as u8;
    }
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(bytes).unwrap();
    xz.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Compresses like the command line tool: the frame records the size.
pub(crate) fn zstd_with_size(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 1).unwrap()
}

/// The compression of clusters.
#[derive(Clone, Copy)]
pub(crate) enum Clusters {
    Plain,
    Deflated,
    Zstd,
}

/// A qcow2 image of version 3 with clusters of 64 KiB; with `tables_last`, the data is before the tables.
pub(crate) fn qcow2(disk: &[u8], clusters: Clusters, tables_last: bool) -> Vec<u8> {
    let compression = match clusters {
        Clusters::Plain | Clusters::Deflated => 0_u8,
        Clusters::Zstd => 1,
    };
    let mut file = vec![0; CLUSTER];
    let put_tables = |file: &mut Vec<u8>| {
        let at = file.len();
        file.resize(at + 2 * CLUSTER, 0);
        at
    };
    let mut tables = if tables_last { 0 } else { put_tables(&mut file) };
    let mut entries = Vec::new();
    for cluster in disk.chunks(CLUSTER) {
        if cluster.iter().all(|byte| *byte == 0) {
            entries.push(0);
            continue;
        }
        let mut whole = cluster.to_vec();
        whole.resize(CLUSTER, 0);
        let packed = match clusters {
            Clusters::Plain => None,
            Clusters::Deflated => {
                let mut deflate =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                deflate.write_all(&whole).unwrap();
                Some(deflate.finish().unwrap())
            }
            Clusters::Zstd => Some(zstd::encode_all(whole.as_slice(), 1).unwrap()),
        };
        match packed {
            Some(packed) if packed.len() < CLUSTER => {
                let host = file.len() as u64;
                let sectors = (host % 512 + packed.len() as u64).div_ceil(512) - 1;
                entries.push(1 << 62 | sectors << 54 | host);
                file.extend(packed);
            }
            _ => {
                file.resize(file.len().next_multiple_of(CLUSTER), 0);
                entries.push(1 << 63 | file.len() as u64);
                file.extend(whole);
            }
        }
    }
    if tables_last {
        file.resize(file.len().next_multiple_of(CLUSTER), 0);
        tables = put_tables(&mut file);
    }
    let l2 = tables + CLUSTER;
    file[tables..tables + 8].copy_from_slice(&(1 << 63 | l2 as u64).to_be_bytes());
    for (at, entry) in entries.iter().enumerate() {
        file[l2 + at * 8..l2 + at * 8 + 8].copy_from_slice(&entry.to_be_bytes());
    }
    file[..4].copy_from_slice(b"QFI\xfb");
    file[4..8].copy_from_slice(&3_u32.to_be_bytes());
    file[20..24].copy_from_slice(&16_u32.to_be_bytes());
    file[24..32].copy_from_slice(&(disk.len() as u64).to_be_bytes());
    file[36..40].copy_from_slice(&1_u32.to_be_bytes());
    file[40..48].copy_from_slice(&(tables as u64).to_be_bytes());
    file[79] = compression * 8;
    file[100..104].copy_from_slice(&112_u32.to_be_bytes());
    file[104] = compression;
    file
}

/// An `image_info` argument for the image at `url`.
pub(crate) fn info(url: &str, format: &str, served: &[u8]) -> Value {
    json!({
        "id": "image-1", "urls": [url], "disk_format": format, "os_hash_algo": "sha256",
        "os_hash_value": hex::encode(Sha256::digest(served)), "node_uuid": "node-1", "image_type": "whole-disk", "image_hosts": ["127.0.0.0/8"],
    })
}
