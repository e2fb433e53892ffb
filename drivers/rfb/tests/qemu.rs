//! The VNC server of QEMU, which shares none of our code.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use hardware::AllowedHosts;
use rfb::{RfbError, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

const QEMU: &str = "qemu-system-x86_64";
/// VNC Authentication uses eight bytes of a password.
const PASSWORD: &str = "secret89 and more";

struct Qemu {
    // Ended when dropped.
    _child: Child,
    port: u16,
}

impl Qemu {
    /// Starts a paused machine whose screen asks for a password.
    fn start() -> Option<Qemu> {
        if !peers::installed(QEMU) {
            peers::skip(QEMU, "it is not installed (Debian's package qemu-system-x86)");
            return None;
        }
        // Display N is port 5900 + N.
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = std::iter::repeat_with(free).find(|port| *port > 5900).unwrap();
        let secret = format!("secret,id=vnc,data={PASSWORD}");
        let vnc = format!("127.0.0.1:{},password-secret=vnc", port - 5900);
        let machine = ["-M", "pc", "-m", "16", "-S", "-nodefaults", "-vga", "std", "-accel", "tcg"];
        let child = Command::new(QEMU)
            .args(machine)
            .args(["-object", &secret, "-vnc", &vnc])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        Some(Qemu { _child: child.unwrap(), port })
    }

    async fn connect(&self, password: &str) -> Result<tokio::net::TcpStream, RfbError> {
        let server = Server {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            password: password.to_owned().into(),
            allowed: AllowedHosts::anywhere(),
            timeout: Duration::from_secs(10),
        };
        let trying = async {
            loop {
                match server.connect().await {
                    // QEMU listens soon.
                    Err(RfbError::Unreachable { .. }) => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    done => return done,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), trying).await.expect("QEMU listens")
    }
}

#[tokio::test]
async fn qemu_shows_its_screen_to_whoever_has_the_password() {
    let Some(qemu) = Qemu::start() else { return };
    let mut screen = qemu.connect(PASSWORD).await.unwrap();
    // Another viewer, with what VNC Authentication uses of the password.
    let _other = qemu.connect("secret89").await.unwrap();
    // ServerInit (RFC 6143 §7.3.2): size, pixel format, name.
    let mut init = [0; 24];
    screen.read_exact(&mut init).await.unwrap();
    assert!(init[..4].iter().any(|byte| *byte != 0), "the screen has a size");
    let mut name = vec![0; u32::from_be_bytes(init[20..].try_into().unwrap()).try_into().unwrap()];
    screen.read_exact(&mut name).await.unwrap();
    assert_eq!(String::from_utf8(name).unwrap(), "QEMU");
    // FramebufferUpdateRequest (RFC 6143 §7.5.3), and the FramebufferUpdate.
    screen.write_all(&[3, 0, 0, 0, 0, 0, 0, 8, 0, 8]).await.unwrap();
    assert_eq!(screen.read_u8().await.unwrap(), 0);
}

#[tokio::test]
async fn qemu_refuses_a_wrong_password_and_none() {
    let Some(qemu) = Qemu::start() else { return };
    let refused = qemu.connect("wrong").await.unwrap_err();
    assert!(matches!(refused, RfbError::WrongPassword { .. }), "{refused}");
    let refused = qemu.connect("").await.unwrap_err();
    assert!(matches!(refused, RfbError::NeedsPassword { .. }), "{refused}");
}
