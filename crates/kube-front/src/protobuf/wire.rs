//! The wire format of protocol buffers: fields with a number and a value of one of four types.

/// A field's value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// The reasons why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The bytes end in the middle of a field.
    Short,
    /// A number takes more than 64 bits, or a field has the number 0.
    Number,
    /// The field is a group, which Kubernetes doesn't use, or has an invalid type.
    Type,
}

/// Iterates over the fields of a message in their order. Ends after the first error.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// Reads the fields of a message.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

/// Reads a varint, seven bits per byte. Returns the number and the remaining bytes.
pub(super) fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), Broken> {
    let mut number: u64 = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return Err(Broken::Number);
        }
        number |= bits << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[index + 1..]));
        }
    }
    Err(if bytes.len() < 10 { Broken::Short } else { Broken::Number })
}

fn take(bytes: &[u8], length: usize) -> Result<(&[u8], &[u8]), Broken> {
    if bytes.len() < length { Err(Broken::Short) } else { Ok(bytes.split_at(length)) }
}

impl<'a> Fields<'a> {
    fn read(&mut self) -> Result<(u32, Wire<'a>), Broken> {
        let (key, rest) = varint(self.rest)?;
        let number = u32::try_from(key >> 3).map_err(|_| Broken::Number)?;
        if number == 0 {
            return Err(Broken::Number);
        }
        let (value, rest) = match key & 7 {
            0 => varint(rest).map(|(number, rest)| (Wire::Varint(number), rest))?,
            1 => {
                let (bytes, rest) = take(rest, 8)?;
                let bytes = bytes.try_into().map_err(|_| Broken::Short)?;
                (Wire::Fixed64(u64::from_le_bytes(bytes)), rest)
            }
            2 => {
                let (length, rest) = varint(rest)?;
                let (bytes, rest) = take(rest, usize::try_from(length).map_err(|_| Broken::Short)?)?;
                (Wire::Bytes(bytes), rest)
            }
            5 => {
                let (bytes, rest) = take(rest, 4)?;
                let bytes = bytes.try_into().map_err(|_| Broken::Short)?;
                (Wire::Fixed32(u32::from_le_bytes(bytes)), rest)
            }
            _ => return Err(Broken::Type),
        };
        self.rest = rest;
        Ok((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_64_bits() {
        assert_eq!(varint(&[0xac, 0x02, 7]), Ok((300, &[7][..])));
        assert_eq!(varint(&[0xff; 10]), Err(Broken::Number));
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(varint(&most), Ok((u64::MAX, &[][..])));
        assert_eq!(varint(&[0x80]), Err(Broken::Short));
    }

    #[test]
    fn a_length_that_is_not_there_is_refused() {
        let mut read = fields(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(read.next(), Some(Err(Broken::Short)));
        assert_eq!(read.next(), None);
    }

    #[test]
    fn groups_are_refused() {
        assert_eq!(fields(&[0x0b]).next(), Some(Err(Broken::Type)));
    }
}
