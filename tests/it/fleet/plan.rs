//! A plan that a fleet carries out.

use super::*;

const WALLS: &str = "INSERT INTO todos (id, title) VALUES ('walls', 'Walls'), ('roof', 'Roof'); \
     INSERT INTO todo_deps VALUES ('roof', 'walls')";

fn exit(arguments: Value) -> loopd_tests::script::Call {
    let mut all = json!({"summary": "A house", "plan": "1. Walls\n2. Roof"});
    for (name, value) in arguments.as_object().unwrap() {
        all[name] = value.clone();
    }
    call("exit", "exit_plan_mode", all)
}

async fn planning(daemon: &Daemon) -> Session {
    let session = daemon
        .client()
        .create(json!({"requestExitPlanMode": true}))
        .await;
    session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    session
}

#[tokio::test]
async fn an_approved_plan_with_todos_is_carried_out_by_workers() {
    let daemon = daemon(|request| {
        let last = request.last_user_text();
        let results = request.last_results().concat();
        match todo_of(request) {
            Some(todo) => Turn::any().says(&format!("built {todo}")),
            None if results.contains("a fleet carries the plan out") => {
                Turn::any().says("the workers begin")
            }
            None if !results.is_empty() => Turn::any().calls([exit(json!({}))]),
            None if last.contains("<fleet_ended>") => {
                Turn::any().calls([call("c", "task_complete", json!({"summary": "a house"}))])
            }
            None => Turn::any().calls([sql(WALLS)]),
        }
    })
    .await;
    let mut session = planning(&daemon).await;
    let id = session.send("Build a house").await;
    let asked = session.client().request("exitPlanMode.request").await;
    assert_eq!(
        asked.params["actions"],
        json!(["autopilot", "autopilot_fleet", "interactive", "exit_only"])
    );
    asked.answer(json!({"approved": true, "selectedAction": "autopilot_fleet"}));
    session.next("session.idle").await;
    assert_eq!(
        session.call("session.mode.get", json!({})).await,
        "autopilot"
    );
    let statuses = statuses(&session).await;
    assert!(
        statuses.values().all(|status| status == "completed"),
        "{statuses:?}"
    );
    // The workers begin when the turn has ended that proposed the plan, and the model is not told to
    // go on while they work.
    let order: Vec<String> = daemon
        .script()
        .requests()
        .iter()
        .map(|request| todo_of(request).unwrap_or_else(|| "main".to_owned()))
        .collect();
    assert_eq!(order, ["main", "main", "main", "walls", "roof", "main"]);
    assert_eq!(session.count("session.idle"), 1, "it is one piece of work");
    let stopped: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "session.autopilot_stopped")
        .map(|event| event["data"].clone())
        .collect();
    assert_eq!(
        stopped,
        [json!({"reason": "task_complete", "requestId": id})],
        "the task of the message is complete"
    );
    let status = session.call("loopd.fleetStatus", json!({})).await;
    assert_eq!(
        (&status["active"], &status["last"]["done"]),
        (&json!(false), &json!(2))
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_fleet_is_offered_only_if_there_is_something_for_it() {
    const CIRCLE: &str = "INSERT INTO todos (id, title) VALUES ('x', 'X'), ('y', 'Y'); \
         INSERT INTO todo_deps VALUES ('x', 'y'), ('y', 'x')";
    const DONE: &str = "INSERT INTO todos (id, title, status) VALUES ('x', 'X', 'done')";
    for (query, wanted, offered) in [
        (
            DONE,
            json!({}),
            json!(["autopilot", "interactive", "exit_only"]),
        ),
        (
            CIRCLE,
            json!({"actions": ["autopilot_fleet", "exit_only"],
                "recommendedAction": "autopilot_fleet"}),
            json!(["exit_only"]),
        ),
        (
            CIRCLE,
            json!({"actions": ["autopilot_fleet"]}),
            json!(["autopilot", "interactive", "exit_only"]),
        ),
        (
            WALLS,
            json!({"actions": ["autopilot_fleet", "interactive"],
                "recommendedAction": "autopilot_fleet"}),
            json!(["autopilot_fleet", "interactive"]),
        ),
    ] {
        let arguments = wanted.clone();
        let daemon = daemon(move |request| match request.last_results().concat() {
            results if results.is_empty() => Turn::any().calls([sql(query)]),
            results if results.contains("not approved") => Turn::any().says("well"),
            _ => Turn::any().calls([exit(arguments.clone())]),
        })
        .await;
        let mut session = planning(&daemon).await;
        session.send("plan it").await;
        let asked = session.client().request("exitPlanMode.request").await;
        assert_eq!(asked.params["actions"], offered, "{query} {wanted}");
        let recommended = &asked.params["recommendedAction"];
        assert!(
            offered.as_array().unwrap().contains(recommended),
            "{recommended}"
        );
        asked.answer(json!({"approved": false}));
        session.next("session.idle").await;
        let status = session.call("loopd.fleetStatus", json!({})).await;
        assert_eq!(status["active"], false);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn who_defers_the_work_starts_no_worker() {
    let daemon = daemon(|request| match request.last_results().concat() {
        results if results.is_empty() => Turn::any().calls([sql(WALLS)]),
        results if results.contains("Do not begin") => {
            Turn::any().calls([call("c", "task_complete", json!({"summary": "planned"}))])
        }
        _ => Turn::any().calls([exit(json!({}))]),
    })
    .await;
    let mut session = planning(&daemon).await;
    session.send("plan it").await;
    let asked = session.client().request("exitPlanMode.request").await;
    asked.answer(
        json!({"approved": true, "selectedAction": "autopilot_fleet", "deferImplementation": true}),
    );
    session.next("session.idle").await;
    let statuses = statuses(&session).await;
    assert!(
        statuses.values().all(|status| status == "pending"),
        "{statuses:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_choice_that_has_become_impossible_is_told_and_plan_mode_stays() {
    let daemon = daemon(|request| match request.last_results().concat() {
        results if results.is_empty() => Turn::any().calls([sql(WALLS)]),
        results if results.contains("no todos") => Turn::any().says("well"),
        _ => {
            let empty = call("d", "sql", json!({"query": "DELETE FROM todos"}));
            Turn::any().calls([exit(json!({})), empty])
        }
    })
    .await;
    let mut session = planning(&daemon).await;
    session.send("plan it").await;
    let asked = session.client().request("exitPlanMode.request").await;
    session.next("session.todos_changed").await;
    session.next("session.todos_changed").await;
    asked.answer(json!({"approved": true, "selectedAction": "autopilot_fleet"}));
    let warning = session.next("session.warning").await;
    let why = warning["data"]["message"].as_str().unwrap();
    assert!(why.contains("there are no todos to carry out"), "{why}");
    session.next("session.idle").await;
    assert_eq!(session.call("session.mode.get", json!({})).await, "plan");
    daemon.finish().await;
}

#[tokio::test]
async fn the_task_is_not_complete_before_the_fleet_has_ended() {
    let complete = || call("c", "task_complete", json!({"summary": "a house"}));
    let daemon = daemon(move |request| {
        let last = request.last_user_text();
        let results = request.last_results().concat();
        match todo_of(request) {
            Some(todo) => Turn::any().says(&format!("built {todo}")),
            None if results.contains("call task_complete after that") => {
                Turn::any().says("the workers begin")
            }
            None if results.contains("a fleet carries the plan out") => {
                Turn::any().calls([complete()])
            }
            None if !results.is_empty() => Turn::any().calls([exit(json!({}))]),
            None if last.contains("<fleet_ended>") => Turn::any().calls([complete()]),
            None => Turn::any().calls([sql(WALLS)]),
        }
    })
    .await;
    let mut session = planning(&daemon).await;
    session.send("Build a house").await;
    let asked = session.client().request("exitPlanMode.request").await;
    asked.answer(json!({"approved": true, "selectedAction": "autopilot_fleet"}));
    session.next("session.idle").await;
    let events = session.events();
    let of = |kind: &str| -> Vec<usize> {
        let all = events.iter().enumerate();
        let of_kind = all.filter(|(_, event)| event["type"] == kind);
        of_kind.map(|(at, _)| at).collect()
    };
    let ended = events
        .iter()
        .position(|event| !event["data"]["ended"].is_null())
        .unwrap();
    for kind in ["session.task_complete", "session.autopilot_stopped"] {
        let told = of(kind);
        assert_eq!(told.len(), 1, "{kind}: {told:?}");
        assert!(told[0] > ended, "{kind} comes after the workers");
    }
    daemon.finish().await;
}
