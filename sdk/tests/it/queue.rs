//! What waits in a session, and who stops what.

use loopd_sdk::{Error, KeepsWaiting, SessionConfig, Stopped, Wait};

use crate::home::{Home, within};

/// A configuration whose client never answers a permission request, so that its turn goes on.
fn silent(name: &str) -> SessionConfig {
    let config = SessionConfig::new().client_name(name);
    config.on_permission(|_| std::future::pending())
}

#[tokio::test]
async fn a_client_stops_its_own_message_and_no_turn_of_another() {
    let home = Home::new();
    let (one, two) = (home.client().await, home.client().await);
    let ours = one.create(silent("one")).await.unwrap();
    let theirs = two.resume(ours.id().clone(), silent("two")).await.unwrap();
    let mut turn = ours.turn("run echo never", Wait::Session);
    loop {
        let event = within("the permission", turn.next()).await.unwrap();
        if event.body.kind() == "permission.requested" {
            break;
        }
    }
    let waits = theirs.send("hello").await.unwrap();
    // Another message: it neither runs nor waits.
    let unknown = "unknown".into();
    let spared = theirs.stop_message(&unknown, KeepsWaiting::No);
    match spared.await.unwrap() {
        Stopped::Spared { running, by } => {
            assert_eq!(running.as_ref(), Some(turn.message_id()));
            assert_eq!(by.unwrap().name.as_deref(), Some("one"));
        }
        other => panic!("{other:?}"),
    }
    let removed = theirs.stop_message(&waits, KeepsWaiting::No).await.unwrap();
    assert_eq!(removed, Stopped::Removed);
    let last = ours.send("last").await.unwrap();
    let stopped = ours.stop_message(turn.message_id(), KeepsWaiting::No);
    let dropped = Stopped::Interrupted {
        removed: vec![last],
    };
    assert_eq!(stopped.await.unwrap(), dropped);
    while within("the end", turn.next()).await.is_some() {}
    assert!(matches!(turn.finish(), Err(Error::Aborted)));
}

#[tokio::test]
async fn what_waits_is_listed_and_changed() {
    let home = Home::new();
    let client = home.client().await;
    let session = client.create(silent("one")).await.unwrap();
    let mut turn = session.turn("run echo never", Wait::Session);
    loop {
        let event = within("the permission", turn.next()).await.unwrap();
        if event.body.kind() == "permission.requested" {
            break;
        }
    }
    let first = session.send("first").await.unwrap();
    let second = session.send("second").await.unwrap();
    assert!(session.move_item(&second, 0).await.unwrap());
    assert!(session.edit_item(&first, "better").await.unwrap());
    session.insert_item("between", 1).await.unwrap();
    let pending = session.pending_items().await.unwrap();
    let shown = pending.items.iter().map(|item| item.display_text.as_str());
    assert_eq!(shown.collect::<Vec<_>>(), ["second", "between", "better"]);
    assert!(
        !session.withdraw(&first, "first").await.unwrap(),
        "it was edited"
    );
    assert!(session.withdraw(&first, "better").await.unwrap());
    assert!(session.send_item_now(&second).await.unwrap());
    assert!(session.remove_item(&second).await.unwrap());
    assert!(!session.remove_item(&second).await.unwrap());
    let gone = session.move_item(&second, 0).await.unwrap_err();
    assert!(gone.to_string().contains("does not wait"), "{gone}");
    session.clear_queue().await.unwrap();
    assert!(session.pending_items().await.unwrap().items.is_empty());
    let stopped = session.interrupt(None, KeepsWaiting::Yes).await.unwrap();
    assert!(stopped.interrupted);
    while within("the end", turn.next()).await.is_some() {}
}
