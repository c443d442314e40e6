use std::process::{Child, Command, Stdio};

use super::*;

struct Sleeper(Child);

impl Sleeper {
    fn new(tag: &str) -> Self {
        let child = Command::new("sleep")
            .arg("1000")
            .env(TAG, tag)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn identity(&self) -> ProcessIdentity {
        ProcessIdentity::of(self.0.id().cast_signed()).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_process_is_identified_by_pid_and_start_time() {
    let sleeper = Sleeper::new("a");
    let identity = sleeper.identity();
    assert!(identity.is_alive());
    let reused = ProcessIdentity {
        start: identity.start - 1,
        ..identity
    };
    assert!(!reused.is_alive());
    assert_eq!(kill(&HashSet::new(), &[reused]), KillOutcome::All);
    assert!(identity.is_alive(), "a process that took over a pid lives");
    assert_eq!(kill(&HashSet::new(), &[identity]), KillOutcome::All);
    assert!(!identity.is_alive());
}

#[test]
fn tagged_processes_are_killed_and_others_are_not() {
    let (one, other) = (Sleeper::new("tag-one"), Sleeper::new("tag-other"));
    // The tag is in /proc only after exec.
    let tags = HashSet::from(["tag-one".to_owned()]);
    while !has_tag(one.identity().pid, &tags) {
        std::thread::yield_now();
    }
    let tagged = one.identity();
    assert_eq!(kill(&tags, &[]), KillOutcome::All);
    assert!(!tagged.is_alive());
    assert!(other.identity().is_alive());
}

#[test]
fn the_calling_process_is_never_killed() {
    let own = ProcessIdentity::of(std::process::id().cast_signed()).unwrap();
    assert_eq!(kill(&HashSet::new(), &[own]), KillOutcome::All);
}
