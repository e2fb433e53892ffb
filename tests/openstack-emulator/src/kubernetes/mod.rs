//! Servers that join a Kubernetes cluster, and the API of the cluster.
//!
//! Nothing of Kubernetes runs. A server whose config has kubeadm's files of a control plane (`…/pki/ca.crt` and `ca.key`, a kubeadm
//! configuration) answers on its port 6443 like an API server, with a certificate signed by that CA. A server that has only the CA
//! certificate, or the pin of the CA for `kubeadm join`, joins as a worker. A worker without a certificate uses a bootstrap token, and
//! joins once its certificate request is approved.
//!
//! Controllers act immediately after each change. Kubelets act a moment later, and only while their server runs.

mod api;
mod apply;
mod auth;
mod authorities;
mod backups;
mod certificates;
mod cluster;
mod controllers;
mod curl;
mod discovery;
mod kept;
mod kubeadm;
mod kubelet;
mod layout;
mod members;
mod nodes;
mod object;
mod patch;
mod programs;
mod protobuf;
mod reply;
mod requests;
mod schedule;
mod selector;
mod state;
mod table;
mod tls;

pub use nodes::Nodes;
