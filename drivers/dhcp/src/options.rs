//! The options of a message: a code and octets each, in the order they came.

use std::net::Ipv4Addr;

use crate::code;

/// What the length of one piece can say.
const LONGEST: usize = 255;

/// Options, or the sub-options inside one of them; they are written alike.
///
/// A code occurs once: what was sent in several pieces is joined (RFC 3396 §7), and what is longer
/// than 255 octets is sent in several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<(u8, Vec<u8>)>);

/// An option says it is longer than what is left of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option {code} is cut off")]
pub struct CutOff {
    /// Which option.
    pub code: u8,
}

impl Options {
    /// No options.
    pub const fn new() -> Self {
        Options(Vec::new())
    }

    /// Reads sub-options.
    pub fn decode(octets: &[u8]) -> Result<Self, CutOff> {
        let mut options = Options::new();
        options.append_area(octets)?;
        Ok(options)
    }

    /// Writes sub-options; no end mark.
    pub fn encode(&self) -> Vec<u8> {
        let mut written = Vec::new();
        for (code, octets) in self.iter() {
            match octets {
                [] => write_piece(&mut written, code, octets),
                _ => {
                    octets.chunks(LONGEST).for_each(|piece| write_piece(&mut written, code, piece))
                }
            }
        }
        written
    }

    /// The octets of option `code`.
    pub fn get(&self, code: u8) -> Option<&[u8]> {
        self.0.iter().find(|(at, _)| *at == code).map(|(_, octets)| octets.as_slice())
    }

    /// The option as one address; `None` also if its length is not four.
    pub fn address(&self, code: u8) -> Option<Ipv4Addr> {
        let octets: [u8; 4] = self.get(code)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    }

    /// The option as text, without trailing NULs (RFC 2132 §2: clients must tolerate them, and send them).
    pub fn text(&self, code: u8) -> Option<String> {
        let octets = self.get(code)?;
        let end = octets.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        Some(String::from_utf8_lossy(&octets[..end]).into_owned())
    }

    /// Sets option `code`, in place if it is there already.
    ///
    /// Pad and end are no options and are not stored.
    pub fn set(&mut self, code: u8, octets: impl Into<Vec<u8>>) {
        if matches!(code, code::PAD | code::END) {
            return;
        }
        match self.0.iter_mut().find(|(at, _)| *at == code) {
            Some((_, old)) => *old = octets.into(),
            None => self.0.push((code, octets.into())),
        }
    }

    /// Takes option `code` out.
    pub fn remove(&mut self, code: u8) -> Option<Vec<u8>> {
        let at = self.0.iter().position(|(at, _)| *at == code)?;
        Some(self.0.remove(at).1)
    }

    /// Every option, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.0.iter().map(|(code, octets)| (*code, octets.as_slice()))
    }

    /// Reads one area of a message: up to its end mark, or to its end where that is missing.
    pub(crate) fn append_area(&mut self, area: &[u8]) -> Result<(), CutOff> {
        let mut rest = area;
        while let [code, after @ ..] = rest {
            rest = match *code {
                code::PAD => after,
                code::END => return Ok(()),
                code => {
                    let cut_off = CutOff { code };
                    let (length, after) = after.split_first().ok_or(cut_off)?;
                    let (octets, after) =
                        after.split_at_checked(usize::from(*length)).ok_or(cut_off)?;
                    self.join(code, octets);
                    after
                }
            };
        }
        Ok(())
    }

    /// Spreads the options over areas of the given sizes, an end mark in each; `None` if they do not fit.
    ///
    /// Fills one area after the other and never goes back, so that the pieces of a long option are
    /// joined in the right order. Only areas that are needed are returned.
    pub(crate) fn spread(&self, sizes: &[usize]) -> Option<Vec<Vec<u8>>> {
        let mut areas = vec![Vec::new()];
        for (code, octets) in self.relay_last() {
            // Not every client joins pieces: only what has to be cut anyway is cut to measure.
            let may_be_cut = octets.len() > LONGEST;
            let mut rest = octets;
            loop {
                let (size, used) = (*sizes.get(areas.len() - 1)?, areas.last()?.len());
                // Beside the octets: code and length before them, the end mark after.
                let piece = match size.checked_sub(used + 3).map(|room| room.min(LONGEST)) {
                    Some(room) if rest.len() <= room => rest.len(),
                    Some(room) if may_be_cut && room > 0 => room,
                    _ => {
                        areas.push(Vec::new());
                        continue;
                    }
                };
                let (piece, after) = rest.split_at(piece);
                write_piece(areas.last_mut()?, code, piece);
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
        }
        areas.iter_mut().for_each(|area| area.push(code::END));
        Some(areas)
    }

    fn join(&mut self, code: u8, octets: &[u8]) {
        match self.0.iter_mut().find(|(at, _)| *at == code) {
            Some((_, old)) => old.extend_from_slice(octets),
            None => self.0.push((code, octets.to_vec())),
        }
    }

    /// Relay information is written last (RFC 3046 §2.1).
    fn relay_last(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let is_relay = |code: u8| code == code::RELAY_INFORMATION;
        let others = self.iter().filter(move |(code, _)| !is_relay(*code));
        others.chain(self.iter().filter(move |(code, _)| is_relay(*code)))
    }
}

fn write_piece(area: &mut Vec<u8>, code: u8, piece: &[u8]) {
    let length = u8::try_from(piece.len()).expect("pieces are cut to 255 octets");
    area.extend([code, length]);
    area.extend_from_slice(piece);
}
