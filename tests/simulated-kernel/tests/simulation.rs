//! Two computers talk to each other in a simulation. Each run is a process of its own, because a process has one simulation.

use std::collections::HashSet;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use simulated_kernel::Host;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// Tells a test process that it is a run, and its seed.
const SEED: &str = "SIMULATED_KERNEL_SEED";
const SERVER: &str = "10.1.2.3:7";
const HOUR: Duration = Duration::from_secs(3600);

/// Runs `one_run` with a seed; returns its lines.
fn run(seed: &str) -> Vec<String> {
    let own = std::env::current_exe().expect("a program knows its path");
    let mut command = Command::new(own);
    command.args(["--exact", "one_run", "--nocapture"]).env(SEED, seed);
    let ended = command.output().expect("a run starts");
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{text}");
    text.lines().filter(|line| line.starts_with("run: ")).map(str::to_owned).collect()
}

#[test]
fn a_seed_determines_a_run() {
    let begun = Instant::now();
    let first = run("1");
    assert!(!first.is_empty());
    assert_eq!(run("1"), first);
    assert_ne!(run("2"), first);
    assert!(begun.elapsed() < HOUR, "the hours of a run are virtual");
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

/// Answers each byte, on a computer of its own.
fn server() -> Host {
    let host = Host::add();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        host.enter();
        runtime().block_on(async {
            let listener = TcpListener::bind(SERVER).await.expect("the address is free");
            sender.send(()).expect("the run waits");
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                tokio::spawn(async move {
                    while let Ok(byte) = stream.read_u8().await {
                        sleep(Duration::from_millis(u64::from(byte))).await;
                        if stream.write_u8(byte).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
    });
    receiver.recv().expect("the server listens");
    host
}

/// Asks the server, which may take an hour.
async fn ask(stream: &mut TcpStream, byte: u8) -> bool {
    let exchange = async {
        stream.write_u8(byte).await?;
        stream.read_u8().await
    };
    matches!(timeout(HOUR, exchange).await, Ok(Ok(answer)) if answer == byte)
}

#[test]
fn one_run() {
    let Some(seed) = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()) else { return };
    simulated_kernel::begin(seed);
    let server = server();
    let elapsed = simulated_kernel::elapsed;
    runtime().block_on(async {
        let mut stream = TcpStream::connect(SERVER).await.expect("the server listens");
        assert_eq!(stream.peer_addr().expect("a peer").to_string(), SERVER);
        assert!(ask(&mut stream, 100).await && elapsed() >= Duration::from_millis(100));

        let begun = elapsed();
        server.pause(Duration::from_secs(60));
        assert!(ask(&mut stream, 1).await);
        assert!(elapsed() - begun >= Duration::from_secs(60), "it was paused");

        server.cut(Host::FIRST);
        assert!(!ask(&mut stream, 1).await, "its connection is cut");
        server.partition(Host::FIRST);
        let begun = elapsed();
        let mut parted = TcpStream::connect(SERVER).await.expect("nothing refuses");
        assert!(!ask(&mut parted, 1).await);
        assert!(elapsed() - begun >= HOUR, "nothing answers");
        server.reconnect(Host::FIRST);
        let mut stream = TcpStream::connect(SERVER).await.expect("the server listens");
        assert!(ask(&mut stream, 1).await);

        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("an address is free");
        let own = socket.local_addr().expect("an address");
        socket.send_to(&[7], own).await.expect("nothing refuses");
        let mut received = [0; 2];
        assert_eq!(socket.recv_from(&mut received).await.expect("a datagram"), (1, own));
        let noted = simulated_kernel::take_datagrams();
        let noted: Vec<_> = noted.iter().map(|it| (it.from, it.to)).collect();
        assert_eq!(noted, [(Host::FIRST, own)]);

        let computed = tokio::task::spawn_blocking(|| (0..10).collect::<HashSet<u8>>());
        eprintln!("run: {:?}", computed.await.expect("a thread"));
    });
    let choice = simulated_kernel::choose(1000);
    eprintln!("run: {choice} {:?}", simulated_kernel::end());
    // The server's thread has not ended.
    std::process::exit(0);
}
