//! Counts what keeps the daemon running: open connections and work. An idle daemon exits.

use std::time::Duration;

use tokio::sync::watch;

/// Counts the reasons to keep the daemon running.
#[derive(Debug, Clone)]
pub struct KeepAlive {
    reasons: watch::Sender<KeepAliveReasons>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepAliveReasons {
    pub connections: usize,
    /// Model calls and tool calls; a pending permission or user question does not count.
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
    /// Counts a connection until the guard is dropped.
    pub fn connection(&self) -> KeepAliveGuard {
        self.guard(|reasons| &mut reasons.connections)
    }

    /// Counts a piece of work until the guard is dropped.
    pub fn work(&self) -> KeepAliveGuard {
        self.guard(|reasons| &mut reasons.work)
    }

    fn guard(&self, field: fn(&mut KeepAliveReasons) -> &mut usize) -> KeepAliveGuard {
        self.reasons.send_modify(|reasons| *field(reasons) += 1);
        KeepAliveGuard {
            reasons: self.reasons.clone(),
            field,
        }
    }

    pub fn reasons(&self) -> KeepAliveReasons {
        *self.reasons.borrow()
    }

    /// Resolves when there has been no reason for this long.
    pub async fn idle_for(&self, time: Duration) {
        let mut changes = self.reasons.subscribe();
        loop {
            // The sender lives as long as `self`: waiting cannot fail.
            changes.wait_for(|reasons| reasons.is_none()).await.ok();
            let needed = changes.wait_for(|reasons| !reasons.is_none());
            if tokio::time::timeout(time, needed).await.is_err() {
                return;
            }
        }
    }
}

/// One reason to keep the daemon running, until dropped.
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
