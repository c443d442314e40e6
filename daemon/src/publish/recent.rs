//! The last events of a session, ephemeral ones included, for readers that follow by cursor.

use std::collections::VecDeque;
use std::sync::Arc;

use loopd_proto::id::Seq;

/// How much is kept; older durable events are read from the store.
const KEEP_EVENTS: usize = 256;
const KEEP_BYTES: usize = 256 * 1024;

/// One event that was published.
#[derive(Debug, Clone)]
pub struct Published {
    /// Counts everything published, from 1.
    pub tick: u64,
    /// The position in the log up to and including this event.
    pub seq: Seq,
    pub durable: bool,
    pub kind: &'static str,
    pub line: Arc<str>,
}

/// A bounded window on what was published last.
#[derive(Debug, Default)]
pub struct Recent {
    /// Tells this life of the session from others: ticks begin anew with each.
    epoch: u64,
    events: VecDeque<Published>,
    bytes: usize,
    tick: u64,
}

impl Recent {
    pub fn new(epoch: u64) -> Self {
        Self {
            epoch,
            ..Self::default()
        }
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn push(&mut self, seq: Seq, durable: bool, kind: &'static str, line: Arc<str>) {
        self.tick += 1;
        self.bytes += line.len();
        self.events.push_back(Published {
            tick: self.tick,
            seq,
            durable,
            kind,
            line,
        });
        while self.events.len() > KEEP_EVENTS || self.bytes > KEEP_BYTES {
            let Some(old) = self.events.pop_front() else {
                break;
            };
            self.bytes -= old.line.len();
        }
    }

    /// The number of the last event.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// The events after a tick, or `None` when some of them are gone.
    pub fn after(&self, tick: u64) -> Option<impl Iterator<Item = &Published>> {
        let oldest = self
            .events
            .front()
            .map_or(self.tick + 1, |event| event.tick);
        (tick + 1 >= oldest).then(|| self.events.iter().filter(move |event| event.tick > tick))
    }

    /// The durable event at a position, if it is still here.
    pub fn line(&self, seq: Seq) -> Option<Arc<str>> {
        let mut stored = self.events.iter().rev().filter(|event| event.durable);
        let found = stored.find(|event| event.seq == seq)?;
        Some(found.line.clone())
    }

    /// The durable events after a position that are still here.
    pub fn durable_after(&self, seq: Seq) -> impl Iterator<Item = &Published> {
        self.events
            .iter()
            .filter(move |event| event.durable && event.seq > seq)
    }
}
