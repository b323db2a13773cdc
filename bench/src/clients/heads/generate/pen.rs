//! Random choices, and the vocabulary of requests.

use fastrand::Rng;
use http::{HeaderMap, HeaderName, HeaderValue};
use stowage_gateway::uri::Pair;

use super::scene::{Kind, SHARED, Scene, Who};

/// Keys of existing objects, which also exist below [`SHARED`].
pub(in super::super) const OBJECTS: [&str; 5] = ["k0", "k1", "a/k2", "k3 ?acl", "k4+ä"];

/// Pieces of keys, and of values.
const PIECES: &[&str] = &[
    "a",
    "photos",
    "k0",
    "k1",
    "?acl",
    "?policy",
    "&acl",
    ";acl",
    "#acl",
    "acl",
    "%61cl",
    "%2e%2e",
    "%3Facl",
    "+",
    " ",
    "ä",
    "😀",
    "\t",
    "\u{7f}",
    "\\",
    "\\..\\",
    "..a",
    "a..",
    "...",
    "~",
    "*",
    "'",
    "\"",
    "<x>",
    "//",
    "/",
    "=",
    "&",
    ":",
    "@",
    ".minio.sys",
];

/// Keys that some server may resolve to another place: a parent directory, a store's internal
/// files, another version, or another key. `NEIGHBOUR`, `FILMS` and `PAST` are replaced by names of
/// the scene.
const ODD_KEYS: &[&str] = &[
    "..",
    ".",
    "../NEIGHBOUR/secret/crown.txt",
    "../FILMS/reel",
    "../../outside.txt",
    "../../versions/NEIGHBOUR/k0",
    "a/../../NEIGHBOUR/secret/crown.txt",
    "shared/../k0",
    "shared/../../NEIGHBOUR/secret/crown.txt",
    "shared/./../k0",
    "shared//../k0",
    "./k0",
    "k0/.",
    "k0/..",
    "k0/../k1",
    "..\\..\\outside.txt",
    "%2e%2e/NEIGHBOUR/secret/crown.txt",
    "..%2fNEIGHBOUR%2fsecret%2fcrown.txt",
    "%252e%252e/outside.txt",
    "..;/NEIGHBOUR/k0",
    "\u{ff0e}\u{ff0e}/NEIGHBOUR/k0",
    "..\u{0}/NEIGHBOUR/k0",
    "../\u{feff}NEIGHBOUR/k0",
    "/../NEIGHBOUR/k0",
    "/etc/passwd",
    "/",
    "//",
    "///",
    "",
    "/k0",
    "//k0",
    "/shared/k0",
    "k0/",
    "a//k2",
    "shared",
    "shared/",
    "Shared/k0",
    "sharedly/k0",
    ".sgwtmp/hidden",
    "a/.sgwtmp/multipart/x/1",
    "shared/.SGWTMP/x",
    ".minio.sys/buckets/x",
    "shared/.minio.sys",
    ".uploads/x/0001.part",
    "k0.versions/v_1",
    "shared/k0.Versions/x",
    "k0?versionId=PAST",
    "k0?versionid=null",
    "k0%3FversionId%3DPAST",
    "k0\n",
    "k0\r\n../NEIGHBOUR/k0",
    " k0",
    "k0 ",
    "\u{a0}k0\u{2028}",
    "\u{feff}k0",
    "k\u{85}0",
];

/// Random numbers, the scene, and the sender.
pub(super) struct Pen<'a> {
    random: Rng,
    pub(super) scene: &'a Scene,
    who: Who,
}

impl<'a> Pen<'a> {
    pub(super) fn new(random: Rng, scene: &'a Scene) -> Self {
        Self { random, scene, who: Who::Owner }
    }

    /// Chooses a kind.
    pub(super) fn kind(&mut self) -> Kind {
        match self.random.u8(..) {
            0..=83 => Kind::Heads,
            84..=143 => Kind::Documents,
            144..=187 => Kind::Sources,
            188..=219 => Kind::Forms,
            220..=255 => Kind::Headers,
        }
    }

    /// Chooses the sender from here on.
    pub(super) fn who(&mut self) -> Who {
        self.who = if self.chance(90) { Who::Guest } else { Who::Owner };
        self.who
    }

    pub(super) fn is_guest(&self) -> bool {
        self.who == Who::Guest
    }

    /// True with a probability of `of_256` / 256.
    pub(super) fn chance(&mut self, of_256: u8) -> bool {
        self.random.u8(..) < of_256
    }

    /// Returns a number between `least` and `most`, both included.
    pub(super) fn number(&mut self, least: usize, most: usize) -> usize {
        self.random.usize(least..=most)
    }

    /// Returns a random element of `of`, which must not be empty.
    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(..of.len())]
    }

    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        self.random.shuffle(all);
    }

    /// Returns a concatenation of a few pieces.
    pub(super) fn text(&mut self, most: usize) -> Vec<u8> {
        let count = self.random.usize(1..=most);
        (0..count).flat_map(|_| self.one(PIECES).bytes()).collect()
    }

    /// Returns random bytes, which are rarely UTF-8.
    pub(super) fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.random.usize(1..=most)).map(|_| self.random.u8(..)).collect()
    }

    /// Replaces the placeholders in a text by names of the scene.
    pub(super) fn filled(&self, text: &str) -> String {
        let Scene { bucket, films, neighbour, past, .. } = self.scene;
        let filled = text.replace("NEIGHBOUR", neighbour).replace("FILMS", films);
        filled.replace("BUCKET", bucket).replace("PAST", past)
    }

    /// Returns the key of an existing object.
    pub(super) fn known(&mut self) -> String {
        let key = self.one(&OBJECTS);
        if self.is_guest() { format!("{SHARED}{key}") } else { key.to_owned() }
    }

    /// Returns a key of [`ODD_KEYS`], or one of about maximum length.
    pub(super) fn odd(&mut self) -> String {
        let key = self.one(ODD_KEYS);
        let key = self.filled(key);
        match self.random.u8(..) {
            0..=9 => "x".repeat(self.one(&[1023, 1024, 1025])),
            10..=40 => format!("{SHARED}{key}"),
            _ => key,
        }
    }

    /// Returns any key; usually one that the sender has access to.
    pub(super) fn key(&mut self) -> Vec<u8> {
        let key = match self.random.u8(..) {
            0..=99 => return self.known().into_bytes(),
            100..=199 => self.text(5),
            200..=239 => return self.odd().into_bytes(),
            240..=255 => self.bytes(3),
        };
        let is_within = self.is_guest() && !self.chance(30);
        if is_within { [SHARED.as_bytes(), &key].concat() } else { key }
    }

    /// Returns the id of an existing version, of a nonexistent one, or an invalid id.
    pub(super) fn version(&mut self) -> String {
        match self.random.u8(..) {
            0..=99 => self.random.choice(&self.scene.versions).cloned().unwrap_or_default(),
            100..=149 => self.scene.past.clone(),
            _ => {
                let id =
                    self.one(&["null", "01HZX0000000000000000000", "..", ".", "", "a/b", "../PAST", "PAST/", " PAST"]);
                self.filled(id)
            }
        }
    }

    /// Returns the id of an upload.
    pub(super) fn upload(&mut self) -> String {
        if self.chance(128) {
            return self.random.choice(&self.scene.uploads).cloned().unwrap_or_default();
        }
        self.one(&["bf0d3128-d18b-4b78-ae7d-9d21bcb90c2f", "x", ".."]).to_owned()
    }

    /// Adds a header, unless its name or value is invalid.
    pub(super) fn header(&mut self, headers: &mut HeaderMap, name: &str, value: &[u8]) {
        let header = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value));
        if let (Ok(name), Ok(value)) = header {
            headers.append(name, value);
        }
    }

    /// Writes path and query in one of their possible encodings.
    pub(super) fn written(&mut self, path: &[u8], query: &[Pair]) -> String {
        let mut target = String::new();
        for byte in path {
            let plain = byte.is_ascii_alphanumeric() || b"-._~/!$'()*,:;=@&+".contains(byte);
            self.push(*byte, plain, &mut target);
        }
        for (at, pair) in query.iter().enumerate() {
            target.push(if at == 0 { '?' } else { '&' });
            for byte in &pair.name {
                self.push(*byte, byte.is_ascii_alphanumeric() || b"-._~/?;".contains(byte), &mut target);
            }
            if !pair.value.is_empty() || self.random.bool() {
                target.push('=');
            }
            for byte in &pair.value {
                self.push(*byte, byte.is_ascii_alphanumeric() || b"-._~/?;=:".contains(byte), &mut target);
            }
        }
        if query.is_empty() && self.chance(20) {
            target.push('?');
        }
        target
    }

    /// Writes a byte, percent-encoded if that is required, and at times if it isn't.
    fn push(&mut self, byte: u8, plain: bool, to: &mut String) {
        if plain && (byte == b'/' || !self.chance(12)) {
            to.push(char::from(byte));
        } else {
            to.push_str(&self.escape(byte));
        }
    }

    /// Percent-encodes a byte, with digits in upper or lower case.
    pub(super) fn escape(&mut self, byte: u8) -> String {
        if self.random.bool() { format!("%{byte:02X}") } else { format!("%{byte:02x}") }
    }
}
