//! Opens sockets, and names the errors of opening them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

/// The reasons why the services did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The socket could not be opened.
    #[error("cannot open the socket for {service} on {place}")]
    Socket { service: &'static str, place: String, source: io::Error },
    /// The kernel requires a capability that the process lacks.
    #[error("{service} on {place} needs {capability}")]
    NotPermitted { service: &'static str, place: String, capability: &'static str },
    /// No network interface has this name.
    #[error("network interface {name:?} not found")]
    NoSuchInterface { name: String },
    /// Clients cannot send requests to 0.0.0.0 or `::`.
    #[error(
        "DHCP cannot listen on an unspecified address: name an address that clients can reach, or an interface"
    )]
    NoServerAddress,
}

impl From<StartError> for io::Error {
    fn from(error: StartError) -> io::Error {
        let kind = match &error {
            StartError::Socket { source, .. } => source.kind(),
            StartError::NotPermitted { .. } => io::ErrorKind::PermissionDenied,
            StartError::NoSuchInterface { .. } => io::ErrorKind::NotFound,
            StartError::NoServerAddress => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}

/// The purpose of a socket, for error messages.
pub(crate) struct Purpose {
    pub(crate) service: &'static str,
    pub(crate) place: String,
    pub(crate) capability: &'static str,
}

impl Purpose {
    pub(crate) fn failed(&self, source: io::Error) -> StartError {
        let Purpose { service, place, capability } = self;
        let place = place.clone();
        if source.kind() == io::ErrorKind::PermissionDenied {
            StartError::NotPermitted { service, place, capability }
        } else {
            StartError::Socket { service, place, source }
        }
    }
}

/// Opens a UDP socket on `address`.
pub(crate) fn udp_socket(
    service: &'static str,
    address: SocketAddr,
) -> Result<UdpSocket, StartError> {
    let purpose =
        Purpose { service, place: address.to_string(), capability: "CAP_NET_BIND_SERVICE" };
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind(&address.into())?;
        to_tokio(socket)
    };
    open().map_err(|source| purpose.failed(source))
}

/// Opens a UDP socket that sends and receives broadcasts on one interface only.
pub(crate) fn udp_socket_on_interface(
    service: &'static str,
    interface: &str,
    port: u16,
) -> Result<UdpSocket, StartError> {
    interface_index(interface)?;
    let purpose = Purpose {
        service,
        place: format!("port {port} of {interface}"),
        capability: "CAP_NET_BIND_SERVICE and CAP_NET_RAW",
    };
    let open = || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.set_broadcast(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
        to_tokio(socket)
    };
    open().map_err(|source| purpose.failed(source))
}

/// Opens a UDP socket that receives the messages to an IPv6 group on one interface, and sends on this interface only.
pub(crate) fn udp_socket_in_group(
    service: &'static str,
    interface: &str,
    group: Ipv6Addr,
    port: u16,
) -> Result<UdpSocket, StartError> {
    let index = interface_index(interface)?;
    let purpose = Purpose {
        service,
        place: format!("port {port} of {interface}"),
        capability: "CAP_NET_BIND_SERVICE and CAP_NET_RAW",
    };
    let open = || {
        let socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.set_only_v6(true)?;
        socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
        socket.join_multicast_v6(&group, index)?;
        to_tokio(socket)
    };
    open().map_err(|source| purpose.failed(source))
}

/// Returns the kernel's index of an interface.
pub(crate) fn interface_index(name: &str) -> Result<u32, StartError> {
    let no_such = |_| StartError::NoSuchInterface { name: name.to_owned() };
    let any =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
    let any = any.map_err(no_such)?;
    rustix::net::netdevice::name_to_index(any, name).map_err(no_such)
}

/// Hands a datagram socket to the runtime.
///
/// Works for raw sockets too: the system calls for sending and receiving datagrams are the same.
pub(crate) fn to_tokio(socket: Socket) -> io::Result<UdpSocket> {
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}
