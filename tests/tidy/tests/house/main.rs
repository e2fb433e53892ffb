//! Checks of the repository itself.

mod arrows;
mod circles;
mod docs;
mod documents;
mod layout;
mod lengths;
mod licences;
mod manifests;
mod processes;
mod prose;
mod releases;
mod runs;
mod samples;
mod schemas;
mod vocabulary;
mod words;
