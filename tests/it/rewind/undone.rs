//! A rewind that is undone, and a rewind that a crash cut in two.

use serde_json::json;

use super::support::{World, bash, create, edit, same_tree};

#[tokio::test]
async fn an_undo_takes_back_what_came_after_the_rewind_and_can_be_undone_itself() {
    let turns = vec![
        vec![create("a.txt", "a")],
        vec![edit("a.txt", "a", "b")],
        vec![bash("printf other > a.txt && printf x > c.txt")],
    ];
    let mut world = World::new(&turns, |_| {}).await;
    world.turn(0).await;
    world.turn(1).await;
    let with_two = world.tree();
    let points = world.points().await;
    world.rewind(&points[1], "conversation-and-files").await;
    world.turn(2).await;
    let other_way = world.tree();
    assert_eq!(world.said().await.len(), 2);
    let undone = world.undo().await;
    assert_eq!(undone["skipped"], json!([]), "{undone}");
    same_tree("as before the rewind", &with_two, &world.tree());
    let said = world.said().await;
    assert_eq!(said, ["turn number 00", "turn number 01"]);
    let again = world.undo().await;
    assert_eq!(again["outcome"], "success", "{again}");
    same_tree("as before the undo", &other_way, &world.tree());
    assert_eq!(world.said().await, ["turn number 00", "turn number 02"]);
    world.finish().await;
}

#[tokio::test]
async fn undos_after_two_rewinds_go_back_one_by_one() {
    let turns = vec![
        vec![create("a.txt", "a")],
        vec![create("b.txt", "b")],
        vec![create("c.txt", "c")],
    ];
    let mut world = World::new(&turns, |_| {}).await;
    for number in 0..3 {
        world.turn(number).await;
    }
    let with_three = world.tree();
    let points = world.points().await;
    world.rewind(&points[2], "conversation-and-files").await;
    let with_two = world.tree();
    world.rewind(&points[1], "conversation-and-files").await;
    world.undo().await;
    same_tree("as before the second", &with_two, &world.tree());
    assert_eq!(world.said().await.len(), 2);
    let undone = world.undo().await;
    assert_eq!(undone["skipped"], json!([]), "{undone}");
    same_tree("as before the first", &with_three, &world.tree());
    assert_eq!(world.said().await.len(), 3);
    let none = world.session.refused("loopd.rewind", json!({})).await;
    assert!(
        none.message.contains("no rewind to undo"),
        "{}",
        none.message
    );
    same_tree("nothing was touched", &with_three, &world.tree());
    world.finish().await;
}

#[tokio::test]
async fn a_rewind_that_changed_nothing_is_not_undone() {
    let turns = vec![vec![create("a.txt", "a")]];
    let mut world = World::new(&turns, |_| {}).await;
    world.turn(0).await;
    let with_it = world.tree();
    let points = world.points().await;
    world.rewind(&points[0], "files").await;
    let again = world.rewind(&points[0], "files").await;
    assert_eq!(again["restoredFiles"], json!([]), "{again}");
    world.undo().await;
    same_tree("as before the first", &with_it, &world.tree());
    world.finish().await;
}
