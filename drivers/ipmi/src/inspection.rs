//! The out-of-band inventory: the machine's identity, from its FRU inventory and the BMC's device id.

use async_trait::async_trait;
use bmc::{BmcError, Inspection};
use hardware::{Firmware, Inventory};
use tracing::{debug, warn};

use crate::client::{Client, malformed};
use crate::commands::fru::{FruAreaInfo, GetFruAreaInfo, ReadFruData};
use crate::commands::fru_areas::{Board, Chassis, Fru, Header, Product, area_length};
use crate::commands::{Command, CompletionCode};
use crate::wire::Malformed;

/// The number of bytes to read at once, which every tested BMC supports; halved down to the smallest if a BMC refuses it.
const CHUNK: u8 = 32;
const SMALLEST_CHUNK: u8 = 4;
/// Read FRU Data (IPMI 2.0 §34.2): the device is busy.
const FRU_BUSY: CompletionCode = CompletionCode(0x81);

#[async_trait]
impl Inspection for Client {
    async fn inventory(&self) -> Result<Inventory, BmcError> {
        let firmware = self.main_firmware().await?;
        let fru = match self.fru().await {
            Ok(fru) => fru,
            Err(
                error @ (BmcError::Refused { .. }
                | BmcError::Unsupported { .. }
                | BmcError::Malformed { .. }),
            ) => {
                debug!("the BMC has no FRU inventory for us: {error}");
                Fru::default()
            }
            Err(error) => return Err(error),
        };
        Ok(Inventory { firmware, ..identity(fru) })
    }

    async fn main_firmware(&self) -> Result<Vec<Firmware>, BmcError> {
        let (major, minor) = self.device_id().await?.firmware;
        let version = format!("{major}.{minor:02}");
        Ok(vec![Firmware { component: "bmc".to_owned(), version }])
    }
}

/// Returns the identity of the whole machine: from the product area, otherwise from board and chassis.
fn identity(fru: Fru) -> Inventory {
    let product = fru.product.unwrap_or_default();
    let board = fru.board.unwrap_or_default();
    let chassis = fru.chassis.unwrap_or_default();
    Inventory {
        manufacturer: product.manufacturer.or(board.manufacturer),
        model: product.name.or(board.product),
        serial_number: product.serial_number.or(chassis.serial_number).or(board.serial_number),
        ..Inventory::default()
    }
}

impl Client {
    /// Reads the machine's FRU inventory; an unreadable area is left out.
    pub async fn fru(&self) -> Result<Fru, BmcError> {
        let info = self.run(&GetFruAreaInfo).await?;
        let header = self.read_fru(info, 0, Header::LENGTH).await?;
        let header =
            Header::read(&header).map_err(|reason| malformed(ReadFruData::NAME, reason.0))?;
        Ok(Fru {
            chassis: self.fru_area(info, header.chassis, Chassis::read).await?,
            board: self.fru_area(info, header.board, Board::read).await?,
            product: self.fru_area(info, header.product, Product::read).await?,
        })
    }

    async fn fru_area<A>(
        &self,
        info: FruAreaInfo,
        place: Option<u16>,
        read: impl FnOnce(&[u8]) -> Result<A, Malformed>,
    ) -> Result<Option<A>, BmcError> {
        let Some(offset) = place else { return Ok(None) };
        let fits = |length: u16| offset.checked_add(length).is_some_and(|end| end <= info.bytes);
        let area = async {
            if !fits(2) {
                return Ok(Err(Malformed("an area lies outside of the inventory")));
            }
            let start = self.read_fru(info, offset, 2).await?;
            Ok(match area_length(&start) {
                Ok(length) if fits(length) => read(&self.read_fru(info, offset, length).await?),
                Ok(_) => Err(Malformed("an area lies outside of the inventory")),
                Err(reason) => Err(reason),
            })
        };
        match area.await? {
            Ok(area) => Ok(Some(area)),
            Err(reason) => {
                warn!("left out a part of the FRU inventory: {reason}");
                Ok(None)
            }
        }
    }

    /// Reads `length` bytes of the inventory from `offset` on, in pieces that the BMC accepts.
    async fn read_fru(
        &self,
        info: FruAreaInfo,
        offset: u16,
        length: u16,
    ) -> Result<Vec<u8>, BmcError> {
        let (mut bytes, mut chunk) = (Vec::new(), CHUNK);
        while bytes.len() < usize::from(length) {
            let read = bytes.len() as u16;
            let count = u16::from(chunk).min(length - read) as u8;
            let command = ReadFruData { offset: offset + read, count, step: info.step };
            match self.call(&command).await? {
                Ok(part) => bytes.extend(part),
                Err(code) if is_too_much(code) && chunk > SMALLEST_CHUNK => chunk /= 2,
                Err(FRU_BUSY) => {
                    let answer = "the FRU device is busy".to_owned();
                    let request = ReadFruData::NAME.to_owned();
                    return Err(BmcError::Refused { request, answer, transient: true });
                }
                Err(code) => return Err(self.refusal(code, ReadFruData::NAME)),
            }
        }
        Ok(bytes)
    }
}

/// Whether a completion code means that the BMC cannot read so many bytes at once.
pub(crate) fn is_too_much(code: CompletionCode) -> bool {
    [
        CompletionCode::LENGTH_INVALID,
        CompletionCode::LENGTH_EXCEEDED,
        CompletionCode::OUT_OF_RANGE,
        CompletionCode::CANNOT_RETURN_AS_MANY,
    ]
    .contains(&code)
}
