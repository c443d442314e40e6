//! System calls without a safe interface in the standard library; the only module with `unsafe`.

#[cfg(unix)]
pub(crate) mod sender;
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

/// The pid of the process that connected a local socket; 0 if this pid namespace does not show it.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a safe interface cannot say that the pid is 0")]
pub(crate) fn peer_pid(socket: std::os::fd::BorrowedFd<'_>) -> std::io::Result<i32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    // SAFETY: `ucred` is plain data for which all bytes are valid.
    unsafe { socket_option(socket, libc::SO_PEERCRED, &raw mut peer) }?;
    Ok(peer.pid)
}

/// A pidfd of the process that connected a local socket; `None` if it has ended. Kernels before 6.5
/// cannot tell: there the process that has this pid now is opened.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the kernel returns a bare descriptor number")]
pub(crate) fn peer_pidfd(
    socket: std::os::fd::BorrowedFd<'_>,
    pid: i32,
) -> Option<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut descriptor: libc::c_int = -1;
    // SAFETY: an integer is plain data. The descriptor is new and has no other owner.
    unsafe {
        match socket_option(socket, SO_PEERPIDFD, &raw mut descriptor) {
            Ok(()) => Some(std::os::fd::OwnedFd::from_raw_fd(descriptor)),
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                let pid = rustix::process::Pid::from_raw(pid)?;
                rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
            }
            Err(_) => None,
        }
    }
}

/// Reads an option of a socket.
///
/// # Safety
///
/// Every value of `T` must be valid for all bytes.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the kernel writes into the value")]
unsafe fn socket_option<T>(
    socket: std::os::fd::BorrowedFd<'_>,
    option: libc::c_int,
    value: *mut T,
) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let mut size = libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default();
    // SAFETY: the caller's value has `size` bytes, and the descriptor is open.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            value.cast(),
            &raw mut size,
        )
    };
    match failed {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

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

/// Whether a process has a file open for writing, or mapped into its memory to write to it. Fails where
/// that cannot be told: the file belongs to another user, or its file system has no leases.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library asks for a lease")]
pub fn is_open_for_writing(file: &std::fs::File) -> std::io::Result<bool> {
    use std::os::fd::AsRawFd;
    // The same number on all architectures that Rust supports; the crate does not have it.
    const F_SETSIG: libc::c_int = 10;
    let fcntl = |operation: libc::c_int, argument: libc::c_int| {
        // SAFETY: the descriptor is open, and these operations take a number and no memory.
        match unsafe { libc::fcntl(file.as_raw_fd(), operation, argument) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // Who opens the file while the lease is held makes the kernel send a signal: one that is ignored.
    fcntl(F_SETSIG, libc::SIGURG)?;
    match fcntl(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => {
            fcntl(libc::F_SETLEASE, libc::F_UNLCK)?;
            Ok(false)
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// Cannot be told on other systems.
#[cfg(not(target_os = "linux"))]
pub fn is_open_for_writing(_: &std::fs::File) -> std::io::Result<bool> {
    Err(std::io::ErrorKind::Unsupported.into())
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

/// Makes a child start a new session with standard input as its controlling terminal, and with
/// `socket` as the descriptor `number`.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "only the child itself can lead a session of its own"
)]
pub(crate) fn own_terminal_on_stdin(
    command: &mut std::process::Command,
    socket: &std::os::fd::OwnedFd,
    number: std::os::fd::RawFd,
) -> std::io::Result<()> {
    use std::mem::ManuallyDrop;
    use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
    use std::os::unix::process::CommandExt;
    // A copy above `number`: a descriptor that is duplicated onto itself would stay close-on-exec.
    let socket = rustix::io::fcntl_dupfd_cloexec(socket, number + 1)?;
    // SAFETY: all calls are bare system calls: they allocate nothing and take no lock. In the child
    // nothing else uses `number`, and nothing drops it.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(BorrowedFd::borrow_raw(0))?;
            let mut target = ManuallyDrop::new(OwnedFd::from_raw_fd(number));
            rustix::io::dup2(&socket, &mut target)?;
            Ok(())
        });
    }
    Ok(())
}

/// Runs a step in a child before it becomes the program.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "only the child itself can give up what it may do"
)]
pub(crate) fn before_exec(
    command: &mut std::process::Command,
    step: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
) {
    use std::os::unix::process::CommandExt;
    // SAFETY: only a keeper calls this, which has one thread (`SingleThread`): no other thread can
    // hold a lock in the copy, so that the step may even allocate.
    unsafe { command.pre_exec(step) };
}

/// The version of Landlock that this kernel has. Fails with `ENOSYS` if it has none, and with
/// `EOPNOTSUPP` if it was switched off when the system was started.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library tells the version")]
pub(crate) fn landlock_version() -> std::io::Result<i64> {
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the call reads no memory and changes nothing.
    match unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) } {
        version if version >= 0 => Ok(version),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Whether this kernel can answer a system call with an error on behalf of a filter.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library asks the kernel that")]
pub(crate) fn can_filter_system_calls() -> std::io::Result<()> {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads the number, which lives here, and changes nothing.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    match answer {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
