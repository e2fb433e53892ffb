//! The decision how to answer a client. The caller makes it; this crate turns it into a message.

use std::net::IpAddr;

use url::Url;

/// The caller's decision about one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send no answer.
    Ignore {
        /// The reason, for an operator.
        reason: String,
    },
    /// Send an answer.
    Answer {
        /// `None` if another server gives addresses.
        lease: Option<Lease>,
        /// `None` if the machine is not to boot from this server.
        boot: Option<BootFile>,
    },
}

/// A static lease of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub address: IpAddr,
    /// The host name that the client is told.
    pub hostname: Option<String>,
}

/// The file that a client is told to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootFile {
    /// A file of our TFTP server.
    Tftp { name: String },
    /// A URL, for UEFI HTTP boot and for iPXE.
    Http { url: Url },
}

impl BootFile {
    /// Returns the boot file name in the form in which the message carries it.
    pub fn as_str(&self) -> &str {
        match self {
            BootFile::Tftp { name } => name,
            BootFile::Http { url } => url.as_str(),
        }
    }
}
