//! Where a token is looked up. The build script makes the table with the same function.

/// How many slots the table has: twice as many as there are tokens.
pub(crate) const SLOTS: usize = 131_072;

/// Returns the slot at which the search for these bytes begins (FNV-1a).
pub(crate) fn slot(bytes: &[u8]) -> usize {
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    (hash ^ (hash >> 15)) as usize % SLOTS
}
