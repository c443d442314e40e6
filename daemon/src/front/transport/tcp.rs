//! TCP on loopback, for clients that have the token.

use std::sync::Arc;

use loopd_relay::tcp::Tcp;

use crate::front::connection::Trust;
use crate::front::rpc::server::Server;
use crate::launch::Launch;

/// Accepts connections until the daemon ends.
pub async fn serve(listener: Tcp, app: Arc<Server>, launch: Arc<Launch>) {
    loop {
        tokio::select! {
            () = app.ending.cancelled() => return,
            stream = listener.next() => {
                if let Some(stream) = stream {
                    app.serve_detached(stream, launch.clone(), Trust::Token);
                }
            }
        }
    }
}
