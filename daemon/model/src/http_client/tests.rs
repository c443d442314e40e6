//! Proxies, certificates and connections, with real sockets.

use std::io::{Read, Write};
use std::sync::Arc;

use futures::StreamExt;
use reqwest::Url;
use reqwest::header::HeaderMap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;
use crate::test_server::{Scripted, TestServer};

const AUTHORITY: &str = include_str!("fixtures/authority.pem");
const SERVER_CERTIFICATE: &str = include_str!("fixtures/server.pem");
const SERVER_KEY: &str = include_str!("fixtures/server.key.pem");

fn environment(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn client(variables: &[(&str, &str)]) -> HttpClient {
    HttpClient::new(HttpSettings::from_environment(&environment(variables)))
}

async fn get(client: &HttpClient, url: &str) -> Result<(u16, Vec<u8>), ProviderError> {
    let request = HttpRequest {
        method: HttpMethod::Get,
        url: Url::parse(url).unwrap(),
        headers: HeaderMap::new(),
        body: bytes::Bytes::new(),
    };
    let response = client.send(request).await?;
    let chunks: Vec<_> = response.body.collect().await;
    let body = chunks.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    Ok((response.status, body))
}

async fn server() -> TestServer {
    TestServer::start(std::iter::repeat_n(
        Scripted::new(200, "text/plain", ["ok"]),
        4,
    ))
    .await
}

fn lines(server: &TestServer) -> Vec<String> {
    server
        .received()
        .into_iter()
        .map(|request| request.line)
        .collect()
}

#[test]
fn settings_come_from_the_given_environment() {
    let secret = |text: &str| Some(Secret::new(text));
    let read = |variables: &[(&str, &str)]| HttpSettings::from_environment(&environment(variables));
    assert_eq!(read(&[]), HttpSettings::default());
    let both = read(&[
        ("HTTP_PROXY", "http://upper"),
        ("http_proxy", "http://lower"),
        ("ALL_PROXY", "http://all"),
    ]);
    assert_eq!(
        (both.http_proxy, both.https_proxy),
        (secret("http://lower"), secret("http://all"))
    );
    let empty = read(&[
        ("HTTPS_PROXY", " "),
        ("no_proxy", "a,b"),
        ("SSL_CERT_FILE", "/ca.pem"),
        ("NODE_EXTRA_CA_CERTS", "/extra.pem"),
    ]);
    assert_eq!(
        empty,
        HttpSettings {
            no_proxy: Some("a,b".to_owned()),
            trusted_certificates: Some("/ca.pem".into()),
            extra_certificates: Some("/extra.pem".into()),
            ..HttpSettings::default()
        }
    );
}

#[test]
fn only_what_needs_certificates_reads_them() {
    let trust = |proxy: &str, scheme: &str| {
        HttpSettings {
            http_proxy: Some(Secret::new(proxy)),
            ..HttpSettings::default()
        }
        .trust_for(scheme)
    };
    assert_eq!(trust("http://p", "http"), Trust::Nobody);
    assert_eq!(trust("https://p", "http"), Trust::Certificates);
    assert_eq!(trust("http://p", "https"), Trust::Certificates);
}

#[tokio::test]
async fn a_proxy_is_asked_for_what_is_not_excepted() {
    let (proxy, target) = (server().await, server().await);
    let through = client(&[("HTTP_PROXY", &proxy.url())]);
    assert_eq!(
        get(&through, "http://model.invalid/v1/models")
            .await
            .unwrap()
            .0,
        200
    );
    get(&through, &format!("{}/a", target.url())).await.unwrap();
    assert_eq!(
        lines(&proxy),
        [
            "GET http://model.invalid/v1/models".to_owned(),
            format!("GET {}/a", target.url())
        ]
    );
    assert!(target.received().is_empty());

    let around = client(&[
        ("http_proxy", &proxy.url()),
        ("NO_PROXY", "localhost,127.0.0.1,::1"),
    ]);
    get(&around, &format!("{}/b", target.url())).await.unwrap();
    get(
        &around,
        &format!("{}/c", target.url().replace("127.0.0.1", "localhost")),
    )
    .await
    .unwrap();
    assert_eq!(lines(&target), ["GET /b", "GET /c"]);
    assert_eq!(proxy.received().len(), 2);
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let proxy = TestServer::start([Scripted::new(403, "text/plain", ["blocked"])]).await;
    let (_keep, authority) = written(AUTHORITY);
    let client = client(&[("HTTPS_PROXY", &proxy.url()), ("SSL_CERT_FILE", &authority)]);
    let error = get(&client, "https://model.invalid/v1/models")
        .await
        .unwrap_err();
    assert!(matches!(error, ProviderError::Network { .. }), "{error}");
    assert_eq!(lines(&proxy), ["CONNECT model.invalid:443"]);
}

#[tokio::test]
async fn hosts_are_excepted_in_every_common_spelling() {
    assert_eq!(
        excepted_hosts("*, *.corp.example ,[::1],.a.b,10.0.0.0/8"),
        "*,.corp.example,::1,.a.b,10.0.0.0/8"
    );
    let target = server().await;
    for list in ["*", "127.0.0.0/8", "10.0.0.1, 127.0.0.1"] {
        let around = client(&[("HTTP_PROXY", "http://127.0.0.1:9"), ("no_proxy", list)]);
        get(&around, &target.url()).await.unwrap();
    }
}

#[tokio::test]
async fn a_proxys_password_is_sent_but_never_shown() {
    let proxy = server().await;
    let address = proxy.url().replace("http://", "http://user:proxy-pass@");
    let settings = HttpSettings::from_environment(&environment(&[("HTTP_PROXY", &address)]));
    assert!(!format!("{settings:?}").contains("proxy-pass"));
    get(&HttpClient::new(settings), "http://model.invalid/")
        .await
        .unwrap();
    // user:proxy-pass
    assert_eq!(
        proxy.received()[0].header("proxy-authorization"),
        Some("Basic dXNlcjpwcm94eS1wYXNz")
    );
}

#[tokio::test]
async fn broken_settings_are_told_at_the_first_request_only() {
    let target = server().await;
    let cases = [
        ("HTTP_PROXY", "http://", "HTTP_PROXY"),
        (
            "SSL_CERT_FILE",
            "/does/not/exist.pem",
            "/does/not/exist.pem",
        ),
    ];
    for (variable, value, named) in cases {
        let client = client(&[(variable, value)]);
        let error = get(&client, "https://model.invalid/").await.unwrap_err();
        assert!(
            matches!(error, ProviderError::Misconfigured { .. }),
            "{error}"
        );
        assert!(error.to_string().contains(named), "{error}");
    }
    let plain = client(&[("SSL_CERT_FILE", "/does/not/exist.pem")]);
    get(&plain, &target.url()).await.unwrap();
}

#[test]
fn files_without_certificates_are_refused() {
    let (_keep, path) = written("no certificate here");
    assert!(
        certificates(Path::new(&path))
            .unwrap_err()
            .contains("holds no certificate")
    );
    let (_keep, path) = written(AUTHORITY);
    assert_eq!(certificates(Path::new(&path)).unwrap().len(), 1);
}

#[tokio::test]
async fn connections_are_shared_and_redirects_not_followed() {
    let moved =
        Scripted::new(307, "text/plain", ["moved"]).header("location", "http://elsewhere.invalid/");
    let ok = Scripted::new(200, "text/plain", ["ok"]);
    let server = TestServer::start([moved, ok]).await;
    let client = client(&[]);
    assert_eq!(
        get(&client, &server.url()).await.unwrap(),
        (307, b"moved".to_vec())
    );
    assert_eq!(
        get(&client.clone(), &server.url()).await.unwrap(),
        (200, b"ok".to_vec())
    );
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn the_given_certificates_decide_whom_to_trust() {
    let (_keep, authority) = written(AUTHORITY);
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        let url = tls_server();
        let client = client(&[(variable, &authority)]);
        assert_eq!(
            get(&client, &url).await.unwrap(),
            (200, b"secure".to_vec()),
            "{variable}"
        );
    }
    let url = tls_server();
    let (_keep, stranger) = written(SERVER_CERTIFICATE);
    let error = get(&client(&[("SSL_CERT_FILE", &stranger)]), &url)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ProviderError::Network { detail } if detail.contains("certificate")),
        "{error}"
    );
}

/// Writes a file that lives as long as the first value.
fn written(text: &str) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

/// Answers one TLS connection on loopback.
fn tls_server() -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(SERVER_CERTIFICATE.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(SERVER_KEY.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut session = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut tls = rustls::Stream::new(&mut session, &mut stream);
        let mut request = [0; 4096];
        // A client that trusts nobody breaks the handshake off: nothing is left to answer then.
        if tls.read(&mut request).is_ok() {
            let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecure";
            tls.write_all(reply).unwrap();
            session.send_close_notify();
            session.complete_io(&mut stream).ok();
        }
    });
    format!("https://{address}/")
}
