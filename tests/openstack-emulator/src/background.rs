//! Work outside of the world's lock: guests, downloads, open addresses.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use sha2::{Digest, Sha512};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{AbortHandle, JoinSet};
use tracing::{debug, info};

use crate::cloud::Cloud;
use crate::glance;
use crate::guest::{Guest, boot, plain_client, resume};
use crate::index::PROJECT;
use crate::locks::lock;
use crate::object::{Kind, Object};
use crate::shared::Shared;
use crate::world::{BackgroundTask, World};

/// The number of bytes kept of an image.
const KEPT_IMAGE: usize = 1 << 20;

/// Runs background tasks until the world is dropped.
pub(crate) async fn run(
    mut todo: UnboundedReceiver<BackgroundTask>,
    shared: Arc<Shared>,
    guest: Arc<dyn Guest>,
) {
    let mut guests: HashMap<String, AbortHandle> = HashMap::new();
    let mut tasks = JoinSet::new();
    while let Some(task) = todo.recv().await {
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        match task {
            BackgroundTask::Boot(server) => {
                let cloud = Cloud { shared: shared.clone() };
                let running = tasks.spawn(boot(cloud, guest.clone(), server.clone()));
                if let Some(before) = guests.insert(server, running) {
                    before.abort();
                }
            }
            BackgroundTask::Resume(server) => {
                let cloud = Cloud { shared: shared.clone() };
                let running = tasks.spawn(resume(cloud, guest.clone(), server.clone()));
                guests.insert(server, running);
            }
            BackgroundTask::Halt(server) => {
                if let Some(running) = guests.remove(&server) {
                    running.abort();
                }
                halt(&shared, &*guest, &server);
            }
            BackgroundTask::Fetch { image, url } => {
                tasks.spawn(fetch(shared.clone(), image, url));
            }
            BackgroundTask::Reopen => reopen(&shared).await,
        }
    }
}

/// Removes the ports of a guest that has ended. Tells the guest type if the server was deleted.
fn halt(shared: &Shared, guest: &dyn Guest, server: &str) {
    let gone = shared.with(|world| world.store.get(Kind::Server, server).is_none());
    lock(&shared.offers).retain(|(owner, _), _| owner != server);
    if gone {
        lock(&shared.progress).remove(server);
    }
    guest.halted(server);
}

/// Downloads an image, as Glance's web-download does.
async fn fetch(shared: Arc<Shared>, image: String, url: String) {
    let delay = shared.with(|world| world.settings.times.image_import);
    tokio::time::sleep(crate::settings::millis(delay)).await;
    let outcome = download(&url).await;
    shared.with(|world| {
        world.records.fetches.remove(&image);
        world.changes += 1;
        match outcome {
            Ok((size, hash, bytes)) => glance::arrived(world, &image, size, hash, bytes),
            Err(error) => glance::failed(world, &image, &error),
        }
    });
    shared.called();
}

async fn download(url: &str) -> Result<(i64, String, bytes::Bytes), String> {
    let words = |error: reqwest::Error| error.without_url().to_string();
    let client = plain_client().map_err(words)?;
    let mut answer = client
        .get(url)
        .send()
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(words)?;
    let (mut size, mut digest, mut kept) = (0_i64, Sha512::new(), BytesMut::new());
    while let Some(chunk) = answer.chunk().await.map_err(words)? {
        size += i64::try_from(chunk.len()).unwrap_or(i64::MAX);
        digest.update(&chunk);
        if kept.len() + chunk.len() <= KEPT_IMAGE {
            kept.extend_from_slice(&chunk);
        }
    }
    let hash = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((size, hash, kept.freeze()))
}

/// Opens the addresses that should be open, and closes the others.
async fn reopen(shared: &Arc<Shared>) {
    if !shared.with(|world| world.settings.open_addresses) {
        return;
    }
    let wanted = shared.with(wanted);
    let missing: Vec<(IpAddr, u16)> = {
        let mut openings = lock(&shared.openings);
        openings.open.retain(|key, (_, handles)| {
            let stays = wanted.contains(key);
            if !stays {
                handles.iter().for_each(AbortHandle::abort);
            }
            stays
        });
        wanted.into_iter().filter(|key| !openings.open.contains_key(key)).collect()
    };
    for (address, port) in missing {
        let Ok(inside) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await else { continue };
        let Ok(at) = inside.local_addr() else { continue };
        let mut handles =
            vec![tokio::spawn(forward(shared.clone(), inside, address, port)).abort_handle()];
        if address.is_loopback() {
            match TcpListener::bind((address, port)).await {
                Ok(listener) => handles.push(
                    tokio::spawn(forward(shared.clone(), listener, address, port)).abort_handle(),
                ),
                Err(error) => info!(%error, "{address}:{port} is open at {at} only"),
            }
        }
        let mut openings = lock(&shared.openings);
        openings.open.insert((address, port), (at, handles));
    }
}

/// Every address and port with a listener, according to Octavia and Neutron.
fn wanted(world: &mut World) -> BTreeSet<(IpAddr, u16)> {
    let mut all = BTreeSet::new();
    let mut floating: HashMap<&str, Vec<&Object>> = HashMap::new();
    for one in world.store.all(Kind::FloatingIp) {
        floating.entry(one.text("port_id")).or_default().push(one);
    }
    for listener in
        world.store.all(Kind::Listener).filter(|one| one.text("provisioning_status") == "ACTIVE")
    {
        let Some(balancer) = world.store.get(Kind::LoadBalancer, listener.note("balancer")) else {
            continue;
        };
        let Ok(port) = u16::try_from(listener.number("protocol_port")) else { continue };
        let floating = floating.get(balancer.text("vip_port_id")).into_iter().flatten();
        let addresses = floating
            .map(|one| one.text("floating_ip_address"))
            .chain([balancer.text("vip_address")]);
        all.extend(addresses.filter_map(|address| Some((address.parse().ok()?, port))));
    }
    // A floating IP of a server leads to the server's Kubernetes API, if it has one.
    for floating in world.store.all(Kind::FloatingIp) {
        let port = world.store.get(Kind::Port, floating.text("port_id"));
        if port.is_some_and(|port| port.text("device_owner").starts_with("compute:"))
            && let Ok(address) = floating.text("floating_ip_address").parse()
        {
            all.insert((address, 6443));
        }
    }
    all
}

/// Forwards each connection to a guest that is behind the address at that moment.
async fn forward(shared: Arc<Shared>, listener: TcpListener, address: IpAddr, port: u16) {
    let mut connections = JoinSet::new();
    let mut turn = 0_usize;
    let mut ports = Ports::default();
    while let Ok((mut client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let targets = targets(&shared, (address, port), &mut ports);
        turn = turn.wrapping_add(1);
        if targets.is_empty() {
            debug!("no guest is behind {address}:{port}");
            continue;
        }
        let order: Vec<SocketAddr> =
            (0..targets.len()).map(|at| targets[(turn + at) % targets.len()]).collect();
        connections.spawn(async move {
            for target in order {
                if let Ok(mut server) = TcpStream::connect(target).await {
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                    return;
                }
            }
        });
    }
}

/// The Neutron port of each load balancer member, by the id of the member. A cache, because searching thousands of ports for each
/// connection would be slow.
type Ports = HashMap<String, String>;

/// The addresses of the guests behind an address and port: the members of a load balancer, or one server.
fn targets(shared: &Shared, at: (IpAddr, u16), ports: &mut Ports) -> Vec<SocketAddr> {
    let servers = shared.with(|world| behind(world, &at.0.to_string(), at.1, ports));
    let offers = lock(&shared.offers);
    servers.into_iter().filter_map(|key| offers.get(&key).copied()).collect()
}

fn behind(world: &World, address: &str, port: u16, ports: &mut Ports) -> Vec<(String, u16)> {
    let floating = world.store.with_text(Kind::FloatingIp, "floating_ip_address", address).next();
    if let Some(owner) = floating.and_then(|one| world.store.get(Kind::Port, one.text("port_id")))
        && owner.text("device_owner").starts_with("compute:")
    {
        return vec![(owner.text("device_id").to_owned(), port)];
    }
    let (field, said) = match floating {
        Some(one) => ("vip_port_id", one.text("port_id")),
        None => ("vip_address", address),
    };
    let balancer = world.store.with_text(Kind::LoadBalancer, field, said).next();
    let Some(balancer) = balancer else { return Vec::new() };
    let mut listeners = world.store.with_text(Kind::Listener, "balancer", &balancer.id);
    let listener = listeners.find(|one| one.number("protocol_port") == i64::from(port));
    let Some(pool) = listener.map(|listener| listener.text("default_pool_id")) else {
        return Vec::new();
    };
    let members = world.store.with_text(Kind::Member, "pool", pool);
    members
        .filter(|member| member.is("admin_state_up"))
        .filter_map(|member| {
            Some((
                server_at(world, member, balancer, ports)?,
                u16::try_from(member.number("protocol_port")).ok()?,
            ))
        })
        .collect()
}

/// The server with the address of a member: in the subnet of the member, or of the load balancer if the member names none. Other networks
/// of the project may use the same addresses.
fn server_at(
    world: &World,
    member: &Object,
    balancer: &Object,
    ports: &mut Ports,
) -> Option<String> {
    let address = member.text("address");
    let subnet = match member.text("subnet_id") {
        "" => balancer.text("vip_subnet_id"),
        given => given,
    };
    let has = |port: &Object, subnet: Option<&str>| {
        let mut own = port.list("fixed_ips").iter();
        port.project == member.project
            && own.any(|ip| {
                ip["ip_address"] == address && subnet.is_none_or(|it| ip["subnet_id"] == it)
            })
    };
    let is_near = |port: &&Object| has(port, Some(subnet));
    let known = ports.get(&member.id).and_then(|id| world.store.get(Kind::Port, id));
    // Searches by address and project, because many networks use the same addresses and a network has many.
    let said = [vec![("fixed_ips", address)], vec![(PROJECT, member.project.as_str())]];
    let holders = || world.store.narrowed(Kind::Port, &said).into_iter();
    let near = known.filter(is_near).or_else(|| holders().find(is_near));
    // A member in another subnet is reached through a router.
    let far = || holders().find(|port| has(port, None));
    let found = near.or_else(|| member.text("subnet_id").is_empty().then(far).flatten())?;
    ports.insert(member.id.clone(), found.id.clone());
    Some(found.text("device_id").to_owned())
}
