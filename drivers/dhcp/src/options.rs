//! The options of a message: pairs of a code and octets, in the order in which they were received or set.

use std::net::Ipv4Addr;

use crate::code;

/// The length field of a piece has one octet.
const LONGEST: usize = 255;

/// The options of a message, or the sub-options inside one option; both have the same wire form.
///
/// Each code occurs once: an option that was sent in several pieces is joined (RFC 3396 §7), and an option longer than 255 octets is sent
/// in several pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<(u8, Vec<u8>)>);

/// The length of an option goes beyond the end of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option {code} is cut off")]
pub struct CutOff {
    pub code: u8,
}

impl Options {
    /// Makes an empty list.
    pub const fn new() -> Self {
        Options(Vec::new())
    }

    /// Decodes sub-options.
    pub fn decode(octets: &[u8]) -> Result<Self, CutOff> {
        let mut options = Options::new();
        options.append_area(octets)?;
        Ok(options)
    }

    /// Encodes sub-options, without an end mark.
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

    /// Returns the octets of option `code`.
    pub fn get(&self, code: u8) -> Option<&[u8]> {
        self.0.iter().find(|(at, _)| *at == code).map(|(_, octets)| octets.as_slice())
    }

    /// Returns option `code` as one IPv4 address; `None` if the option is absent or has not four octets.
    pub fn address(&self, code: u8) -> Option<Ipv4Addr> {
        let octets: [u8; 4] = self.get(code)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    }

    /// Returns option `code` as text, without trailing NULs (RFC 2132 §2: clients must tolerate them, and some send them).
    pub fn text(&self, code: u8) -> Option<String> {
        let octets = self.get(code)?;
        let end = octets.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        Some(String::from_utf8_lossy(&octets[..end]).into_owned())
    }

    /// Sets option `code`; an option that exists keeps its place.
    ///
    /// Pad and end are not options and are not stored.
    pub fn set(&mut self, code: u8, octets: impl Into<Vec<u8>>) {
        if matches!(code, code::PAD | code::END) {
            return;
        }
        match self.0.iter_mut().find(|(at, _)| *at == code) {
            Some((_, old)) => *old = octets.into(),
            None => self.0.push((code, octets.into())),
        }
    }

    /// Removes option `code` and returns its octets.
    pub fn remove(&mut self, code: u8) -> Option<Vec<u8>> {
        let at = self.0.iter().position(|(at, _)| *at == code)?;
        Some(self.0.remove(at).1)
    }

    /// Iterates over all options in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.0.iter().map(|(code, octets)| (*code, octets.as_slice()))
    }

    /// Reads one area of a message, up to its end mark or, if there is none, up to the end of the area.
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

    /// Distributes the options over areas of the given sizes, with an end mark in each; `None` if the options do not fit.
    ///
    /// The function fills one area after the other and never goes back, so that a receiver joins the pieces of a long option in the right
    /// order. Areas that are not needed are not returned.
    pub(crate) fn spread(&self, sizes: &[usize]) -> Option<Vec<Vec<u8>>> {
        let mut areas = vec![Vec::new()];
        for (code, octets) in self.relay_last() {
            // Not every client joins pieces, so only an option that is too long for one piece is cut.
            let may_be_cut = octets.len() > LONGEST;
            let mut rest = octets;
            loop {
                let (size, used) = (*sizes.get(areas.len() - 1)?, areas.last()?.len());
                // A piece has a code and a length before its octets, and the area needs an end mark after them: 3 octets.
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

    /// Iterates over all options with the relay information last (RFC 3046 §2.1).
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

#[cfg(test)]
mod tests {
    use super::*;

    fn options(all: &[(u8, &[u8])]) -> Options {
        let mut options = Options::new();
        all.iter().for_each(|(code, octets)| options.set(*code, *octets));
        options
    }

    #[test]
    fn an_option_without_octets_is_written_and_read() {
        let octets = options(&[(19, &[]), (5, &[10])]).encode();
        assert_eq!(octets, [19, 0, 5, 1, 10]);
        assert_eq!(Options::decode(&octets).unwrap().get(19), Some(&[][..]));
    }

    #[test]
    fn an_option_that_fits_one_piece_is_not_cut() {
        // The first area has room for 17 octets of an option.
        assert_eq!(
            options(&[(12, &[7; 18])]).spread(&[20, 30]),
            Some(vec![vec![255], [&[12, 18][..], &[7; 18], &[255]].concat()])
        );
        assert_eq!(
            options(&[(12, &[7; 255])]).spread(&[20, 300]),
            Some(vec![vec![255], [&[12, 255][..], &[7; 255], &[255]].concat()])
        );
    }

    #[test]
    fn a_longer_option_is_cut_where_an_area_ends() {
        let long = options(&[(12, &[7; 256])]);
        assert_eq!(
            long.spread(&[20, 300]),
            Some(vec![
                [&[12, 17][..], &[7; 17], &[255]].concat(),
                [&[12, 239][..], &[7; 239], &[255]].concat(),
            ])
        );
        // The first area has room for a code, a length and the end mark only: no empty piece goes there.
        assert_eq!(
            long.spread(&[3, 300]),
            Some(vec![vec![255], [&[12, 255][..], &[7; 255], &[12, 1, 7, 255]].concat(),])
        );
        assert_eq!(long.spread(&[20, 200]), None);
    }

    #[test]
    fn the_relay_information_is_written_last() {
        let relayed = options(&[(82, &[19, 0]), (53, &[2])]);
        assert_eq!(relayed.spread(&[20]), Some(vec![vec![53, 1, 2, 82, 2, 19, 0, 255]]));
    }
}
