//! Binds the address of every machine and serves its BMC.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;
use tracing::debug;

use crate::ipmi;
use crate::machine::Machine;
use crate::profile::Profile;
use crate::redfish;
use crate::spec::BmcKind;
use crate::tls::{ADDRESSES_EACH, Identity};

/// Machines whose BMCs are served. Dropping the value stops them.
#[derive(Debug)]
pub struct Served {
    /// The addresses of the machines, in the order of the request.
    pub machines: Vec<ServedMachine>,
    /// The certificates of all HTTPS machines, concatenated. Empty if there are none.
    pub certificate_pem: String,
    /// The tasks of all servers. Dropping them aborts the servers.
    _tasks: JoinSet<()>,
}

/// The addresses of one machine's BMC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedMachine {
    pub name: String,
    pub redfish: Option<SocketAddr>,
    /// The address of the RMCP+ port.
    pub ipmi: Option<SocketAddr>,
    /// The certificate of the Redfish service. `None` without HTTPS.
    pub certificate_pem: Option<Arc<str>>,
}

impl Served {
    /// The addresses of the machine with this name.
    pub fn machine(&self, name: &str) -> Option<&ServedMachine> {
        self.machines.iter().find(|machine| machine.name == name)
    }
}

impl ServedMachine {
    /// The address of the BMC's main protocol.
    pub fn address(&self) -> Option<SocketAddr> {
        self.redfish.or(self.ipmi)
    }
}

/// Binds all addresses and serves the BMCs until the result is dropped.
///
/// Fails, and leaves nothing bound, if an address is taken or a spec is invalid.
pub async fn serve(machines: Vec<Machine>) -> io::Result<Served> {
    allow_many_sockets();
    let profiles = machines.iter().map(profile_of).collect::<io::Result<Vec<_>>>()?;
    let mut certificates = Certificates::for_machines(&machines)?;
    let mut served =
        Served { machines: Vec::new(), certificate_pem: String::new(), _tasks: JoinSet::new() };
    for (machine, profile) in machines.into_iter().zip(profiles) {
        let at = start(machine, profile, &mut certificates, &mut served._tasks).await?;
        served.machines.push(at);
    }
    served.certificate_pem = certificates.bundle;
    Ok(served)
}

/// Starts the servers of one machine.
async fn start(
    machine: Machine,
    profile: &'static Profile,
    certificates: &mut Certificates,
    tasks: &mut JoinSet<()>,
) -> io::Result<ServedMachine> {
    let spec = &machine.spec().bmc;
    let name = machine.spec().name.clone();
    let mut at = ServedMachine { name, redfish: None, ipmi: None, certificate_pem: None };

    let rmcp = match spec.kind {
        BmcKind::Ipmi => Some(spec.address),
        BmcKind::Redfish => spec.also_ipmi,
    };
    if let Some(address) = rmcp {
        let socket = UdpSocket::bind(address).await?;
        at.ipmi = Some(socket.local_addr()?);
        tasks.spawn(ipmi::run(socket, machine.clone(), profile));
    }
    if spec.kind == BmcKind::Redfish {
        let listener = TcpListener::bind(spec.address).await?;
        at.redfish = Some(listener.local_addr()?);
        let identity = certificates.of(&machine)?;
        at.certificate_pem = identity.as_ref().map(|identity| identity.pem.clone());
        let tls = identity.map(|identity| identity.acceptor);
        tasks.spawn(redfish::run(listener, tls, machine.clone(), profile));
    }
    Ok(at)
}

/// Raises the soft limit of open files to the hard limit: one socket per machine exceeds the usual 1,024.
fn allow_many_sockets() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        debug!(%error, "the limit of open files stays at {:?}", limit.current);
    }
}

/// The profile of `machine`. Fails if the spec is invalid.
fn profile_of(machine: &Machine) -> io::Result<&'static Profile> {
    let spec = machine.spec();
    let refuse = |why: String| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("machine {}: {why}", spec.name))
    };

    let speaks_ipmi = spec.bmc.kind == BmcKind::Ipmi || spec.bmc.also_ipmi.is_some();
    // IPMI 2.0 §13.20 and §22.30: at most 16 bytes of name and 20 of password.
    if speaks_ipmi && (spec.bmc.username.len() > 16 || spec.bmc.password.len() > 20) {
        return Err(refuse(
            "IPMI takes a user name of 16 bytes and a password of 20 at most".to_owned(),
        ));
    }
    let name = &spec.bmc.profile;
    Profile::find(name).ok_or_else(|| {
        refuse(format!("unknown profile {name:?}; known profiles: {}", Profile::names()))
    })
}

/// The certificates of the machines of one process.
struct Certificates {
    shared: Vec<(BTreeSet<IpAddr>, Identity)>,
    bundle: String,
}

impl Certificates {
    fn for_machines(machines: &[Machine]) -> io::Result<Certificates> {
        let specs = machines.iter().map(|machine| &machine.spec().bmc);
        let sharing =
            specs.filter(|bmc| bmc.kind == BmcKind::Redfish && bmc.tls && !bmc.own_certificate);
        let addresses: Vec<IpAddr> =
            sharing.map(|bmc| bmc.address.ip()).collect::<BTreeSet<_>>().into_iter().collect();

        let mut certificates = Certificates { shared: Vec::new(), bundle: String::new() };
        for some in addresses.chunks(ADDRESSES_EACH) {
            let some = some.iter().copied().collect();
            let identity = Identity::for_addresses(&some)?;
            certificates.bundle.push_str(&identity.pem);
            certificates.shared.push((some, identity));
        }
        Ok(certificates)
    }

    /// The certificate of `machine`. `None` if its BMC has no TLS.
    fn of(&mut self, machine: &Machine) -> io::Result<Option<Identity>> {
        let bmc = &machine.spec().bmc;
        if !bmc.tls {
            return Ok(None);
        }
        let ip = bmc.address.ip();
        if !bmc.own_certificate {
            let shared = self.shared.iter().find(|(addresses, _)| addresses.contains(&ip));
            return Ok(shared.map(|(_, identity)| identity.clone()));
        }
        let identity = Identity::for_addresses(&BTreeSet::from([ip]))?;
        self.bundle.push_str(&identity.pem);
        Ok(Some(identity))
    }
}
