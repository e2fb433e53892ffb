//! The areas of a FRU inventory (IPMI platform management FRU information storage 1.0).

use crate::wire::{Malformed, Reader};

use super::text::TypeLength;

/// 1996-01-01T00:00Z, the origin of a board's time of manufacture in minutes (§11).
const EPOCH: i64 = 820_454_400;
/// The most text fields of an area that have a defined meaning.
const MOST_FIELDS: usize = 7;

/// The FRU inventory of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fru {
    pub chassis: Option<Chassis>,
    pub board: Option<Board>,
    /// The product as it was sold.
    pub product: Option<Product>,
}

/// The chassis area (§10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chassis {
    /// SMBIOS' number of the kind of chassis.
    pub kind: u8,
    pub part_number: Option<String>,
    pub serial_number: Option<String>,
}

/// The board area (§11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    /// The time of manufacture in seconds since 1970, to the minute.
    pub made_at: Option<i64>,
    pub manufacturer: Option<String>,
    pub product: Option<String>,
    pub serial_number: Option<String>,
    pub part_number: Option<String>,
}

/// The product area (§12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Product {
    pub manufacturer: Option<String>,
    pub name: Option<String>,
    /// The vendor's part or model number.
    pub part_number: Option<String>,
    pub version: Option<String>,
    pub serial_number: Option<String>,
    /// The owner's name for the machine.
    pub asset_tag: Option<String>,
}

/// The common header (§8): the positions of the areas in bytes; `None` for an absent area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) chassis: Option<u16>,
    pub(crate) board: Option<u16>,
    pub(crate) product: Option<u16>,
}

impl Header {
    pub(crate) const LENGTH: u16 = 8;

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let [version, _internal, chassis, board, product, _records, _, _]: [u8; 8] =
            Reader::new(bytes).array()?;
        if version & 0x0f != 1 || sum(&bytes[..8]) != 0 {
            return Err(Malformed("the inventory has no valid header"));
        }
        let place = |eighths: u8| (eighths != 0).then_some(u16::from(eighths) * 8);
        Ok(Header { chassis: place(chassis), board: place(board), product: place(product) })
    }
}

/// Returns the length of an area, from its first two bytes.
pub(crate) fn area_length(start: &[u8]) -> Result<u16, Malformed> {
    let [_version, eighths] = Reader::new(start).array()?;
    Ok(u16::from(eighths) * 8)
}

impl Chassis {
    pub(crate) fn read(area: &[u8]) -> Result<Self, Malformed> {
        let mut reader = open(area)?;
        let kind = reader.u8()?;
        let mut fields = Fields(reader);
        Ok(Chassis { kind, part_number: fields.next()?, serial_number: fields.next()? })
    }
}

impl Board {
    pub(crate) fn read(area: &[u8]) -> Result<Self, Malformed> {
        let mut reader = open(area)?;
        let _language = reader.u8()?;
        let [a, b, c] = reader.array()?;
        let minutes = i64::from(u32::from_le_bytes([a, b, c, 0]));
        let mut fields = Fields(reader);
        Ok(Board {
            made_at: (minutes != 0).then_some(EPOCH + minutes * 60),
            manufacturer: fields.next()?,
            product: fields.next()?,
            serial_number: fields.next()?,
            part_number: fields.next()?,
        })
    }
}

impl Product {
    pub(crate) fn read(area: &[u8]) -> Result<Self, Malformed> {
        let mut reader = open(area)?;
        let _language = reader.u8()?;
        let mut fields = Fields(reader);
        Ok(Product {
            manufacturer: fields.next()?,
            name: fields.next()?,
            part_number: fields.next()?,
            version: fields.next()?,
            serial_number: fields.next()?,
            asset_tag: fields.next()?,
        })
    }
}

/// Checks the checksum of an area, and returns its content after version and length.
fn open(area: &[u8]) -> Result<Reader<'_>, Malformed> {
    let mut reader = Reader::new(area);
    let [version, _eighths] = reader.array()?;
    if version & 0x0f != 1 {
        return Err(Malformed("the area has an unknown format"));
    }
    if sum(area) != 0 {
        return Err(Malformed("the area's checksum is wrong"));
    }
    Ok(reader)
}

/// The text fields of an area, in order; `None` for every field after the last.
struct Fields<'a>(Reader<'a>);

impl Fields<'_> {
    fn next(&mut self) -> Result<Option<String>, Malformed> {
        let kind = TypeLength(self.0.u8()?);
        if kind == TypeLength::END {
            self.0 = Reader::new(&[TypeLength::END.0; MOST_FIELDS]);
            return Ok(None);
        }
        Ok(kind.decode(self.0.take(kind.length())?))
    }
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| byte.wrapping_add(sum))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn area(hexadecimal: &str) -> Vec<u8> {
        let mut bytes = hex::decode(hexadecimal.replace(' ', "")).unwrap();
        bytes.resize(usize::from(bytes[1]) * 8 - 1, 0);
        bytes.push(sum(&bytes).wrapping_neg());
        bytes
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_header_says_where_areas_are() {
        let bytes = hex::decode("01000103080000f3").unwrap();
        let want = Header { chassis: Some(8), board: Some(24), product: Some(64) };
        assert_eq!(Header::read(&bytes), Ok(want));
        assert!(Header::read(&hex::decode("01000103080000f4").unwrap()).is_err());
        assert!(Header::read(&bytes[..7]).is_err());
    }

    #[test]
    fn a_board_is_read() {
        // Made 1996-01-02, by "Acme", called "X1", serial number "7", no part number.
        let bytes = area("0104 19 a00500 c441636d65 c25831 c137 c1");
        // A text of one byte looks like the end mark, as the specification warns.
        assert_eq!(Board::read(&bytes).unwrap().serial_number, None);

        let bytes = area("0104 19 a00500 c441636d65 c25831 c23737 00 c1");
        let want = Board {
            made_at: Some(EPOCH + 86_400),
            manufacturer: some("Acme"),
            product: some("X1"),
            serial_number: some("77"),
            part_number: None,
        };
        assert_eq!(Board::read(&bytes), Ok(want));
    }

    #[test]
    fn fields_after_the_end_are_absent() {
        let product = Product::read(&area("0102 00 c441636d65 c1")).unwrap();
        assert_eq!(product, Product { manufacturer: some("Acme"), ..Product::default() });
    }

    #[test]
    fn an_area_with_a_wrong_checksum_is_refused() {
        let mut bytes = area("0102 17 c25031 c25331 c1");
        assert_eq!(Chassis::read(&bytes).unwrap().serial_number, some("S1"));
        bytes[3] ^= 1;
        assert!(Chassis::read(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 2..128)) {
            bytes[0] = 1;
            let last = bytes.len() - 1;
            bytes[last] = 0;
            bytes[last] = sum(&bytes).wrapping_neg();
            let _ = (Header::read(&bytes), area_length(&bytes));
            let _ = (Chassis::read(&bytes), Board::read(&bytes), Product::read(&bytes));
        }
    }
}
