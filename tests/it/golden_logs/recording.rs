//! Takes the logs out of a daemon's store, without anything of the machine they were made on.

use loopd_tests::Daemon;

use super::summary::Log;

/// What stands for the folder that sessions work in, the home and the model.
const PLACES: [&str; 3] = ["/golden/project", "/golden/state", "http://model.example"];

/// The logs of all sessions of the daemon; each is named after its session.
pub(super) async fn take(daemon: &Daemon) -> Vec<Log> {
    let work = daemon.work().to_string_lossy().into_owned();
    let home = daemon.app.services.home.to_string_lossy().into_owned();
    let own = [work, home, daemon.script().url().to_owned()];
    let store = &daemon.app.services.store;
    let mut logs = Vec::new();
    for record in store.list().await.unwrap() {
        let (_, events) = store.load(&record.id).await.unwrap().unwrap();
        let mut text = String::new();
        for event in events {
            let mut line = event.json.to_string();
            for (own, place) in own.iter().zip(PLACES) {
                line = line.replace(own, place);
            }
            text.push_str(&line);
            text.push('\n');
        }
        logs.push(Log::read(record.id.as_str(), &text));
    }
    logs.sort_by(|one, other| one.name.cmp(&other.name));
    logs
}
