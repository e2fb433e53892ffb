//! What a reader of this repository relies on.

mod arrows;
mod docs;
mod documents;
mod layout;
mod licences;
mod manifests;
mod samples;
mod words;
