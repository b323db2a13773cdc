//! Usage of buckets, which gateways exchange in ConfigMaps of the operator's namespace (spec §6):
//! the results of scans, and what each replica has written since.
//!
//! A replica's figures for a bucket only increase while it runs. A snapshot records, for each
//! replica, up to which figure the scan has seen its writes. Clocks of different machines are
//! therefore never compared.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::names::RecordName;
use super::wire::{self, Usage};

/// Maximum number of buckets in one ConfigMap of counters. Their total is less than 64 KiB.
const MOST_BUCKETS: usize = 256;
/// Maximum number of bytes in one ConfigMap.
const LONGEST: usize = 64 << 10;
/// Maximum length of a replica's name, in bytes.
const LONGEST_REPLICA: usize = 63;

/// Bytes written by one replica to one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Initial value of this count. It is above every figure of the replica's earlier counts.
    pub base: u64,
    /// Figure up to which everything is stored. It starts at `base`.
    pub written: u64,
    /// Bytes that are being uploaded, or that may have been stored.
    pub open: u64,
    /// Number of deletions and aborted multipart uploads.
    pub removals: u64,
}

impl Figures {
    /// Returns the figure up to which the replica may have written.
    #[must_use]
    pub fn total(self) -> u64 {
        self.written.saturating_add(self.open)
    }

    /// Returns the number of bytes written beyond the figure `covered`.
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

/// Error for a ConfigMap that is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoUsage {
    /// The ConfigMap does not belong to the gateways.
    #[error("it is not named or labelled as one that gateways keep")]
    Foreign,
    /// A string is longer than gateways write, or there are more entries.
    #[error("it holds more than any that gateways keep")]
    TooLong,
    /// A string cannot be parsed.
    #[error("what stands in it can't be read")]
    Unreadable,
}

/// A shard of a replica's figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Name of the replica, unique for each run of a process.
    pub replica: String,
    /// Number of this shard.
    pub shard: u16,
    /// Figures by bucket.
    pub of: BTreeMap<RecordName, Figures>,
}

const COUNTERS_PREFIX: &str = "usage-of-";
const SNAPSHOT_PREFIX: &str = "usage-in-";

impl Measured {
    /// Maximum number of replicas that it can name.
    pub const MOST_REPLICAS: usize = 256;

    /// Returns true if the numbers of replicas, and the lengths of their names, are within bounds.
    fn is_bounded(&self) -> bool {
        let has_room = |names: usize| names <= Self::MOST_REPLICAS;
        let mut names = self.covers.keys().chain(self.removals.keys());
        has_room(self.covers.len()) && has_room(self.removals.len()) && names.all(|name| name.len() <= LONGEST_REPLICA)
    }
}

impl Counters {
    /// Maximum number of buckets in a shard.
    pub const MOST: usize = MOST_BUCKETS;

    /// Returns the name of the ConfigMap.
    #[must_use]
    pub fn name(replica: &str, shard: u16) -> String {
        format!("{COUNTERS_PREFIX}{replica}-{shard}")
    }

    /// Returns the ConfigMap to write.
    #[must_use]
    pub fn config_map(&self, namespace: &str) -> ConfigMap {
        let data = self.of.iter().map(|(bucket, figures)| (bucket.digits().to_owned(), figures.to_string()));
        config_map(namespace, Self::name(&self.replica, self.shard), Usage::Counters, data.collect())
    }

    /// Parses a ConfigMap.
    ///
    /// # Errors
    /// Returns an error if the ConfigMap is not one that gateways write.
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

/// Result of a scan of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// Number of the scan. Later scans have higher numbers.
    pub number: u64,
    /// Number of bytes in all objects, their versions and the parts of multipart uploads.
    pub bytes: u64,
    /// Number of objects, including their versions.
    pub objects: u64,
    /// Time at which the scan began, by the clock of the gateway that made it.
    pub began: Timestamp,
    /// Duration of the scan, in milliseconds.
    pub took_ms: u64,
    /// For each replica, the figure up to which the scan has seen its writes.
    pub covers: BTreeMap<String, u64>,
    /// For each replica, the number of its removals that the scan has seen.
    pub removals: BTreeMap<String, u64>,
}

/// A scan in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scanning {
    /// Result so far. Its `took_ms` is the time spent until now.
    pub so_far: Measured,
    /// Position at which the scan continues, for the gateway that makes it.
    pub marker: String,
}

/// Known contents of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Bucket, by the name of its record.
    pub bucket: RecordName,
    /// Result of the last complete scan.
    pub measured: Option<Measured>,
    /// Scan in progress.
    pub scanning: Option<Scanning>,
    /// Time since which scans fail, by the clock of the gateway that makes them.
    pub failing_since: Option<Timestamp>,
}

impl Snapshot {
    /// Returns a snapshot of a bucket about which nothing is known yet.
    #[must_use]
    pub fn of(bucket: RecordName) -> Self {
        Self { bucket, measured: None, scanning: None, failing_since: None }
    }

    /// Returns the name of the ConfigMap.
    #[must_use]
    pub fn name(bucket: &RecordName) -> String {
        format!("{SNAPSHOT_PREFIX}{}", bucket.digits())
    }

    /// Returns the number of the latest scan, complete or not.
    #[must_use]
    pub fn number(&self) -> u64 {
        let scanning = self.scanning.as_ref().map_or(0, |scan| scan.so_far.number);
        self.measured.as_ref().map_or(0, |measured| measured.number).max(scanning)
    }

    /// Returns the ConfigMap to write.
    #[must_use]
    pub fn config_map(&self, namespace: &str) -> ConfigMap {
        let mut data = BTreeMap::new();
        let mut put = |key: &str, text: Option<String>| data.extend(text.map(|text| (key.to_owned(), text)));
        put("measured", self.measured.as_ref().and_then(|it| serde_json::to_string(it).ok()));
        put("scanning", self.scanning.as_ref().and_then(|it| serde_json::to_string(it).ok()));
        put("failing-since", self.failing_since.map(|time| time.to_string()));
        config_map(namespace, Self::name(&self.bucket), Usage::Snapshot, data)
    }

    /// Parses a ConfigMap.
    ///
    /// # Errors
    /// Returns an error if the ConfigMap is not one that gateways write.
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

/// Returns the known usage of a bucket in bytes: the result of the last scan, and what replicas
/// have written since.
///
/// Before the first scan is complete, it is the result so far and everything that replicas have
/// written.
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

/// Returns the part of the name after the prefix.
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
