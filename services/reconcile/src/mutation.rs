//! Deliberate mistakes, with which a test of the tests builds the services (feature `mutations`). A simulation has to notice each of them.

#[cfg(feature = "mutations")]
use std::sync::atomic::{AtomicU8, Ordering};

/// A mistake in the services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutation {
    /// Effects are permitted after the lease has passed.
    NoFence = 1,
    /// A turn performs its actions before it writes the change that announces them.
    ActBeforeRecord,
    /// Every conductor works on every resource.
    NoShares,
    /// An object of the cloud whose creation was not answered is not looked for.
    ForgetUnanswered,
    /// Nobody looks for requests that woke no conductor.
    NoCatchUp,
    /// Drains may cost any cluster the quorum of its etcd.
    NoQuorumCheck,
    /// A machine is switched off before its host is drained.
    NoDrain,
}

impl Mutation {
    /// All mistakes.
    pub const ALL: [Mutation; 7] = [
        Mutation::NoFence,
        Mutation::ActBeforeRecord,
        Mutation::NoShares,
        Mutation::ForgetUnanswered,
        Mutation::NoCatchUp,
        Mutation::NoQuorumCheck,
        Mutation::NoDrain,
    ];

    /// Whether this process makes the mistake.
    #[cfg(feature = "mutations")]
    pub fn is_made(self) -> bool {
        MADE.load(Ordering::Relaxed) == self as u8
    }

    /// Whether this process makes the mistake: never.
    #[cfg(not(feature = "mutations"))]
    pub const fn is_made(self) -> bool {
        false
    }

    /// Lets this process make the mistake from now on.
    #[cfg(feature = "mutations")]
    pub fn make(self) {
        MADE.store(self as u8, Ordering::Relaxed);
    }
}

#[cfg(feature = "mutations")]
static MADE: AtomicU8 = AtomicU8::new(0);
