//! Octavia v2: load balancers and their children.

mod change;
mod children;
mod full;
mod load_balancer;
mod quota;
mod references;
mod refuse;
mod routes;
mod types;

pub(crate) use load_balancer::{forget_children, settled};
pub(crate) use routes::answer;
