use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::*;

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap()
}

#[test]
fn an_order_arrives_as_it_was_sent() {
    let order = KeeperOrder {
        program: "/bin/bash".into(),
        args: vec!["-c".into(), OsString::from_vec(vec![0xff, b'x']), "".into()],
        env: vec!["A=b=c".into(), "EMPTY=".into()],
        cwd: "/tmp".into(),
        stdio: StdioSource::Terminal("/dev/pts/3".into()),
        sandbox: Some(NetworkAccess::Denied),
        ledger: "/home/processes/x.json".into(),
        entry: "{}".to_owned(),
    };
    let (ours, theirs) = pair();
    let file = order.write().unwrap();
    send_order(&ours, KeeperKind::Detached, &[ours.as_fd(), file.as_fd()]).unwrap();
    let (kind, mut descriptors) = receive_order(&theirs).unwrap().unwrap();
    assert_eq!((kind, descriptors.len()), (KeeperKind::Detached, 2));
    assert_eq!(
        KeeperOrder::read(descriptors.pop().unwrap()),
        Some(order.clone())
    );
    drop((ours, descriptors));
    assert!(receive_order(&theirs).unwrap().is_none());
    let plain = KeeperOrder {
        args: Vec::new(),
        env: Vec::new(),
        stdio: StdioSource::One,
        sandbox: None,
        ..order.clone()
    };
    assert_eq!(KeeperOrder::read(plain.write().unwrap()), Some(plain));
    let zero = KeeperOrder {
        args: vec!["a\0b".into()],
        ..order
    };
    assert!(zero.write().is_err());
}

#[test]
fn reports_and_requests_arrive_as_they_were_sent() {
    let (daemon, keeper) = pair();
    let reports = [
        KeeperReport::Started {
            pid: 70_000,
            keeper: -1,
        },
        KeeperReport::Failed {
            stage: StartStage::Folder,
            errno: 2,
        },
        KeeperReport::Failed {
            stage: StartStage::Keeper,
            errno: 11,
        },
        KeeperReport::Failed {
            stage: StartStage::Terminal,
            errno: 5,
        },
        KeeperReport::Failed {
            stage: StartStage::Program,
            errno: 13,
        },
        KeeperReport::LedgerFailed { errno: 28 },
        KeeperReport::Exited(Exit::Code(255)),
        KeeperReport::Exited(Exit::Signal(9)),
        KeeperReport::Exited(Exit::Unknown),
        KeeperReport::Empty,
    ];
    for report in reports {
        report.send(&keeper);
        assert_eq!(KeeperReport::receive(&daemon).unwrap(), Some(report));
    }
    for request in [
        KeeperRequest::Kill,
        KeeperRequest::signal(Signal::Terminate),
    ] {
        request.send(&daemon).unwrap();
        assert_eq!(KeeperRequest::receive(&keeper).unwrap(), Some(request));
    }
    drop(keeper);
    assert_eq!(KeeperReport::receive(&daemon).unwrap(), None);
}
