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
    /// Model calls, tool calls and commands that run. A pending permission or user question does not
    /// count.
    pub work: usize,
    /// What is kept for a person who may come back: shells that run no command, and sub-agents,
    /// which may wait for an answer. What a sub-agent does is counted as work on its own.
    pub waiting: usize,
}

impl KeepAliveReasons {
    /// Returns whether nobody is connected and nothing runs.
    fn is_unattended(self) -> bool {
        self.connections == 0 && self.work == 0
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

    /// Counts something that waits for a person until the guard is dropped.
    pub fn waiting(&self) -> KeepAliveGuard {
        self.guard(|reasons| &mut reasons.waiting)
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

    /// Resolves when nobody was connected and nothing ran for `idle`, or for `unattended` longer if
    /// something waits for a person all that time.
    pub async fn idle_for(&self, idle: Duration, unattended: Duration) {
        let mut changes = self.reasons.subscribe();
        loop {
            // The sender lives as long as `self`: waiting cannot fail.
            changes
                .wait_for(|reasons| reasons.is_unattended())
                .await
                .ok();
            let mut waiting = self.reasons.subscribe();
            let nothing_waits = async {
                waiting.wait_for(|reasons| reasons.waiting == 0).await.ok();
            };
            let patience = async {
                tokio::time::timeout(unattended, nothing_waits).await.ok();
                tokio::time::sleep(idle).await;
            };
            let needed = changes.wait_for(|reasons| !reasons.is_unattended());
            tokio::select! {
                _ = needed => {}
                () = patience => return,
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

#[cfg(test)]
mod tests;
