//! Memory buffers with the alignment that direct disk I/O needs.

/// The largest alignment that `O_DIRECT` requires: a page, which no logical sector exceeds.
pub const ALIGNMENT: usize = 4096;

/// A buffer whose first byte is at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    capacity: usize,
}

impl AlignedBuffer {
    /// Makes an empty buffer for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        let memory = vec![0; capacity + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        AlignedBuffer { memory, start, len: 0, capacity }
    }

    /// The bytes in the buffer.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Marks the buffer as full and returns its whole memory for writing.
    pub fn whole_mut(&mut self) -> &mut [u8] {
        self.len = self.capacity;
        &mut self.memory[self.start..self.start + self.capacity]
    }

    /// Appends as many of `bytes` as fit, and returns their number.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
        let fits = bytes.len().min(self.capacity - self.len);
        let at = self.start + self.len;
        self.memory[at..at + fits].copy_from_slice(&bytes[..fits]);
        self.len += fits;
        fits
    }

    /// Appends zeros up to the next multiple of `unit`.
    pub fn pad(&mut self, unit: usize) {
        let want = self.len.next_multiple_of(unit).min(self.capacity);
        self.memory[self.start + self.len..self.start + want].fill(0);
        self.len = want;
    }

    /// The number of bytes in the buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the buffer is full.
    pub fn is_full(&self) -> bool {
        self.len == self.capacity
    }

    /// Empties the buffer.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

/// Whether direct I/O can use a slice without a copy.
pub fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(ALIGNMENT) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_takes_what_fits_and_is_padded_with_zeros() {
        let mut buffer = AlignedBuffer::new(1024);
        assert!(buffer.is_empty() && !buffer.is_full());
        assert_eq!(buffer.take(&[1; 1000]), 1000);
        assert_eq!(buffer.take(&[2; 1000]), 24);
        assert!(buffer.is_full() && !buffer.is_empty());
        assert_eq!(buffer.bytes(), [[1; 1000].as_slice(), &[2; 24]].concat());

        buffer.clear();
        assert_eq!(buffer.take(&[3; 10]), 10);
        assert_eq!(buffer.take(&[4; 10]), 10);
        assert!(!buffer.is_empty() && !buffer.is_full());
        buffer.pad(512);
        assert_eq!(buffer.len(), 512);
        let padded = [[3; 10].as_slice(), &[4; 10], &[0; 492]].concat();
        assert_eq!(buffer.bytes(), padded);
        buffer.pad(512);
        assert_eq!(buffer.bytes(), padded);
        buffer.pad(4096);
        assert_eq!(buffer.len(), 1024, "the padding ends with the buffer");
    }

    #[test]
    fn the_memory_of_a_buffer_is_aligned() {
        for capacity in [1, 512, 4096, 1 << 20] {
            let mut buffer = AlignedBuffer::new(capacity);
            let whole = buffer.whole_mut();
            assert_eq!(whole.len(), capacity);
            whole.fill(7);
            assert_eq!(buffer.bytes(), vec![7; capacity]);
            assert!(is_aligned(buffer.bytes()));
            assert!(!is_aligned(&buffer.bytes()[1..]));
        }
    }
}
