//! What somebody who knows the machines has decided to answer.

use std::net::Ipv4Addr;

use url::Url;

/// The answer to one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Say nothing.
    Ignore {
        /// Why, for an operator.
        reason: String,
    },
    /// Answer.
    Answer {
        /// Its address; `None` if another server gives addresses.
        lease: Option<Lease>,
        /// What it boots; `None` to boot nothing from here.
        boot: Option<BootFile>,
    },
}

/// A static lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// The host name to tell it.
    pub hostname: Option<String>,
}

/// What a client is told to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootFile {
    /// A file of our TFTP server.
    Tftp {
        /// Its name there.
        name: String,
    },
    /// A URL, for UEFI HTTP boot and for iPXE.
    Http {
        /// The URL.
        url: Url,
    },
}

impl BootFile {
    /// The boot file name as it goes over the wire.
    pub fn as_str(&self) -> &str {
        match self {
            BootFile::Tftp { name } => name,
            BootFile::Http { url } => url.as_str(),
        }
    }
}
