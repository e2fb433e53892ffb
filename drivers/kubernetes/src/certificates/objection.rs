//! The reasons why a certificate request is denied.

/// The reasons why a request is denied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// The text is not a certificate request in PEM, or has extra data.
    #[error("it has no readable certificate request")]
    Unreadable,
    /// The request has fields that a kubelet never uses.
    #[error("it requests {what}, which a kubelet never does")]
    AsksForMore { what: &'static str },
    /// The subject is not `system:node:NAME` of `system:nodes`.
    #[error(
        "its subject is not that of a node: one common name system:node:NAME, one organization system:nodes"
    )]
    Subject,
    #[error("its usages are not those of a kubelet")]
    Usages,
    #[error("{username} requests a certificate of {machine}")]
    Impostor { username: String, machine: String },
    #[error("{machine} does not have the name or address {name}")]
    ForeignName { name: String, machine: String },
    #[error("it requests a server certificate without a name or address")]
    Nameless,
}
