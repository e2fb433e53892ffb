//! Actions in the cloud and in a cluster's Kubernetes: each of them, and the loop that starts it when its dependencies exist.

mod act;
mod action_context;
mod create;
mod load_balancer;
mod load_balancer_parts;
mod perform;
mod server;

pub(crate) use act::{TurnContext, act};

#[cfg(test)]
mod tests;
