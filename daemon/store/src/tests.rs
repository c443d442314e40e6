//! The contract: a store of plain maps keeps it, and each of its checks can fail.

mod memory;
mod small_disk;

use crate::contract::{CHECKS, Subject};
use memory::{FAULTS, MemoryStore};
pub(crate) use small_disk::SmallDisk;

/// Runs every check on a fresh subject and tells all that failed.
pub(crate) async fn keeps_every_promise<S: Subject>(make: impl AsyncFn() -> S) {
    let mut broken = Vec::new();
    for check in CHECKS {
        let subject = make().await;
        if let Err(error) = check.run(&subject).await {
            broken.push(format!("{}: {error}", check.name));
        }
        subject.store().close().await.unwrap();
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[tokio::test]
async fn a_store_of_plain_maps_keeps_every_promise() {
    keeps_every_promise(async || MemoryStore::new(None)).await;
}

#[test]
fn there_is_a_fault_for_every_check() {
    let checks: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
    let faults: Vec<_> = FAULTS.iter().map(|(check, _)| *check).collect();
    assert_eq!(checks, faults);
}

#[tokio::test]
async fn every_check_fails_for_a_store_with_its_fault() {
    let mut unseen = Vec::new();
    for (check, (_, fault)) in CHECKS.iter().zip(FAULTS) {
        let subject = MemoryStore::new(Some(*fault));
        if check.run(&subject).await.is_ok() {
            unseen.push(format!("{} does not see {fault:?}", check.name));
        }
    }
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
}
