//! Addresses: an internet address of the program, and the name of the local socket that stands for it.

use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{c_char, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_un, socklen_t};

/// The kind of socket for which a local socket stands. Both kinds have ports of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Stream,
    Datagram,
}

/// The name of a local socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
}

/// The beginning of the names of this process. Names that begin with a zero byte are in no folder.
fn prefix() -> String {
    format!("\0simulated-kernel/{}/", std::process::id())
}

impl Name {
    /// The name of the socket that takes what is sent to any address with this port.
    pub(crate) fn of_any(self) -> Name {
        let any = match self.address {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        Name { address: SocketAddr::new(any, self.address.port()), ..self }
    }

    fn text(self) -> String {
        let kind = if self.kind == Kind::Stream { 's' } else { 'd' };
        format!("{}{kind}{}", prefix(), self.address)
    }

    pub(crate) fn local(self) -> (sockaddr_un, socklen_t) {
        local(&self.text())
    }

    /// Reads the name of a local socket.
    pub(crate) fn parse(local: &sockaddr_un, length: socklen_t) -> Option<Name> {
        let length = (length as usize).checked_sub(size_of::<libc::sa_family_t>())?;
        let path = local.sun_path.get(..length)?;
        let text: Vec<u8> = path.iter().map(|byte| *byte as u8).collect();
        let text = String::from_utf8(text).ok()?;
        let text = text.strip_prefix(&prefix())?;
        let kind = if text.starts_with('s') { Kind::Stream } else { Kind::Datagram };
        Some(Name { kind, address: text.get(1..)?.parse().ok()? })
    }
}

/// The address of a local socket that takes connections and is never read.
pub(crate) fn silence() -> (sockaddr_un, socklen_t) {
    local(&format!("{}silence", prefix()))
}

fn local(text: &str) -> (sockaddr_un, socklen_t) {
    // SAFETY: all bytes of the type may be zero.
    let mut address: sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (place, byte) in address.sun_path.iter_mut().zip(text.bytes()) {
        *place = byte as c_char;
    }
    (address, (size_of::<libc::sa_family_t>() + text.len()) as socklen_t)
}

/// Reads the program's address.
///
/// # Safety
///
/// `address` is null or points to `length` bytes.
pub(crate) unsafe fn read(address: *const sockaddr, length: socklen_t) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: by the caller; the family says which type is there, and the length is checked.
    unsafe {
        match libc::c_int::from((*address).sa_family) {
            libc::AF_INET if length as usize >= size_of::<sockaddr_in>() => {
                let it = &*address.cast::<sockaddr_in>();
                let ip = Ipv4Addr::from(u32::from_be(it.sin_addr.s_addr));
                Some(SocketAddr::new(ip.into(), u16::from_be(it.sin_port)))
            }
            libc::AF_INET6 if length as usize >= size_of::<sockaddr_in6>() => {
                let it = &*address.cast::<sockaddr_in6>();
                let ip = Ipv6Addr::from(it.sin6_addr.s6_addr);
                Some(SocketAddr::new(ip.into(), u16::from_be(it.sin6_port)))
            }
            _ => None,
        }
    }
}

/// Gives the program an address, in as many bytes as it has room for.
///
/// # Safety
///
/// `address` and `length` are null, or `length` says how many bytes are at `address`.
pub(crate) unsafe fn write(of: SocketAddr, address: *mut sockaddr, length: *mut socklen_t) {
    if address.is_null() || length.is_null() {
        return;
    }
    // SAFETY: by the caller, and all bytes of the types may be zero.
    unsafe {
        let room = *length as usize;
        match of {
            SocketAddr::V4(of) => {
                let mut it: sockaddr_in = zeroed();
                it.sin_family = libc::AF_INET as libc::sa_family_t;
                it.sin_port = of.port().to_be();
                it.sin_addr.s_addr = u32::from(*of.ip()).to_be();
                let size = size_of::<sockaddr_in>();
                std::ptr::copy_nonoverlapping(
                    (&raw const it).cast::<u8>(),
                    address.cast(),
                    room.min(size),
                );
                *length = size as socklen_t;
            }
            SocketAddr::V6(of) => {
                let mut it: sockaddr_in6 = zeroed();
                it.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                it.sin6_port = of.port().to_be();
                it.sin6_addr.s6_addr = of.ip().octets();
                let size = size_of::<sockaddr_in6>();
                std::ptr::copy_nonoverlapping(
                    (&raw const it).cast::<u8>(),
                    address.cast(),
                    room.min(size),
                );
                *length = size as socklen_t;
            }
        }
    }
}
