//! IPMI LAN messages: addresses, network function, command, data and two checksums (IPMI 2.0 §13.8).

/// The BMC's own address on the IPMB.
pub(crate) const BMC_ADDRESS: u8 = 0x20;

#[derive(Debug, PartialEq)]
pub(crate) struct LanMessage<'a> {
    pub(crate) net_fn: u8,
    pub(crate) command: u8,
    pub(crate) data: &'a [u8],
    /// The address of the requester, and its sequence number with the logical unit.
    from: (u8, u8),
}

impl LanMessage<'_> {
    /// Reads a request addressed to the BMC. `None` for everything else, including a wrong checksum.
    pub(crate) fn read(bytes: &[u8]) -> Option<LanMessage<'_>> {
        let [BMC_ADDRESS, net_fn_lun, first, rest @ ..] = bytes else { return None };
        let [from, sequence_lun, command, data @ .., second] = rest else { return None };
        let body = &rest[..rest.len() - 1];
        let (net_fn, lun) = (net_fn_lun >> 2, net_fn_lun & 0x03);
        let intact = *first == checksum(&[BMC_ADDRESS, *net_fn_lun]) && *second == checksum(body);
        // §5.1: the network function of a request is even.
        (intact && net_fn % 2 == 0 && lun == 0).then_some(LanMessage {
            net_fn,
            command: *command,
            data,
            from: (*from, *sequence_lun),
        })
    }

    /// The response with `completion` and `data`.
    pub(crate) fn reply(&self, completion: u8, data: &[u8]) -> Vec<u8> {
        let (address, sequence_lun) = self.from;
        let mut bytes = vec![address, (self.net_fn | 1) << 2 | (sequence_lun & 0x03)];
        bytes.push(checksum(&bytes));
        let body_at = bytes.len();
        bytes.extend([BMC_ADDRESS, sequence_lun & 0xFC, self.command, completion]);
        bytes.extend(data);
        bytes.push(checksum(&bytes[body_at..]));
        bytes
    }
}

/// §13.8: the two's complement of the sum, so that all bytes including the checksum add up to zero.
pub(crate) fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg()
}
