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
    let order = Order {
        program: "/bin/bash".into(),
        args: vec!["-c".into(), OsString::from_vec(vec![0xff, b'x']), "".into()],
        env: vec!["A=b=c".into(), "EMPTY=".into()],
        cwd: "/tmp".into(),
        wiring: Wiring::Terminal("/dev/pts/3".into()),
        ledger: "/home/processes/x.json".into(),
        line: "{}".to_owned(),
    };
    let (ours, theirs) = pair();
    let file = order.write().unwrap();
    send_order(&ours, Kind::Detached, &[ours.as_fd(), file.as_fd()]).unwrap();
    let (kind, mut descriptors) = receive_order(&theirs).unwrap().unwrap();
    assert_eq!((kind, descriptors.len()), (Kind::Detached, 2));
    assert_eq!(Order::read(descriptors.pop().unwrap()), Some(order.clone()));
    drop((ours, descriptors));
    assert!(receive_order(&theirs).unwrap().is_none());
    let plain = Order {
        args: Vec::new(),
        env: Vec::new(),
        wiring: Wiring::One,
        ..order.clone()
    };
    assert_eq!(Order::read(plain.write().unwrap()), Some(plain));
    let zero = Order {
        args: vec!["a\0b".into()],
        ..order
    };
    assert!(zero.write().is_err());
}

#[test]
fn reports_and_wishes_arrive_as_they_were_sent() {
    let (daemon, keeper) = pair();
    let reports = [
        Report::Started {
            pid: 70_000,
            keeper: -1,
        },
        Report::Failed {
            stage: Stage::Folder,
            errno: 2,
        },
        Report::Failed {
            stage: Stage::Keeper,
            errno: 11,
        },
        Report::Failed {
            stage: Stage::Terminal,
            errno: 5,
        },
        Report::Failed {
            stage: Stage::Program,
            errno: 13,
        },
        Report::Unlisted { errno: 28 },
        Report::Exited(Exit::Code(255)),
        Report::Exited(Exit::Signal(9)),
        Report::Exited(Exit::Unknown),
        Report::Empty,
    ];
    for report in reports {
        report.send(&keeper);
        assert_eq!(Report::receive(&daemon).unwrap(), Some(report));
    }
    for wish in [Wish::Kill, Wish::signal(Signal::Terminate)] {
        wish.send(&daemon).unwrap();
        assert_eq!(Wish::receive(&keeper).unwrap(), Some(wish));
    }
    drop(keeper);
    assert_eq!(Report::receive(&daemon).unwrap(), None);
}
