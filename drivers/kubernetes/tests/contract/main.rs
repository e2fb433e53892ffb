//! Runs the same stories against the cluster that is given (see the README for `BEDPLATE_TEST_KUBECONFIG`), or against an emulated one.
//! Each story deletes the objects that it made.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod emulated;
mod given;
mod kubelet;

mod apply;
mod certificates;
mod cloud_objects;
mod drain;
mod etcd;
mod machines;
mod nodes;
