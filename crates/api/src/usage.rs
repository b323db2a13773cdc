//! How much a bucket holds, as gateways keep count of it in ConfigMaps of the operator namespace
//! (spec §6): what was found there, and what each replica has written since.
//!
//! A replica's figures of a bucket only rise while it lives. A snapshot says up to which figure of
//! each replica it has seen what was written, so no two clocks are compared.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::names::RecordName;
use super::wire::{self, Usage};

/// Most buckets in one ConfigMap of counters: they have less than 64 KiB together.
const MOST_BUCKETS: usize = 256;
/// Longest text in one ConfigMap, in bytes.
const LONGEST: usize = 64 << 10;
/// Longest name of a replica, in bytes.
const LONGEST_REPLICA: usize = 63;

/// What one replica has written to one bucket, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Where the count began. Whatever the replica wrote before, in an earlier count, had a lower
    /// figure.
    pub base: u64,
    /// What is stored for certain, counted from the base on.
    pub written: u64,
    /// What is under way, or may have been stored.
    pub open: u64,
    /// How often something was deleted, or a multipart upload given up.
    pub removals: u64,
}

impl Figures {
    /// Up to where the replica may have written.
    #[must_use]
    pub fn total(self) -> u64 {
        self.written.saturating_add(self.open)
    }

    /// How much of that lies beyond what somebody has seen.
    #[must_use]
    pub fn beyond(self, covered: u64) -> u64 {
        self.total().saturating_sub(self.base.max(covered))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.splitn(4, ' ').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let (base, written, open, removals) = (next()?, next()?, next()?, next()?);
        Some(Self { base, written, open, removals }).filter(|it| it.written >= it.base)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.base, self.written, self.open, self.removals)
    }
}

/// Why a ConfigMap of ours says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoUsage {
    /// It is none of ours.
    #[error("it is not named or labelled as one that gateways keep")]
    Foreign,
    /// A text is longer than any of ours, or there are more.
    #[error("it holds more than any that gateways keep")]
    TooLong,
    /// A text can't be read.
    #[error("what stands in it can't be read")]
    Unreadable,
}

/// A part of the figures of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// The replica, one life of a process.
    pub replica: String,
    /// Which part this is.
    pub shard: u16,
    /// The figures by bucket.
    pub of: BTreeMap<RecordName, Figures>,
}

const COUNTERS_PREFIX: &str = "usage-of-";
const SNAPSHOT_PREFIX: &str = "usage-in-";

impl Measured {
    /// Most replicas that it can name.
    pub const MOST_REPLICAS: usize = 256;

    /// True where it names no more replicas than it can, each by a name that a replica has.
    fn is_bounded(&self) -> bool {
        let has_room = |names: usize| names <= Self::MOST_REPLICAS;
        let mut names = self.covers.keys().chain(self.removals.keys());
        has_room(self.covers.len()) && has_room(self.removals.len()) && names.all(|name| name.len() <= LONGEST_REPLICA)
    }
}

impl Counters {
    /// Most buckets that there is room for.
    pub const MOST: usize = MOST_BUCKETS;

    /// The name of the ConfigMap.
    #[must_use]
    pub fn name(replica: &str, shard: u16) -> String {
        format!("{COUNTERS_PREFIX}{replica}-{shard}")
    }

    /// The ConfigMap to write.
    #[must_use]
    pub fn config_map(&self, namespace: &str) -> ConfigMap {
        let data = self.of.iter().map(|(bucket, figures)| (bucket.digits().to_owned(), figures.to_string()));
        config_map(namespace, Self::name(&self.replica, self.shard), Usage::Counters, data.collect())
    }

    /// Reads one.
    ///
    /// # Errors
    /// When anything in it is none of ours.
    pub fn read(map: &ConfigMap) -> Result<Self, NoUsage> {
        let rest = name_of(map, Usage::Counters, COUNTERS_PREFIX)?;
        let (replica, shard) = rest.rsplit_once('-').ok_or(NoUsage::Foreign)?;
        let shard = shard.parse().map_err(|_| NoUsage::Foreign)?;
        if replica.is_empty() || replica.len() > LONGEST_REPLICA {
            return Err(NoUsage::Foreign);
        }
        let entries = map.data.iter().flatten();
        if entries.clone().count() > MOST_BUCKETS || length(map) > LONGEST {
            return Err(NoUsage::TooLong);
        }
        let entry = |(digits, text): (&String, &String)| {
            let bucket = RecordName::parse(&format!("{}{digits}", wire::RECORD_PREFIX)).ok()?;
            Some((bucket, Figures::parse(text)?))
        };
        let of: Option<BTreeMap<_, _>> = entries.map(entry).collect();
        Ok(Self { replica: replica.to_owned(), shard, of: of.ok_or(NoUsage::Unreadable)? })
    }
}

/// What a scan of a bucket found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// The number of the scan: a later one has a higher.
    pub number: u64,
    /// Bytes of all objects, their versions and the parts of multipart uploads.
    pub bytes: u64,
    /// Objects, their versions included.
    pub objects: u64,
    /// When the scan began, by the clock of who made it.
    pub began: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Up to which figure of each replica it has seen what was written.
    pub covers: BTreeMap<String, u64>,
    /// How many removals of each replica it has seen.
    pub removals: BTreeMap<String, u64>,
}

/// A scan that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scanning {
    /// What it has found so far; `took_ms` is what it has taken.
    pub so_far: Measured,
    /// Where it goes on: for who made it.
    pub marker: String,
}

/// What is known of what a bucket holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The bucket.
    pub bucket: RecordName,
    /// What the last whole scan found.
    pub measured: Option<Measured>,
    /// The scan under way.
    pub scanning: Option<Scanning>,
    /// Since when scans fail, by the clock of who makes them.
    pub failing_since: Option<Timestamp>,
}

impl Snapshot {
    /// Nothing is known yet.
    #[must_use]
    pub fn of(bucket: RecordName) -> Self {
        Self { bucket, measured: None, scanning: None, failing_since: None }
    }

    /// The name of the ConfigMap.
    #[must_use]
    pub fn name(bucket: &RecordName) -> String {
        format!("{SNAPSHOT_PREFIX}{}", bucket.digits())
    }

    /// The number of the latest scan, whole or not.
    #[must_use]
    pub fn number(&self) -> u64 {
        let scanning = self.scanning.as_ref().map_or(0, |scan| scan.so_far.number);
        self.measured.as_ref().map_or(0, |measured| measured.number).max(scanning)
    }

    /// The ConfigMap to write.
    #[must_use]
    pub fn config_map(&self, namespace: &str) -> ConfigMap {
        let mut data = BTreeMap::new();
        let mut put = |key: &str, text: Option<String>| data.extend(text.map(|text| (key.to_owned(), text)));
        put("measured", self.measured.as_ref().and_then(|it| serde_json::to_string(it).ok()));
        put("scanning", self.scanning.as_ref().and_then(|it| serde_json::to_string(it).ok()));
        put("failing-since", self.failing_since.map(|time| time.to_string()));
        config_map(namespace, Self::name(&self.bucket), Usage::Snapshot, data)
    }

    /// Reads one.
    ///
    /// # Errors
    /// When anything in it is none of ours.
    pub fn read(map: &ConfigMap) -> Result<Self, NoUsage> {
        let digits = name_of(map, Usage::Snapshot, SNAPSHOT_PREFIX)?;
        let name = format!("{}{digits}", wire::RECORD_PREFIX);
        let bucket = RecordName::parse(&name).map_err(|_| NoUsage::Foreign)?;
        if length(map) > LONGEST {
            return Err(NoUsage::TooLong);
        }
        let since = text(map, "failing-since").map(str::parse).transpose();
        let measured: Option<Measured> = json(map, "measured")?;
        let scanning: Option<Scanning> = json(map, "scanning")?;
        let mut all = measured.iter().chain(scanning.iter().map(|scan| &scan.so_far));
        if !all.all(Measured::is_bounded) {
            return Err(NoUsage::TooLong);
        }
        Ok(Self { bucket, measured, scanning, failing_since: since.map_err(|_| NoUsage::Unreadable)? })
    }
}

/// How much a bucket holds, as far as is known, in bytes: what the last scan found, and what
/// replicas have written beyond what it saw. Before the first scan has ended, what it has seen so
/// far and all that was written.
#[must_use]
pub fn used<'a>(snapshot: Option<&Snapshot>, figures: impl IntoIterator<Item = (&'a str, Figures)>) -> u64 {
    let measured = snapshot.and_then(|snapshot| snapshot.measured.as_ref());
    let scanning = snapshot.and_then(|snapshot| snapshot.scanning.as_ref());
    let found = measured.or_else(|| scanning.map(|scan| &scan.so_far)).map_or(0, |found| found.bytes);
    let covered = |replica: &str| measured.and_then(|it| it.covers.get(replica)).copied().unwrap_or(0);
    let beyond = figures.into_iter().map(|(replica, figures)| figures.beyond(covered(replica)));
    beyond.fold(found, u64::saturating_add)
}

fn config_map(namespace: &str, name: String, usage: Usage, data: BTreeMap<String, String>) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: Some([(wire::USAGE.to_owned(), usage.as_str().to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
}

/// What the name has behind the prefix.
fn name_of<'a>(map: &'a ConfigMap, usage: Usage, prefix: &str) -> Result<&'a str, NoUsage> {
    let label = map.metadata.labels.as_ref().and_then(|labels| labels.get(wire::USAGE));
    let name = map.metadata.name.as_deref().and_then(|name| name.strip_prefix(prefix));
    name.filter(|_| label.is_some_and(|label| label == usage.as_str())).ok_or(NoUsage::Foreign)
}

fn length(map: &ConfigMap) -> usize {
    map.data.iter().flatten().map(|(key, text)| key.len() + text.len()).sum()
}

fn text<'a>(map: &'a ConfigMap, key: &str) -> Option<&'a str> {
    map.data.as_ref()?.get(key).map(String::as_str)
}

fn json<T: DeserializeOwned>(map: &ConfigMap, key: &str) -> Result<Option<T>, NoUsage> {
    text(map, key).map(serde_json::from_str).transpose().map_err(|_| NoUsage::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket() -> RecordName {
        RecordName::parse("br-0256d38414e1bdd362c6fc38acbb3d9931ec5283").unwrap()
    }

    fn measured() -> Measured {
        Measured {
            number: 3,
            bytes: 1000,
            objects: 2,
            began: "2030-01-01T00:00:00Z".parse().unwrap(),
            took_ms: 70,
            covers: [("a".to_owned(), 40)].into(),
            removals: [("a".to_owned(), 1)].into(),
        }
    }

    // covers: 6.quota.exchange
    #[test]
    fn what_is_written_is_read_back() {
        let figures = Figures { base: 1, written: 20, open: 3, removals: 4 };
        let counters = Counters { replica: "7f-a".to_owned(), shard: 3, of: [(bucket(), figures)].into() };
        assert_eq!(Counters::read(&counters.config_map("system")), Ok(counters));
        let scanning = Some(Scanning { so_far: measured(), marker: "m".to_owned() });
        let failing_since = Some("2030-01-01T00:00:07Z".parse().unwrap());
        let snapshot = Snapshot { bucket: bucket(), measured: Some(measured()), scanning, failing_since };
        assert_eq!(Snapshot::read(&snapshot.config_map("system")), Ok(snapshot));
    }

    #[test]
    fn what_is_not_ours_says_nothing() {
        let figures = Figures::default();
        let counters = Counters { replica: "a".to_owned(), shard: 0, of: [(bucket(), figures)].into() };
        let mut map = counters.config_map("system");
        map.data.get_or_insert_default().insert(bucket().digits().to_owned(), "5 4 0 0".to_owned());
        assert_eq!(Counters::read(&map), Err(NoUsage::Unreadable), "written is never below its base");
        map.data.get_or_insert_default().insert("x".to_owned(), "1".repeat(LONGEST));
        assert_eq!(Counters::read(&map), Err(NoUsage::TooLong));
        map.metadata.labels = None;
        assert_eq!(Counters::read(&map), Err(NoUsage::Foreign));
        assert_eq!(Snapshot::read(&map), Err(NoUsage::Foreign));
    }

    #[test]
    fn a_full_config_map_has_less_than_64_kib() {
        let largest = Figures { base: u64::MAX, written: u64::MAX, open: u64::MAX, removals: u64::MAX };
        let name = |number| RecordName::parse(&format!("br-{number:040x}")).unwrap();
        let of = (0..Counters::MOST).map(|number| (name(number), largest)).collect();
        assert!(length(&Counters { replica: "a".to_owned(), shard: 0, of }.config_map("system")) <= LONGEST);
    }

    // covers: 6.quota.exchange.bounds
    #[test]
    fn of_replicas_a_snapshot_names_no_more_than_it_can() {
        let of = |names: usize, name: fn(usize) -> String| {
            let covers: BTreeMap<String, u64> = (0..names).map(|number| (name(number), 0)).collect();
            let measured = Measured { covers: covers.clone(), removals: BTreeMap::new(), ..measured() };
            let whole = Snapshot { measured: Some(measured.clone()), ..Snapshot::of(bucket()) };
            let so_far = Measured { covers: BTreeMap::new(), removals: covers, ..measured };
            let scanning = Some(Scanning { so_far, marker: "m".to_owned() });
            let begun = Snapshot { scanning, ..Snapshot::of(bucket()) };
            [whole, begun].map(|snapshot| Snapshot::read(&snapshot.config_map("system")).err())
        };
        assert_eq!(of(Measured::MOST_REPLICAS, |number| format!("{number:016x}")), [None, None]);
        assert_eq!(of(Measured::MOST_REPLICAS + 1, |number| number.to_string()), [Some(NoUsage::TooLong); 2]);
        assert_eq!(of(1, |_| "a".repeat(LONGEST_REPLICA + 1)), [Some(NoUsage::TooLong); 2]);
    }

    // covers: 6.quota.used
    #[test]
    fn what_a_scan_has_seen_counts_once() {
        let of_a = Figures { base: 0, written: 45, open: 5, removals: 0 };
        let of_b = Figures { base: 100, written: 107, open: 0, removals: 0 };
        let figures = [("a", of_a), ("b", of_b)];
        assert_eq!(used(None, figures), 57);
        let mut snapshot = Snapshot::of(bucket());
        snapshot.scanning = Some(Scanning { so_far: measured(), marker: String::new() });
        assert_eq!(used(Some(&snapshot), figures), 1057, "the first scan has not ended");
        snapshot.measured = Some(measured());
        assert_eq!(used(Some(&snapshot), figures), 1017);
    }
}
