//! The rules of the queue, and how the writer cuts it into writes.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;

use super::*;

/// Limits in whole messages of 100 bytes each.
fn limits() -> Limits {
    Limits {
        delta_limit: 5 * COST,
        event_limit: 10 * COST,
        reply_limit: 5 * COST,
        request_limit: 5 * COST,
        ..Limits::default()
    }
}

const COST: usize = 100 + ITEM_COST;

fn message() -> Bytes {
    Bytes::from(vec![b'x'; 100])
}

fn push(outbox: &Outbox, class: Class, count: usize) -> Result<(), Closed> {
    (0..count).try_for_each(|_| outbox.push(class, message()))
}

fn queued(outbox: &Outbox) -> Vec<Class> {
    outbox.lock().queue.iter().map(|item| item.class).collect()
}

/// A stream that remembers each write and flush.
#[derive(Default)]
struct Recorder {
    calls: Vec<String>,
    bytes: Vec<u8>,
}

impl AsyncWrite for Recorder {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.calls.push(format!("write {}", bytes.len()));
        self.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.calls.push("flush".to_owned());
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.calls.push("shutdown".to_owned());
        Poll::Ready(Ok(()))
    }
}

fn chosen(framing: Framing) -> OnceLock<Framing> {
    OnceLock::from(framing)
}

#[test]
fn deltas_are_dropped_while_events_wait_and_counted() {
    let outbox = Outbox::new(limits());
    push(&outbox, Class::Event, 5).unwrap();
    push(&outbox, Class::Delta, 3).unwrap();
    // The first one made the waiting bytes exceed the limit.
    assert_eq!(outbox.dropped_deltas(), 2);
    push(&outbox, Class::Event, 1).unwrap();
    let mut expected = vec![Class::Event; 5];
    expected.extend([Class::Delta, Class::Event]);
    assert_eq!(queued(&outbox), expected);
}

#[test]
fn deltas_alone_never_close_the_connection() {
    let outbox = Outbox::new(limits());
    push(&outbox, Class::Delta, 1000).unwrap();
    assert_eq!(outbox.dropped_deltas(), 994);
    assert_eq!(outbox.close_reason(), None);
}

#[test]
fn too_many_events_close_the_connection_and_free_the_queue() {
    let outbox = Outbox::new(limits());
    push(&outbox, Class::Event, 10).unwrap();
    assert_eq!(outbox.intake(), Intake::Open);
    push(&outbox, Class::Event, 1).unwrap_err();
    assert_eq!(outbox.close_reason(), Some(CloseReason::TooSlow));
    assert_eq!(outbox.intake(), Intake::Closed);
    assert!(queued(&outbox).is_empty());
    outbox.closed().now_or_never().unwrap();
}

#[test]
fn one_event_beyond_the_whole_limit_does_not_close_the_connection() {
    let outbox = Outbox::new(limits());
    let huge = Bytes::from(vec![b'x'; 100 * COST]);
    outbox.push(Class::Event, huge.clone()).unwrap();
    push(&outbox, Class::Event, 4).unwrap();
    outbox.push(Class::Event, huge).unwrap_err();
}

#[test]
fn replies_stop_the_intake_until_they_are_written_and_never_close_the_connection() {
    let outbox = Outbox::new(limits());
    push(&outbox, Class::Reply, 5).unwrap();
    assert_eq!(outbox.intake(), Intake::Open);
    push(&outbox, Class::Reply, 1000).unwrap();
    assert_eq!(outbox.intake(), Intake::Full);
    assert!(outbox.resumed().now_or_never().is_none());
    let mut batch = Vec::new();
    while outbox.take(&mut batch) == BatchState::Filled && outbox.intake() == Intake::Full {
        batch.clear();
    }
    assert_eq!(outbox.intake(), Intake::Open);
    outbox.resumed().now_or_never().unwrap();
}

#[test]
fn requests_are_bounded_by_their_own_bytes() {
    let outbox = Outbox::new(limits());
    push(&outbox, Class::Request, 5).unwrap();
    assert!(!outbox.requests_full());
    push(&outbox, Class::Request, 1).unwrap();
    assert!(outbox.requests_full());
    assert_eq!(outbox.intake(), Intake::Open);
}

#[test]
fn a_closed_queue_refuses_and_keeps_its_first_reason() {
    let outbox = Outbox::new(limits());
    push(&outbox, Class::Reply, 2).unwrap();
    outbox.close(CloseReason::Done);
    outbox.close(CloseReason::TooSlow);
    assert_eq!(outbox.close_reason(), Some(CloseReason::Done));
    assert_eq!(push(&outbox, Class::Reply, 1), Err(Closed));
    assert_eq!(push(&outbox, Class::Delta, 1), Err(Closed));
    assert_eq!(queued(&outbox), [Class::Reply; 2]);
    outbox.discard();
    assert!(queued(&outbox).is_empty());
}

#[test]
fn a_message_without_bytes_is_not_sent() {
    let outbox = Outbox::new(limits());
    outbox.push(Class::Event, Bytes::new()).unwrap();
    assert!(queued(&outbox).is_empty());
}

#[test]
fn small_messages_share_a_write_and_large_ones_are_not_copied() {
    let outbox = Outbox::new(Limits::default());
    let large = Bytes::from(vec![b'y'; WRITE_DIRECTLY]);
    push(&outbox, Class::Event, 2).unwrap();
    outbox.push(Class::Event, large).unwrap();
    push(&outbox, Class::Event, 1).unwrap();
    outbox.close(CloseReason::Done);
    let mut stream = Recorder::default();
    write_out(&outbox, &chosen(Framing::Lines), &mut stream)
        .now_or_never()
        .unwrap()
        .unwrap();
    assert_eq!(
        stream.calls,
        ["write 202", "write 16384", "write 102", "flush", "shutdown"]
    );
    let lines = stream.bytes.split(|byte| *byte == b'\n').map(<[u8]>::len);
    assert_eq!(lines.collect::<Vec<_>>(), [100, 100, 16384, 100, 0]);
}

#[test]
fn headers_share_a_write_with_the_messages_before_them() {
    let outbox = Outbox::new(Limits::default());
    outbox
        .push(Class::Reply, Bytes::from_static(b"{}"))
        .unwrap();
    let large = Bytes::from(vec![b'y'; 20_000]);
    outbox.push(Class::Reply, large.clone()).unwrap();
    outbox.close(CloseReason::Done);
    let mut stream = Recorder::default();
    // Nothing was read yet, so the framing is not known.
    write_out(&outbox, &OnceLock::new(), &mut stream)
        .now_or_never()
        .unwrap()
        .unwrap();
    let mut expected = b"Content-Length: 2\r\n\r\n{}Content-Length: 20000\r\n\r\n".to_vec();
    expected.extend_from_slice(&large);
    assert_eq!(stream.bytes, expected);
    assert_eq!(stream.calls.len(), 4, "{:?}", stream.calls);
}

#[test]
fn the_writer_sleeps_until_something_is_pushed_and_flushes_once_per_burst() {
    let outbox = Outbox::new(Limits::default());
    let framing = chosen(Framing::Lines);
    let mut stream = Recorder::default();
    {
        let mut writing = pin!(write_out(&outbox, &framing, &mut stream));
        assert!(writing.as_mut().now_or_never().is_none());
        push(&outbox, Class::Event, 2000).unwrap();
        assert!(writing.as_mut().now_or_never().is_none());
        push(&outbox, Class::Event, 1).unwrap();
        assert!(writing.as_mut().now_or_never().is_none());
    }
    assert_eq!(
        stream.calls,
        [
            "flush",
            "write 66256",
            "write 66256",
            "write 66256",
            "write 3232",
            "flush",
            "write 101",
            "flush"
        ]
    );
    assert!(outbox.lock().queue.capacity() <= KEPT_SLOTS);
    assert_eq!(outbox.lock().event_bytes, 0);
}

#[test]
fn pushing_from_many_threads_loses_nothing() {
    let outbox = Arc::new(Outbox::new(Limits::default()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| push(&outbox, Class::Event, 1000));
        }
    });
    outbox.close(CloseReason::Done);
    let mut stream = Recorder::default();
    write_out(&outbox, &chosen(Framing::Lines), &mut stream)
        .now_or_never()
        .unwrap()
        .unwrap();
    assert_eq!(stream.bytes.len(), 4000 * 101);
}
