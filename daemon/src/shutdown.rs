//! Signals that mean stop.

/// Resolves when the process is asked to end.
#[cfg(unix)]
pub async fn signal() {
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
    let waits = streams.iter_mut().map(|stream| Box::pin(stream.recv()));
    if waits.len() == 0 {
        return std::future::pending().await;
    }
    futures::future::select_all(waits).await;
}

/// Resolves when the process is asked to end.
#[cfg(not(unix))]
pub async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
