//! Signals that mean stop.

/// Watches from now on; the future resolves when the process is asked to end.
///
/// Not an async function: a signal that comes before the future is first polled counts, too.
#[cfg(unix)]
pub fn signal() -> impl Future<Output = ()> + Send {
    use tokio::signal::unix::{SignalKind, signal};
    let mut streams = Vec::new();
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        match signal(kind) {
            Ok(stream) => streams.push(stream),
            Err(error) => tracing::warn!(%error, "a signal cannot be watched"),
        }
    }
    async move {
        let waits = streams.iter_mut().map(|stream| Box::pin(stream.recv()));
        if waits.len() == 0 {
            return std::future::pending().await;
        }
        futures::future::select_all(waits).await;
    }
}

/// Watches from now on; the future resolves when the process is asked to end.
#[cfg(not(unix))]
pub fn signal() -> impl Future<Output = ()> + Send {
    async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
