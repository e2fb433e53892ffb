mod boot;
mod leases;
mod proxy;
mod relays;

use std::time::Duration;

use expect_test::Expect;
use proptest::prelude::*;

use super::*;
use crate::{Destination, Options};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const LEASED: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 20);

fn config(mode: Mode) -> ServerConfig {
    ServerConfig {
        mode,
        address: OURS,
        tftp_server: None,
        subnet: "10.78.0.0/24".parse().unwrap(),
        router: Some(Ipv4Addr::new(10, 78, 0, 254)),
        dns: vec![Ipv4Addr::new(10, 78, 0, 2), Ipv4Addr::new(10, 78, 0, 3)],
        domain: Some("rack.test".to_owned()),
        lease_time: Duration::from_secs(3600),
    }
}

fn request(kind: MessageType, options: &[(u8, &[u8])]) -> Message {
    let mut all = Options::new();
    all.set(code::MESSAGE_TYPE, [kind.code()]);
    options.iter().for_each(|(code, octets)| all.set(*code, *octets));
    Message {
        operation: Operation::Request,
        hardware_type: 1,
        hops: 0,
        transaction: 7,
        seconds: 0,
        broadcast: false,
        client_address: Ipv4Addr::UNSPECIFIED,
        your_address: Ipv4Addr::UNSPECIFIED,
        next_server: Ipv4Addr::UNSPECIFIED,
        relay: Ipv4Addr::UNSPECIFIED,
        hardware_address: vec![0x52, 0x54, 0, 0x78, 0, 1],
        server_name: Vec::new(),
        file: Vec::new(),
        options: all,
    }
}

const PXE: (u8, &[u8]) = (code::VENDOR_CLASS, b"PXEClient:Arch:00000:UNDI:002001");
const HTTP: (u8, &[u8]) = (code::VENDOR_CLASS, b"HTTPClient:Arch:00016:UNDI:003001");
const IPXE: (u8, &[u8]) = (code::USER_CLASS, b"iPXE");

fn lease() -> Option<Lease> {
    Some(Lease { address: LEASED.into(), hostname: Some("r1u7".to_owned()) })
}

fn tftp() -> Option<BootFile> {
    Some(BootFile::Tftp { name: "undionly.kpxe".to_owned() })
}

fn http() -> Option<BootFile> {
    Some(BootFile::Http { url: "http://10.78.0.1:8080/boot/1".parse().unwrap() })
}

/// Prints a reply with one fact a line: destination, addresses, file, options in hexadecimal or text.
fn show(answer: Result<Reply, NoAnswer>) -> String {
    let reply = match answer {
        Ok(reply) => reply,
        Err(silence) => return format!("silence: {silence}"),
    };
    let message = &reply.message;
    let mut lines = format!(
        "{:?} to {:?}, your {}, next {}, file {:?}",
        message.message_type().unwrap(),
        reply.to,
        message.your_address,
        message.next_server,
        String::from_utf8_lossy(&message.file),
    );
    for (code, octets) in message.options.iter() {
        let text = octets.len() > 3 && octets.iter().all(|octet| (32..127).contains(octet));
        let shown =
            if text { String::from_utf8_lossy(octets).into_owned() } else { hex::encode(octets) };
        lines += &format!("\n  {code} {shown}");
    }
    lines
}

#[track_caller]
fn check(mode: Mode, request: Message, lease: Option<Lease>, boot: Option<BootFile>, want: Expect) {
    let decision = Decision::Answer { lease, boot };
    want.assert_eq(&show(answer(&config(mode), &request, &decision)));
}

proptest! {
    #[test]
    fn every_answer_can_be_sent_and_repeats_the_transaction(
        kind in 1..=8_u8,
        options in prop::collection::vec((1..=254_u8, prop::collection::vec(any::<u8>(), 0..255)), 0..8),
        relay: u32,
        client: u32,
        proxy: bool,
    ) {
        let mut asked = request(MessageType::from_code(kind).unwrap(), &[]);
        options.into_iter().for_each(|(code, octets)| asked.options.set(code, octets));
        asked.relay = Ipv4Addr::from(relay);
        asked.client_address = Ipv4Addr::from(client);
        let config = config(if proxy { Mode::Proxy } else { Mode::Full });
        let decision = Decision::Answer { lease: lease(), boot: http() };
        let answers = [answer(&config, &asked, &decision), answer_binding(&config, &asked, &decision)];
        for reply in answers.into_iter().flatten() {
            prop_assert_eq!(reply.message.transaction, asked.transaction);
            prop_assert_eq!(reply.message.operation, Operation::Reply);
            let _ = reply.message.encode(reply.limit);
        }
    }
}
