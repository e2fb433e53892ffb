//! Cuts of connections.

use libc::c_int;

use crate::address::Kind;
use crate::kernel::{Host, Kernel};
use crate::real::real;

/// Cuts all connections between two hosts.
pub(crate) fn cut(kernel: &mut Kernel, one: Host, other: Host) {
    let connections = &kernel.connections;
    for (file, socket) in &connections.sockets {
        let peer = connections.host_of_peer(socket);
        let is_between = peer.is_some_and(|peer| {
            (socket.host, peer) == (one, other) || (socket.host, peer) == (other, one)
        });
        if socket.kind == Kind::Stream && is_between {
            shut(*file);
        }
    }
}

/// Cuts the connections whose time has come.
pub(crate) fn cut_due(kernel: &mut Kernel, now: u64) {
    while let Some(due) = kernel.cuts.first_entry()
        && due.key().0 <= now
    {
        let ((_, made), file) = due.remove_entry();
        if kernel.connections.sockets.get(&file).is_some_and(|it| it.made == made) {
            shut(file);
        }
    }
}

fn shut(file: c_int) {
    real!(shutdown(file => c_int, libc::SHUT_RDWR => c_int) -> c_int);
}
