//! Files that rules keep from being read.

use loopd_proto::permission::{PermissionRule, Permissions};

use super::*;

fn denying(place: &Place, name: &str) -> Workspace {
    let permissions = Permissions {
        denied: vec![PermissionRule {
            kind: "read".to_owned(),
            argument: Some(place.path(name).to_string_lossy().into_owned()),
        }],
        ..Permissions::default()
    };
    Workspace {
        unread: ReadRules::of(&permissions),
        ..place.workspace()
    }
}

/// Whether any file of the captures has this text.
fn holds(place: &Place, text: &str) -> bool {
    let folder = &place.captures.inner.as_ref().unwrap().folder;
    let files = ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .build();
    let mut files = files.map(|file| file.unwrap().into_path());
    files.any(|file| {
        let contents = std::fs::read(file).unwrap_or_default();
        contents
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

#[tokio::test]
async fn what_a_rule_keeps_from_being_read_is_not_copied() {
    let place = Place::new(BOUNDS);
    std::fs::write(place.path("open"), "the open one").unwrap();
    std::fs::write(place.path("closed"), "the closed one").unwrap();
    std::fs::hard_link(place.path("closed"), place.path("other-name")).unwrap();
    tick(&place);
    place.captures.settle(denying(&place, "closed")).await;
    assert!(holds(&place, "the open one"));
    assert!(!holds(&place, "the closed one"));
    place.captures.turn_began(Seq(5));
    place.captures.touched();
    std::fs::write(place.path("closed"), "the closed one, changed").unwrap();
    place.captures.settle(denying(&place, "closed")).await;
    assert!(!holds(&place, "the closed one"));
    // A rewind leaves it alone, and says why.
    let why = SkipReason::NotCaptured(NotCaptured::Unread);
    let expected = ["closed", "other-name"].map(|name| (place.path(name), why));
    assert_eq!(missed(&place, 5), expected);
}

#[tokio::test]
async fn a_rule_that_comes_later_removes_the_copy() {
    let place = Place::new(BOUNDS);
    std::fs::write(place.path("closed"), "the closed one").unwrap();
    tick(&place);
    place.captures.settle(place.workspace()).await;
    assert!(holds(&place, "the closed one"));
    place.captures.touched();
    place.captures.settle(denying(&place, "closed")).await;
    assert!(!holds(&place, "the closed one"));
}
