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

/// Keeps other processes of this user from reading the memory and the environment of this one, and
/// the kernel from writing them to a core file. Programs that this one runs are not affected.
#[cfg(target_os = "linux")]
pub fn refuse_inspection() -> std::io::Result<()> {
    let hidden = rustix::process::DumpableBehavior::NotDumpable;
    Ok(rustix::process::set_dumpable_behavior(hidden)?)
}

#[cfg(not(target_os = "linux"))]
pub fn refuse_inspection() -> std::io::Result<()> {
    Ok(())
}

/// Removes variables from the environment of this process and overwrites their values, which the
/// system shows in `/proc/<pid>/environ` otherwise.
///
/// Must be called before a second thread runs.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "the environment that the process was started with belongs to no value"
)]
pub fn forget_variables(names: &[&str]) {
    unsafe extern "C" {
        static environ: *const *mut std::ffi::c_char;
    }
    // SAFETY: `environ` is an array of C strings that ends with a null pointer. This is the only
    // thread, so that nobody else reads or changes it. The strings are writable: they lie on the
    // stack of the process or were allocated. Only bytes between `=` and the final zero change.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = std::ffi::CStr::from_ptr(*entry).to_bytes();
            let length = text.len();
            let equals = text.iter().position(|byte| *byte == b'=');
            let is_named = |at: usize| {
                names
                    .iter()
                    .any(|name| text.get(..at) == Some(name.as_bytes()))
            };
            if let Some(at) = equals.filter(|at| is_named(*at)) {
                let value = (*entry).add(at + 1);
                value.write_bytes(0, length - at - 1);
            }
            entry = entry.add(1);
        }
        for name in names {
            std::env::remove_var(name);
        }
    }
}

/// Does nothing: other systems do not show the environment of a process to others.
#[cfg(not(unix))]
pub fn forget_variables(_names: &[&str]) {}

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
