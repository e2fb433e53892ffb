//! Decides which certificate requests are granted.

use std::net::IpAddr;

use super::objection::Objection;
use super::read::{CertificateRequest, Signer};
use super::subject::Subject;

const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";
const BOOTSTRAP: &str = "system:bootstrap:";
const BOOTSTRAPPERS: &str = "system:bootstrappers";

/// A member of the cluster, and the names and addresses that its certificates may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMember {
    /// The name of the member's node.
    pub name: String,
    /// Further names of the member.
    pub names: Vec<String>,
    /// All addresses of the member, also public ones.
    pub addresses: Vec<IpAddr>,
    /// Whether the member may still join with a bootstrap token. A member that has joined must prove its identity for the next certificate.
    /// A control-plane member needs no token, so the owner of a token must not be able to take over its name.
    pub may_join: bool,
}

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'r> {
    /// A member requests a certificate for itself.
    Approve(ValidRequest<'r>),
    /// No kubelet of this cluster sends such a request. The denial tells the requester.
    Deny(Objection),
    /// The decision is left to a person.
    Leave(UndecidedReason),
}

/// A request that `judge` has found valid. [`super::approve`] accepts only this type, so an unchecked request cannot be approved.
#[derive(Clone, Debug)]
pub struct ValidRequest<'r> {
    request: &'r CertificateRequest,
    machine: &'r str,
}

/// The reasons why a request is left to a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndecidedReason {
    /// No member has this name. The member may still be in creation.
    #[error("no member of the cluster has the name {name:?}")]
    UnknownMachine { name: String },
    /// The member has joined already, or never joins by token.
    #[error("{machine} has joined already and cannot join by token again")]
    HasJoined { machine: String },
    #[error("{username} is neither a node nor the user of a bootstrap token")]
    OtherUser { username: String },
}

impl<'r> ValidRequest<'r> {
    /// The request that was found valid.
    pub fn request(&self) -> &'r CertificateRequest {
        self.request
    }

    /// The name of the member that the request is for.
    pub fn machine(&self) -> &'r str {
        self.machine
    }
}

impl PartialEq for ValidRequest<'_> {
    fn eq(&self, other: &Self) -> bool {
        (&self.request.name, self.machine) == (&other.request.name, other.machine)
    }
}

impl Eq for ValidRequest<'_> {}

/// Decides about `request` in a cluster with these members. Pure.
pub fn judge<'r>(request: &'r CertificateRequest, machines: &'r [ClusterMember]) -> Verdict<'r> {
    // A request that a person has made is left to a person, whatever its content.
    let Some(asks) = Requester::of(request) else {
        return Verdict::Leave(UndecidedReason::OtherUser { username: short(&request.username) });
    };
    let (subject, name) = match kubelets(request) {
        Ok(read) => read,
        Err(objection) => return Verdict::Deny(objection),
    };
    let impostor =
        || Objection::Impostor { username: short(&request.username), machine: short(&name) };
    match (asks, request.signer) {
        (Requester::Node(node), _) if node != name => return Verdict::Deny(impostor()),
        (Requester::Joiner, Signer::Serving) => return Verdict::Deny(impostor()),
        (Requester::Node(_), Signer::Client | Signer::Serving)
        | (Requester::Joiner, Signer::Client) => {}
    }
    let Some(machine) = machines.iter().find(|it| it.name == name) else {
        return Verdict::Leave(UndecidedReason::UnknownMachine { name: short(&name) });
    };
    if asks == Requester::Joiner && !machine.may_join {
        return Verdict::Leave(UndecidedReason::HasJoined { machine: machine.name.clone() });
    }
    match machine.foreign(&subject) {
        Some(name) => {
            let machine = machine.name.clone();
            Verdict::Deny(Objection::ForeignName { name: short(&name), machine })
        }
        None => Verdict::Approve(ValidRequest { request, machine: &machine.name }),
    }
}

/// The requester, as the API server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requester<'r> {
    Node(&'r str),
    Joiner,
}

impl<'r> Requester<'r> {
    fn of(request: &'r CertificateRequest) -> Option<Requester<'r>> {
        let user = request.username.as_str();
        if let Some(name) = user.strip_prefix(NODE).filter(|_| request.groups.contains(NODES)) {
            return Some(Requester::Node(name));
        }
        let joins = user.starts_with(BOOTSTRAP) && request.groups.contains(BOOTSTRAPPERS);
        joins.then_some(Requester::Joiner)
    }
}

/// Checks that the request is exactly what a kubelet sends, and returns its subject and the node's name.
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
    // Key encipherment is for RSA keys. Newer kubelets have elliptic-curve keys and leave the usage out.
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

impl ClusterMember {
    /// Returns a name or address of the subject that this member does not have.
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
