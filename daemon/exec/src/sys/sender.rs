//! Reads from a local socket what one process has written, and nothing of others.

use std::io;
use std::os::fd::BorrowedFd;

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes of the expected process.
    FromShell(usize),
    /// Bytes of another process.
    FromOther,
    /// Nobody has the other end open.
    End,
}

/// Reads once, without waiting. The bytes of one read come from one process: on a socket that passes
/// credentials the kernel joins no bytes of two senders.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "a safe interface cannot say that the pid of a sender is 0"
)]
#[expect(
    clippy::cast_ptr_alignment,
    reason = "the credentials are read as what may lie anywhere"
)]
#[expect(
    clippy::unnecessary_cast,
    reason = "the type of the length differs between C libraries"
)]
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    shell: u32,
    buffer: &mut [u8],
) -> io::Result<Received> {
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;

    let mut room = CredentialsRoom([0; ROOM]);
    let mut piece = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: all zeros are a valid header: no address, no pieces, no room.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = room.0.as_mut_ptr().cast();
    header.msg_controllen = size_of::<CredentialsRoom>() as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header names memory that lives here, with its true lengths.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let Ok(count) = usize::try_from(count) else {
        return Err(io::Error::last_os_error());
    };
    if count == 0 {
        return Ok(Received::End);
    }
    let mut sender = 0;
    // SAFETY: the kernel has written whole messages into the room; the two macros stay inside of what
    // the header says.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(head) = message.as_ref() {
            if head.cmsg_level == libc::SOL_SOCKET
                && head.cmsg_type == libc::SCM_CREDENTIALS
                && head.cmsg_len as usize >= libc::CMSG_LEN(CREDENTIALS) as usize
            {
                let credentials = libc::CMSG_DATA(message).cast::<libc::ucred>();
                sender = credentials.read_unaligned().pid;
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    // The pid is 0 if this pid namespace does not show the sender.
    match u32::try_from(sender) {
        Ok(pid) if pid == shell => Ok(Received::FromShell(count)),
        Ok(_) | Err(_) => Ok(Received::FromOther),
    }
}

#[cfg(target_os = "linux")]
#[expect(clippy::cast_possible_truncation, reason = "the size of three numbers")]
const CREDENTIALS: libc::c_uint = size_of::<libc::ucred>() as libc::c_uint;

/// Room for the credentials of the sender and for nothing else: descriptors that a sender passes are
/// closed by the kernel.
#[cfg(target_os = "linux")]
#[repr(C, align(8))]
struct CredentialsRoom([u8; ROOM]);

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the crate marks a computation as unsafe")]
// SAFETY: it only computes.
const ROOM: usize = unsafe { libc::CMSG_SPACE(CREDENTIALS) } as usize;

/// Reads once, without waiting. These systems do not name the sender.
#[cfg(not(target_os = "linux"))]
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    _shell: u32,
    buffer: &mut [u8],
) -> io::Result<Received> {
    Ok(match rustix::io::read(socket, buffer)? {
        0 => Received::End,
        count => Received::FromShell(count),
    })
}
