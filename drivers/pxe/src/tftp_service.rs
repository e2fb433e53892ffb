//! The TFTP sockets: one for requests, and one for each transfer.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tftp::{ErrorCode, Limits, Packet, Request, Session, Step};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::addresses::Addresses;
use crate::socket::{StartError, udp_socket};
use crate::{Directory, Observation, TftpConfig, TftpFiles};

/// How many transfers one address may run at once: enough for a boot loader, and too few to starve other machines.
const MOST_PER_ADDRESS: usize = 16;

/// The longest packet that a reader sends, in octets: a request has at most 512, and a longer error message is not worth reading.
const LONGEST: usize = 1500;

/// The TFTP service with its socket open.
pub(crate) struct TftpService {
    socket: UdpSocket,
    files: TftpFiles,
    sessions: usize,
    limits: Limits,
    witness: TransferReporter,
}

/// Reports the transfers of a machine to the directory. Finds the machine by its IP address.
#[derive(Clone)]
struct TransferReporter {
    directory: Arc<dyn Directory>,
    addresses: Arc<Addresses>,
}

impl TransferReporter {
    fn saw(&self, client: IpAddr, sighting: Observation) {
        match self.addresses.find(client) {
            Some(mac) => self.directory.saw(mac, sighting),
            None => debug!(%client, ?sighting, "seen of a machine that was not seen by DHCP"),
        }
    }
}

impl TftpService {
    pub(crate) fn open(
        config: TftpConfig,
        directory: Arc<dyn Directory>,
        addresses: Arc<Addresses>,
    ) -> Result<Self, StartError> {
        let TftpConfig { listen, files, sessions, limits } = config;
        let witness = TransferReporter { directory, addresses };
        Ok(TftpService { socket: udp_socket("TFTP", listen)?, files, sessions, limits, witness })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(crate) async fn run(self, cancel: CancellationToken) {
        cancel.run_until_cancelled(self.serve()).await;
    }

    async fn serve(self) {
        let mut transfers: JoinSet<SocketAddr> = JoinSet::new();
        let mut clients: HashSet<SocketAddr> = HashSet::new();
        let mut datagram = [0; LONGEST];
        loop {
            tokio::select! {
                Some(ended) = transfers.join_next() => match ended {
                    Ok(client) => { clients.remove(&client); }
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                received = self.socket.recv_from(&mut datagram) => {
                    let (length, client) = match received {
                        Ok(received) => received,
                        Err(error) => {
                            warn!(%error, "receiving TFTP failed");
                            tokio::time::sleep(Duration::from_millis(100)).await;
                            continue;
                        }
                    };
                    let Some((request, content)) = self.accept(&datagram[..length], client).await else {
                        continue;
                    };
                    let of_address = clients.iter().filter(|other| other.ip() == client.ip()).count();
                    if clients.len() >= self.sessions || of_address >= MOST_PER_ADDRESS {
                        debug!(%client, "dropped a TFTP request, {} transfers run", clients.len());
                        continue;
                    }
                    // A client that repeats its request gets one transfer.
                    if clients.insert(client) {
                        let local = self.socket.local_addr().map(|local| local.ip());
                        let (limits, witness) = (self.limits.clone(), self.witness.clone());
                        transfers.spawn(async move {
                            transfer(local, client, request, content, &limits, witness).await;
                            client
                        });
                    }
                }
            }
        }
    }

    /// Returns a read request and its file. Answers any other packet here.
    async fn accept(&self, datagram: &[u8], client: SocketAddr) -> Option<(Request, Bytes)> {
        let (code, message) = match Packet::decode(datagram) {
            Ok(Packet::Read(request)) => match self.files.find(&request.file) {
                Some(content) => return Some((request, content)),
                None => {
                    let reason = "no file of this name".to_owned();
                    let file = request.file;
                    info!(%client, file, "refused a TFTP request for {file:?}");
                    self.witness.saw(client.ip(), Observation::TftpFailed { file, reason });
                    (ErrorCode::FileNotFound, "no such file")
                }
            },
            Ok(Packet::Write(_)) => (ErrorCode::AccessViolation, "this server is read only"),
            // A stray packet of a transfer that has ended.
            Ok(_) => return None,
            Err(error) => {
                debug!(%client, %error, "dropped a packet that is not a TFTP request");
                return None;
            }
        };
        let refusal = Packet::Error { code, message: message.to_owned() };
        if let Err(error) = self.socket.send_to(&refusal.encode(), client).await {
            debug!(%client, %error, "cannot refuse a TFTP request");
        }
        None
    }
}

/// Sends one file, and reports the outcome.
async fn transfer(
    local: io::Result<IpAddr>,
    client: SocketAddr,
    request: Request,
    content: Bytes,
    limits: &Limits,
    witness: TransferReporter,
) {
    let file = request.file.clone();
    witness.saw(client.ip(), Observation::TftpRead { file: file.clone() });
    let (session, first) = Session::begin(&request, content, limits);
    let bytes = session.size();
    let sighting = match drive(local, client, session, first).await {
        Ok(Outcome::Done) => {
            info!(%client, file, bytes, "sent {file:?} by TFTP");
            Observation::TftpDone { file, bytes }
        }
        Ok(Outcome::Measured) => return,
        Ok(Outcome::Failed(reason)) => {
            info!(%client, file, "did not send {file:?} by TFTP: {reason}");
            Observation::TftpFailed { file, reason }
        }
        Err(error) => {
            warn!(%client, file, %error, "sending {file:?} by TFTP failed");
            Observation::TftpFailed { file, reason: error.to_string() }
        }
    };
    witness.saw(client.ip(), sighting);
}

enum Outcome {
    Done,
    Measured,
    Failed(String),
}

/// Runs a session on its own socket until the session ends.
async fn drive(
    local: io::Result<IpAddr>,
    client: SocketAddr,
    mut session: Session,
    first: Vec<Packet>,
) -> io::Result<Outcome> {
    // RFC 1350 §4: the port identifies the transfer. The socket is connected, so packets from other ports are not received.
    let socket = UdpSocket::bind((local?, 0)).await?;
    socket.connect(client).await?;

    let mut step = Step::Send(first);
    let mut deadline = Instant::now() + session.timeout();
    let mut datagram = [0; LONGEST];
    loop {
        match step {
            Step::Send(packets) => {
                for packet in packets {
                    socket.send(&packet.encode()).await?;
                }
                deadline = Instant::now() + session.timeout();
            }
            Step::Wait => {}
            Step::Done => return Ok(Outcome::Done),
            Step::Measured => return Ok(Outcome::Measured),
            Step::Fail(error, reported) => {
                if let Some(packet) = reported {
                    socket.send(&packet.encode()).await?;
                }
                return Ok(Outcome::Failed(error.to_string()));
            }
        }
        step = match timeout_at(deadline, socket.recv(&mut datagram)).await {
            Ok(length) => match Packet::decode(&datagram[..length?]) {
                Ok(packet) => session.on_packet(&packet),
                Err(_) => Step::Wait,
            },
            Err(_) => session.on_timeout(),
        };
    }
}
