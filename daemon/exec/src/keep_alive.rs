//! Who needs the daemon: open connections and work under way. It leaves when neither is left.

use std::time::Duration;

use tokio::sync::watch;

/// Counts reasons to stay.
#[derive(Debug, Clone)]
pub struct KeepAlive {
    reasons: watch::Sender<KeepAliveReasons>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepAliveReasons {
    pub connections: usize,
    /// Model calls and tools; an open question is none.
    pub work: usize,
}

impl KeepAliveReasons {
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            reasons: watch::Sender::new(KeepAliveReasons::default()),
        }
    }
}

impl KeepAlive {
    /// Counts a connection for as long as the stay is held.
    pub fn connection(&self) -> KeepAliveGuard {
        self.stay(|reasons| &mut reasons.connections)
    }

    /// Counts a piece of work for as long as the stay is held.
    pub fn work(&self) -> KeepAliveGuard {
        self.stay(|reasons| &mut reasons.work)
    }

    fn stay(&self, field: fn(&mut KeepAliveReasons) -> &mut usize) -> KeepAliveGuard {
        self.reasons.send_modify(|reasons| *field(reasons) += 1);
        KeepAliveGuard {
            reasons: self.reasons.clone(),
            field,
        }
    }

    pub fn reasons(&self) -> KeepAliveReasons {
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
pub struct KeepAliveGuard {
    reasons: watch::Sender<KeepAliveReasons>,
    field: fn(&mut KeepAliveReasons) -> &mut usize,
}

impl Drop for KeepAliveGuard {
    fn drop(&mut self) {
        let field = self.field;
        self.reasons.send_modify(|reasons| {
            let count = field(reasons);
            *count = count.saturating_sub(1);
        });
    }
}
