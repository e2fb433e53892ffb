//! The same stories against every cluster that is given: a real one, or else an emulated one. See the README for
//! `BEDPLATE_TEST_KUBECONFIG`. Each story deletes what it made.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod emulated;
mod given;
mod kubelet;

mod apply;
mod belongings;
mod certificates;
mod drain;
mod etcd;
mod machines;
mod nodes;
