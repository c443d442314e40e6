//! Who needs the daemon: open connections and work under way. It leaves when neither is left.

use std::time::Duration;

use tokio::sync::watch;

/// Counts reasons to stay.
#[derive(Debug, Clone)]
pub struct Presence {
    reasons: watch::Sender<Reasons>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasons {
    pub connections: usize,
    /// Model calls and tools; an open question is none.
    pub work: usize,
}

impl Reasons {
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl Default for Presence {
    fn default() -> Self {
        Self {
            reasons: watch::Sender::new(Reasons::default()),
        }
    }
}

impl Presence {
    /// Counts a connection for as long as the stay is held.
    pub fn connection(&self) -> Stay {
        self.stay(|reasons| &mut reasons.connections)
    }

    /// Counts a piece of work for as long as the stay is held.
    pub fn work(&self) -> Stay {
        self.stay(|reasons| &mut reasons.work)
    }

    fn stay(&self, field: fn(&mut Reasons) -> &mut usize) -> Stay {
        self.reasons.send_modify(|reasons| *field(reasons) += 1);
        Stay {
            reasons: self.reasons.clone(),
            field,
        }
    }

    pub fn reasons(&self) -> Reasons {
        *self.reasons.borrow()
    }

    /// Resolves when there was no reason to stay for this long.
    pub async fn gone_for(&self, time: Duration) {
        let mut changes = self.reasons.subscribe();
        loop {
            // The sender lives as long as `self`: waiting cannot fail.
            changes.wait_for(|reasons| reasons.is_none()).await.ok();
            let somebody = changes.wait_for(|reasons| !reasons.is_none());
            if tokio::time::timeout(time, somebody).await.is_err() {
                return;
            }
        }
    }
}

/// A reason to stay; ends when dropped.
#[derive(Debug)]
pub struct Stay {
    reasons: watch::Sender<Reasons>,
    field: fn(&mut Reasons) -> &mut usize,
}

impl Drop for Stay {
    fn drop(&mut self) {
        let field = self.field;
        self.reasons.send_modify(|reasons| {
            let count = field(reasons);
            *count = count.saturating_sub(1);
        });
    }
}
