//! Codec for the six packets of TFTP (RFC 1350 §5, RFC 2347).

use bytes::Bytes;

/// RFC 2347: a request has at most 512 octets.
const LONGEST_REQUEST: usize = 512;

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    Read(Request),
    /// A request to store a file.
    Write(Request),
    Data {
        /// Number of the block, modulo 2^16.
        block: u16,
        /// A block shorter than the block size ends the transfer.
        octets: Bytes,
    },
    /// The receiver has every block up to this number.
    Acknowledge {
        block: u16,
    },
    /// Ends the transfer.
    Error {
        code: ErrorCode,
        /// Text for a person.
        message: String,
    },
    /// The options that the server accepts, with their values.
    OptionAcknowledge(Vec<RequestOption>),
}

/// A read or write request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub file: String,
    pub mode: FileMode,
    /// The options that the client asks for.
    pub settings: Vec<RequestOption>,
}

/// An option: a name in lower case, and a value.
pub type RequestOption = (String, String);

/// The encoding of a file during its transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// Octets unchanged.
    Octet,
    /// Lines of text (RFC 764): LF is sent as CR LF, CR NUL.
    NetAscii,
}

/// Error codes of RFC 1350's appendix and RFC 2347.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The message says more.
    NotDefined,
    FileNotFound,
    AccessViolation,
    /// The packet is not legal at this point.
    IllegalOperation,
    /// The client rejects the options of an option acknowledgement.
    OptionsRefused,
    /// A code that this crate has no name for.
    Other(u16),
}

impl ErrorCode {
    const fn number(self) -> u16 {
        match self {
            ErrorCode::NotDefined => 0,
            ErrorCode::FileNotFound => 1,
            ErrorCode::AccessViolation => 2,
            ErrorCode::IllegalOperation => 4,
            ErrorCode::OptionsRefused => 8,
            ErrorCode::Other(number) => number,
        }
    }

    const fn from_number(number: u16) -> Self {
        match number {
            0 => ErrorCode::NotDefined,
            1 => ErrorCode::FileNotFound,
            2 => ErrorCode::AccessViolation,
            4 => ErrorCode::IllegalOperation,
            8 => ErrorCode::OptionsRefused,
            other => ErrorCode::Other(other),
        }
    }
}

/// The reasons why octets are not a TFTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The packet is shorter than its kind requires.
    #[error("the packet is cut off")]
    CutOff,
    /// The operation code is not one of TFTP's.
    #[error("operation {0} is unknown")]
    UnknownOperation(u16),
    /// The request is longer than 512 octets.
    #[error("a request of {0} octets is too long")]
    RequestTooLong(usize),
    /// A text lacks its NUL or is not UTF-8, or an option lacks its value.
    #[error("a text in the packet cannot be read")]
    UnreadableText,
    /// The transfer mode is neither `octet` nor `netascii`.
    #[error("the transfer mode is unknown")]
    UnknownMode,
}

impl Packet {
    /// Decodes one datagram.
    pub fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let (operation, rest) = number(octets)?;
        Ok(match operation {
            1 => Packet::Read(request(octets.len(), rest)?),
            2 => Packet::Write(request(octets.len(), rest)?),
            3 => {
                let (block, octets) = number(rest)?;
                Packet::Data { block, octets: Bytes::copy_from_slice(octets) }
            }
            4 => Packet::Acknowledge { block: number(rest)?.0 },
            5 => {
                let (code, rest) = number(rest)?;
                let message = rest.split(|octet| *octet == 0).next().unwrap_or_default();
                let message = String::from_utf8_lossy(message).into_owned();
                Packet::Error { code: ErrorCode::from_number(code), message }
            }
            6 => Packet::OptionAcknowledge(settings(texts(rest)?)?),
            other => return Err(DecodeError::UnknownOperation(other)),
        })
    }

    /// Encodes the packet as one datagram.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Packet::Read(request) => write(1, &[], &request.texts()),
            Packet::Write(request) => write(2, &[], &request.texts()),
            Packet::Data { block, octets } => {
                let mut packet = write(3, &block.to_be_bytes(), &[]);
                packet.extend_from_slice(octets);
                packet
            }
            Packet::Acknowledge { block } => write(4, &block.to_be_bytes(), &[]),
            Packet::Error { code, message } => write(5, &code.number().to_be_bytes(), &[message]),
            Packet::OptionAcknowledge(settings) => write(6, &[], &flat(settings)),
        }
    }
}

impl Request {
    fn texts(&self) -> Vec<&str> {
        let mode = match self.mode {
            FileMode::Octet => "octet",
            FileMode::NetAscii => "netascii",
        };
        [self.file.as_str(), mode].into_iter().chain(flat(&self.settings)).collect()
    }
}

fn number(octets: &[u8]) -> Result<(u16, &[u8]), DecodeError> {
    let (number, rest) = octets.split_first_chunk().ok_or(DecodeError::CutOff)?;
    Ok((u16::from_be_bytes(*number), rest))
}

fn request(length: usize, rest: &[u8]) -> Result<Request, DecodeError> {
    if length > LONGEST_REQUEST {
        return Err(DecodeError::RequestTooLong(length));
    }
    let texts = texts(rest)?;
    let [file, mode, options @ ..] = texts.as_slice() else { return Err(DecodeError::CutOff) };
    let mode = match mode.to_ascii_lowercase().as_str() {
        "octet" => FileMode::Octet,
        "netascii" => FileMode::NetAscii,
        _ => return Err(DecodeError::UnknownMode),
    };
    Ok(Request { file: (*file).to_owned(), mode, settings: settings(options.to_vec())? })
}

/// Splits `octets` into their NUL-terminated texts.
///
/// Some firmware pads its requests with NULs. An empty text in the place of an option's name is such padding and ends the list.
fn texts(octets: &[u8]) -> Result<Vec<&str>, DecodeError> {
    let mut texts = Vec::new();
    let mut rest = octets;
    while !rest.is_empty() {
        let end = rest.iter().position(|octet| *octet == 0).ok_or(DecodeError::UnreadableText)?;
        let text = std::str::from_utf8(&rest[..end]).map_err(|_| DecodeError::UnreadableText)?;
        if text.is_empty() && texts.len() >= 2 && texts.len() % 2 == 0 {
            break;
        }
        texts.push(text);
        rest = &rest[end + 1..];
    }
    Ok(texts)
}

fn settings(texts: Vec<&str>) -> Result<Vec<RequestOption>, DecodeError> {
    let pairs = texts.chunks(2).map(|pair| match pair {
        [name, value] => Ok((name.to_ascii_lowercase(), (*value).to_owned())),
        _ => Err(DecodeError::UnreadableText),
    });
    pairs.collect()
}

fn flat(settings: &[RequestOption]) -> Vec<&str> {
    settings.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]).collect()
}

fn write(operation: u16, fixed: &[u8], texts: &[&str]) -> Vec<u8> {
    let mut packet = operation.to_be_bytes().to_vec();
    packet.extend_from_slice(fixed);
    for text in texts {
        // A NUL would end the text early, and the receiver would read the rest as the next text.
        packet.extend(text.bytes().filter(|octet| *octet != 0));
        packet.push(0);
    }
    packet
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(octets: &[u8], want: Result<Packet, DecodeError>) {
        assert_eq!(Packet::decode(octets), want);
    }

    fn read(file: &str, mode: FileMode, settings: &[(&str, &str)]) -> Packet {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().map(owned).collect();
        Packet::Read(Request { file: file.to_owned(), mode, settings })
    }

    #[test]
    fn a_request_of_firmware_is_read() {
        // Options in the order and spelling of EDK2's MTFTP4 client.
        check(
            b"\0\x01snponly.efi\0octet\0tsize\x000\0blksize\x001468\0windowsize\x004\0",
            Ok(read(
                "snponly.efi",
                FileMode::Octet,
                &[("tsize", "0"), ("blksize", "1468"), ("windowsize", "4")],
            )),
        );
        check(b"\0\x01motd\0NetASCII\0", Ok(read("motd", FileMode::NetAscii, &[])));
        check(
            b"\0\x01f\0octet\0BLKSIZE\x00512\0\0\0\0",
            Ok(read("f", FileMode::Octet, &[("blksize", "512")])),
        );
    }

    #[test]
    fn the_other_packets_are_read() {
        check(
            b"\0\x03\0\x07abc",
            Ok(Packet::Data { block: 7, octets: Bytes::from_static(b"abc") }),
        );
        check(b"\0\x04\xff\xff", Ok(Packet::Acknowledge { block: 65535 }));
        let message = "gone".to_owned();
        check(
            b"\0\x05\0\x08gone\0",
            Ok(Packet::Error { code: ErrorCode::OptionsRefused, message }),
        );
    }

    #[test]
    fn a_malformed_packet_is_refused_with_the_reason() {
        check(b"", Err(DecodeError::CutOff));
        check(b"\0\x01file\0", Err(DecodeError::CutOff));
        check(b"\0\x04\0", Err(DecodeError::CutOff));
        check(b"\0\x01file\0octet", Err(DecodeError::UnreadableText));
        check(b"\0\x01fi\xff\0octet\0", Err(DecodeError::UnreadableText));
        check(b"\0\x01file\0octet\0blksize\0", Err(DecodeError::UnreadableText));
        check(b"\0\x01file\0mail\0", Err(DecodeError::UnknownMode));
        check(b"\0\x09", Err(DecodeError::UnknownOperation(9)));
        let long = [b"\0\x01".as_slice(), &[b'a'; 600], b"\0octet\0"].concat();
        check(&long, Err(DecodeError::RequestTooLong(609)));
        // 2 octets of operation, 7 of `\0octet\0`: a name of 503 octets makes a request of 512.
        let of_length = |name| [b"\0\x01".as_slice(), &vec![b'a'; name], b"\0octet\0"].concat();
        check(&of_length(503), Ok(read(&"a".repeat(503), FileMode::Octet, &[])));
        check(&of_length(504), Err(DecodeError::RequestTooLong(513)));
    }

    fn any_packet() -> impl Strategy<Value = Packet> {
        let settings = || prop::collection::vec(("[a-z]{1,10}", "[0-9a-z]{0,10}"), 0..4);
        let octets = prop::collection::vec(any::<u8>(), 0..600).prop_map(Bytes::from);
        prop_oneof![
            ("[^\0]{1,30}", any::<bool>(), settings()).prop_map(|(file, octet, settings)| {
                let mode = if octet { FileMode::Octet } else { FileMode::NetAscii };
                Packet::Read(Request { file, mode, settings })
            }),
            (any::<u16>(), octets).prop_map(|(block, octets)| Packet::Data { block, octets }),
            any::<u16>().prop_map(|block| Packet::Acknowledge { block }),
            (any::<u16>(), "[^\0]{0,30}").prop_map(|(code, message)| Packet::Error {
                code: ErrorCode::from_number(code),
                message
            }),
            settings().prop_map(Packet::OptionAcknowledge),
        ]
    }

    proptest! {
        #[test]
        fn an_encoded_packet_is_decoded_again(packet in any_packet()) {
            prop_assert_eq!(Packet::decode(&packet.encode()), Ok(packet));
        }

        #[test]
        fn no_octets_panic(operation in 0..8_u8, octets in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = Packet::decode(&octets);
            let _ = Packet::decode(&[&[0, operation], octets.as_slice()].concat());
        }

        #[test]
        fn a_nul_in_a_text_cannot_smuggle_in_another(message: String) {
            let packet = Packet::Error { code: ErrorCode::NotDefined, message };
            let written = packet.encode();
            prop_assert_eq!(written.iter().skip(4).filter(|octet| **octet == 0).count(), 1);
        }
    }
}
