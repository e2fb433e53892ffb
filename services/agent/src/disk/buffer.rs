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
