//! System calls without a safe interface in the standard library; the only module with `unsafe`.

#[cfg(target_os = "linux")]
pub(crate) mod single_thread;

/// Closes every inherited descriptor above stderr.
///
/// Must be called before the process opens a descriptor.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "descriptors from outside have no owner in this process that could be dropped"
)]
pub fn close_inherited_descriptors() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let descriptors: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        .collect();
    for descriptor in descriptors {
        // The descriptor that listed the folder is in the list but closed already.
        if std::fs::symlink_metadata(format!("/proc/self/fd/{descriptor}")).is_err() {
            continue;
        }
        // SAFETY: called first thing in `main`, when nothing of this process owns a descriptor
        // above stderr.
        unsafe { rustix::io::close(descriptor) };
    }
}

/// Makes all threads share one malloc arena, which grows in large steps.
///
/// With glibc, one arena per thread uses more memory and grows page by page: folding a long log
/// took a system call every few events. Must be called before a second thread runs.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the allocator is set up by a call of the C library"
)]
pub fn share_one_heap() {
    // SAFETY: changes a number inside the allocator; called while this is the only thread. A
    // refusal leaves the allocator as it was.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Does nothing: other C libraries manage their heaps differently.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_heap() {}

/// Duplicates a descriptor of which only the number is known.
///
/// The owner is borrowed, so that the descriptor stays open during the call.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "a descriptor number does not keep its descriptor open"
)]
pub(crate) fn duplicate_descriptor<Owner: ?Sized>(
    _owner: &Owner,
    number: std::os::fd::RawFd,
) -> std::io::Result<std::os::fd::OwnedFd> {
    // SAFETY: its owner keeps the descriptor open for as long as it is borrowed here.
    let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}

/// Registers a descriptor with the async runtime, which then owns it.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "the runtime asks for the promise that is made here"
)]
pub fn watch_descriptor(
    descriptor: std::os::fd::OwnedFd,
) -> std::io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives, and the
    // `AsyncFd` is its only owner.
    Ok(unsafe { tokio::io::unix::AsyncFd::register(descriptor) }?)
}

#[cfg(not(target_os = "linux"))]
pub fn close_inherited_descriptors() {}

/// Makes a child start a new session with standard input as its controlling terminal.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "only the child itself can lead a session of its own"
)]
pub(crate) fn own_terminal_on_stdin(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: both calls are bare system calls: they allocate nothing and take no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(std::os::fd::BorrowedFd::borrow_raw(0))?;
            Ok(())
        });
    }
}
