//! Tests of shared consoles. The tests play the machine at the other end of the session.

use std::sync::atomic::{AtomicUsize, Ordering};

use baremetal_core::Driver;
use bmc::BmcError;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;

/// The machine's end of a session.
struct Machine {
    says: mpsc::Sender<Result<Bytes, BmcError>>,
    hears: mpsc::Receiver<Bytes>,
}

/// A BMC that opens a port on every request, and counts the requests.
struct Lender {
    opened: Arc<AtomicUsize>,
    sessions: mpsc::Receiver<Machine>,
    lend: mpsc::Sender<Machine>,
}

impl Lender {
    fn new() -> Self {
        let (lend, sessions) = mpsc::channel(16);
        Lender { opened: Arc::default(), sessions, lend }
    }

    fn look(&self, consoles: &Consoles, node: &Node) -> Result<ConsoleViewer, ConsoleError> {
        let (opened, lend) = (self.opened.clone(), self.lend.clone());
        consoles.enter(node, move || {
            let (opened, lend) = (opened.clone(), lend.clone());
            async move {
                opened.fetch_add(1, Ordering::Relaxed);
                let (says, output) = mpsc::channel(4096);
                let (input, hears) = mpsc::channel(1);
                lend.send(Machine { says, hears }).await.unwrap();
                Ok(SerialSession { output, input })
            }
        })
    }

    async fn machine(&mut self) -> Machine {
        self.sessions.recv().await.unwrap()
    }
}

impl Machine {
    async fn says(&self, text: &'static str) {
        self.says.send(Ok(Bytes::from_static(text.as_bytes()))).await.unwrap();
    }
}

fn consoles(viewers_per_node: usize, sessions: usize) -> Consoles {
    Consoles::new(ConsoleSettings { viewers_per_node, sessions, linger: Duration::from_secs(20) })
}

fn node(number: u128) -> Node {
    let id = uuid::Uuid::from_u128(number).to_string().parse().unwrap();
    let mut node = Node::new(id, Driver::Ipmi, Timestamp::UNIX_EPOCH);
    node.console_enabled = true;
    node
}

/// Reads output until it contains `words`.
async fn reads(viewing: &mut ConsoleViewer, words: &str) -> String {
    let mut read = String::new();
    while !read.contains(words) {
        let Some(piece) = viewing.next().await else { panic!("it ended after {read:?}") };
        read += std::str::from_utf8(&piece).unwrap();
    }
    read
}

#[tokio::test(start_paused = true)]
async fn all_viewers_share_one_session_and_its_latest_output() {
    let (consoles, node, mut lender) = (consoles(8, 8), node(1), Lender::new());
    let mut ann = lender.look(&consoles, &node).unwrap();
    let mut machine = lender.machine().await;
    machine.says("login: ").await;
    reads(&mut ann, "login: ").await;

    let mut bob = lender.look(&consoles, &node).unwrap();
    assert!(reads(&mut bob, "login: ").await.contains("the console is open"));
    bob.keyboard().send("root\r".into()).await.unwrap();
    assert_eq!(machine.hears.recv().await.unwrap(), "root\r");
    machine.says("Password: ").await;
    for viewing in [&mut ann, &mut bob] {
        reads(viewing, "Password: ").await;
    }
    assert_eq!(lender.opened.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn the_port_is_closed_a_while_after_the_last_viewer_left() {
    let (consoles, node, mut lender) = (consoles(8, 8), node(1), Lender::new());
    let ann = lender.look(&consoles, &node).unwrap();
    let machine = lender.machine().await;
    drop(ann);
    tokio::time::sleep(Duration::from_secs(19)).await;
    let ann = lender.look(&consoles, &node).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    machine.says("still here").await;
    drop(ann);
    let begun = Instant::now();
    machine.says.closed().await;
    assert_eq!(begun.elapsed().as_secs(), 20);
    assert_eq!(consoles.held().len(), 0);
    assert!(
        consoles.latest_output(&node).unwrap().ends_with(b"still here"),
        "what was said is kept"
    );

    let mut again = lender.look(&consoles, &node).unwrap();
    lender.machine().await.says("anew").await;
    assert!(reads(&mut again, "anew").await.contains("still here"));
    assert_eq!(lender.opened.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn the_output_is_hidden_from_a_later_lessee() {
    let (consoles, mut node, mut lender) = (consoles(8, 8), node(1), Lender::new());
    node.lessee = Some("ann".to_owned());
    let mut ann = lender.look(&consoles, &node).unwrap();
    lender.machine().await.says("a secret of ann's").await;
    reads(&mut ann, "ann's").await;

    node.lessee = Some("bob".to_owned());
    assert!(consoles.latest_output(&node).unwrap().is_empty());
    let mut bob = lender.look(&consoles, &node).unwrap();
    ann.over().cancelled().await;
    assert_eq!(ann.end(), ConsoleEnd::HandedOver);
    lender.machine().await.says("bob's own").await;
    assert!(!reads(&mut bob, "bob's own").await.contains("secret"));

    node.lessee = None;
    consoles.end_if_handed_over(&node);
    bob.over().cancelled().await;
    assert_eq!((bob.end(), consoles.held()), (ConsoleEnd::HandedOver, BTreeSet::new()));
}

#[tokio::test(start_paused = true)]
async fn a_broken_session_is_reopened_with_longer_pauses_and_a_message() {
    let (consoles, node, mut lender) = (consoles(8, 8), node(1), Lender::new());
    let mut ann = lender.look(&consoles, &node).unwrap();
    let mut machine = lender.machine().await;
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        let why = BmcError::Busy { host: "bmc".to_owned(), reason: "no slot".to_owned() };
        machine.says.send(Err(why)).await.unwrap();
        let reported = reads(&mut ann, " s]").await;
        let want = format!("the BMC at bmc is busy: no slot; reopening in {seconds} s");
        assert!(reported.contains(&want), "{reported:?}");
        // Input that is typed while no port is open is discarded.
        ann.keyboard().send("reboot\r".into()).await.unwrap();
        let begun = Instant::now();
        machine = lender.machine().await;
        assert_eq!(begun.elapsed().as_secs(), seconds);
        assert!(machine.hears.try_recv().is_err());
    }
    // After a session that lasted, the pause starts again at one second.
    tokio::time::sleep(Duration::from_secs(120)).await;
    drop(machine);
    let reported = reads(&mut ann, " s]").await;
    assert!(reported.contains("the BMC ended the session; reopening in 1 s"), "{reported:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_viewer_is_dropped_and_nobody_waits() {
    let (consoles, node, mut lender) = (consoles(8, 8), node(1), Lender::new());
    let mut slow = lender.look(&consoles, &node).unwrap();
    let mut ann = lender.look(&consoles, &node).unwrap();
    let machine = lender.machine().await;
    reads(&mut ann, "is open").await;
    for _ in 0..1100 {
        machine.says("x").await;
        reads(&mut ann, "x").await;
    }
    while slow.next().await.is_some() {}
    assert_eq!(slow.end(), ConsoleEnd::TooSlow);
    machine.says("on").await;
    reads(&mut ann, "on").await;
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_console_is_reported_and_closes_the_port() {
    for why in [ConsoleEnd::Disabled, ConsoleEnd::Deleted] {
        let (consoles, node, mut lender) = (consoles(8, 8), node(1), Lender::new());
        let mut ann = lender.look(&consoles, &node).unwrap();
        let machine = lender.machine().await;
        machine.says("secret").await;
        reads(&mut ann, "secret").await;
        consoles.end(node.id, why);
        assert_eq!(ann.next().await, None);
        assert_eq!(ann.end(), why);
        machine.says.closed().await;
        assert!(consoles.latest_output(&node).unwrap().is_empty(), "nothing is kept of it");
    }
    let (consoles, node, mut lender) = (consoles(8, 8), node(1), Lender::new());
    let mut ann = lender.look(&consoles, &node).unwrap();
    let machine = lender.machine().await;
    let closing = async {
        consoles.close().await;
        Instant::now()
    };
    let looking = async {
        while ann.next().await.is_some() {}
        assert_eq!(ann.end(), ConsoleEnd::Stopping);
        drop(ann);
    };
    tokio::join!(closing, looking);
    machine.says.closed().await;
    assert_eq!(lender.look(&consoles, &node).unwrap_err(), ConsoleError::Stopping);
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_viewers_and_sessions_are_limited() {
    let (consoles, lender) = (consoles(2, 1), Lender::new());
    let (one, other) = (node(1), node(2));
    let _ann = lender.look(&consoles, &one).unwrap();
    let bob = lender.look(&consoles, &one).unwrap();
    let refused = lender.look(&consoles, &one).unwrap_err().to_string();
    assert!(refused.contains("has the maximum of 2 viewers"), "{refused}");
    drop(bob);
    let _carl = lender.look(&consoles, &one).unwrap();
    let refused = lender.look(&consoles, &other).unwrap_err();
    assert_eq!(refused, ConsoleError::Exhausted { at_most: 1 });
    let off = Node { console_enabled: false, ..one };
    let refused = lender.look(&consoles, &off).unwrap_err();
    assert_eq!(refused, ConsoleError::Disabled { node: off.label() });
}

#[tokio::test(start_paused = true)]
async fn a_port_in_use_is_reported_to_the_viewer() {
    let (consoles, node) = (consoles(8, 8), node(1));
    let taken = || async {
        Err(OpenPortError::from(BmcError::InUse { host: "bmc".to_owned(), what: "serial port" }))
    };
    let mut ann = consoles.enter(&node, taken).unwrap();
    let reported = reads(&mut ann, " s]").await;
    assert!(reported.contains("serial port") && reported.contains("in 1 s"), "{reported:?}");
}
