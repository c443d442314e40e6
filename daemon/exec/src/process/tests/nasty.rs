//! Commands that resist being killed, and a count of their living processes.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// The mark that all children of one test have in their environment or arguments.
pub(super) struct NastyChildren(pub(super) String);

const KINDS: [&str; 6] = [
    // Ignores signals.
    "trap '' TERM HUP INT; echo ready; while :; do sleep 1000; done",
    // Starts a process in a session of its own.
    "setsid bash -c \"trap '' TERM HUP; echo ready; sleep 1000\" & disown; exec sleep 1000",
    // Forks twice and closes all descriptors.
    "(setsid bash -c '(sleep 1000 </dev/null >/dev/null 2>&1 &)'; echo ready) & wait",
    "nohup sleep 1000 >/dev/null 2>&1 & nohup setsid sleep 1000 >/dev/null 2>&1 & echo ready; wait",
    // Starts new processes all the time.
    "echo ready; while :; do (setsid sleep 1000 >/dev/null 2>&1 &); sleep 0.2; done",
    // Clears its environment, and with it the tag.
    "(env -i setsid sleep 1000.$BROOD >/dev/null 2>&1 &); echo ready; exec -a quiet sleep 1000",
];

impl NastyChildren {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // A fraction of a second, so that it can be an argument of `sleep`.
        Self(format!("7{:07}{count:03}7", std::process::id()))
    }

    pub(super) fn child(&self, number: usize, lifetime: Lifetime) -> Spawn {
        let mut spawn = bash(KINDS.iter().cycle().nth(number).unwrap());
        spawn.env.insert("BROOD".to_owned(), self.0.clone());
        if matches!(lifetime, Lifetime::Detached { .. }) {
            spawn.io = Io::Log;
        }
        spawn.lifetime = lifetime;
        spawn
    }

    /// Starts `count` children and waits until each is ready.
    pub(super) async fn start(
        &self,
        processes: &Processes,
        count: usize,
        session: &str,
        lifetime: &Lifetime,
    ) -> Vec<OwnedProcess> {
        let starts = (0..count).map(|number| async move {
            let mut spawn = self.child(number, lifetime.clone());
            spawn.session = Some(session.into());
            let mut owned = processes.spawn(spawn).await.unwrap();
            let mut ready = [0; 5];
            let pipe = owned.output.as_mut().unwrap();
            pipe.read_exact(&mut ready).await.unwrap();
            owned
        });
        futures::future::join_all(starts).await
    }

    /// The living processes with the mark, except the daemon process.
    pub(super) fn pids(&self) -> Vec<u32> {
        let mark = self.0.as_bytes();
        let holds = |path: String| {
            let bytes = std::fs::read(path).unwrap_or_default();
            bytes.windows(mark.len()).any(|window| window == mark)
                && !bytes
                    .windows(20)
                    .any(|window| window == b"LOOPD_TEST_DAEMON_HO")
        };
        let entries = std::fs::read_dir("/proc").unwrap();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            holds(format!("/proc/{pid}/environ")) || holds(format!("/proc/{pid}/cmdline"))
        })
        .collect()
    }

    /// Counts the living processes with the mark.
    pub(super) fn alive(&self) -> usize {
        self.pids().len()
    }

    /// Checks that all processes with the mark end within a second.
    pub(super) async fn is_dead(&self, when: &str) {
        soon(&format!("some are alive after {when}"), || {
            self.alive() == 0
        })
        .await;
    }
}
