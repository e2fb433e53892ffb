//! The UDP sockets that all BMCs share, and the delivery of datagrams to the waiting tasks.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tracing::{debug, warn};

use crate::wire::packet;

/// The longest datagram of a BMC: an IPMI message has at most 255 bytes, its packet a little more.
const LONGEST_DATAGRAM: usize = 1024;
/// How many datagrams wait for one reader; further ones are dropped, as on a network.
const INBOX: usize = 8;
/// Enough for the simultaneous answers of some thousand BMCs.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The sockets, and the waiting task for each peer and session.
pub(crate) struct Port {
    v4: UdpSocket,
    /// `None` if the host has no IPv6.
    v6: Option<UdpSocket>,
    routes: Mutex<HashMap<Key, mpsc::Sender<Vec<u8>>>>,
}

/// A peer, and our id of the session; 0 outside of any session.
type Key = (SocketAddr, u32);

impl Port {
    pub(crate) fn bind() -> io::Result<Self> {
        let v4 = socket(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
        let v6 = socket(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
            .inspect_err(|error| debug!("no BMC can be reached over IPv6: {error}"))
            .ok();
        Ok(Port { v4, v6, routes: Mutex::default() })
    }

    /// Delivers datagrams until its task is aborted.
    pub(crate) async fn run(&self) {
        match &self.v6 {
            Some(v6) => {
                tokio::join!(self.listen(&self.v4), self.listen(v6));
            }
            None => self.listen(&self.v4).await,
        }
    }

    /// Opens a route to `peer`, on which datagrams of `session` are received.
    pub(crate) fn route(&self, peer: SocketAddr, session: u32) -> Route<'_> {
        let (sender, inbox) = mpsc::channel(INBOX);
        let key = (peer, session);
        self.routes().insert(key, sender);
        Route { port: self, key, inbox }
    }

    async fn listen(&self, socket: &UdpSocket) {
        let mut buffer = [0; LONGEST_DATAGRAM];
        loop {
            match socket.recv_from(&mut buffer).await {
                Ok((length, peer)) => self.deliver(peer, &buffer[..length]),
                Err(error) => {
                    // An error that persists must not cause a busy loop.
                    warn!("cannot receive from BMCs for now: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn deliver(&self, peer: SocketAddr, datagram: &[u8]) {
        let Some(session) = packet::addressee(datagram) else {
            debug!(%peer, "dropped a datagram that is not of IPMI");
            return;
        };
        match self.routes().get(&(peer, session)) {
            Some(route) => {
                // A full inbox drops the datagram, as a network does.
                let _ = route.try_send(datagram.to_vec());
            }
            None => debug!(%peer, session, "dropped a datagram that no task waits for"),
        }
    }

    fn routes(&self) -> std::sync::MutexGuard<'_, HashMap<Key, mpsc::Sender<Vec<u8>>>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A route to a peer and back, for the duration of one conversation.
pub(crate) struct Route<'p> {
    port: &'p Port,
    key: Key,
    inbox: mpsc::Receiver<Vec<u8>>,
}

impl Route<'_> {
    pub(crate) async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        let (peer, _) = self.key;
        let socket = match peer {
            SocketAddr::V4(_) => &self.port.v4,
            SocketAddr::V6(_) => self.port.v6.as_ref().ok_or(io::ErrorKind::AddrNotAvailable)?,
        };
        socket.send_to(datagram, peer).await.map(|_| ())
    }

    pub(crate) async fn receive(&mut self) -> Option<Vec<u8>> {
        self.inbox.recv().await
    }
}

impl Drop for Route<'_> {
    fn drop(&mut self) {
        self.port.routes().remove(&self.key);
    }
}

fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}
