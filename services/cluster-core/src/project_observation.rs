//! The observation of the cloud's project in which a cluster or VM is created.

/// The cloud's project of a cluster or VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectObservation {
    /// clusterd has no cloud.
    NoCloud,
    /// The record names the project, or nothing is left to create.
    Recorded,
    /// Nothing was created yet, and everything will be created in the project with this id.
    New(String),
    /// The project cannot be determined now, for this reason.
    Unknown(String),
}
