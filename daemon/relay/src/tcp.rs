//! TCP on loopback, for clients that have the token.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// How long to wait after a failed accept.
const PAUSE: Duration = Duration::from_millis(50);

/// Listens on one port of both loopback addresses.
pub struct Tcp {
    v4: TcpListener,
    v6: Option<TcpListener>,
    port: u16,
}

impl Tcp {
    /// Binds the port; 0 means any free one.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let v4 = TcpListener::bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)).await?;
        let port = v4.local_addr()?.port();
        // Clients connect to `localhost`, which may be either address. A machine without IPv6 has
        // only one.
        let v6 = TcpListener::bind(SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port)).await;
        Ok(Self {
            v4,
            v6: v6.ok(),
            port,
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Accepts the next client; after a failed accept it pauses and returns `None`.
    pub async fn next(&self) -> Option<TcpStream> {
        let accepted = tokio::select! {
            accepted = self.v4.accept() => accepted,
            accepted = accept_maybe(self.v6.as_ref()) => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                tracing::info!(%from, "a client connected over TCP");
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a TCP connection stays with delayed packets");
                }
                Some(stream)
            }
            Err(error) => {
                // Most likely no descriptors are left; during the pause others may be closed.
                tracing::warn!(%error, "a TCP connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
                None
            }
        }
    }
}

async fn accept_maybe(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}
