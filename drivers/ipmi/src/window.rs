//! The sliding window over a peer's sequence numbers (IPMI 2.0 §6.12.13).

/// Remembers which packets of a session were received.
///
/// A number may jump ahead by any distance, because the packet's verified code vouches for it. A number may lag behind by the size of the
/// window, and each number is accepted once.
#[derive(Debug, Default)]
pub(crate) struct Window {
    highest: u32,
    /// Bit n: whether `highest - n` was received.
    seen: u32,
}

impl Window {
    /// Whether the packet numbered `sequence` is new. Marks it as received.
    pub(crate) fn admit(&mut self, sequence: u32) -> bool {
        if sequence == 0 {
            return false; // reserved for packets outside of a session
        }
        if sequence > self.highest {
            let step = sequence - self.highest;
            self.seen = self.seen.checked_shl(step).unwrap_or(0) | 1;
            self.highest = sequence;
            return true;
        }

        let Some(bit) = 1u32.checked_shl(self.highest - sequence) else {
            return false;
        };
        let is_new = self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(numbers: &[u32], want: &[bool]) {
        let mut window = Window::default();
        let admitted: Vec<bool> = numbers.iter().map(|number| window.admit(*number)).collect();
        assert_eq!(admitted, want);
    }

    #[test]
    fn a_packet_is_admitted_once() {
        check(&[1, 1, 2, 2, 1], &[true, false, true, false, false]);
    }

    #[test]
    fn packets_may_overtake_each_other() {
        check(&[5, 3, 4, 3, 6], &[true, true, true, false, true]);
    }

    #[test]
    fn a_packet_behind_the_window_is_refused() {
        check(&[100, 69, 68], &[true, true, false]);
    }

    #[test]
    fn numbers_may_start_and_jump_anywhere() {
        check(&[0x1000_0000, u32::MAX, 0, 1], &[true, true, false, false]);
    }

    proptest! {
        #[test]
        fn nothing_is_admitted_twice(numbers in proptest::collection::vec(1u32..80, 0..200)) {
            let mut window = Window::default();
            let mut admitted: Vec<u32> = numbers.into_iter().filter(|n| window.admit(*n)).collect();
            let count = admitted.len();
            admitted.sort_unstable();
            admitted.dedup();
            prop_assert_eq!(admitted.len(), count);
        }
    }
}
