//! An image server that can be told to misbehave.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// An HTTP server for images, which stops on drop.
pub struct Images {
    address: SocketAddr,
    served: Served,
    serving: Mutex<JoinSet<()>>,
}

type Served = Arc<Mutex<HashMap<String, (Bytes, ImageFault)>>>;

/// How the server misbehaves for an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageFault {
    #[default]
    None,
    WrongByte,
    /// The connection is closed in the middle of the image.
    Truncated,
    /// The server answers 503.
    Refused,
}

/// An image, with the fields of a node's `instance_info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub url: String,
    /// SHA-256 of the served bytes, in hexadecimal.
    pub checksum: String,
    /// `raw` or `qcow2`.
    pub format: &'static str,
}

impl Image {
    /// The image with this content, at this location.
    pub(crate) fn of(url: String, format: &'static str, content: &[u8]) -> Image {
        Image { url, checksum: hex::encode(Sha256::digest(content)), format }
    }

    /// The `instance_info` of a node that gets this image.
    pub fn instance_info(&self) -> Value {
        json!({
            "image_source": self.url, "image_os_hash_algo": "sha256", "image_os_hash_value": self.checksum,
            "image_disk_format": self.format,
        })
    }
}

impl Images {
    /// Starts a server without images.
    pub async fn start() -> io::Result<Images> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let images = Images { address, served: Served::default(), serving: Mutex::default() };
        images.serve(listener);
        Ok(images)
    }

    /// Serves `content` under `name`.
    pub fn put(&self, name: &str, format: &'static str, content: impl Into<Bytes>) -> Image {
        let content = content.into();
        let image = Image::of(format!("http://{}/{name}", self.address), format, &content);
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.insert(name.to_owned(), (content, ImageFault::None));
        image
    }

    /// Serves a small raw image with a boot sector.
    pub fn bootable(&self, name: &str) -> Image {
        let mut disk: Vec<u8> = (0..1 << 20).map(|at| (at / 512 % 251) as u8).collect();
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        self.put(name, "raw", disk)
    }

    /// Sets how the server misbehaves for an image from now on.
    pub fn misbehave(&self, name: &str, fault: ImageFault) {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let image = served.get_mut(name).unwrap_or_else(|| panic!("no image is named {name}"));
        image.1 = fault;
    }

    /// Stops the server; connections to its address are refused afterwards.
    pub async fn stop(&self) {
        let mut serving =
            std::mem::take(&mut *self.serving.lock().unwrap_or_else(PoisonError::into_inner));
        serving.shutdown().await;
    }

    /// Serves again at the same address.
    pub async fn start_again(&self) {
        let listener = TcpListener::bind(self.address).await;
        self.serve(listener.expect("the port is still free"));
    }

    fn serve(&self, listener: TcpListener) {
        let served = self.served.clone();
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        serving.spawn(async move {
            let mut answering = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while answering.try_join_next().is_some() {}
                answering.spawn(answer(stream, served.clone()));
            }
        });
    }
}

/// Answers one request and closes the connection, which every HTTP client understands (RFC 9112 §9.6).
async fn answer(mut stream: TcpStream, served: Served) {
    // The client may disconnect in the middle; that is no error of the server.
    let _ = try_answer(&mut stream, served).await;
}

async fn try_answer(stream: &mut TcpStream, served: Served) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let name = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let found = served.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
    let (content, fault) = found.unwrap_or((Bytes::new(), ImageFault::Refused));
    if fault == ImageFault::Refused {
        let refusal =
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return writer.write_all(refusal.as_bytes()).await;
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    writer.write_all(head.as_bytes()).await?;
    if first.starts_with("HEAD ") {
        return Ok(());
    }
    match fault {
        ImageFault::Truncated => writer.write_all(&content[..content.len() / 2]).await,
        ImageFault::WrongByte => {
            let mut wrong = content.to_vec();
            if let Some(byte) = wrong.last_mut() {
                *byte ^= 1;
            }
            writer.write_all(&wrong).await
        }
        ImageFault::None | ImageFault::Refused => writer.write_all(&content).await,
    }
}
