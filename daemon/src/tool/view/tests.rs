use std::os::unix::fs::symlink;

use serde_json::json;

use loopd_proto::permission::PermissionRequest;

use super::*;
use crate::tool::fixture::{Fixture, granted};
use crate::tool::{DynTool, Status, ToolImage};

const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[tokio::test]
async fn a_file_is_shown_with_line_numbers() {
    let fixture = Fixture::new();
    fixture.write("edit_me.txt", "Hi Universe\nGoodbye World\n");
    fixture.write("order.txt", "ORDER_CONTENT_42");
    let path = fixture.text("edit_me.txt");
    let outcome = fixture.call(&View, json!({"path": path})).await;
    assert_eq!(
        outcome,
        Outcome::success("1. Hi Universe\n2. Goodbye World\n3.")
    );
    let outcome = fixture.call(&View, json!({"path": "order.txt"})).await;
    assert_eq!(outcome, Outcome::success("1. ORDER_CONTENT_42"));
}

#[tokio::test]
async fn permission_names_the_file() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "");
    let path = fixture.text("a.txt");
    let request = fixture.request(&View, &json!({"path": "a.txt"})).await;
    let expected = PermissionRequest::Read {
        managed_approval_required: None,
        tool_call_id: None,
        intention: format!("Read file: {path}"),
        path,
        also_named: Vec::new(),
    };
    assert_eq!(request, expected);
}

#[tokio::test]
async fn a_missing_file_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.text("does_not_exist.txt");
    let text = fixture.refusal(&View, &json!({"path": path})).await;
    assert_eq!(
        text,
        format!("Path {path} does not exist. Please provide a valid path.")
    );
}

#[tokio::test]
async fn a_file_that_became_a_link_is_not_read() {
    let fixture = Fixture::new();
    fixture.write("secret", "secret");
    fixture.write("a.txt", "harmless");
    let args = json!({"path": "a.txt"});
    let grant = granted(fixture.request(&View, &args).await);
    std::fs::remove_file(fixture.path("a.txt")).unwrap();
    symlink(fixture.path("secret"), fixture.path("a.txt")).unwrap();
    let outcome = DynTool::run(&View, &grant, args, &fixture.context).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(!outcome.text.contains("1. secret"), "{}", outcome.text);
}

#[tokio::test]
async fn an_image_is_handed_over() {
    let fixture = Fixture::new();
    fixture.write("pixel.png", PIXEL);
    let outcome = fixture.call(&View, json!({"path": "pixel.png"})).await;
    assert_eq!(outcome.text, "Viewed image file successfully.");
    let image = ToolImage {
        path: fixture.text("pixel.png"),
        media_type: "image/png".to_owned(),
        base64: "iVBORw0KGgoAAAANSUhEUg==".to_owned(),
        note: None,
    };
    assert_eq!(outcome.images, [image]);
}

#[test]
fn images_are_known_by_their_first_bytes() {
    let table: [(&[u8], Option<&str>); 6] = [
        (PIXEL, Some("image/png")),
        (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
        (b"GIF89a..", Some("image/gif")),
        (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some("image/webp")),
        (b"RIFF\x01\x02\x03\x04WAVE", None),
        (b"plain text", None),
    ];
    for (bytes, expected) in table {
        assert_eq!(image::media_type(bytes), expected);
    }
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused() {
    let fixture = Fixture::new();
    fixture.write("a.bin", b"ab\0cd");
    let large = std::fs::File::create(fixture.path("large.txt")).unwrap();
    std::io::Write::write_all(&mut &large, "x\n".repeat(8192).as_bytes()).unwrap();
    large.set_len(MAX_WHOLE_FILE + 1).unwrap();
    let picture = fixture.write("large.png", PIXEL);
    let picture = std::fs::File::options().write(true).open(picture).unwrap();
    picture.set_len(image::MAX_BYTES + 1).unwrap();
    let pipe = fixture.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let table = [
        (json!({"path": "a.bin"}), "holds binary data (5 B)"),
        (
            json!({"path": "large.txt"}),
            "too large to show at once (10.0 MB). Give a view_range",
        ),
        (json!({"path": "large.png"}), "Make a smaller copy"),
        (json!({"path": "pipe"}), "not a regular file"),
        (
            json!({"path": "a.bin", "view_range": [-3, 1]}),
            "counted from 1",
        ),
        (
            json!({"path": "a.bin", "view_range": [1]}),
            "The arguments of view are not valid: view_range",
        ),
        (json!({}), "missing field `path`"),
    ];
    for (args, expected) in table {
        let text = fixture.refusal(&View, &args).await;
        assert!(text.contains(expected), "{args}: {text}");
    }
    let args = json!({"path": "large.txt", "view_range": [2, 3]});
    assert_eq!(fixture.call(&View, args).await.text, "2. x\n3. x");
    let args = json!({"path": "large.txt", "view_range": [0, 1]});
    assert_eq!(fixture.call(&View, args).await.text, "1. x");
    let args = json!({"path": "a.bin", "view_range": [9, 9]});
    fixture.write("a.bin", "one\n");
    let outcome = fixture.call(&View, args).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(outcome.text.contains("has 2 lines"), "{}", outcome.text);
}

#[tokio::test]
async fn a_folder_is_listed_two_levels_deep() {
    let fixture = Fixture::new();
    fixture.write("only/readme.txt", "");
    let outcome = fixture
        .call(&View, json!({"path": fixture.text("only")}))
        .await;
    assert_eq!(outcome, Outcome::success("readme.txt"));
    for path in ["b/c/d.txt", "b/a.txt", ".hidden/x", "a.txt"] {
        fixture.write(path, "");
    }
    symlink("/", fixture.path("root")).unwrap();
    let outcome = fixture.call(&View, json!({"path": "."})).await;
    assert_eq!(
        outcome.text,
        ".hidden/\na.txt\nb/\nb/a.txt\nb/c/\nonly/\nonly/readme.txt\nroot"
    );
}

#[tokio::test]
async fn a_crowded_folder_says_what_is_missing() {
    let fixture = Fixture::new();
    for number in 0..510 {
        fixture.write(&format!("{number:03}"), "");
    }
    let text = fixture.call(&View, json!({"path": "."})).await.text;
    assert_eq!(text.lines().count(), 501);
    assert!(text.ends_with(
        "\n499\n[10 more names were left out; view a folder further down or use glob.]"
    ));
}
