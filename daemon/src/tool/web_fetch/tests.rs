//! A real server on loopback, a real client, every bound.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::tool::Status;
use crate::tool::fixture::{Fixture, granted};
use loopd_model::http_client::{HttpClient, HttpSettings};

type Seen = Arc<Mutex<Vec<String>>>;

/// Serves what `answer` says for each path, until the test ends.
async fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let (answer, record) = (Arc::new(answer), seen.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answer, record) = (answer.clone(), record.clone());
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else {
                        return;
                    };
                    head.push(byte);
                }
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap().to_owned();
                record.lock().unwrap().push(path.clone());
                // The client may have hung up after the bytes it wanted.
                stream.write_all(&answer(&path)).await.ok();
            });
        }
    });
    (address, seen)
}

fn page(content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn redirect(to: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
    .into_bytes()
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.context.web = Some(Web::new(HttpClient::new(HttpSettings::default())));
    fixture
}

async fn fetch(args: Value) -> Outcome {
    fixture().call(&WebFetch::default(), args).await
}

#[tokio::test]
async fn html_comes_back_as_markdown_and_raw_as_it_is() {
    let html = "<html><head><title>Greetings</title><script>alert(1)</script></head>\
        <body><h2>Hi</h2><p>See <a href='/next?a=1&b=2'>the <b>next</b> page</a>.</p><ul><li>one<li>two</ul></body>";
    let (server, _) = serve(move |_| page("text/html; charset=utf-8", html)).await;
    let url = format!("{server}/start");
    let outcome = fetch(json!({"url": url})).await;
    assert_eq!(outcome.status, Status::Success, "{}", outcome.text);
    let expected = format!(
        "# Greetings\n\n## Hi\n\nSee [the **next** page]({server}/next?a=1&b=2).\n\n* one\n* two"
    );
    assert_eq!(outcome.text, expected);
    let raw = fetch(json!({"url": url, "raw": true})).await;
    assert_eq!(raw.text, html);
}

#[tokio::test]
async fn permission_names_the_address_in_its_one_spelling() {
    let request = fixture()
        .request(
            &WebFetch::default(),
            &json!({"url": " HTTPS://Example.COM:443/a/../b?c#d"}),
        )
        .await;
    let expected = PermissionRequest::Url {
        managed_approval_required: None,
        tool_call_id: None,
        intention: "Fetch https://example.com/b?c".to_owned(),
        url: "https://example.com/b?c".to_owned(),
    };
    assert_eq!(request, expected);
}

#[tokio::test]
async fn what_is_no_web_address_is_refused_before_anybody_is_asked() {
    let table = [
        ("file:///etc/passwd", "file: addresses are not supported"),
        ("ftp://example.com/", "ftp: addresses are not supported"),
        ("javascript:alert(1)", "javascript: addresses"),
        ("example.com", "beginning with https://"),
        ("https://user:secret@example.com/", "user name or password"),
        ("https://", "is not an address"),
    ];
    for (url, expected) in table {
        let text = fixture()
            .refusal(&WebFetch::default(), &json!({"url": url}))
            .await;
        assert!(text.contains(expected), "{url}: {text}");
    }
}

#[tokio::test]
async fn only_the_address_that_was_allowed_is_visited() {
    let (server, seen) = serve(|_| page("text/plain", "secret")).await;
    let fixture = fixture();
    let tool = WebFetch::default();
    let request = fixture
        .request(&tool, &json!({"url": format!("{server}/a")}))
        .await;
    let grant = granted(request);
    let args = json!({"url": format!("{server}/b")});
    let outcome = crate::tool::DynTool::run(&tool, &grant, args, &fixture.context).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_only() {
    let (other, other_seen) = serve(|_| page("text/plain", "elsewhere")).await;
    let target = format!("{other}/x");
    let (server, seen) = serve(move |path| match path {
        "/a" => redirect("/b#part"),
        "/b" => redirect("c"),
        "/c" => page("text/plain", "found"),
        "/out" => redirect(&target),
        "/file" => redirect("file:///etc/passwd"),
        _ => redirect("/loop"),
    })
    .await;
    let outcome = fetch(json!({"url": format!("{server}/a")})).await;
    assert_eq!(outcome.text, "found");
    let outcome = fetch(json!({"url": format!("{server}/out")})).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(
        outcome.text.contains(&format!("redirects to {other}/x")),
        "{}",
        outcome.text
    );
    assert!(other_seen.lock().unwrap().is_empty());
    let outcome = fetch(json!({"url": format!("{server}/file")})).await;
    assert!(
        outcome.text.contains("not a web address"),
        "{}",
        outcome.text
    );
    seen.lock().unwrap().clear();
    let outcome = fetch(json!({"url": format!("{server}/loop")})).await;
    assert!(
        outcome.text.contains("more than 5 times"),
        "{}",
        outcome.text
    );
    assert_eq!(seen.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn a_long_page_is_read_in_parts() {
    let (server, _) = serve(|_| page("text/plain", "äbcdefghij")).await;
    let outcome = fetch(json!({"url": server, "max_length": 4})).await;
    let expected = "äbcd\n[Characters 0 to 4 of 10 are shown. Go on with start_index 4.]";
    assert_eq!(outcome.text, expected);
    let outcome = fetch(json!({"url": server, "max_length": 40, "start_index": 8})).await;
    assert_eq!(outcome.text, "ij");
    let outcome = fetch(json!({"url": server, "start_index": 80})).await;
    assert!(
        outcome.text.contains("the page has 10 characters"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn a_body_without_end_is_cut() {
    let (server, _) = serve(|_| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_vec();
        [head, vec![b'x'; 100_000]].concat()
    })
    .await;
    let tool = WebFetch {
        limits: Limits {
            bytes: 1000,
            ..Limits::USUAL
        },
    };
    let outcome = fixture().call(&tool, json!({"url": server})).await;
    assert_eq!(outcome.status, Status::Success, "{}", outcome.text);
    assert!(outcome.text.starts_with(&"x".repeat(1000)));
    assert!(
        outcome.text.contains("longer than 1000 B"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn what_is_not_text_and_what_failed_is_said() {
    let (server, _) = serve(|path| match path {
        "/png" => page("image/png", b"\x89PNG\0\0"),
        "/lie" => page("text/plain", b"a\0b"),
        "/gone" => b"HTTP/1.1 404 Not Found\r\ncontent-length: 10\r\nconnection: close\r\n\r\nno\n  page!".to_vec(),
        "/empty" => page("text/html", "<script>1</script>"),
        "/packed" => b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx".to_vec(),
        _ => b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\nconnection: close\r\n\r\nhalf".to_vec(),
    })
    .await;
    let table = [
        ("/png", "is image/png (6 B), not text"),
        ("/lie", "not text"),
        ("/gone", "answered with status 404: no page!"),
        ("/empty", "[The page has no text.]"),
        ("/packed", "packed as gzip"),
        ("/half", "could not be read to its end"),
    ];
    for (path, expected) in table {
        let outcome = fetch(json!({"url": format!("{server}{path}")})).await;
        assert!(outcome.text.contains(expected), "{path}: {}", outcome.text);
    }
    let outcome = fetch(json!({"url": "http://127.0.0.1:1/"})).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(
        outcome.text.contains("127.0.0.1 could not be reached"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn a_server_that_never_answers_runs_out_of_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let tool = WebFetch {
        limits: Limits {
            time: Duration::from_millis(50),
            ..Limits::USUAL
        },
    };
    let outcome = fixture().call(&tool, json!({"url": url})).await;
    assert!(
        outcome.text.contains("did not answer within"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn an_aborted_turn_ends_the_wait() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let fixture = fixture();
    fixture.context.cancel.cancel();
    let outcome = fixture
        .call(&WebFetch::default(), json!({"url": url}))
        .await;
    assert_eq!(outcome.text, "Fetching was interrupted.");
}

#[tokio::test]
async fn the_proxy_of_the_launch_is_used() {
    let (proxy, seen) = serve(|_| page("text/plain", "by proxy")).await;
    let mut fixture = Fixture::new();
    let environment = [("http_proxy".to_owned(), proxy)].into();
    let settings = HttpSettings::from_environment(&environment);
    fixture.context.web = Some(Web::new(HttpClient::new(settings)));
    let args = json!({"url": "http://nowhere.invalid/x"});
    let outcome = fixture.call(&WebFetch::default(), args).await;
    assert_eq!(outcome.text, "by proxy");
    assert_eq!(*seen.lock().unwrap(), ["http://nowhere.invalid/x"]);
}
