//! A bad network: a relay between client and BMC that loses, duplicates, reorders and changes datagrams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatagramOutcome {
    Pass,
    Lose,
    Double,
    /// The datagram arrives after the next one of its direction.
    Late,
    /// The datagram arrives twice: with a flipped bit in its last byte, and unchanged.
    Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToBmc,
    ToClient,
}

/// A running relay; ended when dropped.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    lost: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Relay {
    /// Starts a relay to `bmc`; `fate` decides about the n-th datagram of each direction, counted from 0.
    pub(crate) async fn start(
        bmc: SocketAddr,
        fate: impl Fn(Direction, usize) -> DatagramOutcome + Send + Sync + 'static,
    ) -> Relay {
        let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        back.connect(bmc).await.unwrap();
        let address = front.local_addr().unwrap();
        let lost = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&lost);
        let mut task = JoinSet::new();
        task.spawn(async move { run(front, back, fate, counter).await });
        Relay { address, lost, _task: task }
    }

    /// The number of datagrams that did not arrive exactly once, unchanged and in order.
    pub(crate) fn harmed(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }
}

async fn run(
    front: UdpSocket,
    back: UdpSocket,
    fate: impl Fn(Direction, usize) -> DatagramOutcome,
    harmed: Arc<AtomicUsize>,
) {
    let (mut client, mut held) = (None, [None, None]);
    let mut counts = [0, 0];
    let (mut question, mut answer) = ([0; 1024], [0; 1024]);
    loop {
        let (way, datagram) = tokio::select! {
            Ok((length, peer)) = front.recv_from(&mut question) => {
                client = Some(peer);
                (Direction::ToBmc, question[..length].to_vec())
            }
            Ok(length) = back.recv(&mut answer) => (Direction::ToClient, answer[..length].to_vec()),
        };
        let at = way as usize;
        let fate = fate(way, counts[at]);
        counts[at] += 1;
        harmed.fetch_add(usize::from(fate != DatagramOutcome::Pass), Ordering::Relaxed);

        let mut out = match fate {
            DatagramOutcome::Pass => vec![datagram],
            DatagramOutcome::Lose => vec![],
            DatagramOutcome::Double => vec![datagram.clone(), datagram],
            DatagramOutcome::Late => {
                held[at] = Some(datagram);
                continue;
            }
            DatagramOutcome::Change => {
                let mut changed = datagram.clone();
                *changed.last_mut().unwrap() ^= 0x10;
                vec![changed, datagram]
            }
        };
        out.extend(held[at].take());
        for datagram in out {
            match (way, client) {
                (Direction::ToBmc, _) => drop(back.send(&datagram).await),
                (Direction::ToClient, Some(client)) => drop(front.send_to(&datagram, client).await),
                (Direction::ToClient, None) => {}
            }
        }
    }
}
