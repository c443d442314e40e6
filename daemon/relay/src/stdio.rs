//! The process's own stdin and stdout as the two halves of one stream.
//!
//! Clients start us with pipes or sockets, which are read without blocking. Files and terminals
//! are read by blocking threads.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// The reading half.
pub type Input = Pin<Box<dyn AsyncRead + Send>>;
/// The writing half.
pub type Output = Pin<Box<dyn AsyncWrite + Send>>;

/// Opens both halves.
pub fn open() -> io::Result<(Input, Output)> {
    Ok((input()?, output()?))
}

#[cfg(unix)]
fn input() -> io::Result<Input> {
    use std::os::fd::AsFd;
    let stdin = std::io::stdin();
    Ok(match kind(stdin.as_fd())? {
        Kind::Pipe => {
            let fd = stdin.as_fd().try_clone_to_owned()?;
            Box::pin(tokio::net::unix::pipe::Receiver::from_owned_fd(fd)?)
        }
        Kind::Socket => Box::pin(socket(stdin.as_fd())?),
        Kind::Other => Box::pin(tokio::io::stdin()),
    })
}

#[cfg(unix)]
fn output() -> io::Result<Output> {
    use std::os::fd::AsFd;
    let stdout = std::io::stdout();
    Ok(match kind(stdout.as_fd())? {
        Kind::Pipe => {
            let fd = stdout.as_fd().try_clone_to_owned()?;
            Box::pin(tokio::net::unix::pipe::Sender::from_owned_fd(fd)?)
        }
        Kind::Socket => Box::pin(socket(stdout.as_fd())?),
        Kind::Other => Box::pin(tokio::io::stdout()),
    })
}

#[cfg(unix)]
enum Kind {
    Pipe,
    Socket,
    Other,
}

#[cfg(unix)]
fn kind(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<Kind> {
    let mode = rustix::fs::fstat(fd)?.st_mode;
    Ok(match rustix::fs::FileType::from_raw_mode(mode) {
        rustix::fs::FileType::Fifo => Kind::Pipe,
        rustix::fs::FileType::Socket => Kind::Socket,
        _ => Kind::Other,
    })
}

#[cfg(unix)]
fn socket(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<tokio::net::UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd.try_clone_to_owned()?);
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

#[cfg(not(unix))]
fn input() -> io::Result<Input> {
    Ok(Box::pin(tokio::io::stdin()))
}

#[cfg(not(unix))]
fn output() -> io::Result<Output> {
    Ok(Box::pin(tokio::io::stdout()))
}
