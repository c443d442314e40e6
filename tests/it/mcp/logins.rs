//! Logins at servers on the network: begun, finished, renewed, shared by sessions, kept over restarts.

use futures::future::join_all;
use loopd_tests::auth_server::{AuthServer, AuthState, visit};
use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

use super::{last_result, until};

fn options(server: &AuthServer) -> Value {
    json!({"mcpServers": {"box": server.config()}})
}

/// Begins a login; returns the address to visit.
async fn begin(session: &Session) -> String {
    let begun = session
        .call("session.mcp.oauth.login", json!({"serverName": "box"}))
        .await;
    begun["authorizationUrl"].as_str().unwrap().to_owned()
}

/// Logs a person in.
async fn log_in(session: &Session) {
    let url = begin(session).await;
    let (status, page) = visit(&url).await;
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("You are logged in"), "{page}");
    let ended = ended(session, &url).await;
    assert_eq!(ended, json!({"status": "loggedIn"}));
}

async fn ended(session: &Session, url: &str) -> Value {
    let params = json!({"authorizationUrl": url});
    session.client().call("loopd.mcpLoginWait", params).await
}

/// Opens a session whose server is connected with a new login.
async fn logged_in(daemon: &Daemon, server: &AuthServer) -> Session {
    let mut session = daemon.client().create(options(server)).await;
    session.approve_all().await;
    until(&mut session, "box", "needs-auth").await;
    log_in(&session).await;
    until(&mut session, "box", "connected").await;
    session
}

async fn list_tools(session: &Session) -> bool {
    let params = json!({"serverName": "box"});
    session
        .try_call("session.mcp.listTools", params)
        .await
        .is_ok()
}

#[tokio::test]
async fn a_person_logs_in_once_for_all_sessions_and_restarts() {
    let server = AuthServer::start().await;
    let mut daemon = Daemon::playing([]).await;
    let session = logged_in(&daemon, &server).await;
    let mut other = daemon.client().create(options(&server)).await;
    until(&mut other, "box", "connected").await;
    let file = daemon.home().join("mcp-logins.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let said = format!("{:?}{:?}", session.events(), other.events());
    for secret in server.with(|state| state.made()) {
        assert!(!said.contains(&secret), "{secret} is in an event");
    }
    drop((session, other));
    daemon.restart().await;
    let mut later = daemon.client().create(options(&server)).await;
    until(&mut later, "box", "connected").await;
    assert_eq!(server.with(|state| state.registrations), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn ten_sessions_renew_one_rotating_token_once_and_nobody_is_logged_out() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let mut sessions = vec![logged_in(&daemon, &server).await];
    for _ in 1..10 {
        let mut session = daemon.client().create(options(&server)).await;
        until(&mut session, "box", "connected").await;
        sessions.push(session);
    }
    for round in 1..=3 {
        server.with(AuthState::expire);
        let listed = join_all(sessions.iter().map(list_tools)).await;
        assert_eq!(listed, [true; 10]);
        let (refreshes, reuses) = server.with(|state| (state.refreshes, state.reuses));
        assert_eq!((refreshes, reuses), (round, 0));
    }
    for session in &sessions {
        assert_eq!(super::listed(session, "box").await["status"], "connected");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn an_authorization_server_that_is_out_of_order_costs_no_login() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let session = logged_in(&daemon, &server).await;
    for status in [500, 503, 429, 403] {
        server.with(|state| {
            state.expire();
            state.token_failure = Some(status);
        });
        let params = json!({"serverName": "box"});
        let refused = session.refused("session.mcp.listTools", params).await;
        assert!(
            refused.message.contains("could not be renewed"),
            "{refused:?}"
        );
    }
    server.with(|state| state.token_failure = None);
    assert!(list_tools(&session).await);
    let counted = server.with(|state| (state.refreshes, state.registrations));
    assert_eq!(counted, (1, 1));
    daemon.finish().await;
}

#[tokio::test]
async fn a_refresh_token_that_is_refused_asks_for_a_login_and_keeps_the_registration() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let mut session = logged_in(&daemon, &server).await;
    server.with(|state| {
        state.expire();
        state.revoke();
    });
    assert!(!list_tools(&session).await);
    let params = json!({"serverName": "box"});
    session.call("session.mcp.restartServer", params).await;
    until(&mut session, "box", "needs-auth").await;
    log_in(&session).await;
    until(&mut session, "box", "connected").await;
    assert_eq!(server.with(|state| state.registrations), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_that_needs_more_scopes_asks_for_a_login_with_all_of_them() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("a", "box-count", json!({}))]),
        Turn::any().says("ok"),
        Turn::user("again").calls([call("b", "box-count", json!({}))]),
        Turn::results(["call 1"]).says("ok"),
    ])
    .await;
    let mut session = logged_in(&daemon, &server).await;
    server.with(|state| state.call_scope = Some("write".to_owned()));
    session.ask("go").await;
    let told = last_result(&session)["error"]["message"].to_string();
    assert!(told.contains("loop mcp login box"), "{told}");
    let url = begin(&session).await;
    assert!(url.contains("scope=read+write"), "{url}");
    visit(&url).await;
    assert_eq!(ended(&session, &url).await["status"], "loggedIn");
    session.ask("again").await;
    assert_eq!(server.with(|state| state.calls), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn answers_that_do_not_belong_to_a_login_change_nothing() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(options(&server)).await;
    until(&mut session, "box", "needs-auth").await;
    let url = begin(&session).await;
    assert_eq!(begin(&session).await, url, "a login is begun once");
    let at = url.split_once("redirect_uri=").unwrap().1;
    let at = at.split_once('&').unwrap().0;
    let at = at.replace("%3A", ":").replace("%2F", "/");
    assert_eq!(visit(&format!("{at}?code=x&state=other")).await.0, 400);
    assert_eq!(visit(&at.replace("/callback", "/x")).await.0, 404);
    server.with(|state| state.person_refuses = true);
    let (_, page) = visit(&url).await;
    assert!(page.contains("access_denied"), "{page}");
    let refused = ended(&session, &url).await;
    assert_eq!(refused["status"], "failed");
    server.with(|state| state.person_refuses = false);
    log_in(&session).await;
    until(&mut session, "box", "connected").await;
    assert_eq!(
        ended(&session, "https://nobody.example").await["status"],
        "unknown"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_logout_forgets_the_login() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let mut session = logged_in(&daemon, &server).await;
    let params = json!({"serverName": "box"});
    let out = session.call("loopd.mcpLogout", params.clone()).await;
    assert_eq!(out, json!({"removed": true}));
    assert!(!daemon.home().join("mcp-logins.json").exists());
    session
        .call("session.mcp.restartServer", params.clone())
        .await;
    until(&mut session, "box", "needs-auth").await;
    let again = session.call("loopd.mcpLogout", params).await;
    assert_eq!(again, json!({"removed": false}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_that_provides_tokens_comes_before_the_login_of_the_home() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    drop(logged_in(&daemon, &server).await);
    let mut session = daemon.client().create(options(&server)).await;
    let interest = json!({"eventType": "mcp.oauth_required"});
    session
        .call("session.eventLog.registerInterest", interest)
        .await;
    session.call("session.mcp.list", json!({})).await;
    let asked = session.next("mcp.oauth_required").await;
    let declined =
        json!({"requestId": asked["data"]["requestId"], "result": {"kind": "cancelled"}});
    session
        .call("session.mcp.oauth.handlePendingRequest", declined)
        .await;
    until(&mut session, "box", "needs-auth").await;
    server.with(|state| state.access.insert("given".to_owned(), "read".to_owned()));
    let login = json!({"serverName": "box"});
    let begun = session.call("session.mcp.oauth.login", login).await;
    assert_eq!(begun, json!({}));
    let asked = session.next("mcp.oauth_required").await;
    let given = json!({"requestId": asked["data"]["requestId"],
                       "result": {"kind": "token", "accessToken": "given"}});
    session
        .call("session.mcp.oauth.handlePendingRequest", given)
        .await;
    until(&mut session, "box", "connected").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_token_of_a_client_is_replaced_when_the_server_refuses_it() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(options(&server)).await;
    let interest = json!({"eventType": "mcp.oauth_required"});
    session
        .call("session.eventLog.registerInterest", interest)
        .await;
    let give = async |session: &mut Session, token: &str, reason: &str| {
        let asked = session.next("mcp.oauth_required").await["data"].clone();
        assert_eq!(asked["reason"], reason);
        let result = json!({"kind": "token", "accessToken": token});
        let given = json!({"requestId": asked["requestId"], "result": result});
        server.with(|state| {
            state.expire();
            state.access.insert(token.to_owned(), "read".to_owned());
        });
        session
            .call("session.mcp.oauth.handlePendingRequest", given)
            .await;
    };
    session.call("session.mcp.list", json!({})).await;
    give(&mut session, "first-token", "initial").await;
    until(&mut session, "box", "connected").await;
    server.with(AuthState::expire);
    let listing = session.start("session.mcp.listTools", json!({"serverName": "box"}));
    give(&mut session, "second-token", "refresh").await;
    listing.await.unwrap();
    let counted = server.with(|state| (state.registrations, state.refreshes));
    assert_eq!(counted, (0, 0));
    assert!(!daemon.home().join("mcp-logins.json").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_server_says_about_its_login_is_fetched_from_no_neighbour() {
    let neighbour = AuthServer::start().await;
    let server = AuthServer::start().await;
    // As a server elsewhere would name it. This one is on the same machine, so that it may.
    let near = neighbour
        .url()
        .replace("/mcp", "/.well-known/oauth-authorization-server");
    for (address, described) in [
        (near, true),
        ("http://169.254.1.1/latest".to_owned(), false),
    ] {
        server.with(|state| state.metadata_url = Some(address.clone()));
        let daemon = Daemon::playing([]).await;
        let mut session = daemon.client().create(options(&server)).await;
        let interest = json!({"eventType": "mcp.oauth_required"});
        session
            .call("session.eventLog.registerInterest", interest)
            .await;
        session.call("session.mcp.list", json!({})).await;
        let asked = session.next("mcp.oauth_required").await["data"].clone();
        assert_eq!(asked["resourceMetadata"].is_string(), described, "{asked}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_login_that_the_entry_turns_off_is_neither_begun_nor_asked_for() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let mut config = server.config();
    config["oauth"] = json!(false);
    let mut session = daemon
        .client()
        .create(json!({"mcpServers": {"box": config}}))
        .await;
    until(&mut session, "box", "needs-auth").await;
    let params = json!({"serverName": "box"});
    let refused = session.refused("session.mcp.oauth.login", params).await;
    assert!(refused.message.contains("`oauth`"), "{refused:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_login_uses_the_port_of_the_entry_or_fails_by_name() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut config = server.config();
    config["oauthRedirectPort"] = json!(port);
    let mut session = daemon
        .client()
        .create(json!({"mcpServers": {"box": config}}))
        .await;
    until(&mut session, "box", "needs-auth").await;
    let params = json!({"serverName": "box"});
    let refused = session.refused("session.mcp.oauth.login", params).await;
    assert!(
        refused.message.contains(&format!("the port {port}")),
        "{refused:?}"
    );
    drop(taken);
    let url = begin(&session).await;
    assert!(
        url.contains(&format!("127.0.0.1%3A{port}%2Fcallback")),
        "{url}"
    );
    visit(&url).await;
    assert_eq!(ended(&session, &url).await["status"], "loggedIn");
    daemon.finish().await;
}

#[tokio::test]
async fn of_several_calls_on_a_forgotten_connection_one_makes_it_anew() {
    let server = AuthServer::start().await;
    let calls = |names: [&'static str; 5]| names.map(|name| call(name, "box-count", json!({})));
    let daemon = Daemon::playing([
        Turn::user("go").calls(calls(["a", "b", "c", "d", "e"])),
        Turn::any().calls(calls(["f", "g", "h", "i", "j"])),
        Turn::any().says("ok"),
    ])
    .await;
    let mut session = logged_in(&daemon, &server).await;
    server.with(AuthState::forget_connections);
    session.ask("go").await;
    let counted = server.with(|state| (state.greetings, state.calls));
    assert_eq!(counted.0, 2, "greeted anew once: {counted:?}");
    let told = daemon.script().requests()[1].last_results();
    let again = told
        .iter()
        .filter(|it| it.contains("had forgotten"))
        .count();
    assert_eq!(counted.1, 10 - again, "{told:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_connection_that_a_server_forgot_is_made_anew_and_no_call_is_made_twice() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("a", "box-count", json!({}))]),
        Turn::any().calls([call("b", "box-count", json!({}))]),
        Turn::results(["call 1"]).says("ok"),
    ])
    .await;
    let mut session = logged_in(&daemon, &server).await;
    server.with(AuthState::forget_connections);
    session.ask("go").await;
    let told = daemon.script().requests()[1].last_results();
    assert!(told[0].contains("had forgotten its connection"), "{told:?}");
    let counted = server.with(|state| (state.greetings, state.calls));
    assert_eq!(counted, (2, 1));
    daemon.finish().await;
}

#[tokio::test]
async fn a_file_of_logins_that_cannot_be_read_is_left_alone() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let file = daemon.home().join("mcp-logins.json");
    std::fs::write(&file, "{ broken").unwrap();
    let session = daemon.client().create(options(&server)).await;
    let params = json!({"serverName": "box"});
    let refused = session.refused("session.mcp.oauth.login", params).await;
    assert!(refused.message.contains("mcp-logins.json"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{ broken");
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_keeps_logins_in_memory_uses_none_of_the_home_and_writes_none() {
    let server = AuthServer::start().await;
    let daemon = Daemon::playing([]).await;
    let _shared = logged_in(&daemon, &server).await;
    let mut private = options(&server);
    private["mcpOAuthTokenStorage"] = "in-memory".into();
    let mut session = daemon.client().create(private).await;
    until(&mut session, "box", "needs-auth").await;
    let before = std::fs::read_to_string(daemon.home().join("mcp-logins.json")).unwrap();
    for method in ["session.mcp.oauth.login", "loopd.mcpLogout"] {
        let error = session.refused(method, json!({"serverName": "box"})).await;
        assert!(
            error.message.contains("mcpOAuthTokenStorage"),
            "{}",
            error.message
        );
    }
    let after = std::fs::read_to_string(daemon.home().join("mcp-logins.json")).unwrap();
    assert_eq!(before, after);
    daemon.finish().await;
}
