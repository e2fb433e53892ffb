//! Opening sockets, and what can go wrong with that.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

/// Why the services did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The socket could not be opened.
    #[error("cannot open the socket for {service} on {place}")]
    Socket {
        /// Which service.
        service: &'static str,
        /// Where it was to listen.
        place: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel wants a privilege.
    #[error("{service} on {place} needs {capability}")]
    NotPermitted {
        /// Which service.
        service: &'static str,
        /// Where it was to listen.
        place: String,
        /// Which privilege.
        capability: &'static str,
    },
    /// There is no such interface.
    #[error("there is no network interface {name:?}")]
    NoSuchInterface {
        /// Its name.
        name: String,
    },
    /// Clients cannot be told to turn to 0.0.0.0.
    #[error(
        "DHCP cannot listen on 0.0.0.0: name an address that clients can reach, or an interface"
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

/// What a socket is for, to name it in errors.
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

/// A UDP socket on `address`.
pub(crate) fn plain(service: &'static str, address: SocketAddr) -> Result<UdpSocket, StartError> {
    let purpose =
        Purpose { service, place: address.to_string(), capability: "CAP_NET_BIND_SERVICE" };
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind(&address.into())?;
        to_tokio(socket)
    };
    open().map_err(|source| purpose.failed(source))
}

/// A UDP socket that hears and sends broadcasts on one interface, and nothing of any other.
pub(crate) fn on_interface(
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

/// The number of an interface.
pub(crate) fn interface_index(name: &str) -> Result<u32, StartError> {
    let no_such = |_| StartError::NoSuchInterface { name: name.to_owned() };
    let any =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
    let any = any.map_err(no_such)?;
    rustix::net::netdevice::name_to_index(any, name).map_err(no_such)
}

/// Hands a datagram socket to the runtime.
///
/// Also for raw ones: sending and receiving datagrams are the same system calls.
pub(crate) fn to_tokio(socket: Socket) -> io::Result<UdpSocket> {
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}
