//! Limits of inspection rules, so that no rule can exhaust the memory of the service or delay its turns.

/// The most rules.
pub const MAX_INSPECTION_RULES: u32 = 1000;
/// The most items of a loop.
pub(super) const LOOP_ITEMS: usize = 1000;
/// The most conditions that are checked and actions that are performed after one inspection, with every item of a loop counted.
pub(super) const RUNS: usize = 10_000;
/// The most bytes of a text with its references replaced.
pub(super) const TEXT: usize = 64 << 10;
/// The most bytes of all texts of one inspection.
pub(super) const TEXTS: usize = 16 << 20;
/// The most bytes of a field that rules have changed, as JSON.
pub(super) const FIELD: usize = 256 << 10;
pub(super) const PATH_PARTS: usize = 16;
/// The most bytes of a regular expression, and the most bytes that it may need once it is compiled.
pub(super) const REGEX: usize = 4 << 10;
pub(super) const COMPILED_REGEX: usize = 1 << 20;
/// The most traits of a node, as in requests.
pub(super) const TRAITS: usize = 50;
