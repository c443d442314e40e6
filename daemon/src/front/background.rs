//! Detaches a background daemon from the client that started it.

/// Closes every inherited descriptor but the pipe on stdout, and starts a new process session.
/// `main` calls this first. It does nothing without `--background`.
pub fn prepare() {
    if !std::env::args().any(|argument| argument == "--background") {
        return;
    }
    loopd_exec::sys::close_inherited_descriptors();
    #[cfg(unix)]
    {
        // This fails only if the process leads its group already; then it has its own session.
        rustix::process::setsid().ok();
    }
}
