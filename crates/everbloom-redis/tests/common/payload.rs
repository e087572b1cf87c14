//! What DUMP gives and RESTORE takes, taken apart: fields of a module's value, and the checksum that signs them.

/// A field of a module's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    Unsigned(u64),
    Double(f64),
    Text(Vec<u8>),
}

/// A module's value as DUMP gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// The type's name and encoding version, in 64 bits.
    pub id: u64,
    pub fields: Vec<Field>,
    /// The version of the RDB format, which the server wrote.
    pub version: [u8; 2],
}

const MODULE: u8 = 7;
const END: u64 = 0;
const UNSIGNED: u64 = 2;
const DOUBLE: u64 = 4;
const TEXT: u64 = 5;

impl Payload {
    pub fn read(bytes: &[u8]) -> Payload {
        assert_eq!(bytes[0], MODULE);
        let (body, end) = bytes.split_at(bytes.len() - 10);
        let mut rest = &body[1..];
        let id = read_length(&mut rest);
        let mut fields = Vec::new();
        loop {
            match read_length(&mut rest) {
                END => break,
                UNSIGNED => fields.push(Field::Unsigned(read_length(&mut rest))),
                DOUBLE => fields.push(Field::Double(f64::from_le_bytes(take(&mut rest, 8).try_into().expect("8")))),
                TEXT => fields.push(Field::Text(read_text(&mut rest))),
                other => panic!("a field of kind {other}"),
            }
        }
        assert!(rest.is_empty());
        Payload { id, fields, version: [end[0], end[1]] }
    }

    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![MODULE];
        write_length(&mut bytes, self.id);
        for field in &self.fields {
            match field {
                Field::Unsigned(value) => {
                    bytes.push(UNSIGNED as u8);
                    write_length(&mut bytes, *value);
                }
                Field::Double(value) => {
                    bytes.push(DOUBLE as u8);
                    bytes.extend(value.to_le_bytes());
                }
                Field::Text(text) => {
                    bytes.push(TEXT as u8);
                    write_length(&mut bytes, text.len() as u64);
                    bytes.extend(text);
                }
            }
        }
        bytes.push(END as u8);
        sign(bytes, self.version)
    }
}

/// Puts version and checksum behind a value.
pub fn sign(mut bytes: Vec<u8>, version: [u8; 2]) -> Vec<u8> {
    bytes.extend(version);
    bytes.extend(crc64(&bytes).to_le_bytes());
    bytes
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, after) = rest.split_at(count);
    *rest = after;
    taken
}

/// A length: 6, 14, 32 or 64 bits.
fn read_length(rest: &mut &[u8]) -> u64 {
    let first = take(rest, 1)[0];
    match (first >> 6, first) {
        (0, _) => u64::from(first),
        (1, _) => u64::from(first & 0x3f) << 8 | u64::from(take(rest, 1)[0]),
        (_, 0x80) => u64::from(u32::from_be_bytes(take(rest, 4).try_into().expect("4"))),
        (_, 0x81) => u64::from_be_bytes(take(rest, 8).try_into().expect("8")),
        _ => panic!("a length that begins with {first:#x}"),
    }
}

fn write_length(bytes: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => bytes.push(value as u8),
        0x40..0x4000 => bytes.extend((value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            bytes.push(0x80);
            bytes.extend((value as u32).to_be_bytes());
        }
        _ => {
            bytes.push(0x81);
            bytes.extend(value.to_be_bytes());
        }
    }
}

/// A string: plain, a small number, or compressed (LZF).
fn read_text(rest: &mut &[u8]) -> Vec<u8> {
    let first = rest[0];
    if first >> 6 != 3 {
        let length = read_length(rest) as usize;
        return take(rest, length).to_vec();
    }
    take(rest, 1);
    match first & 0x3f {
        0 => (take(rest, 1)[0] as i8).to_string().into_bytes(),
        1 => i16::from_le_bytes(take(rest, 2).try_into().expect("2")).to_string().into_bytes(),
        2 => i32::from_le_bytes(take(rest, 4).try_into().expect("4")).to_string().into_bytes(),
        _ => {
            let (packed, plain) = (read_length(rest) as usize, read_length(rest) as usize);
            let text = unpack(take(rest, packed));
            assert_eq!(text.len(), plain);
            text
        }
    }
}

/// LZF: literal runs, and copies of what was there.
fn unpack(mut packed: &[u8]) -> Vec<u8> {
    let mut text: Vec<u8> = Vec::new();
    while let Some((&control, after)) = packed.split_first() {
        packed = after;
        if control < 32 {
            text.extend(take(&mut packed, usize::from(control) + 1));
            continue;
        }
        let mut length = usize::from(control >> 5);
        if length == 7 {
            length += usize::from(take(&mut packed, 1)[0]);
        }
        let back = usize::from(control & 0x1f) << 8 | usize::from(take(&mut packed, 1)[0]);
        let start = text.len() - back - 1;
        (start..start + length + 2).for_each(|index| text.push(text[index]));
    }
    text
}

/// CRC-64 with Jones' polynomial, reflected, as the servers sign with.
pub fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    let step = |crc: u64| if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
    static TABLE: std::sync::OnceLock<Vec<u64>> = std::sync::OnceLock::new();
    let table = TABLE.get_or_init(|| (0..256).map(|byte| (0..8).fold(byte, |crc, _| step(crc))).collect());
    bytes.iter().fold(0, |crc, byte| table[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}
