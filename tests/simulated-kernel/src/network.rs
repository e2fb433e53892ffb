//! The network: an internet socket of the program is a local socket, whose name is the internet address. So nothing depends on the network of
//! the computer, every address exists, and an answer is there as soon as it was sent.

use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{c_int, c_void, size_t, sockaddr, sockaddr_un, socklen_t, ssize_t};

use crate::address::{self, Kind, Name};
use crate::kernel::{self, Datagram, Host, Request, Socket};
use crate::real::{errno, fail, real};
use crate::virtual_time;

/// Returns the requests since the last call.
pub fn take_requests() -> Vec<Request> {
    kernel::with(|it| std::mem::take(&mut it.connections.requests)).unwrap_or_default()
}

/// Returns the datagrams since the last call.
pub fn take_datagrams() -> Vec<Datagram> {
    kernel::with(|it| std::mem::take(&mut it.connections.datagrams)).unwrap_or_default()
}

/// Takes note of a request that the program sends.
fn note(file: c_int, data: &[u8]) {
    const METHODS: [&[u8]; 4] = [b"POST ", b"PATCH ", b"PUT ", b"DELETE "];
    if !METHODS.iter().any(|method| data.starts_with(method)) {
        return;
    }
    let line = data.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).trim_end_matches(" HTTP/1.1").to_owned();
    kernel::with(|it| {
        let from = it.own_host();
        let peer = it.connections.sockets.get(&file).filter(|it| it.kind == Kind::Stream);
        if let Some(to) = peer.and_then(|it| it.peer) {
            let at = std::time::Duration::from_nanos(virtual_time::now());
            it.connections.requests.push(Request { at, from, to, line });
        }
    });
}

/// Of 1000 connections between hosts so many are cut, each at a random time within `within`. The connections of the first host with itself
/// last.
pub fn lose_connections(of_1000: u64, within: std::time::Duration) {
    kernel::with(|it| it.connections.losses = (of_1000, virtual_time::nanos(within)));
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let plain = match kind & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) {
        libc::SOCK_STREAM => Some(Kind::Stream),
        libc::SOCK_DGRAM => Some(Kind::Datagram),
        _ => None,
    };
    let is_internet = matches!(domain, libc::AF_INET | libc::AF_INET6);
    let (true, true, Some(plain)) = (kernel::is_inside(), is_internet, plain) else {
        return real!(socket(domain => c_int, kind => c_int, protocol => c_int) -> c_int);
    };
    let file = real!(socket(libc::AF_UNIX => c_int, kind => c_int, 0 => c_int) -> c_int);
    if file >= 0 {
        kernel::with(|it| {
            let host = it.own_host();
            let is_v6 = domain == libc::AF_INET6;
            let socket = Socket { kind: plain, is_v6, host, own: None, peer: None, made: 0 };
            it.connections.add(file, socket);
        });
    }
    file
}

fn find(file: c_int) -> Option<Socket> {
    kernel::with(|it| it.connections.sockets.get(&file).copied()).flatten()
}

fn loopback(is_v6: bool) -> IpAddr {
    if is_v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() }
}

/// Gives a socket its own address.
fn bind_to(file: c_int, socket: &Socket, wanted: SocketAddr) -> c_int {
    loop {
        let port = match wanted.port() {
            0 => kernel::with(|it| it.connections.next_port()).unwrap_or_default(),
            port => port,
        };
        let own = SocketAddr::new(wanted.ip(), port);
        let name = Name { kind: socket.kind, address: own };
        let (local, length) = name.local();
        let bound = real!(bind(file => c_int, (&raw const local).cast() => *const sockaddr, length => socklen_t) -> c_int);
        if bound == 0 {
            kernel::with(|it| {
                it.connections.hosts.insert(name, socket.host);
                if let Some(socket) = it.connections.sockets.get_mut(&file) {
                    socket.own = Some(own);
                }
            });
            return 0;
        }
        if wanted.port() != 0 || errno() != libc::EADDRINUSE {
            return bound;
        }
    }
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bind(
    file: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: by the caller.
    let wanted = unsafe { address::read(address, length) };
    match (find(file), wanted) {
        (Some(socket), Some(wanted)) => bind_to(file, &socket, wanted),
        (Some(_), None) => fail(libc::EINVAL),
        (None, _) => {
            real!(bind(file => c_int, address => *const sockaddr, length => socklen_t) -> c_int)
        }
    }
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn connect(
    file: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: by the caller.
    let wanted = unsafe { address::read(address, length) };
    let Some(socket) = find(file) else {
        return real!(connect(file => c_int, address => *const sockaddr, length => socklen_t) -> c_int);
    };
    let Some(peer) = wanted else { return fail(libc::EINVAL) };
    if socket.own.is_none() {
        let own = SocketAddr::new(loopback(socket.is_v6), 0);
        if bind_to(file, &socket, own) != 0 {
            return -1;
        }
    }
    kernel::with(|it| it.connections.sockets.get_mut(&file).map(|it| it.peer = Some(peer)));
    match socket.kind {
        Kind::Datagram => 0,
        Kind::Stream => connect_stream(file, &socket, peer),
    }
}

fn connect_stream(file: c_int, socket: &Socket, peer: SocketAddr) -> c_int {
    let name = Name { kind: Kind::Stream, address: peer };
    let found = kernel::with(|it| {
        let (name, host) = it.connections.find(name)?;
        let is_parted = it.partitions.contains(&(host.min(socket.host), host.max(socket.host)));
        Some((name, host, is_parted))
    });
    let Some((name, host, is_parted)) = found.flatten() else { return fail(libc::ECONNREFUSED) };
    let (local, length) = if is_parted { silent() } else { name.local() };
    let connected = real!(connect(file => c_int, (&raw const local).cast() => *const sockaddr, length => socklen_t) -> c_int);
    if connected != 0 {
        // The queue of the other side is full.
        return if errno() == libc::EAGAIN { fail(libc::ECONNREFUSED) } else { connected };
    }
    kernel::with(|it| {
        let (of_1000, within) = it.connections.losses;
        let is_between = (host, socket.host) != (Host::FIRST, Host::FIRST);
        if is_between && it.faults.below(1000) < of_1000 {
            let at = virtual_time::now() + it.faults.below(within);
            let made = it.connections.sockets.get(&file).map_or(0, |it| it.made);
            it.cuts.insert((at, made), file);
        }
    });
    0
}

/// The address of the socket that is never read.
fn silent() -> (sockaddr_un, socklen_t) {
    let (local, length) = address::silence();
    kernel::with(|it| {
        it.connections.silence.get_or_insert_with(|| {
            let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
            let file = real!(socket(libc::AF_UNIX => c_int, kind => c_int, 0 => c_int) -> c_int);
            real!(bind(file => c_int, (&raw const local).cast() => *const sockaddr, length => socklen_t) -> c_int);
            real!(listen(file => c_int, 4096 => c_int) -> c_int);
            file
        });
    });
    (local, length)
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn accept4(
    file: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let Some(listener) = find(file) else {
        return real!(accept4(file => c_int, address => *mut sockaddr, length => *mut socklen_t, flags => c_int) -> c_int);
    };
    // SAFETY: all bytes of the type may be zero.
    let mut local: sockaddr_un = unsafe { zeroed() };
    let mut size = size_of::<sockaddr_un>() as socklen_t;
    let accepted = real!(accept4(
        file => c_int, (&raw mut local).cast() => *mut sockaddr, &raw mut size => *mut socklen_t, flags => c_int
    ) -> c_int);
    if accepted < 0 {
        return accepted;
    }
    let peer = Name::parse(&local, size).map(|name| name.address);
    let peer = peer.unwrap_or(SocketAddr::new(loopback(listener.is_v6), 0));
    kernel::with(|it| {
        let host = it.own_host();
        it.connections.add(accepted, Socket { host, peer: Some(peer), ..listener });
    });
    // SAFETY: by the caller.
    unsafe { address::write(peer, address, length) };
    accepted
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getsockname(
    file: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let Some(socket) = find(file) else {
        return real!(getsockname(file => c_int, address => *mut sockaddr, length => *mut socklen_t) -> c_int);
    };
    let any = SocketAddr::new(
        if socket.is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() },
        0,
    );
    // SAFETY: by the caller.
    unsafe { address::write(socket.own.unwrap_or(any), address, length) };
    0
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getpeername(
    file: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let Some(socket) = find(file) else {
        return real!(getpeername(file => c_int, address => *mut sockaddr, length => *mut socklen_t) -> c_int);
    };
    let Some(peer) = socket.peer else { return fail(libc::ENOTCONN) };
    // SAFETY: by the caller.
    unsafe { address::write(peer, address, length) };
    0
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setsockopt(
    file: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if find(file).is_some() {
        return 0;
    }
    real!(setsockopt(file => c_int, level => c_int, name => c_int, value => *const c_void, length => socklen_t) -> c_int)
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendto(
    file: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    size: socklen_t,
) -> ssize_t {
    let Some(socket) = find(file).filter(|it| it.kind == Kind::Datagram) else {
        return real!(sendto(
            file => c_int, data => *const c_void, length => size_t, flags => c_int, address => *const sockaddr,
            size => socklen_t
        ) -> ssize_t);
    };
    // SAFETY: by the caller.
    let Some(peer) = (unsafe { address::read(address, size) }).or(socket.peer) else {
        return fail(libc::EDESTADDRREQ) as ssize_t;
    };
    if socket.own.is_none()
        && bind_to(file, &socket, SocketAddr::new(loopback(socket.is_v6), 0)) != 0
    {
        return -1;
    }
    let name = Name { kind: Kind::Datagram, address: peer };
    let found = kernel::with(|it| {
        let (name, host) = it.connections.find(name)?;
        let from = it.own_host();
        let is_parted = it.partitions.contains(&(host.min(socket.host), host.max(socket.host)));
        if is_parted {
            return None;
        }
        let at = std::time::Duration::from_nanos(virtual_time::now());
        it.connections.datagrams.push(Datagram { at, from, to: peer });
        Some(name)
    });
    if let Some(name) = found.flatten() {
        let (local, size) = name.local();
        // A datagram for a full queue is lost.
        real!(sendto(
            file => c_int, data => *const c_void, length => size_t, flags | libc::MSG_DONTWAIT => c_int,
            (&raw const local).cast() => *const sockaddr, size => socklen_t
        ) -> ssize_t);
    }
    length as ssize_t
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn send(
    file: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    if find(file).is_some_and(|it| it.kind == Kind::Datagram) {
        // SAFETY: by the caller; without an address, the datagram goes to the peer.
        return unsafe { sendto(file, data, length, flags, std::ptr::null(), 0) };
    }
    if kernel::is_inside() {
        // SAFETY: by the caller.
        note(file, unsafe { std::slice::from_raw_parts(data.cast(), length) });
    }
    real!(send(file => c_int, data => *const c_void, length => size_t, flags => c_int) -> ssize_t)
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvfrom(
    file: c_int,
    data: *mut c_void,
    length: size_t,
    flags: c_int,
    address: *mut sockaddr,
    size: *mut socklen_t,
) -> ssize_t {
    let Some(socket) = find(file).filter(|it| it.kind == Kind::Datagram) else {
        return real!(recvfrom(
            file => c_int, data => *mut c_void, length => size_t, flags => c_int, address => *mut sockaddr,
            size => *mut socklen_t
        ) -> ssize_t);
    };
    // SAFETY: all bytes of the type may be zero.
    let mut local: sockaddr_un = unsafe { zeroed() };
    let mut room = size_of::<sockaddr_un>() as socklen_t;
    let received = real!(recvfrom(
        file => c_int, data => *mut c_void, length => size_t, flags => c_int,
        (&raw mut local).cast() => *mut sockaddr, &raw mut room => *mut socklen_t
    ) -> ssize_t);
    if received >= 0 {
        let from = Name::parse(&local, room).map(|name| name.address);
        let from = from.unwrap_or(SocketAddr::new(loopback(socket.is_v6), 0));
        // SAFETY: by the caller.
        unsafe { address::write(from, address, size) };
    }
    received
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(file: c_int) -> c_int {
    kernel::with(|it| {
        let connections = &mut it.connections;
        if let Some(socket) = connections.sockets.remove(&file)
            && let Some(own) = socket.own
            && !connections.sockets.values().any(|it| it.kind == socket.kind && it.own == Some(own))
        {
            connections.hosts.remove(&Name { kind: socket.kind, address: own });
        }
    });
    real!(close(file => c_int) -> c_int)
}

/// # Safety
///
/// As libc's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn writev(
    file: c_int,
    parts: *const libc::iovec,
    count: c_int,
) -> ssize_t {
    if kernel::is_inside() && count > 0 {
        // SAFETY: by the caller, there is at least one part.
        let first = unsafe { &*parts };
        // SAFETY: by the caller.
        note(file, unsafe { std::slice::from_raw_parts(first.iov_base.cast(), first.iov_len) });
    }
    real!(writev(file => c_int, parts => *const libc::iovec, count => c_int) -> ssize_t)
}
