//! Decodes text of FRU areas and sensor records (FRU information 1.0 §13, IPMI 2.0 §43.15).

const BCD_PLUS: [char; 16] =
    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ' ', '-', '.', ':', ',', '_'];

/// A type/length byte: coding and length of the bytes that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeLength(pub(crate) u8);

impl TypeLength {
    /// Ends the fields of a FRU area.
    pub(crate) const END: TypeLength = TypeLength(0xc1);

    pub(crate) const fn length(self) -> usize {
        (self.0 & 0x3f) as usize
    }

    /// Decodes the text in `bytes` and removes control characters, so that a terminal or a log can show it; `None` if the text is empty.
    pub(crate) fn decode(self, bytes: &[u8]) -> Option<String> {
        let text: String = match self.0 >> 6 {
            0 => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            1 => bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]).map(bcd_plus).collect(),
            2 => six_bit_ascii(bytes),
            _ => bytes.iter().map(|byte| char::from(*byte)).collect(),
        };
        let printable: String = text.chars().filter(|c| !c.is_control()).collect();
        let trimmed = printable.trim();
        (!trimmed.is_empty()).then(|| trimmed.to_owned())
    }
}

fn bcd_plus(nibble: u8) -> char {
    BCD_PLUS[usize::from(nibble & 0x0f)]
}

/// Decodes four characters from three bytes, the first in the lowest bits.
fn six_bit_ascii(bytes: &[u8]) -> String {
    let characters = |group: &[u8]| {
        let packed = group.iter().rev().fold(0u32, |packed, byte| packed << 8 | u32::from(*byte));
        let count = group.len() * 8 / 6;
        (0..count).map(move |at| char::from(0x20 + (packed >> (6 * at) & 0x3f) as u8))
    };
    bytes.chunks(3).flat_map(characters).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(kind: u8, hexadecimal: &str, want: Option<&str>) {
        let bytes = hex::decode(hexadecimal).unwrap();
        assert_eq!(TypeLength(kind).decode(&bytes).as_deref(), want);
    }

    #[test]
    fn every_coding_is_read() {
        check(0x00, "00ff", Some("00ff"));
        check(0x40, "12ab34", Some("12 -34"));
        // The example "IPMI" of IPMI 2.0 §43.15.
        check(0x80, "29dca6", Some("IPMI"));
        check(0xc0, "4465 6c6c20".replace(' ', "").as_str(), Some("Dell"));
    }

    #[test]
    fn text_without_printable_characters_is_none() {
        check(0xc0, "", None);
        check(0xc0, "2020", None);
        check(0xc0, "1b07", None);
    }

    #[test]
    fn control_characters_are_removed() {
        check(0xc0, "411b5b324a", Some("A[2J"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(kind: u8, bytes: Vec<u8>) {
            let text = TypeLength(kind).decode(&bytes);
            prop_assert!(text.is_none_or(|text| !text.contains(char::is_control)));
        }
    }
}
