//! Decoding of protobuf bodies, as typed Go clients send them, to JSON.
//!
//! A body is `k8s\0` followed by a `runtime.Unknown`: the type, and the object as bytes. A table
//! lists the fields of each message, so one decoder reads all. Empty values that typed clients
//! write are left out, as their JSON encoding would leave them out.

mod tables;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube_sim::status::{Failure, bad_request};
use serde_json::{Map, Value, json};

use tables::{Field, Message, Shape, Type};
use wire::{Broken, Wire, fields, varint};

use super::media::unsupported;

/// The media type of protobuf bodies.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The prefix of every body.
const MAGIC: &[u8] = b"k8s\0";
/// Maximum nesting depth of messages.
const DEEPEST: u32 = 100;
/// Maximum number of values of a body: two bytes are enough for a value.
const MOST: usize = 200_000;

/// Decodes a body to JSON.
///
/// # Errors
/// Returns 400 for bytes that are not such a body, or with too much nesting or too many values; 415
/// for a kind that isn't in the table.
pub(super) fn decode(body: &[u8]) -> Result<Value, Failure> {
    let Some(unknown) = body.strip_prefix(MAGIC) else { return Err(refused("it doesn't begin as one")) };
    let envelope = Envelope::read(unknown).map_err(|broken| refused(told(broken)))?;
    let Some(message) = tables::of_type(&envelope.api_version, &envelope.kind) else {
        return Err(unsupported(&format!("{MEDIA_TYPE} of {}, Kind={}", envelope.api_version, envelope.kind)));
    };
    let mut decoder = Decoder { values: 0 };
    let object = decoder.message(message, envelope.raw, 0);
    let mut object = object.map_err(|why| refused(&why)).map(Value::Object)?;
    object["apiVersion"] = envelope.api_version.into();
    object["kind"] = envelope.kind.into();
    Ok(object)
}

fn refused(why: &str) -> Failure {
    bad_request(format!("the body of the request is no protobuf message: {why}"))
}

fn told(broken: Broken) -> &'static str {
    match broken {
        Broken::Short => "it ends too early",
        Broken::Number => "a number is out of range",
        Broken::Type => "a field is of no type",
    }
}

/// `runtime.Unknown`.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut envelope = Self::default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for field in fields(bytes) {
            match field? {
                (1, Wire::Bytes(type_meta)) => {
                    for field in fields(type_meta) {
                        match field? {
                            (1, Wire::Bytes(bytes)) => envelope.api_version = text(bytes),
                            (2, Wire::Bytes(bytes)) => envelope.kind = text(bytes),
                            _ => {}
                        }
                    }
                }
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

/// Decodes messages and counts the values.
struct Decoder {
    values: usize,
}

impl Decoder {
    fn message(&mut self, message: &Message, bytes: &[u8], depth: u32) -> Result<Map<String, Value>, String> {
        if depth > DEEPEST {
            return Err(format!("messages stand in each other more than {DEEPEST} deep"));
        }
        let mut object = Map::new();
        for field in fields(bytes) {
            let (number, wire) = field.map_err(told)?;
            // Unknown fields, as of a newer client, are dropped, as an API server does.
            let Some(field) = message.get(&number) else { continue };
            self.values += 1;
            if self.values > MOST {
                return Err(format!("there are more than {MOST} values in it"));
            }
            self.field(field, wire, &mut object, depth)?;
        }
        Ok(object)
    }

    fn field(&mut self, field: &Field, wire: Wire<'_>, out: &mut Map<String, Value>, depth: u32) -> Result<(), String> {
        let Some(name) = field.name else {
            let (Type::Message(inner), Wire::Bytes(bytes)) = (field.value, wire) else { return Err(mistyped("")) };
            out.extend(self.message(known(inner)?, bytes, depth + 1)?);
            return Ok(());
        };
        match field.shape {
            Shape::One => {
                let value = self.value(field.value, wire, name, depth)?;
                if field.keeps_empty || !is_empty(field.value, &value) {
                    out.insert(name.to_owned(), value);
                }
            }
            Shape::List => {
                let items = match (field.value, wire) {
                    (Type::Integer, Wire::Bytes(packed)) => self.packed(packed)?,
                    _ => vec![self.value(field.value, wire, name, depth)?],
                };
                let list = out.entry(name).or_insert_with(|| json!([]));
                list.as_array_mut().ok_or_else(|| mistyped(name))?.extend(items);
            }
            Shape::Map => {
                let Wire::Bytes(entry) = wire else { return Err(mistyped(name)) };
                let (mut key, mut value) = (String::new(), None);
                for part in fields(entry) {
                    match part.map_err(told)? {
                        (1, Wire::Bytes(bytes)) => key = text(bytes, name)?,
                        (2, wire) => value = Some(self.value(field.value, wire, name, depth)?),
                        _ => {}
                    }
                }
                let value = value.unwrap_or_else(|| if field.value == Type::Text { "".into() } else { Value::Null });
                out.entry(name).or_insert_with(|| json!({}))[key] = value;
            }
        }
        Ok(())
    }

    /// Reads a packed list of numbers.
    fn packed(&mut self, mut bytes: &[u8]) -> Result<Vec<Value>, String> {
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            let (number, rest) = varint(bytes).map_err(told)?;
            self.values += 1;
            if self.values > MOST {
                return Err(format!("there are more than {MOST} values in it"));
            }
            numbers.push(number.cast_signed().into());
            bytes = rest;
        }
        Ok(numbers)
    }

    fn value(&mut self, value: Type, wire: Wire<'_>, name: &str, depth: u32) -> Result<Value, String> {
        Ok(match (value, wire) {
            (Type::Integer, Wire::Varint(number)) => number.cast_signed().into(),
            (Type::Boolean, Wire::Varint(number)) => (number != 0).into(),
            (Type::Double, Wire::Fixed64(bits)) => f64::from_bits(bits).into(),
            (Type::Text, Wire::Bytes(bytes)) => text(bytes, name)?.into(),
            (Type::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
            (Type::Message(inner), Wire::Bytes(bytes)) => self.message(known(inner)?, bytes, depth + 1)?.into(),
            (Type::Time, Wire::Bytes(bytes)) => time(bytes, 0)?,
            (Type::MicroTime, Wire::Bytes(bytes)) => time(bytes, 6)?,
            (Type::Quantity, Wire::Bytes(bytes)) => last_text(bytes, 1, name)?.unwrap_or_default().into(),
            (Type::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes, name)?,
            (Type::Json, Wire::Bytes(bytes)) => raw_json(bytes, name)?,
            (Type::Items, Wire::Bytes(bytes)) => texts(bytes, 1, name)?,
            (Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrTexts, Wire::Bytes(bytes)) => {
                self.schema_or(value, bytes, name, depth)?
            }
            _ => return Err(mistyped(name)),
        })
    }

    /// Reads a schema or its alternative.
    fn schema_or(&mut self, value: Type, bytes: &[u8], name: &str, depth: u32) -> Result<Value, String> {
        let schema = known("apiextensions.JSONSchemaProps")?;
        let (mut list, mut other) = (Vec::<Value>::new(), Value::Null);
        let at_schema = if value == Type::SchemaOrBool { 2 } else { 1 };
        for field in fields(bytes) {
            match field.map_err(told)? {
                (number, Wire::Bytes(bytes)) if number == at_schema => {
                    return Ok(self.message(schema, bytes, depth + 1)?.into());
                }
                (1, Wire::Varint(allows)) if value == Type::SchemaOrBool => other = (allows != 0).into(),
                (2, Wire::Bytes(bytes)) if value == Type::SchemaOrArray => {
                    list.push(self.message(schema, bytes, depth + 1)?.into());
                }
                (2, Wire::Bytes(bytes)) => list.push(text(bytes, name)?.into()),
                _ => {}
            }
        }
        Ok(if value == Type::SchemaOrBool { other } else { list.into() })
    }
}

fn known(name: &str) -> Result<&'static Message, String> {
    tables::message(name).ok_or_else(|| format!("{name} is not known"))
}

fn mistyped(name: &str) -> String {
    format!("the field {name:?} is of another type")
}

fn text(bytes: &[u8], name: &str) -> Result<String, String> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| format!("the field {name:?} is not text"))
}

/// Returns true if the JSON encoding would leave a value out.
fn is_empty(value: Type, found: &Value) -> bool {
    match value {
        Type::Text | Type::Bytes => found == "",
        Type::Integer => *found == 0,
        Type::Double => found.as_f64() == Some(0.0),
        Type::Boolean => *found == false,
        _ => found.is_null(),
    }
}

/// Reads the strings of a repeated field.
fn texts(bytes: &[u8], at: u32, name: &str) -> Result<Value, String> {
    let mut found = Vec::new();
    for field in fields(bytes) {
        match field.map_err(told)? {
            (number, Wire::Bytes(bytes)) if number == at => found.push(text(bytes, name)?.into()),
            _ => {}
        }
    }
    Ok(Value::Array(found))
}

fn last_text(bytes: &[u8], at: u32, name: &str) -> Result<Option<String>, String> {
    let all = texts(bytes, at, name)?;
    Ok(all.as_array().and_then(|all| all.last()).and_then(Value::as_str).map(str::to_owned))
}

/// Reads a time in seconds and nanoseconds since 1970; if both are 0 there is none.
fn time(bytes: &[u8], digits: usize) -> Result<Value, String> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in fields(bytes) {
        match field.map_err(told)? {
            (1, Wire::Varint(number)) => seconds = number.cast_signed(),
            (2, Wire::Varint(number)) => nanos = number.cast_signed(),
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).ok().filter(|nanos| (0..1_000_000_000).contains(nanos));
    let nanos = nanos.ok_or_else(|| "a time has no such nanosecond".to_owned())?;
    let time = Timestamp::new(seconds, if digits == 0 { 0 } else { nanos });
    let time = time.map_err(|_| "a time is out of range".to_owned())?;
    Ok(format!("{time:.digits$}").into())
}

fn int_or_string(bytes: &[u8], name: &str) -> Result<Value, String> {
    let (mut is_text, mut number, mut words) = (false, 0, String::new());
    for field in fields(bytes) {
        match field.map_err(told)? {
            (1, Wire::Varint(kind)) => is_text = kind == 1,
            (2, Wire::Varint(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => words = text(bytes, name)?,
            _ => {}
        }
    }
    Ok(if is_text { words.into() } else { number.into() })
}

/// Reads JSON inside a message; an empty message is null.
fn raw_json(bytes: &[u8], name: &str) -> Result<Value, String> {
    let mut found = Value::Null;
    for field in fields(bytes) {
        if let (1, Wire::Bytes(raw)) = field.map_err(told)?
            && !raw.is_empty()
        {
            found = serde_json::from_slice(raw).map_err(|_| format!("the field {name:?} is not JSON"))?;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// Encodes a bytes field, with its key and its length in two bytes of seven bits each.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).expect("it is short");
        let two = |number: u16| [number & 0x7f | 0x80, number >> 7].map(|bits| u8::try_from(bits).expect("8 bits"));
        let head = [two(u16::from(number) << 3 | 2), two(length)].concat();
        [&head[..], content].concat()
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &types), bytes(2, raw)].concat()
    }

    /// Bodies of many forms: text, maps, numbers, times, schemas, embedded JSON.
    fn samples() -> Vec<Vec<u8>> {
        let metadata = bytes(1, &[bytes(1, b"n"), bytes(11, &[bytes(1, b"k"), bytes(2, b"v")].concat())].concat());
        let schema = bytes(5, b"object");
        let property = bytes(29, &[bytes(1, b"spec"), bytes(2, &schema)].concat());
        let version = [bytes(1, b"v1"), vec![2 << 3, 1], bytes(4, &bytes(1, &[schema, property].concat()))].concat();
        let spec = bytes(2, &[bytes(1, b"g.io"), bytes(7, &version)].concat());
        let port = bytes(1, &[bytes(1, b"p"), vec![3 << 3, 80], bytes(4, &[1 << 3, 0, 2 << 3, 8])].concat());
        vec![
            body("v1", "Secret", &[metadata.clone(), bytes(2, &[bytes(1, b"k"), bytes(2, &[0, 1])].concat())].concat()),
            body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &[metadata.clone(), spec].concat()),
            body("v1", "Service", &[metadata.clone(), bytes(2, &port)].concat()),
            body("coordination.k8s.io/v1", "Lease", &[metadata, bytes(2, &bytes(4, &[1 << 3, 9, 2 << 3, 8]))].concat()),
        ]
    }

    #[test]
    fn samples_are_read() {
        let [secret, definition, service, lease] = samples().try_into().expect("four");
        assert_eq!(decode(&secret).expect("it is sound")["data"], json!({"k": "AAE="}));
        let definition = decode(&definition).expect("it is sound");
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(*schema, json!({"type": "object", "properties": {"spec": {"type": "object"}}}));
        let service = decode(&service).expect("it is sound");
        assert_eq!(service["spec"]["ports"][0], json!({"name": "p", "port": 80, "targetPort": 8}));
        let lease = decode(&lease).expect("it is sound");
        assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:00:09.000000Z");
    }

    #[test]
    fn no_bytes_make_it_fall() {
        // Each round changes, cuts or lengthens a sample at positions taken from a hash.
        for round in 0_u32..20_000 {
            let drawn: [u8; 32] = Sha256::digest(round.to_be_bytes()).into();
            let samples = samples();
            let mut sent = samples[usize::from(drawn[0]) % samples.len()].clone();
            for pair in drawn[2..2 + usize::from(drawn[1] % 8) * 2].chunks(2) {
                let at = usize::from(pair[0]) % sent.len();
                match pair[1] % 4 {
                    0 => sent.truncate(at.max(MAGIC.len())),
                    1 => sent.insert(at, pair[1]),
                    _ => sent[at] = pair[1],
                }
            }
            if let Err(failure) = decode(&sent) {
                assert!(matches!(failure.code, 400 | 415), "{}", failure.message);
            }
        }
    }

    #[test]
    fn what_is_too_deep_or_too_much_is_refused() {
        let mut schema = bytes(5, b"object");
        for _ in 0..200 {
            schema = bytes(28, &schema);
        }
        let version = bytes(4, &bytes(1, &schema));
        let deep = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &bytes(2, &bytes(7, &version)));
        assert!(decode(&deep).expect_err("it is too deep").message.contains("deep"));
        let many = [14 << 3 | 2, 0].repeat(MOST + 1);
        let metadata = [vec![1 << 3 | 2], length(many.len()), many].concat();
        let raw = [vec![2 << 3 | 2], length(metadata.len()), metadata].concat();
        let types = [bytes(1, b"v1"), bytes(2, b"Secret")].concat();
        let sent = [MAGIC.to_vec(), bytes(1, &types), raw].concat();
        assert!(decode(&sent).expect_err("it is too much").message.contains("values"));
    }

    fn length(mut length: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).expect("7 bits") | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).expect("7 bits"));
        out
    }
}
