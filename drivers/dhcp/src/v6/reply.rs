//! Construction of answers.

use std::net::{IpAddr, Ipv6Addr};

use super::code::{self, status};
use super::{Message, MessageType, Options, Received, ServerConfig};
use crate::{BootFile, Client, ClientKind};

/// EDK II and iPXE send this number of a vendor with their class; it is Intel's, which specified PXE.
const INTEL: [u8; 4] = 343_u32.to_be_bytes();

/// An answer, and the facts in it that an observer needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub message: Message,
    /// The address that the client is given.
    pub address: Option<Ipv6Addr>,
    /// The URL of the boot file that the client is told.
    pub boot_file: Option<String>,
}

/// An answer under construction.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) config: &'a ServerConfig,
    pub(super) request: &'a Received,
    pub(super) client: &'a Client,
    pub(super) boot: Option<&'a BootFile>,
}

impl Answer<'_> {
    /// An answer that gives this address.
    pub(super) fn with_lease(self, kind: MessageType, address: Ipv6Addr) -> Reply {
        let mut message = self.blank(kind);
        let mut first = true;
        for association in self.request.message.options.all(code::IA_NA) {
            let Some((identity, rest)) = association.split_first_chunk::<4>() else { continue };
            let had = addresses(rest.get(8..).unwrap_or_default());
            let content = if std::mem::take(&mut first) {
                self.given(address, &had)
            } else {
                with_status(status::NO_ADDRESSES, "a network card gets one address")
            };
            message.options.add(code::IA_NA, self.association(*identity, &content));
        }
        let boot_file = self.add_settings(&mut message);
        Reply { message, address: Some(address), boot_file }
    }

    /// An answer that gives no address, with a status for each identity association.
    pub(super) fn without_lease(self, code: u16, reason: &str) -> Reply {
        let mut message = self.blank(MessageType::Reply);
        for association in self.request.message.options.all(code::IA_NA) {
            let Some((identity, _)) = association.split_first_chunk::<4>() else { continue };
            let content = with_status(code, reason);
            message.options.add(code::IA_NA, self.association(*identity, &content));
        }
        Reply { message, address: None, boot_file: None }
    }

    /// An answer for a client that has an address already (RFC 8415 §18.3.6).
    pub(super) fn information(self) -> Reply {
        let mut message = self.blank(MessageType::Reply);
        let boot_file = self.add_settings(&mut message);
        Reply { message, address: None, boot_file }
    }

    /// An answer with a status only.
    pub(super) fn status(self, code: u16, reason: &str) -> Reply {
        let mut message = self.blank(MessageType::Reply);
        message.options.add(code::STATUS, status_value(code, reason));
        Reply { message, address: None, boot_file: None }
    }

    fn blank(self, kind: MessageType) -> Message {
        let asked = &self.request.message;
        let mut options = Options::new();
        if let Some(client) = asked.options.get(code::CLIENT_IDENTIFIER) {
            options.add(code::CLIENT_IDENTIFIER, client);
        }
        options.add(code::SERVER_IDENTIFIER, self.config.identifier());
        Message { kind, transaction: asked.transaction, options }
    }

    /// The identity association's content: the address, and every other address that the client had, without any time (RFC 8415 §18.3.4).
    fn given(self, address: Ipv6Addr, had: &[Ipv6Addr]) -> Options {
        let seconds = self.seconds();
        let mut content = Options::new();
        let mut add = |address: Ipv6Addr, seconds: u32| {
            let times = [seconds.to_be_bytes(), seconds.to_be_bytes()].concat();
            content.add(code::IA_ADDRESS, [&address.octets()[..], &times].concat());
        };
        add(address, seconds);
        if matches!(self.request.message.kind, MessageType::Renew | MessageType::Rebind) {
            had.iter().filter(|other| **other != address).for_each(|other| add(*other, 0));
        }
        content
    }

    fn association(self, identity: [u8; 4], content: &Options) -> Vec<u8> {
        // RFC 8415 §21.4: the client renews after half of the time, and asks any server after four fifths.
        let (renew, rebind) = (self.seconds() / 2, self.seconds() / 5 * 4);
        let times = [renew.to_be_bytes(), rebind.to_be_bytes()].concat();
        [&identity[..], &times, &content.encode()].concat()
    }

    fn seconds(self) -> u32 {
        // All ones would mean that the lease never ends.
        u32::try_from(self.config.lease_time.as_secs()).unwrap_or(u32::MAX - 1)
    }

    /// Adds DNS servers and the boot file; returns the boot file's URL.
    fn add_settings(self, message: &mut Message) -> Option<String> {
        let dns = &self.config.dns;
        if !dns.is_empty() {
            let octets: Vec<u8> = dns.iter().flat_map(Ipv6Addr::octets).collect();
            message.options.add(code::DNS_SERVERS, octets);
        }
        let url = match self.boot? {
            BootFile::Tftp { name } => format!("tftp://[{}]/{name}", self.config.address),
            BootFile::Http { url } => url.to_string(),
        };
        message.options.add(code::BOOT_FILE_URL, url.as_str());
        // UEFI 2.10 §24.7.3.2: a client that boots by HTTP ignores answers without this class. A client that boots by PXE takes a server
        // with the class PXEClient for one that it has to ask again (`PxeBcParseDhcp6Packet` of EDK II), so it gets no class.
        if self.client.kind == ClientKind::Http {
            let class = b"HTTPClient";
            let class = [&INTEL[..], &[0, class.len() as u8], class].concat();
            message.options.add(code::VENDOR_CLASS, class);
        }
        Some(url)
    }
}

/// Returns the addresses in the content of an identity association.
pub(super) fn addresses(content: &[u8]) -> Vec<Ipv6Addr> {
    let content = Options::decode(content).unwrap_or_default();
    let address = |octets: &[u8]| octets.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets));
    content.all(code::IA_ADDRESS).filter_map(address).collect()
}

fn with_status(code: u16, reason: &str) -> Options {
    let mut content = Options::new();
    content.add(code::STATUS, status_value(code, reason));
    content
}

fn status_value(code: u16, reason: &str) -> Vec<u8> {
    [&code.to_be_bytes()[..], reason.as_bytes()].concat()
}

/// Returns the IPv6 address of a lease.
pub(super) fn v6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    }
}
