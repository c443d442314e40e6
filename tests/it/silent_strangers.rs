//! Local connections that say nothing take no place from clients of the same user.

use loopd::front::connection::Trust;
use loopd_tests::{Daemon, within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

fn connect(daemon: &Daemon) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(4096);
    let (launch, trust) = (daemon.new_launch(), Trust::LocalSocket);
    daemon.app.serve_detached(theirs, launch, trust);
    ours
}

#[tokio::test]
async fn a_client_is_served_at_once_beside_400_silent_connections() {
    let daemon = Daemon::builder().start().await;
    let mut silent: Vec<DuplexStream> = (0..400).map(|_| connect(&daemon)).collect();
    let mut client = connect(&daemon);
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"message": "here"}});
    let message = message.to_string();
    let frame = format!("Content-Length: {}\r\n\r\n{message}", message.len());
    client.write_all(frame.as_bytes()).await.unwrap();
    let mut said = String::new();
    while !said.contains("jsonrpc") || !said.ends_with('}') {
        let mut bytes = [0; 1024];
        let read = within("an answer", client.read(&mut bytes)).await.unwrap();
        assert_ne!(read, 0, "{said}");
        said.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
    }
    assert!(said.contains("\"result\""), "{said}");
    // The oldest ones made room and are told why.
    let mut told = String::new();
    let mut oldest = silent.remove(0);
    within("the oldest to be closed", oldest.read_to_string(&mut told))
        .await
        .unwrap();
    assert!(told.contains("said nothing"), "{told}");
    drop((silent, client));
    daemon.finish().await;
}
