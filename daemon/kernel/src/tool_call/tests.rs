use super::*;

fn request() -> RequestId {
    "r".into()
}

/// Every stage, by name.
fn stages() -> Vec<(&'static str, CallStage)> {
    let request = request();
    vec![
        ("requested", CallStage::Requested),
        ("intended", CallStage::Intended),
        (
            "asking",
            CallStage::Asking {
                request: request.clone(),
            },
        ),
        ("decided", CallStage::Decided),
        (
            "external",
            CallStage::External {
                request: request.clone(),
            },
        ),
        (
            "user_input",
            CallStage::UserInput {
                request: request.clone(),
            },
        ),
        (
            "recorded",
            CallStage::Recorded {
                rejected: false,
                failed: false,
            },
        ),
        (
            "guarding",
            CallStage::Guarding {
                request: request.clone(),
                started: false,
            },
        ),
        (
            "guarding again",
            CallStage::Guarding {
                request,
                started: true,
            },
        ),
    ]
}

fn name(stage: &CallStage) -> &'static str {
    let all = stages();
    let found = all.iter().find(|(_, known)| known == stage);
    found.map_or("another", |(name, _)| *name)
}

fn event(name: &str) -> CallEvent {
    let request = request();
    match name {
        "guard wanted" => CallEvent::GuardWanted { request },
        "guard answered" => CallEvent::GuardAnswered,
        "intended" => CallEvent::Intended,
        "permission asked" => CallEvent::PermissionRequested { request },
        "permission decided" => CallEvent::PermissionCompleted,
        "client asked" => CallEvent::ClientAsked { request },
        "user asked" => CallEvent::UserAsked { request },
        "recorded" => CallEvent::Recorded {
            rejected: false,
            failed: false,
        },
        other => unreachable!("no event is called {other}"),
    }
}

#[test]
fn an_event_moves_a_call_on_or_changes_nothing() {
    // Each row has an event and the stage that it leads to from each stage. A dash means no change.
    let table = [
        (
            "guard wanted",
            [
                "guarding",
                "guarding again",
                "-",
                "-",
                "-",
                "-",
                "-",
                "-",
                "-",
            ],
        ),
        (
            "guard answered",
            ["-", "-", "-", "-", "-", "-", "-", "-", "intended"],
        ),
        (
            "intended",
            [
                "intended", "-", "-", "-", "-", "-", "-", "intended", "intended",
            ],
        ),
        (
            "permission asked",
            ["asking", "asking", "-", "-", "-", "-", "-", "-", "-"],
        ),
        (
            "permission decided",
            ["-", "-", "decided", "-", "-", "-", "-", "-", "-"],
        ),
        (
            "client asked",
            [
                "external", "external", "-", "external", "-", "-", "-", "-", "-",
            ],
        ),
        (
            "user asked",
            [
                "user_input",
                "user_input",
                "-",
                "user_input",
                "-",
                "-",
                "-",
                "-",
                "-",
            ],
        ),
        (
            "recorded",
            [
                "recorded", "recorded", "recorded", "recorded", "recorded", "recorded", "-",
                "recorded", "recorded",
            ],
        ),
    ];
    for (what, leads_to) in table {
        for ((from, stage), to) in stages().into_iter().zip(leads_to) {
            let to = if to == "-" { from } else { to };
            assert_eq!(name(&stage.after(event(what))), to, "{what} after {from}");
        }
    }
}

#[test]
fn every_stage_accepts_its_own_reports_and_no_late_ones() {
    use CallReport as R;
    let table = [
        (R::Guarded, vec!["requested", "guarding", "guarding again"]),
        (R::Assessed, vec!["requested", "intended"]),
        (R::PermissionDecided, vec!["asking"]),
        (R::ClientAnswered, vec!["external"]),
        (R::UserAnswered, vec!["user_input"]),
        (R::Finished, vec!["requested", "intended", "decided"]),
    ];
    for (report, expected) in table {
        let stages = stages().into_iter();
        let takes = stages.filter(|(_, stage)| stage.expects(report));
        let takes: Vec<&str> = takes.map(|(name, _)| name).collect();
        assert_eq!(takes, expected, "{report:?}");
    }
}
