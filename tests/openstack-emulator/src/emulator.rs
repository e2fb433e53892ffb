//! Starts a cloud.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cidr;
use crate::cloud::Cloud;
use crate::guest::Guest;
use crate::kept::{StateFile, StoredCloud};
use crate::kubernetes::Nodes;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::world::{Records, World};
use crate::{background, clock, seed, serve};

/// A running cloud. Dropping the value stops it.
#[derive(Debug)]
pub struct Emulator {
    /// The functions for tests.
    pub cloud: Cloud,
    _tasks: JoinSet<()>,
}

impl Emulator {
    /// Starts a cloud on a free port of 127.0.0.1 with the default guest.
    pub async fn start(settings: Settings) -> io::Result<Emulator> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Emulator::start_with(settings, address, Arc::new(Nodes::default())).await
    }

    /// Starts a cloud on `address` whose servers run `guest`.
    pub async fn start_with(
        settings: Settings,
        address: SocketAddr,
        guest: Arc<dyn Guest>,
    ) -> io::Result<Emulator> {
        Emulator::begin(settings, address, guest, None).await
    }

    /// Starts a cloud on `address` that continues from the state in the file `path` and keeps its state there. Without the file, the cloud
    /// is new. A cloud that continues takes only times, limits and endpoints from `settings`.
    pub async fn start_kept(
        settings: Settings,
        address: SocketAddr,
        guest: Arc<dyn Guest>,
        path: PathBuf,
    ) -> io::Result<Emulator> {
        Emulator::begin(settings, address, guest, Some(path)).await
    }

    async fn begin(
        settings: Settings,
        address: SocketAddr,
        guest: Arc<dyn Guest>,
        path: Option<PathBuf>,
    ) -> io::Result<Emulator> {
        let mut kept = match &path {
            Some(path) => StoredCloud::read(path)?,
            None => None,
        };
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (queue, todo) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let external = match (&kept, &settings.external_cidr) {
            (None, Some(cidr)) => cidr.clone(),
            (Some(kept), Some(_)) => kept.records.external_cidr.clone(),
            (_, None) => {
                let before = kept.as_ref().map(|kept| kept.records.external_cidr.as_str());
                let (cidr, claim) = claim_loopback(before).await?;
                // The task holds the listener, so that no other emulator takes the range while the cloud runs.
                tasks.spawn(async move {
                    let _claim = claim;
                    std::future::pending::<()>().await;
                });
                cidr
            }
        };
        let mut progress = BTreeMap::new();
        let world = match kept.take() {
            Some(mut kept) => {
                progress.clone_from(&kept.progress);
                guest.take_up(kept.guest.take())?;
                kept.world(settings, queue)
            }
            None => {
                let records = Records { external_cidr: external, ..Records::default() };
                let mut world = World::empty(settings, records, queue);
                seed::plant(&mut world);
                world
            }
        };
        let shared = Arc::new(Shared::new(address, world, progress, path.is_some()));
        let keeper = path.map(|path| StateFile::new(path, guest.clone(), shared.clone()));
        let keeper = keeper.map(Arc::new);
        if let Some(keeper) = &keeper {
            keeper.keep().await;
        }
        tasks.spawn(serve::run(listener, shared.clone(), keeper.clone()));
        tasks.spawn(background::run(todo, shared.clone(), guest));
        let clock = shared.clone();
        tasks.spawn(async move { clock::run(&clock).await });
        if let Some(keeper) = keeper {
            tasks.spawn(async move { keeper.run().await });
        }
        Ok(Emulator { cloud: Cloud { shared }, _tasks: tasks })
    }
}

/// Claims a part of 127.0.0.0/8 by listening on a port of its first address: the part `before` if given, otherwise one that no other
/// emulator on this host has.
async fn claim_loopback(before: Option<&str>) -> io::Result<(String, TcpListener)> {
    if let Some(cidr) = before {
        let first = cidr::parse(cidr).map(|cidr| cidr::at(cidr, 1));
        let first = first
            .ok_or_else(|| io::Error::other(format!("{cidr} is not a network in CIDR notation")))?;
        let claim = TcpListener::bind((first, 4791)).await.map_err(|why| {
            io::Error::new(
                why.kind(),
                format!(
                    "cannot claim the external network {cidr}, another emulator may use it: {why}"
                ),
            )
        })?;
        return Ok((cidr.to_owned(), claim));
    }
    for _ in 0..200 {
        let [second, third, ..] = *uuid::Uuid::new_v4().as_bytes();
        let (second, third) = (second | 0x40, third & 0xfc);
        let gateway = SocketAddr::from((Ipv4Addr::new(127, second, third, 1), 4791));
        if let Ok(claim) = TcpListener::bind(gateway).await {
            return Ok((format!("127.{second}.{third}.0/22"), claim));
        }
    }
    Err(io::Error::other("no piece of 127.0.0.0/8 is free for an outside network"))
}
