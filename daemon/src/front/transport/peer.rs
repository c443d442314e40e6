//! Refuses local connections from commands of sessions: a command that was allowed once could allow
//! itself everything.

use std::os::fd::AsFd;

use interprocess::local_socket::tokio::Stream;
use loopd_exec::process::PeerOrigin;
use loopd_proto::error::CONNECTION_REFUSED;
use loopd_proto::wire::ErrorObject;

use crate::front::rpc::server::Server;

/// Returns why this connection is refused; `None` if it is not.
pub(super) fn refusal(app: &Server, stream: &Stream) -> Option<ErrorObject> {
    let Stream::UdSocket(socket) = stream;
    let message = match app.services.processes.origin_of_peer(socket.as_fd()) {
        PeerOrigin::Outside => return None,
        PeerOrigin::Command => {
            "loopd takes no connections from the commands that its sessions run, because they could \
             approve themselves. Run this from a terminal of your own. A command that needs loopd \
             can use a daemon of its own: set LOOPD_HOME to a new folder."
        }
        PeerOrigin::Unknown => {
            "loopd could not find out which process connects: it has ended, or its parents keep \
             changing. Connect again from a process that lives as long as its connection."
        }
    };
    tracing::warn!(message, "a connection was refused");
    Some(ErrorObject::new(CONNECTION_REFUSED.into(), message))
}
