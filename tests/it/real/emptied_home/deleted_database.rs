//! A database file that is deleted under the daemon: nothing that would go into it is acknowledged.

use serde_json::json;

use super::daemon_of;
use super::{Place, offline, only};

#[tokio::test]
async fn a_session_that_is_created_after_its_database_was_deleted_is_there_or_refused() {
    let place = Place::new();
    let (loopd, client) = place.relay(offline());
    for round in 0..12 {
        let mut session = client.create(json!({})).await;
        session.ask("hello").await;
        let serving = daemon_of(&client).await;
        std::fs::remove_file(place.home().join("loopd.db")).unwrap();
        let created = client
            .try_call("session.create", json!({"model": "offline"}))
            .await;
        // The next daemon answers as soon as the other is gone.
        let next = loop {
            match client.try_call("loopd.daemonStatus", json!({})).await {
                Ok(status) if status["pid"] != serving => break daemon_of(&client).await,
                _ => tokio::task::yield_now().await,
            }
        };
        only(&place.home(), next).await;
        if let Ok(created) = created {
            let id = json!({"sessionId": created["sessionId"]});
            let there = client.try_call("session.getMessages", id).await;
            assert!(
                there.is_ok(),
                "round {round}: {created} was acknowledged and lost"
            );
        }
    }
    loopd.terminate();
    assert!(loopd.exited().await.success());
}
