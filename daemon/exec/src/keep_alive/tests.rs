//! When an idle daemon may go.

use std::time::Duration;

use super::*;

const IDLE: Duration = Duration::from_secs(60);
const UNATTENDED: Duration = Duration::from_secs(1800);

/// Returns after how many seconds the daemon may go.
async fn goes_after(keep_alive: &KeepAlive) -> u64 {
    let began = tokio::time::Instant::now();
    keep_alive.idle_for(IDLE, UNATTENDED).await;
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn without_a_reason_it_goes_soon() {
    assert_eq!(goes_after(&KeepAlive::default()).await, 60);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_person_keeps_it_for_a_while_and_not_for_ever() {
    let keep_alive = KeepAlive::default();
    let _waits = keep_alive.waiting();
    assert_eq!(goes_after(&keep_alive).await, 1860);
}

#[tokio::test(start_paused = true)]
async fn it_goes_soon_after_the_last_that_waited() {
    let keep_alive = KeepAlive::default();
    let waits = keep_alive.waiting();
    let ends = async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        drop(waits);
    };
    let (after, ()) = tokio::join!(goes_after(&keep_alive), ends);
    assert_eq!(after, 160);
}

#[tokio::test(start_paused = true)]
async fn the_time_begins_anew_after_a_connection_or_work() {
    for guard in [KeepAlive::connection, KeepAlive::work] {
        let keep_alive = KeepAlive::default();
        let _waits = keep_alive.waiting();
        let visit = async {
            tokio::time::sleep(Duration::from_secs(1000)).await;
            let visit = guard(&keep_alive);
            tokio::time::sleep(Duration::from_secs(5000)).await;
            drop(visit);
        };
        let (after, ()) = tokio::join!(goes_after(&keep_alive), visit);
        assert_eq!(after, 1000 + 5000 + 1860);
    }
}
