use proptest::prelude::*;

use super::*;

fn request(settings: &[(&str, &str)]) -> Request {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings = settings.iter().map(owned).collect();
    Request { file: "f".to_owned(), mode: FileMode::Octet, settings }
}

fn begin(size: usize, settings: &[(&str, &str)]) -> (Session, String) {
    let content: Vec<u8> = (0..size).map(|at| at as u8).collect();
    let (session, packets) = Session::begin(&request(settings), content.into(), &Limits::default());
    (session, show(&Step::Send(packets)))
}

fn show(step: &Step) -> String {
    let packet = |packet: &Packet| match packet {
        Packet::Data { block, octets } => format!("{block}:{}", octets.len()),
        Packet::OptionAcknowledge(settings) => format!("{settings:?}"),
        Packet::Read(_) | Packet::Write(_) | Packet::Acknowledge { .. } | Packet::Error { .. } => {
            panic!("a server does not send {packet:?}")
        }
    };
    match step {
        Step::Send(packets) => packets.iter().map(packet).collect::<Vec<_>>().join(" "),
        Step::Wait => "wait".to_owned(),
        Step::Done => "done".to_owned(),
        Step::Measured => "measured".to_owned(),
        Step::Fail(error, _) => format!("fail: {error}"),
    }
}

#[track_caller]
fn acknowledge(session: &mut Session, block: u16, want: &str) {
    assert_eq!(show(&session.on_packet(&Packet::Acknowledge { block })), want);
}

#[test]
fn a_plain_transfer_is_block_by_block() {
    let (mut session, first) = begin(1200, &[]);
    assert_eq!(first, "1:512");
    acknowledge(&mut session, 1, "2:512");
    acknowledge(&mut session, 2, "3:176");
    acknowledge(&mut session, 3, "done");
}

#[test]
fn a_file_of_whole_blocks_ends_with_an_empty_one() {
    let (mut session, first) = begin(512, &[]);
    assert_eq!(first, "1:512");
    acknowledge(&mut session, 1, "2:0");
    acknowledge(&mut session, 2, "done");
    assert_eq!(begin(0, &[]).1, "1:0");
}

#[test]
fn options_are_granted_within_limits_and_the_rest_is_left_out() {
    let asked = [
        ("tsize", "0"),
        ("blksize", "65464"),
        ("windowsize", "4"),
        ("timeout", "3"),
        ("multicast", ""),
        ("blksize", "8"),
    ];
    let (mut session, first) = begin(6000, &asked);
    assert_eq!(
        first,
        r#"[("tsize", "6000"), ("blksize", "1468"), ("windowsize", "4"), ("timeout", "3")]"#
    );
    assert_eq!(session.timeout(), Duration::from_secs(3));
    // Only block 0 accepts the options: an acknowledgement of another block is a stray one.
    acknowledge(&mut session, 1, "wait");
    acknowledge(&mut session, 0, "1:1468 2:1468 3:1468 4:1468");
    acknowledge(&mut session, 4, "5:128");
    acknowledge(&mut session, 5, "done");
}

#[test]
fn illegal_option_values_are_ignored() {
    for (name, values) in [
        ("blksize", ["7", "65465", "x"]),
        ("timeout", ["0", "256", "-1"]),
        ("windowsize", ["0", "65536", ""]),
    ] {
        for value in values {
            assert_eq!(begin(10, &[(name, value)]).1, "1:10", "{name}={value}");
        }
    }
}

#[test]
fn a_repeated_acknowledgement_is_not_answered_twice() {
    let (mut session, _) = begin(3000, &[]);
    acknowledge(&mut session, 1, "2:512");
    acknowledge(&mut session, 1, "wait");
    acknowledge(&mut session, 0, "wait");
    acknowledge(&mut session, 2, "3:512");
}

#[test]
fn a_gap_in_a_window_is_filled_from_where_it_began() {
    let (mut session, _) = begin(9000, &[("windowsize", "3")]);
    acknowledge(&mut session, 0, "1:512 2:512 3:512");
    acknowledge(&mut session, 1, "2:512 3:512 4:512");
    // The first block of the window was lost, so the client acknowledges the previous window again.
    acknowledge(&mut session, 1, "2:512 3:512 4:512");
    acknowledge(&mut session, 1, "wait");
    acknowledge(&mut session, 4, "5:512 6:512 7:512");
}

#[test]
fn an_acknowledgement_of_an_unsent_block_is_ignored() {
    let (mut session, _) = begin(9000, &[]);
    acknowledge(&mut session, 2, "wait");
    acknowledge(&mut session, 65535, "wait");
    acknowledge(&mut session, 1, "2:512");
}

#[test]
fn block_numbers_roll_over() {
    let (mut session, _) = begin(8 * 70_000, &[("blksize", "8")]);
    acknowledge(&mut session, 0, "1:8");
    for block in 1..=65_534_u32 {
        session.on_packet(&Packet::Acknowledge { block: block as u16 });
    }
    acknowledge(&mut session, 65_535, "0:8");
    acknowledge(&mut session, 0, "1:8");
    acknowledge(&mut session, 0, "wait");
}

#[test]
fn silence_is_answered_by_sending_again_and_then_by_giving_up() {
    let (mut session, _) = begin(2000, &[("tsize", "0")]);
    assert_eq!(show(&session.on_timeout()), r#"[("tsize", "2000")]"#);
    acknowledge(&mut session, 0, "1:512");
    acknowledge(&mut session, 1, "2:512");
    for _ in 1..Limits::default().attempts {
        assert_eq!(show(&session.on_timeout()), "2:512");
    }
    let gave_up = "fail: the client stopped answering after 512 of 2000 octets";
    assert_eq!(show(&session.on_timeout()), gave_up);
}

#[test]
fn a_client_that_only_wants_the_size_has_not_failed() {
    let (mut session, _) = begin(2000, &[("tsize", "0")]);
    let hang_up = Packet::Error { code: ErrorCode::OptionsRefused, message: String::new() };
    assert_eq!(session.on_packet(&hang_up), Step::Measured);
}

#[test]
fn a_client_that_gives_up_is_quoted_legibly() {
    let (mut session, _) = begin(2000, &[]);
    let message = "disk \x1b[31mfull\n".to_owned();
    let packet = Packet::Error { code: ErrorCode::Other(3), message };
    assert_eq!(show(&session.on_packet(&packet)), "fail: the client gave up: disk [31mfull");
}

#[test]
fn data_from_the_reader_ends_the_transfer() {
    let (mut session, _) = begin(2000, &[]);
    let data = Packet::Data { block: 1, octets: Bytes::new() };
    let Step::Fail(SessionError::OutOfPlace, Some(reported)) = session.on_packet(&data) else {
        panic!("the session went on");
    };
    assert!(matches!(reported, Packet::Error { code: ErrorCode::IllegalOperation, .. }));
}

#[test]
fn netascii_translates_line_ends() {
    let mut asked = request(&[]);
    asked.mode = FileMode::NetAscii;
    let content = Bytes::from_static(b"a\nb\rc");
    let (_, packets) = Session::begin(&asked, content, &Limits::default());
    let octets = Bytes::from_static(b"a\r\nb\r\0c");
    assert_eq!(packets, [Packet::Data { block: 1, octets }]);
}

proptest! {
    /// A client on a link that loses, repeats and reorders packets receives the whole file.
    #[test]
    fn the_file_arrives_whole_over_a_bad_link(
        content in prop::collection::vec(any::<u8>(), 0..4000),
        block_size in 8..600_u64,
        window in 1..6_u64,
        fate in prop::collection::vec(0..4_u8, 1..400),
    ) {
        let settings = [("blksize", block_size.to_string()), ("windowsize", window.to_string())];
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let asked = Request { file: "f".to_owned(), mode: FileMode::Octet, settings };
        let limits = Limits { attempts: 10_000, ..Limits::default() };
        let (mut session, first) = Session::begin(&asked, content.clone().into(), &limits);

        let mut fate = fate.into_iter().chain(std::iter::repeat(0));
        let (mut received, mut next, mut to_client, mut ended) = (Vec::new(), 1_u64, first, false);
        for _ in 0..20_000 {
            let mut answers = Vec::new();
            for packet in std::mem::take(&mut to_client) {
                let times = match fate.next() { Some(1) => 0, Some(2) => 2, _ => 1 };
                for _ in 0..times {
                    if let Packet::Data { block, octets } = &packet
                        && *block == next as u16
                        && !ended
                    {
                        received.extend_from_slice(octets);
                        ended = octets.len() < block_size as usize;
                        next += 1;
                    }
                    answers.push((next - 1) as u16);
                }
            }
            let mut steps: Vec<Step> = answers
                .into_iter()
                .filter(|_| fate.next() != Some(1))
                .map(|block| session.on_packet(&Packet::Acknowledge { block }))
                .collect();
            if steps.contains(&Step::Done) {
                prop_assert_eq!(received, content);
                return Ok(());
            }
            steps.retain(|step| *step != Step::Wait);
            if steps.is_empty() {
                steps.push(session.on_timeout());
            }
            for step in steps {
                if let Step::Send(packets) = step {
                    to_client.extend(packets);
                }
            }
            to_client.truncate(64);
        }
        prop_assert!(false, "the transfer did not end");
    }

    #[test]
    fn no_sequence_of_packets_panics(
        size in 0..3000_usize,
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 2..8), 0..40),
    ) {
        let (mut session, _) = begin(size, &[("windowsize", "3")]);
        for mut octets in packets {
            octets[0] = 0;
            octets[1] %= 8;
            match Packet::decode(&octets) {
                Ok(packet) => session.on_packet(&packet),
                Err(_) => session.on_timeout(),
            };
        }
    }
}
