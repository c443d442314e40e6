use loopd_proto::event::task::Execution;
use tokio_util::sync::CancellationToken;

use super::child::ChildStatus;
use super::fixture::{Home, order};
use super::{CancelledBy, ChildError, Delivered, RunEnd, RunFailure, RunWait, first};

#[tokio::test]
async fn ids_come_from_names_and_are_unique() {
    let home = Home::new(8);
    let agents = home.agents();
    let mut ids = Vec::new();
    for name in ["Read the File!", "read-the-file", "…"] {
        let started = agents
            .start(order(name, Execution::Background))
            .await
            .unwrap();
        ids.push(started.id.to_string());
    }
    assert_eq!(ids, ["read-the-file", "read-the-file-2", "a-test"]);
    agents.close(CancelledBy::SessionEnds).await;
}

#[tokio::test]
async fn a_synchronous_run_is_recorded_as_ended_and_a_background_run_as_answered() {
    let home = Home::new(8);
    let agents = home.agents();
    let waited = agents.start(order("sync", Execution::Sync)).await.unwrap();
    home.child(1).await.answer("first");
    let ending = waited.run.end().await;
    assert!(matches!(ending.end, RunEnd::Answered), "{:?}", ending.end);
    assert_eq!(ending.response.as_deref(), Some("first"));
    let told = home.told("TaskEnded").await;
    assert!(
        told.contains("Completed") && told.contains("delivered: false"),
        "{told}"
    );

    agents
        .start(order("back", Execution::Background))
        .await
        .unwrap();
    home.child(2).await.answer("second");
    let told = home.told("TaskAnswered").await;
    assert!(
        told.contains("second") && told.contains("delivered: false"),
        "{told}"
    );
}

#[tokio::test]
async fn a_promoted_sub_agent_is_no_longer_waited_for_and_its_answer_is_undelivered() {
    let home = Home::new(8);
    let agents = home.agents();
    let started = agents.start(order("a", Execution::Sync)).await.unwrap();
    let child = home.child(1).await;
    assert!(agents.promote(&started.id).await);
    assert!(
        !agents.promote(&started.id).await,
        "there is nothing left to move"
    );
    let waited = first(&CancellationToken::new(), &started.run).await;
    assert!(matches!(waited, RunWait::Promoted), "{waited:?}");
    child.answer("done");
    assert!(home.told("TaskAnswered").await.contains("delivered: false"));
    assert!(!agents.promote(&started.id).await, "it is done");
}

#[tokio::test]
async fn slots_are_taken_in_order_and_an_idle_sub_agent_holds_none() {
    let home = Home::new(1);
    let agents = home.agents();
    let one = agents
        .start(order("one", Execution::Background))
        .await
        .unwrap();
    let first = home.child(1).await;
    let two = agents
        .start(order("two", Execution::Background))
        .await
        .unwrap();
    assert_eq!(home.children.borrow().len(), 1, "the second has to wait");
    first.answer("ok");
    one.run.end().await;
    home.child(2).await.answer("ok");
    two.run.end().await;
    let again = agents
        .write(&one.id, &one.work, "more".to_owned())
        .await
        .unwrap();
    assert_eq!(again, Delivered::Resumed);
    assert_eq!(home.child(3).await.delivered(), ["more"]);
    agents.close(CancelledBy::SessionEnds).await;
}

#[tokio::test]
async fn a_sub_agent_that_waits_for_its_own_sub_agents_lends_its_slot() {
    let home = Home::new(1);
    let agents = home.agents();
    agents
        .start(order("parent", Execution::Background))
        .await
        .unwrap();
    let parent = home.child(1).await;
    let lease = parent.lease();
    lease.lend();
    agents
        .start(order("nested", Execution::Background))
        .await
        .unwrap();
    let nested = home.child(2).await;
    nested.answer("ok");
    lease.resume().await;
    agents
        .start(order("third", Execution::Background))
        .await
        .unwrap();
    assert_eq!(home.children.borrow().len(), 2, "the slot was taken back");
    agents.close(CancelledBy::SessionEnds).await;
}

#[tokio::test]
async fn a_message_to_a_working_sub_agent_is_delivered_before_its_run_ends() {
    let home = Home::new(8);
    let agents = home.agents();
    let started = agents
        .start(order("a", Execution::Background))
        .await
        .unwrap();
    let child = home.child(1).await;
    while child.delivered().is_empty() {
        tokio::task::yield_now().await;
    }
    let sent = agents
        .write(&started.id, &started.work, "also this".to_owned())
        .await
        .unwrap();
    assert_eq!(sent, Delivered::AtWork);
    while child.delivered().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(child.delivered(), ["work, a", "also this"]);
    child.answer("both");
    assert_eq!(started.run.end().await.response.as_deref(), Some("both"));
}

#[tokio::test]
async fn a_cancelled_sub_agent_keeps_its_partial_response() {
    let home = Home::new(1);
    let agents = home.agents();
    let started = agents
        .start(order("a", Execution::Background))
        .await
        .unwrap();
    home.child(1).await;
    let waiting = agents
        .start(order("b", Execution::Background))
        .await
        .unwrap();
    assert!(
        agents.cancel(&waiting.id, CancelledBy::Client).await,
        "one in the queue can be cancelled"
    );
    assert!(agents.cancel(&started.id, CancelledBy::Client).await);
    let ending = started.run.end().await;
    assert!(matches!(ending.end, RunEnd::Cancelled), "{:?}", ending.end);
    assert_eq!(ending.response.as_deref(), Some("half"));
    assert!(!agents.cancel(&started.id, CancelledBy::Client).await);
    assert!(home.told("TaskEnded").await.contains("Cancelled"));
}

#[tokio::test]
async fn closing_a_session_ends_all_its_sub_agents() {
    let home = Home::new(2);
    let agents = home.agents();
    for name in ["a", "b", "c"] {
        agents
            .start(order(name, Execution::Background))
            .await
            .unwrap();
    }
    home.child(2).await;
    agents.close(CancelledBy::SessionEnds).await;
    assert!(agents.start(order("late", Execution::Sync)).await.is_err());
}

#[tokio::test]
async fn an_undelivered_message_of_a_failed_run_goes_to_the_next_run() {
    let home = Home::new(1);
    let agents = home.agents();
    let first = agents
        .start(order("first", Execution::Background))
        .await
        .unwrap();
    let busy = home.child(1).await;
    let second = agents
        .start(order("second", Execution::Background))
        .await
        .unwrap();
    home.lose_the_next_child();
    let sent = agents
        .write(&second.id, &second.work, "and this".to_owned())
        .await
        .unwrap();
    assert_eq!(sent, Delivered::AtWork);
    busy.answer("ok");
    first.run.end().await;
    assert!(matches!(second.run.end().await.end, RunEnd::Failed(_)));
    assert_eq!(home.child(2).await.heard_first().await, "and this");
    agents.close(CancelledBy::SessionEnds).await;
}

#[tokio::test]
async fn each_start_and_each_reopening_takes_one_snapshot_of_the_session() {
    let home = Home::new(1);
    let agents = home.agents();
    let started = agents.start(order("a", Execution::Sync)).await.unwrap();
    home.child(1).await.answer("ok");
    started.run.end().await;
    assert_eq!(home.looks(), 1, "a start");
    agents
        .write(&started.id, &started.work, "more".to_owned())
        .await
        .unwrap();
    home.child(2).await.answer("ok");
    home.told("TaskAnswered").await;
    assert_eq!(home.looks(), 2, "a reopening");
}

#[tokio::test]
async fn a_run_whose_session_is_gone_fails_with_the_reason() {
    let home = Home::new(1);
    let agents = home.agents();
    let reported = agents.start(order("a", Execution::Sync)).await.unwrap();
    let child = home.child(1).await;
    child.report(ChildStatus::Gone(ChildError::Ended));
    let ending = reported.run.end().await.end;
    let expected = RunFailure::Child(ChildError::Ended);
    assert_eq!(format!("{ending:?}"), format!("Failed({expected:?})"));

    let crashed = agents.start(order("b", Execution::Sync)).await.unwrap();
    home.child(2).await.vanish();
    let ending = crashed.run.end().await.end;
    let expected = RunFailure::Child(ChildError::Crashed);
    assert_eq!(format!("{ending:?}"), format!("Failed({expected:?})"));
    assert!(home.told("TaskEnded").await.contains("Failed"));
}
