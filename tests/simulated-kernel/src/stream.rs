//! Streams of random numbers.

/// A stream of numbers: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The stream with this number of a seed.
    pub(crate) fn new(seed: u64, number: u64) -> Stream {
        let mut stream = Stream(seed ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03));
        stream.next();
        stream
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if the limit is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        let number = self.next();
        if limit == 0 { 0 } else { number % limit }
    }
}
