//! Cuts a daemon that a client started loose from that client.

/// First thing in `main`: a background daemon keeps nothing of its starter but the pipe on stdout.
pub fn prepare() {
    if !std::env::args().any(|argument| argument == "--background") {
        return;
    }
    loopd_exec::sys::close_inherited_descriptors();
    #[cfg(unix)]
    {
        // Fails only for a process that leads its group already, which then has its own session.
        rustix::process::setsid().ok();
    }
}
