//! Where keys lie: a cluster has 16,384 slots, and the CRC of a key's tag says which is its own.

use std::ops::Range;

/// The slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// The slot of a key: CRC16 (XMODEM) of what stands in its first braces, or of all of it, if they are empty or missing.
pub fn slot(key: &[u8]) -> u16 {
    crc16(tag(key)) % SLOTS
}

fn tag(key: &[u8]) -> &[u8] {
    let inside = |open: usize| {
        let rest = &key[open + 1..];
        rest.iter().position(|byte| *byte == b'}').filter(|length| *length > 0).map(|length| &rest[..length])
    };
    key.iter().position(|byte| *byte == b'{').and_then(inside).unwrap_or(key)
}

fn crc16(bytes: &[u8]) -> u16 {
    crc16_on(0, bytes)
}

/// The CRC of what had `crc` so far, with these bytes behind it.
fn crc16_on(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, byte| crc << 8 ^ OF_BYTE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// The CRC of every single byte.
const OF_BYTE: [u16; 256] = {
    let (mut table, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let (mut crc, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            crc = if crc >> 15 == 1 { crc << 1 ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// The part of the slots that shard `shard` of `shards` lies in.
fn part(shard: u32, shards: u32) -> Range<u16> {
    let start = |shard: u32| (u64::from(shard) * u64::from(SLOTS) / u64::from(shards)) as u16;
    start(shard)..start(shard + 1)
}

/// The key of a shard: `{name.i.k}` with the smallest k whose slot lies in the i-th equal part of the slots. So shards lie
/// evenly on nodes that have equal parts of the slots, and those of two filters in different slots.
pub fn shard_key(name: &str, shard: u32, shards: u32) -> String {
    let part = part(shard, shards);
    let tag = format!("{name}.{shard}.");
    // As many tries as there are shards, on average: all tags begin alike, so that only their numbers are gone through.
    let so_far = crc16(tag.as_bytes());
    let is_there = |number: &u64| part.contains(&(crc16_on(so_far, number.to_string().as_bytes()) % SLOTS));
    (0u64..).find(is_there).map(|number| format!("{{{tag}{number}}}")).unwrap_or_default()
}

/// The key of what a filter is: a hash.
pub fn record_key(name: &str) -> String {
    format!("{{{name}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CLUSTER KEYSLOT answers; the first is the check value of CRC-16/XMODEM.
    #[test]
    fn slots_are_those_of_servers() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, expected) in
            [("foo", 12182), ("bar", 5061), ("", 0), ("{foo}", 12182), ("a{foo}b{bar}", 12182), ("{user1000}.x", 3443)]
        {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
        // Empty braces are no tag, and neither is one that never ends.
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot(b"foo{bar"), crc16(b"foo{bar") % SLOTS);
        assert_eq!(slot(b"foo{{bar}}"), slot(b"{bar"));
    }

    #[test]
    fn shards_lie_evenly_whatever_the_filter_is_called() {
        for name in ["clicks", "a", "größer", "x.y"] {
            for shards in [1, 3, 64, 128, 4096] {
                let slots: Vec<u16> =
                    (0..shards).map(|shard| slot(shard_key(name, shard, shards).as_bytes())).collect();
                for (shard, slot) in slots.iter().enumerate() {
                    assert!(part(shard as u32, shards).contains(slot), "{name} {shard} of {shards}");
                }
                // A node has the shards whose parts lie within its range, and of the two across its borders perhaps one or
                // both: its share, give or take less than two.
                for nodes in [3u32, 6, 7] {
                    let share = f64::from(shards) / f64::from(nodes);
                    for node in 0..nodes {
                        let has = slots.iter().filter(|slot| part(node, nodes).contains(slot)).count();
                        assert!((has as f64 - share).abs() < 2.0, "{name} {shards}: node {node} of {nodes} has {has}");
                    }
                }
            }
        }
    }
}
