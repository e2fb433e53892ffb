//! Free ports, for programs that have to know each other's addresses before they listen, and listen there again after a restart.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;

use uuid::Uuid;

/// Below the ports that the kernel gives to connections, so that none of them has the port while its program is started again.
const PORTS: Range<u16> = 10_000..32_000;

/// Returns different free TCP ports of the loopback address. Another program may still take one before it is used.
pub fn free_ports<const COUNT: usize>() -> [SocketAddr; COUNT] {
    let open = [(); COUNT].map(|()| free(Ipv4Addr::LOCALHOST, TcpListener::bind));
    open.map(|listener| listener.local_addr().expect("it has an address"))
}

/// Returns different free UDP ports of this address.
pub(crate) fn free_udp_ports<const COUNT: usize>(at: Ipv4Addr) -> [SocketAddr; COUNT] {
    let open = [(); COUNT].map(|()| free(at, UdpSocket::bind));
    open.map(|socket| socket.local_addr().expect("it has an address"))
}

/// Opens a port that is free.
fn free<T>(at: Ipv4Addr, open: impl Fn(SocketAddr) -> std::io::Result<T>) -> T {
    loop {
        let drawn = Uuid::new_v4().as_u128() % PORTS.len() as u128;
        let port = PORTS.start + u16::try_from(drawn).expect("the range is one of ports");
        if let Ok(opened) = open(SocketAddr::new(IpAddr::V4(at), port)) {
            return opened;
        }
    }
}
