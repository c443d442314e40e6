//! A model that answers at once: chat completions over HTTP/1.1 on loopback, on a thread of its own.
//!
//! What it answers is written in the prompt: `bench:tools=50` asks for so many calls of `bash`, one
//! after the other; `bench:deltas=2000` for so many pieces at once; `bench:paced=50` for pieces with
//! a pause between them; `bench:long=3000` for so many calls of `view`, counted here, because the
//! conversation is shortened meanwhile; anything else is answered with a short sentence.

mod answer;
mod http;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;

pub(crate) use answer::MODEL;
use answer::Wanted;

/// The pause between two paced deltas.
pub(crate) const PACE: Duration = Duration::from_millis(3);

/// The mock and what it was asked.
#[derive(Clone)]
pub(crate) struct Mock {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    epoch: Instant,
    /// When the requests for an answer came in, in order.
    asked: Mutex<Vec<Instant>>,
    /// How many calls the long session has asked for.
    long: AtomicUsize,
    /// When the last burst of deltas began to leave.
    burst: Mutex<Option<Instant>>,
}

impl Mock {
    /// Binds a port and serves it until the process ends.
    pub(crate) fn start() -> Self {
        let shared = Arc::new(Shared {
            epoch: Instant::now(),
            asked: Mutex::default(),
            long: AtomicUsize::default(),
            burst: Mutex::default(),
        });
        let (bound, address) = std::sync::mpsc::sync_channel(1);
        let serving = shared.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                bound.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let shared = serving.clone();
                    tokio::spawn(async move {
                        // A killed daemon hangs up in the middle.
                        http::serve(stream, &shared).await.ok();
                    });
                }
            });
        });
        let address = address.recv().unwrap();
        Self { address, shared }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Takes the times of all requests since the last look.
    pub(crate) fn take_asked(&self) -> Vec<Instant> {
        std::mem::take(&mut *lock(&self.shared.asked))
    }

    /// When the last burst of deltas began to leave.
    pub(crate) fn burst_began(&self) -> Instant {
        lock(&self.shared.burst).expect("a burst was asked for")
    }

    /// The moment that a paced delta says it was sent at.
    pub(crate) fn sent_at(&self, delta: &str) -> Option<Instant> {
        let nanoseconds = delta.trim().parse().ok()?;
        Some(self.shared.epoch + Duration::from_nanos(nanoseconds))
    }
}

impl Shared {
    /// Numbers the calls of a long session; after the last one there is only a text.
    fn counted(&self, wanted: Wanted) -> Wanted {
        let Wanted::Long(calls) = wanted else {
            return wanted;
        };
        let number = self.long.fetch_add(1, Ordering::Relaxed);
        if number < calls {
            Wanted::Look(number)
        } else {
            self.long.store(0, Ordering::Relaxed);
            Wanted::Text
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
