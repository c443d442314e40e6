//! The watchdogs, on a paused clock.

use super::*;
use futures::FutureExt;
use futures::stream;

/// A carrier that plays a body with pauses, on the paused clock.
struct Scripted {
    before_head: Duration,
    chunks: Vec<(Duration, &'static [u8])>,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    Close,
    Never,
}

impl HttpCarrier for Scripted {
    fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ProviderError>> {
        async move {
            tokio::time::sleep(self.before_head).await;
            let chunks = stream::iter(self.chunks.clone()).then(|(pause, chunk)| async move {
                tokio::time::sleep(pause).await;
                Ok(Bytes::from_static(chunk))
            });
            let body = match self.end {
                End::Close => chunks.boxed(),
                End::Never => chunks.chain(stream::pending()).boxed(),
            };
            Ok(HttpResponse {
                status: 200,
                headers: HeaderMap::new(),
                body,
            })
        }
        .boxed()
    }
}

fn timeouts() -> Timeouts {
    Timeouts {
        token: SECOND,
        first_byte: Duration::from_secs(10),
        first_byte_of_whole_reply: Duration::from_secs(20),
        first_byte_of_listing: Duration::from_secs(5),
        between_chunks: Duration::from_secs(3),
        whole_call: Duration::from_secs(30),
        largest_body: 10,
    }
}

const SECOND: Duration = Duration::from_secs(1);

async fn read(carrier: Scripted, expecting: Expecting) -> Result<Vec<u8>, ProviderError> {
    let request = HttpRequest {
        method: HttpMethod::Get,
        url: "http://model.invalid/".parse().unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
    };
    let mut reply = WatchedReply::open(&carrier, request, &timeouts(), expecting).await?;
    let mut body = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        body.extend_from_slice(&chunk);
    }
    assert_eq!(reply.received(), body.len() as u64);
    Ok(body)
}

fn late(phase: TimeoutPhase, seconds: u64) -> ProviderError {
    ProviderError::Timeout {
        phase,
        limit: Duration::from_secs(seconds),
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_within_all_limits_is_read() {
    let carrier = Scripted {
        before_head: 4 * SECOND,
        chunks: vec![
            (5 * SECOND, b"abc"),
            (2 * SECOND, b""),
            (2 * SECOND / 4, b"def"),
        ],
        end: End::Close,
    };
    assert_eq!(
        read(carrier, Expecting::Stream).await,
        Ok(b"abcdef".to_vec())
    );
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_head_ends_at_the_limit_of_what_is_expected() {
    let cases = [
        (Expecting::Stream, 10),
        (Expecting::WholeReply, 20),
        (Expecting::Listing, 5),
    ];
    for (expecting, seconds) in cases {
        let started = Instant::now();
        let carrier = Scripted {
            before_head: 1000 * SECOND,
            chunks: vec![],
            end: End::Close,
        };
        assert_eq!(
            read(carrier, expecting).await,
            Err(late(TimeoutPhase::FirstByte, seconds))
        );
        assert_eq!(started.elapsed(), Duration::from_secs(seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn head_and_first_chunk_share_one_limit() {
    let carrier = Scripted {
        before_head: 8 * SECOND,
        chunks: vec![(4 * SECOND, b"a")],
        end: End::Close,
    };
    assert_eq!(
        read(carrier, Expecting::Stream).await,
        Err(late(TimeoutPhase::FirstByte, 10))
    );
}

#[tokio::test(start_paused = true)]
async fn a_stall_in_the_middle_ends_at_the_limit_between_chunks() {
    let started = Instant::now();
    let carrier = Scripted {
        before_head: SECOND,
        chunks: vec![(SECOND, b"a")],
        end: End::Never,
    };
    assert_eq!(
        read(carrier, Expecting::Stream).await,
        Err(late(TimeoutPhase::BetweenChunks, 3))
    );
    assert_eq!(started.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_trickle_ends_with_the_whole_call() {
    let carrier = Scripted {
        before_head: 5 * SECOND,
        chunks: [(5 * SECOND / 2, b"".as_slice())]
            .repeat(3)
            .into_iter()
            .chain([(SECOND, b"a".as_slice())].repeat(9))
            .chain([(2 * SECOND, b"".as_slice())].repeat(20))
            .collect(),
        end: End::Never,
    };
    // Empty chunks are no progress, so the first byte is late here.
    assert_eq!(
        read(carrier, Expecting::Stream).await,
        Err(late(TimeoutPhase::FirstByte, 10))
    );
    let carrier = Scripted {
        before_head: 6 * SECOND,
        chunks: [(5 * SECOND / 2, b"a".as_slice())].repeat(10),
        end: End::Never,
    };
    assert_eq!(
        read(carrier, Expecting::Stream).await,
        Err(late(TimeoutPhase::WholeCall, 30))
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_beyond_its_bound_is_refused() {
    let carrier = Scripted {
        before_head: SECOND,
        chunks: vec![(SECOND, b"0123456789"), (SECOND, b"x")],
        end: End::Never,
    };
    assert_eq!(
        read(carrier, Expecting::Stream).await,
        Err(ProviderError::TooLarge { limit: 10 })
    );
}
