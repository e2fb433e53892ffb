//! Which requests are granted.

use std::net::IpAddr;

use super::read::{CertificateRequest, Signer};
use super::subject::Subject;

const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";
const BOOTSTRAP: &str = "system:bootstrap:";
const BOOTSTRAPPERS: &str = "system:bootstrappers";

/// A machine of the cluster, and what it may have certificates for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name of its node.
    pub name: String,
    /// Other names that it is called by.
    pub names: Vec<String>,
    /// Its addresses, the public ones too.
    pub addresses: Vec<IpAddr>,
    /// Whether it may still join with a bootstrap token. One that has its identity proves it when it asks for the next; and one of the
    /// control plane, which needs no token, must not be taken over by who has one.
    pub may_join: bool,
}

/// What shall become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'r> {
    /// A machine asks for what is its own.
    Approve(Fit<'r>),
    /// No kubelet of ours asks so: denied, so that who does learns it.
    Deny(Objection),
    /// Not ours to decide: a person may.
    Leave(Left),
}

/// A request that was judged to be fit: the proof that [`super::approve`] wants.
#[derive(Clone, Debug)]
pub struct Fit<'r> {
    request: &'r CertificateRequest,
    machine: &'r str,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// Not a certificate request in PEM, or one with more than belongs there.
    #[error("there is no certificate request in it that can be read")]
    Unreadable,
    /// More than kubelets ask for.
    #[error("it asks for {what}, which no kubelet does")]
    AsksForMore {
        /// For what.
        what: &'static str,
    },
    /// Not `system:node:NAME` of `system:nodes`.
    #[error(
        "its subject is not that of a node: one common name system:node:NAME, one organization system:nodes"
    )]
    Subject,
    /// Not what kubelets use theirs for.
    #[error("its usages are not those of a kubelet")]
    Usages,
    /// Somebody else's name.
    #[error("{username} asks for a certificate of {machine}")]
    Impostor {
        /// Who asks.
        username: String,
        /// For whom.
        machine: String,
    },
    /// A name or address that the machine does not have.
    #[error("{name} is no name or address of {machine}")]
    ForeignName {
        /// The name or address.
        name: String,
        /// The machine.
        machine: String,
    },
    /// A certificate for a server that is called nothing.
    #[error("it is for a server and names neither a name nor an address")]
    Nameless,
}

/// Why a request is left to people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Left {
    /// A node of that name is not ours; or not yet: its machine may be in the making.
    #[error("no machine is called {name:?}")]
    UnknownMachine {
        /// The name.
        name: String,
    },
    /// It has joined already, or never joins so.
    #[error("{machine} does not join by token any more")]
    HasJoined {
        /// The machine.
        machine: String,
    },
    /// Neither a node nor who would become one.
    #[error("{username} is neither a node nor joining as one")]
    OtherUser {
        /// Who asks.
        username: String,
    },
}

impl<'r> Fit<'r> {
    /// The request.
    pub fn request(&self) -> &'r CertificateRequest {
        self.request
    }

    /// The machine it is for.
    pub fn machine(&self) -> &'r str {
        self.machine
    }
}

impl PartialEq for Fit<'_> {
    fn eq(&self, other: &Self) -> bool {
        (&self.request.name, self.machine) == (&other.request.name, other.machine)
    }
}

impl Eq for Fit<'_> {}

/// What shall become of `request`, made to a cluster of these machines. Pure.
pub fn judge<'r>(request: &'r CertificateRequest, machines: &'r [Machine]) -> Verdict<'r> {
    // What a person asks for is for a person to judge, whatever stands in it.
    let Some(asks) = Asks::of(request) else {
        return Verdict::Leave(Left::OtherUser { username: short(&request.username) });
    };
    let (subject, name) = match kubelets(request) {
        Ok(read) => read,
        Err(objection) => return Verdict::Deny(objection),
    };
    let impostor =
        || Objection::Impostor { username: short(&request.username), machine: short(&name) };
    match (asks, request.signer) {
        (Asks::Node(node), _) if node != name => return Verdict::Deny(impostor()),
        (Asks::Joiner, Signer::Serving) => return Verdict::Deny(impostor()),
        (Asks::Node(_), Signer::Client | Signer::Serving) | (Asks::Joiner, Signer::Client) => {}
    }
    let Some(machine) = machines.iter().find(|it| it.name == name) else {
        return Verdict::Leave(Left::UnknownMachine { name: short(&name) });
    };
    if asks == Asks::Joiner && !machine.may_join {
        return Verdict::Leave(Left::HasJoined { machine: machine.name.clone() });
    }
    match machine.foreign(&subject) {
        Some(name) => {
            let machine = machine.name.clone();
            Verdict::Deny(Objection::ForeignName { name: short(&name), machine })
        }
        None => Verdict::Approve(Fit { request, machine: &machine.name }),
    }
}

/// Who asks, by the API server's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks<'r> {
    Node(&'r str),
    Joiner,
}

impl<'r> Asks<'r> {
    fn of(request: &'r CertificateRequest) -> Option<Asks<'r>> {
        let user = request.username.as_str();
        if let Some(name) = user.strip_prefix(NODE).filter(|_| request.groups.contains(NODES)) {
            return Some(Asks::Node(name));
        }
        let joins = user.starts_with(BOOTSTRAP) && request.groups.contains(BOOTSTRAPPERS);
        joins.then_some(Asks::Joiner)
    }
}

/// What a kubelet asks for, and as which node: nothing less and nothing more.
fn kubelets(request: &CertificateRequest) -> Result<(Subject, String), Objection> {
    let subject = Subject::read(&request.pem)?;
    let ([common], [NODES]) = (
        subject.common_names.as_slice(),
        subject.organizations.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
    ) else {
        return Err(Objection::Subject);
    };
    let name = common.strip_prefix(NODE).filter(|name| !name.is_empty());
    let name = name.ok_or(Objection::Subject)?.to_owned();
    let nameless = subject.names.is_empty() && subject.addresses.is_empty();
    let purpose = match request.signer {
        Signer::Client if !nameless => {
            return Err(Objection::AsksForMore { what: "names in a client's certificate" });
        }
        Signer::Serving if nameless => return Err(Objection::Nameless),
        Signer::Client => "client auth",
        Signer::Serving => "server auth",
    };
    // Key encipherment is RSA's: later kubelets, whose keys are elliptic, leave it out.
    let usages: Vec<&str> = request.usages.iter().map(String::as_str).collect();
    let mut with = ["digital signature", "key encipherment", purpose];
    let mut without = ["digital signature", purpose];
    with.sort_unstable();
    without.sort_unstable();
    if usages != with && usages != without {
        return Err(Objection::Usages);
    }
    Ok((subject, name))
}

impl Machine {
    /// A name or address of the subject that is not this machine's.
    fn foreign(&self, subject: &Subject) -> Option<String> {
        let own = |name: &&String| **name != self.name && !self.names.contains(name);
        let name = subject.names.iter().find(own).cloned();
        let address = subject.addresses.iter().find(|it| !self.addresses.contains(it));
        name.or_else(|| address.map(IpAddr::to_string))
    }
}

fn short(text: &str) -> String {
    crate::lenient::plain(text, 100)
}

#[cfg(test)]
mod tests;
