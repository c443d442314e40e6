//! A client behind a relay is counted once.

use loopd_tests::binary::Loopd;
use serde_json::json;

#[tokio::test]
async fn a_client_over_stdio_is_one_client() {
    let home = tempfile::tempdir().unwrap();
    let (first, one) = Loopd::relay(home.path(), json!({"model": "offline"}));
    let status = one.call("loopd.daemonStatus", json!({})).await;
    assert_eq!(status["connections"], 1, "{status}");
    let (second, other) = Loopd::relay(home.path(), json!({"model": "offline"}));
    let status = other.call("loopd.daemonStatus", json!({})).await;
    assert_eq!(status["connections"], 2, "{status}");
    for relay in [first, second] {
        relay.terminate();
        assert!(relay.exited().await.success());
    }
}
