//! Memory a disk can be read into and written from directly.

/// What `O_DIRECT` wants at most: a page, which no logical sector exceeds.
pub const ALIGNMENT: usize = 4096;

/// Bytes whose first lies at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    capacity: usize,
}

impl AlignedBuffer {
    /// An empty buffer for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        let memory = vec![0; capacity + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        AlignedBuffer { memory, start, len: 0, capacity }
    }

    /// What was put in.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Everything the buffer can hold, as if it were full.
    pub fn whole_mut(&mut self) -> &mut [u8] {
        self.len = self.capacity;
        &mut self.memory[self.start..self.start + self.capacity]
    }

    /// Takes as many of `bytes` as fit, and says how many.
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

    /// How many bytes are in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether nothing more fits.
    pub fn is_full(&self) -> bool {
        self.len == self.capacity
    }

    /// Forgets what is in it.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

/// Whether a slice can be handed to a disk as it is.
pub fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(ALIGNMENT) == 0
}
